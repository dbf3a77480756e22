"""Reading a payload within a second, whatever comes or does not come on stdin."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.hooks import intake

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes are not waited for on Windows")


def read(*blocks: bytes | float, close: bool = True) -> tuple[dict[str, object], str, float]:
    """Feed blocks of bytes and pauses in seconds into a pipe; return payload, complaint, seconds taken."""
    source, sink = os.pipe()

    def feed() -> None:
        try:
            for block in blocks:
                if isinstance(block, float):
                    time.sleep(block)
                else:
                    view = memoryview(block)
                    while view:
                        view = view[os.write(sink, view) :]
        except BrokenPipeError:
            pass  # the reader has had enough
        finally:
            if close:
                os.close(sink)

    writer = threading.Thread(target=feed)
    before = time.monotonic()
    writer.start()
    try:
        value, complaint = intake.read_payload(source)
        taken = time.monotonic() - before
    finally:
        os.close(source)
        writer.join()
        if not close:
            os.close(sink)
    return value, complaint, taken


def test_a_payload_is_read_whole() -> None:
    payload = {"session_id": "s", "text": "é🙂" * 50_000}
    assert read(json.dumps(payload).encode())[:2] == (payload, "")


def test_an_object_is_not_waited_for_further_when_the_pipe_stays_open() -> None:
    value, complaint, taken = read(b'{"a":{"b":1}}\n', close=False)
    assert (value, complaint) == ({"a": {"b": 1}}, "")
    assert taken < 0.9


def test_a_writer_that_rests_behind_a_brace_inside_is_waited_for() -> None:
    value, complaint, _ = read(b'{"a":{"b":1}', 0.15, b',"c":{}', 0.15, b',"d":2}', close=False)
    assert (value, complaint) == ({"a": {"b": 1}, "c": {}, "d": 2}, "")


def test_a_pipe_on_which_nothing_comes_costs_a_second_at_most() -> None:
    value, complaint, taken = read(close=False)
    assert (value, complaint) == ({}, "no payload within 1 s")
    assert taken < 3


def test_half_an_object_on_an_open_pipe_is_a_complaint_after_a_second() -> None:
    value, complaint, taken = read(b'{"a":', close=False)
    assert value == {}
    assert "not JSON" in complaint
    assert taken < 3


def test_a_writer_that_never_ends_is_cut_off() -> None:
    assert read(*(b"x" * 10, 0.05) * 40, close=False)[2] < 8


@pytest.mark.parametrize("raw", [b"", b"  \n\t ", b"\n" * 100_000])
def test_no_input_is_no_complaint(raw: bytes) -> None:
    assert read(raw)[:2] == ({}, "")


@pytest.mark.parametrize("raw", [b"garbage", b"[1]", b"5", b"null", b'{"a":1}{"b":2}', b"\x00\xff", b"{" * 5000])
def test_what_is_no_object_is_a_complaint(raw: bytes) -> None:
    value, complaint, _ = read(raw)
    assert value == {}
    assert "payload" in complaint


def test_a_byte_order_mark_is_no_fault() -> None:
    assert read(b'\xef\xbb\xbf{"a":1}')[:2] == ({"a": 1}, "")


def test_of_a_payload_above_a_megabyte_the_leading_fields_are_used() -> None:
    raw = json.dumps({"session_id": "s", "cwd": "/x", "big": "y" * 3_000_000, "late": 1}).encode()
    assert read(raw)[:2] == ({"session_id": "s", "cwd": "/x"}, "")
    value, complaint, _ = read(b"z" * 3_000_000)
    assert value == {}
    assert "3000000 bytes" in complaint


@given(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.lists(st.none(), max_size=2)),
    st.integers(0, 200),
)
def test_leading_fields_are_those_before_the_cut(payload: dict[str, object], cut: int) -> None:
    raw = json.dumps(payload).encode()
    found = intake.leading_fields(raw[:cut].decode())
    names = list(payload)
    whole = list(found)
    assert whole == names[: len(whole)]
    for name in whole[:-1]:
        assert found[name] == payload[name]
    if cut >= len(raw):
        assert found == payload


def test_a_document_is_ascii_and_a_closed_pipe_is_nobodys_loss() -> None:
    source, sink = os.pipe()
    intake.write_document(sink, "é🙂")
    assert os.read(source, 100) == b"\\xe9\\U0001f642"
    os.close(source)
    intake.write_document(sink, "x")
    os.close(sink)
    intake.write_document(sink, "x")

"""Streams: harmless text out, UTF-8 in."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.cli import terminal
from context_anchor.errors import UsageError


@given(st.text())
def test_no_control_character_is_left_but_line_breaks_and_tabs(text: str) -> None:
    shown = terminal.harmless(text)
    for char in shown:
        point = ord(char)
        assert char in "\n\t" or not (point < 0x20 or 0x7F <= point < 0xA0)
        assert not 0xD800 <= point < 0xE000
        assert not 0x202A <= point <= 0x202E and not 0x2066 <= point <= 0x2069
    assert len(terminal.one_line(text).splitlines()) <= 1


def test_ordinary_text_is_shown_as_it_is() -> None:
    text = "Zeile ü\n\t中文 👩\u200d💻 e\u0301\n"
    assert terminal.harmless(text) == text


def test_a_lone_surrogate_does_not_break_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.write_json({"a\ud800": ["x\udcff", {"b": "\udfff"}], "n": 1})
    assert json.loads(capsys.readouterr().out) == {"a\ufffd": ["x\ufffd", {"b": "\ufffd"}], "n": 1}


def test_a_stream_without_bytes_below_takes_text() -> None:
    stream = io.StringIO()
    terminal.write("ü\ud800", stream)
    assert stream.getvalue() == "ü?"


def test_input_that_is_too_large_or_unreadable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "MAX_INPUT_BYTES", 10)
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(UsageError, match="larger than"):
        terminal.read_text(str(tmp_path / "big"), "it")
    monkeypatch.setattr(sys, "stdin", io.StringIO("text ü"))
    assert terminal.read_text("-", "it") == "text ü"
    monkeypatch.setattr(sys, "stdin", None)
    assert terminal.read_text("-", "it") == ""


def test_bytes_that_are_no_utf8_are_named_by_their_place() -> None:
    with pytest.raises(UsageError, match="byte 2 is 0xff"):
        terminal.decode(b"ok\xff", "it")
    with pytest.raises(UsageError):
        terminal.decode(b"\xff\xfe\x00", "it")


@pytest.mark.skipif(os.name == "nt", reason="arguments are text on Windows")
def test_arguments_that_a_c_locale_could_not_decode_are_read_as_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    undecoded = "ü".encode().decode("ascii", "surrogateescape")
    broken = b"\xff".decode("ascii", "surrogateescape")
    monkeypatch.setattr(sys, "argv", ["x", undecoded, "a", broken])
    assert terminal.words_of_process() == ["ü", "a", broken]

"""Reading a growing file by pieces gives the same lines as reading it whole."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_anchor.wire import tail
from context_anchor.wire.tail import Tail, read_end, read_head

KB = 1024
MB = 1024 * 1024
PIECES = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [b"\n", b"\r\n", b"\r", b"\n\n", b"\xef\xbb\xbf", b"\xff\xfe", b'{"a":1}\n', b"x" * 63, b"y" * 64,
             b"z" * 65, b"w" * 99 + b"\n", b"v" * 100 + b"\n", b"u" * 101 + b"\n", b"\x00", b"t" * 300]
        ),
    ),
    max_size=25,
).map(b"".join)  # fmt: skip


def expected(raw: bytes, limit: int) -> tuple[list[bytes], int]:
    """Return the complete lines of a file and how many were too long: the plain way."""
    if raw[:3] == b"\xef\xbb\xbf":
        raw = raw[3:]
    whole = raw.split(b"\n")[:-1]
    kept = [line[:-1] if line[-1:] == b"\r" else line for line in whole if len(line) <= limit]
    return kept, len(whole) - len(kept)


@contextmanager
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "LINE_BYTES", 100)
        patch.setattr(tail, "CHUNK_BYTES", 64)
        patch.setattr(tail, "FIRST_BYTES", 50)
        yield


def grow(path: Path, steps: list[bytes]) -> tuple[list[bytes], int, list[str]]:
    """Append step by step and read after each; the cursor goes through JSON, as marks do."""
    lines: list[bytes] = []
    skipped = 0
    resets = []
    path.write_bytes(b"")
    cursor: dict[str, Any] | None = None
    for step in [b"", *steps]:
        with path.open("ab") as out:
            out.write(step)
        reading = Tail(str(path), cursor)
        lines += reading.lines()
        skipped += reading.skipped
        resets.append(reading.reset)
        cursor = json.loads(json.dumps(reading.cursor))
    return lines, skipped, resets


@given(PIECES, st.lists(st.integers(0, 400), max_size=12))
@example(b"\xef\xbb\xbf{}\r\n" + b"x" * 250 + b"\n{}\n", [1, 1, 3, 100, 101])
def test_however_a_file_grows_the_lines_are_those_of_the_whole_file(raw: bytes, cuts: list[int]) -> None:
    with small_limits(), tempfile.TemporaryDirectory() as folder:
        marks = sorted({min(c, len(raw)) for c in cuts} | {0, len(raw)})
        steps = [raw[a:b] for a, b in pairwise(marks)]
        lines, skipped, resets = grow(Path(folder, "t"), steps)
        want, too_long = expected(raw, 100)
        assert lines == want
        # A line that is still open is counted as soon as it is known to be too long.
        rest = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")[-1]
        assert too_long <= skipped <= too_long + (len(rest) > 100)
        assert set(resets[1:]) <= {""}


@given(PIECES)
def test_the_first_look_at_a_big_file_gives_a_run_of_whole_lines_up_to_its_end(raw: bytes) -> None:
    with small_limits(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t")
        path.write_bytes(raw)
        reading = Tail(str(path))
        lines = list(reading.lines())
        want, _ = expected(raw, 100)
        assert lines == want[len(want) - len(lines) :]
        assert reading.reset == "first"
        if len(raw) <= 50:
            assert lines == want
        with path.open("ab") as out:
            out.write(b"\nlast\n")
        assert list(Tail(str(path), reading.cursor).lines())[-1:] == [b"last"]


@pytest.mark.parametrize("size", [100 * KB, 130 * KB, 600 * KB, MB])
def test_a_long_last_line_is_found_by_growing_backwards(tmp_path: Path, size: int) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"early\n" * 100_000 + b"L" * size + b"\n")
    reading = Tail(str(path))
    lines = list(reading.lines())
    if size == MB:  # with its line end it is longer than the largest window
        assert lines == []
        assert reading.skipped == 1
    else:
        assert lines[-1] == b"L" * size
        assert reading.skipped == 0


@pytest.mark.parametrize("size", [MB + 1, 2 * MB])
@pytest.mark.parametrize("chunk", [70_000, 5 * MB])
def test_a_line_above_the_limit_is_skipped_counted_once_and_reading_goes_on(
    tmp_path: Path, size: int, chunk: int
) -> None:
    raw = b"before\n" + b"L" * size + b"\n" + b"K" * MB + b"\nafter\n"
    steps = [raw[at : at + chunk] for at in range(0, len(raw), chunk)]
    lines, skipped, _ = grow(tmp_path / "t", steps)
    assert [len(line) for line in lines] == [6, MB, 5]
    assert skipped == 1


class Count:
    """Bytes asked from the system and the longest single read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.total = 0
        self.largest = 0
        real: Callable[[int, int], bytes] = os.read

        def read(fd: int, size: int) -> bytes:
            data = real(fd, size)
            self.total += len(data)
            self.largest = max(self.largest, len(data))
            return data

        monkeypatch.setattr(os, "read", read)


def sparse(path: Path, size: int, end: bytes) -> None:
    with path.open("wb") as out:
        out.truncate(size)
        out.seek(size)
        out.write(end)


@pytest.mark.parametrize("gigabytes", [1, 5])
def test_the_first_look_reads_as_little_of_gigabytes_as_of_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gigabytes: int
) -> None:
    path = tmp_path / "t"
    sparse(path, gigabytes * 1024 * MB, b"\n" + b"a line\n" * 30_000)
    count = Count(monkeypatch)
    reading = Tail(str(path))
    lines = list(reading.lines())
    assert set(lines) == {b"a line"}
    assert count.total <= 2 * tail.FIRST_BYTES + 200
    count.total = 0
    assert list(Tail(str(path), reading.cursor).lines()) == []
    assert count.total <= 200


def test_a_file_of_one_endless_line_costs_a_bounded_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    sparse(path, 3 * 1024 * MB, b"x")
    count = Count(monkeypatch)
    reading = Tail(str(path))
    assert list(reading.lines()) == []
    assert reading.skipped == 1
    assert count.total < 3 * MB
    assert count.largest <= tail.CHUNK_BYTES
    with path.open("ab") as out:
        out.write(b"x\nnew\n")
    assert list(Tail(str(path), reading.cursor).lines()) == [b"new"]


def test_far_behind_means_beginning_again_at_the_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"old\n")
    reading = Tail(str(path))
    assert list(reading.lines()) == [b"old"]
    with path.open("ab") as out:
        out.truncate(tail.CATCH_UP_BYTES + 100)
        out.seek(0, os.SEEK_END)
        out.write(b"\nnew\n")
    count = Count(monkeypatch)
    again = Tail(str(path), reading.cursor)
    assert list(again.lines())[-1] == b"new"
    assert again.reset == "behind"
    assert again.unread_bytes > 15 * MB
    assert count.total < 4 * MB


def test_a_file_that_is_not_there_yet_is_no_error_and_is_read_when_it_comes(tmp_path: Path) -> None:
    reading = Tail(str(tmp_path / "t"))
    assert list(reading.lines()) == []
    assert reading.missing
    (tmp_path / "t").write_bytes(b"one\n")
    later = Tail(str(tmp_path / "t"), reading.cursor)
    assert list(later.lines()) == [b"one"]
    assert later.from_start
    below = Tail(str(tmp_path / "t" / "below"))
    assert list(below.lines()) == []
    assert below.missing


def start(path: Path, raw: bytes) -> dict[str, Any]:
    path.write_bytes(raw)
    reading = Tail(str(path))
    list(reading.lines())
    return reading.cursor


def test_a_truncated_file_is_read_anew(tmp_path: Path) -> None:
    cursor = start(tmp_path / "t", b"one\ntwo\n")
    with (tmp_path / "t").open("r+b") as out:
        out.truncate(0)
        out.write(b"x\n")
    reading = Tail(str(tmp_path / "t"), cursor)
    assert list(reading.lines()) == [b"x"]
    assert reading.reset == "truncated"


def test_a_replaced_file_is_read_anew(tmp_path: Path) -> None:
    cursor = start(tmp_path / "t", b"one\ntwo\n")
    (tmp_path / "n").write_bytes(b"one\nTWO\nthree\n")
    os.replace(tmp_path / "n", tmp_path / "t")
    reading = Tail(str(tmp_path / "t"), cursor)
    assert list(reading.lines()) == [b"one", b"TWO", b"three"]
    assert reading.reset == "replaced"


def test_a_file_rewritten_in_place_is_read_anew(tmp_path: Path) -> None:
    cursor = start(tmp_path / "t", b"one\ntwo\n")
    with (tmp_path / "t").open("r+b") as out:
        out.write(b"ONE\nTWO\nthree\n")
    reading = Tail(str(tmp_path / "t"), cursor)
    assert list(reading.lines()) == [b"ONE", b"TWO", b"three"]
    assert reading.reset == "rewritten"


def test_a_last_line_without_its_end_waits_and_counts_when_the_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"one\ntorn")
    reading = Tail(str(tmp_path / "t"))
    assert list(reading.lines()) == [b"one"]
    assert list(Tail(str(tmp_path / "t"), reading.cursor).lines()) == []
    assert list(Tail(str(tmp_path / "t"), reading.cursor, final=True).lines()) == [b"torn"]


@pytest.mark.parametrize(
    "cursor",
    [
        {}, {"offset": "4"}, {"offset": -1}, {"offset": True}, {"offset": 4}, {"offset": 10**30}, {"offset": None},
        {"dev": 1, "ino": 2, "offset": 4, "guard": 5}, {"mid": "x"},
    ],
)  # fmt: skip
def test_a_damaged_cursor_means_reading_anew(tmp_path: Path, cursor: dict[str, Any]) -> None:
    (tmp_path / "t").write_bytes(b"one\ntwo\n")
    assert list(Tail(str(tmp_path / "t"), cursor).lines()) == [b"one", b"two"]


def test_only_the_files_first_line_is_told_to_be_its_first(tmp_path: Path) -> None:
    raw = b"one\n" * 100_000
    cursor = start(tmp_path / "small", b"one\n")
    (tmp_path / "big").write_bytes(raw)
    for path, known, want in (("small", None, True), ("small", cursor, False), ("big", None, False)):
        reading = Tail(str(tmp_path / path), known)
        list(reading.lines())
        assert reading.from_start is want


def test_the_ends_of_a_file_are_read_within_their_limits(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"abcdef")
    assert read_head(str(tmp_path / "t"), 4) == b"abcd"
    assert read_end(str(tmp_path / "t"), 4) == b"cdef"
    assert read_end(str(tmp_path / "t"), 40) == b"abcdef"
    assert read_head(str(tmp_path / "none")) == b""
    assert read_end(str(tmp_path / "none"), 4) == b""

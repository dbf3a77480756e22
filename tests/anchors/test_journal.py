"""The journal file: lines from its end, checksums, tails and appends."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.anchors import journal
from context_anchor.anchors.anchor import Anchor
from context_anchor.anchors.results import Change, JournalEntry

from .conftest import SESSION

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


def anchor(number: int, content: str = "c") -> Anchor:
    return Anchor(
        f"a-{number}", f"T{number}", content, "normal", "state", "session", (), (), AT, AT, "agent", 1
    )


def entry(number: int, content: str = "c", op: str = "pin", before: Anchor | None = None) -> JournalEntry:
    return JournalEntry(number, AT, "a", op, (Change(before, anchor(number, content)),))  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "x.journal.jsonl")


def test_entries_longer_than_a_chunk_come_back_newest_first(path: str) -> None:
    made = tuple(entry(n, "é" * (n % 3) * 70_000) for n in range(1, 6))
    journal.append(path, made, SESSION)
    assert tuple(journal.entries_backwards(path)) == made[::-1]
    assert journal.scope_of(path) == SESSION


@given(st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")), max_size=8), st.integers(1, 9))
@settings(max_examples=80)
def test_lines_from_the_end_are_the_lines_whatever_the_chunk(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], chunk: int
) -> None:
    path = str(tmp_path_factory.getbasetemp() / "lines.jsonl")
    for raw in (b"\n".join(lines), b"".join(line + b"\n" for line in lines)):
        Path(path).write_bytes(raw)
        with mock.patch.object(journal, "_CHUNK", chunk):
            found = [(line.raw, ended) for line, ended in journal.lines_backwards(path)]
        assert [piece for piece, _ in found] == [piece for piece in reversed(raw.split(b"\n")) if piece]
        if found:
            assert [ended for _, ended in found][1:] == [True] * (len(found) - 1)
            assert found[0][1] == raw.endswith(b"\n")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_any_changed_byte_is_noticed(at: int, change: int) -> None:
    raw = bytearray(journal.render_entry(entry(3, "some content"), SESSION))
    assert journal.parse_entry(bytes(raw)) is not None
    raw[at % len(raw)] ^= change
    assert journal.parse_entry(bytes(raw)) is None


def test_a_sound_checksum_over_nonsense_is_still_no_entry() -> None:
    import zlib

    good = json.loads(journal.render_entry(entry(1), SESSION))
    del good["sum"]
    changes: list[dict[str, object]] = [
        {"op": "explode"}, {"changes": 7}, {"changes": [{}]}, {"at": "x"}, {"undoes": "1"},
    ]  # fmt: skip
    for change in changes:
        body = json.dumps(good | change, separators=(",", ":"))[:-1].encode("ascii")
        assert journal.parse_entry(body + b',"sum":"%08x"}' % zlib.crc32(body)) is None


def test_a_tail_reads_no_further_back_than_it_must(path: str) -> None:
    journal.append(path, tuple(entry(n) for n in range(1, 6)), SESSION)
    tail = journal.read_tail(path, 3)
    assert [e.entry for e in tail.entries] == [4, 5]
    assert (tail.last, tail.gap, tail.behind, tail.torn, tail.damaged) == (5, False, False, 0, 0)
    assert journal.read_tail(path, 5) == journal.Tail((), 5)
    assert journal.read_tail(path, 7) == journal.Tail((), 5, behind=True)
    assert journal.read_tail(path + "none", 0) == journal.Tail()
    assert journal.read_tail(path + "none", 2) == journal.Tail(behind=True)


def test_missing_entries_are_a_gap_and_a_baseline_closes_it(path: str) -> None:
    journal.append(path, (entry(1), entry(4)), SESSION)
    assert journal.read_tail(path, 0, want_all=True).gap
    assert journal.read_tail(path, 1).gap
    journal.append(path, (entry(5, op="baseline"), entry(6)), SESSION)
    tail = journal.read_tail(path, 0, want_all=True)
    assert ([e.entry for e in tail.entries], tail.gap) == ([5, 6], False)
    assert set(journal.apply({"a-1": anchor(1)}, tail.entries)) == {"a-5", "a-6"}


def test_applying_entries_adds_changes_and_removes(path: str) -> None:
    one, two = anchor(1), anchor(2)
    removal = JournalEntry(3, AT, "a", "unpin", (Change(one, None),))
    swap = JournalEntry(4, AT, "a", "undo", (Change(two, one),), 3)
    assert journal.apply({}, (entry(1), entry(2))) == {"a-1": one, "a-2": two}
    assert journal.apply({"a-1": one}, (removal, removal)) == {}
    assert journal.apply({"a-2": two}, (swap,)) == {"a-1": one}


def test_a_failed_append_leaves_the_journal_as_it_was(path: str) -> None:
    journal.append(path, (entry(1),), SESSION)
    before = Path(path).read_bytes()
    with mock.patch.object(os, "fsync", side_effect=OSError(5, "broken")), pytest.raises(OSError):
        journal.append(path, (entry(2),), SESSION)
    assert Path(path).read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_link_in_the_journals_place_is_not_followed(path: str, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    Path(path).symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        journal.append(path, (entry(1),), SESSION)
    assert (tmp_path / "victim").read_bytes() == b"mine"

"""The log of failures: bounded, one line each, never an error of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from context_anchor.wire import hooklog


def test_failures_are_read_back_oldest_first(tmp_path: Path) -> None:
    for n in range(30):
        assert hooklog.note(str(tmp_path), "claude-code", "Stop", f"failure {n}\nwith two lines ü \ud800", float(n))
    found = hooklog.recent(str(tmp_path))
    assert [line["at"] for line in found] == [float(n) for n in range(10, 30)]
    assert found[-1]["what"] == "failure 29\nwith two lines ü \ud800"
    raw = Path(hooklog.log_path(str(tmp_path))).read_bytes()
    assert raw.isascii()
    assert len(raw.splitlines()) == 30


def test_a_full_log_is_turned_over_and_the_two_stay_bounded(tmp_path: Path) -> None:
    for n in range(1500):
        hooklog.note(str(tmp_path), "h" * 100, "e" * 100, "x" * 5000, float(n))
    sizes = {name: os.stat(tmp_path / "log" / name).st_size for name in os.listdir(tmp_path / "log")}
    assert set(sizes) == {"hooks.jsonl", "hooks.1.jsonl"}
    assert max(sizes.values()) < hooklog.MAX_BYTES + 2000
    assert hooklog.recent(str(tmp_path), 1)[0]["at"] == 1499.0


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    hooklog.note(str(tmp_path), "h", "e", "first", 1.0)
    with Path(hooklog.log_path(str(tmp_path))).open("ab") as out:
        out.write(b"torn {\n\xff\n[1]\n")
    hooklog.note(str(tmp_path), "h", "e", "second", 2.0)
    assert [line["what"] for line in hooklog.recent(str(tmp_path))] == ["first", "second"]
    assert hooklog.recent(str(tmp_path / "none")) == []


def test_where_nothing_can_be_written_the_answer_is_no_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"in the way")
    assert hooklog.note(str(tmp_path), "h", "e", "x") is False


@pytest.mark.parametrize("what", [None, 5, OSError(2, "x"), "ü" * 2000, "\x00"])
def test_anything_can_be_noted(tmp_path: Path, what: object) -> None:
    assert hooklog.note(str(tmp_path), "h", "e", what)
    [line] = Path(hooklog.log_path(str(tmp_path))).read_bytes().splitlines()
    assert len(json.loads(line)["what"]) <= 600

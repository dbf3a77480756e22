"""Sessions and workspaces, and a moved folder that is attached to its anchors again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cli.conftest import Desk
from context_anchor.wire import marks


def test_sessions_of_this_workspace_are_listed_newest_first_with_their_state(ca: Desk) -> None:
    now = time.time()
    ca.open_session("11111111-aaaa", seen_at=now - 40, ended_at=now - 30)
    ca.open_session("22222222-bbbb", seen_at=now - 20)
    ca.open_session("33333333-cccc", seen_at=now - 13 * 3600)
    ca.open_session("44444444-dddd", folder=ca.home)
    ca.pin("one", "c", "--session", "22222222")
    rows = ca("sessions", "--json").json["sessions"]
    assert [(row["session_id"], row["state"], row["anchors"]) for row in rows] == [
        ("22222222-bbbb", "live", 1), ("11111111-aaaa", "ended", 0), ("33333333-cccc", "idle", 0),
    ]  # fmt: skip
    assert len(ca("sessions", "--all", "--json").json["sessions"]) == 4
    lines = ca("sessions").out.splitlines()
    assert lines[0].split("\t")[:3] == ["22222222-bbbb", "claude-code", "live"]
    assert len(ca("sessions", "--workspace", str(ca.home), "--json").json["sessions"]) == 1


@pytest.mark.parametrize(
    ("told", "shown"), [("yes", "delivered"), ("no", "not seen yet"), ("unknown", "unconfirmed")]
)
def test_a_sessions_last_injection_is_shown_with_what_is_known_of_it(ca: Desk, told: str, shown: str) -> None:
    session = ca.open_session("11111111-aaaa")
    state = marks.new()
    state["last_receipt"] = {"id": "r-0123456789", "at": 1_800_000_000.0, "tokens": 9, "delivered": told}
    marks.save(str(ca.data), "claude-code", session, state)
    assert ca("sessions").out.split("\t")[5] == f"2027-01-15T08:00:00Z {shown}"


def test_sessions_that_only_have_anchors_are_listed_with_all(ca: Desk) -> None:
    ca.pin("one", "c", "--session", "cli/notes")
    (row,) = ca("sessions", "--all", "--json").json["sessions"]
    assert (row["host"], row["session_id"], row["state"], row["anchors"]) == ("cli", "notes", "unregistered", 1)
    assert ca("sessions", "--json").json["sessions"] == []


def test_workspaces_are_listed_with_what_is_known_of_them(ca: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ca.pin("one")
    ca.open_session("11111111-aaaa", folder=other)
    rows = {row["root"]: row for row in ca("workspaces", "--json").json["workspaces"]}
    assert rows[str(ca.project)]["anchors"] == 1
    assert (rows[str(other)]["anchors"], rows[str(other)]["sessions"], rows[str(other)]["exists"]) == (0, 1, True)
    other.rmdir()
    assert "(no such folder)" in ca("workspaces").out


@pytest.mark.parametrize("by_id", [False, True])
def test_a_moved_folder_gets_its_anchors_back(
    ca: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_id: bool
) -> None:
    ca.pin("kept", "c", "--workspace", ".")
    workspace_id = ca("workspaces", "--json").json["workspaces"][0]["workspace_id"]
    moved = tmp_path / "moved here"
    monkeypatch.chdir(tmp_path)
    ca.project.rename(moved)
    assert ca.titles("--workspace", str(moved)) == []
    answer = ca("workspaces", "attach", workspace_id if by_id else str(ca.project), str(moved), "--json")
    assert answer.code == 0, answer
    assert (answer.json["workspace_id"], answer.json["anchors"]) == (workspace_id, 1)
    assert ca.titles("--workspace", str(moved)) == ["kept"]
    monkeypatch.chdir(moved)
    ca.pin("more")
    assert sorted(ca.titles()) == ["kept", "more"]
    again = ca("workspaces", "attach", workspace_id, str(moved))
    assert again.code == 0


def test_a_folder_moved_twice_and_back_again_keeps_its_anchors(
    ca: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca.pin("kept", "c", "--workspace", ".")
    first = ca.project
    monkeypatch.chdir(tmp_path)
    for target in (tmp_path / "b", tmp_path / "c", first):
        source = next(p for p in (first, tmp_path / "b", tmp_path / "c") if p.exists())
        source.rename(target)
        answer = ca("workspaces", "attach", str(source), str(target))
        assert ca.titles("--workspace", str(target)) == ["kept"], answer


def test_anchors_already_pinned_in_the_new_folder_are_never_hidden(ca: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ca.pin("old", "c", "--workspace", ".")
    ca.pin("new", "c", "--workspace", str(other))
    before = ca.files()
    refused = ca("workspaces", "attach", str(ca.project), str(other))
    assert refused.code == 4
    assert "--merge" in refused.err
    assert ca.files() == before
    assert ca("workspaces", "attach", str(ca.project), str(other), "--merge").code == 0
    assert sorted(ca.titles("--workspace", str(other))) == ["new", "old"]


def test_a_folder_can_be_detached_again(ca: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ca.pin("old", "c", "--workspace", ".")
    ca("workspaces", "attach", str(ca.project), str(other))
    assert ca.titles("--workspace", str(other)) == ["old"]
    assert ca("workspaces", "detach", str(other)).code == 0
    assert ca.titles("--workspace", str(other)) == []
    assert ca("workspaces", "detach", str(other)).code == 3


@pytest.mark.parametrize(
    "words",
    [
        ("attach",), ("attach", "x"), ("attach", "/no/such", "."), ("attach", ".", "/no/such"), ("attach", "", ""),
        ("attach", ".", "."), ("attach", "nul\0", "."), ("detach", "/no/such"), ("fly",),
    ],
)  # fmt: skip
def test_bad_words_are_refused_and_change_nothing(ca: Desk, words: tuple[str, ...]) -> None:
    ca.pin("one")
    before = ca.files()
    answer = ca("workspaces", *words, "--json")
    assert answer.code in (2, 3), answer
    assert ca.files() == before

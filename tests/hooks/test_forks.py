"""Forks: a new id whose file begins with lines of its parent."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hooks.driver import Claude


def fork_file(parent: Claude, child: Claude, from_last_boundary: bool = False) -> None:
    """Write a fork's file as the client does: lines without an id, then the parent's lines with theirs."""
    lines = [json.loads(line) for line in parent.transcript.read_bytes().splitlines()]
    lines = [line for line in lines if "uuid" in line]
    if from_last_boundary:
        at = max(n for n, line in enumerate(lines) if line.get("subtype") == "compact_boundary")
        lines = lines[at:]
    child.write({"type": "mode"}, {"type": "queue-operation"})
    child.write(*({**line, "sessionId": child.session} for line in lines))


def forked(parent: Claude, last: str = "1", pid: int = 5000) -> Claude:
    return replace(parent, session=f"99999999-2222-4333-8444-00000000000{last}", pid=pid)


@pytest.fixture
def parent(claude: Claude) -> Claude:
    claude.open()
    claude.pin("Parents rule", "never touch the schema")
    claude.at(50_000)
    return claude


def turns_of_new_version(child: Claude, parent: Claude, **how: bool) -> list[str]:
    """Start a fork as 2.1.332 does: the file is there at the first batch of tools."""
    texts = [child.event("SessionStart", source="fork"), child.event("UserPromptSubmit", prompt="x")]
    fork_file(parent, child, **how)
    child.user()
    texts += [child.at(52_000), child.at(53_000), child.event("UserPromptSubmit", prompt="y")]
    return texts


def test_a_forks_parent_is_found_by_the_first_line_and_its_notes_are_given_once(parent: Claude) -> None:
    child = forked(parent)
    start, prompt, batch, *rest = turns_of_new_version(child, parent)
    assert child.session in start
    assert "fork" in start
    assert "never touch the schema" not in start
    assert prompt == ""
    assert parent.session in batch
    assert "| never touch the schema" in batch
    assert rest == ["", ""]
    assert child.record["forked_from"] == parent.session


def test_a_fork_of_an_older_version_is_found_by_its_process(parent: Claude) -> None:
    """2.1.197 says `resume` with the old id, then sends prompts under a new one, from the same process."""
    parent.pid = 6000
    assert parent.event("SessionStart", source="resume")
    child = forked(parent, pid=6000)
    first = child.event("UserPromptSubmit", prompt="x")
    assert child.session in first
    assert child.record["forked_from"] == ""
    fork_file(parent, child)
    child.user()
    text = child.at(52_000)
    assert parent.session in text
    assert "| never touch the schema" in text
    assert child.record["forked_from"] == parent.session
    assert child.at(53_000) == ""


def test_two_unrelated_sessions_of_one_process_are_no_fork(parent: Claude) -> None:
    other = forked(parent, pid=parent.pid)
    assert other.event("UserPromptSubmit", prompt="x")
    other.user()
    texts = [other.at(52_000), other.at(53_000)]
    assert texts == ["", ""]
    assert other.record["forked_from"] == ""


def test_a_fork_whose_parent_is_not_known_is_told_so(parent: Claude) -> None:
    stranger = replace(parent, session="88888888-2222-4333-8444-000000000000")
    stranger.user()
    stranger.answer(40_000)
    child = forked(parent)
    _, _, batch, *rest = turns_of_new_version(child, stranger)
    assert "no session that this fork came from" in batch
    assert "never touch the schema" not in batch
    assert rest == ["", ""]


def test_a_fork_of_a_compacted_session_is_found_by_the_boundary(parent: Claude) -> None:
    text = parent.event("SessionStart", source="compact")
    parent.boundary()
    parent.trace(text)
    parent.at(40_000)
    child = forked(parent)
    _, _, batch, *rest = turns_of_new_version(child, parent, from_last_boundary=True)
    assert parent.session in batch
    assert "| never touch the schema" in batch
    assert rest == ["", ""], "the boundary in the copied lines is the parent's compaction"
    assert child.marks["compactions"] == 0


def test_of_several_sessions_with_the_same_beginning_the_nearest_is_the_parent(parent: Claude) -> None:
    child = forked(parent, "1", pid=5001)
    turns_of_new_version(child, parent)
    child.pin("Childs rule", "only in the child")
    grandchild = forked(child, "2", pid=5002)
    texts = turns_of_new_version(grandchild, child)
    assert grandchild.record["forked_from"] == child.session
    assert "| only in the child" in texts[2]
    sibling = forked(parent, "3", pid=5003)
    texts = turns_of_new_version(sibling, parent)
    assert sibling.record["forked_from"] == parent.session
    assert "| only in the child" not in texts[2]


def test_a_forks_own_notes_take_the_place_of_the_parents(parent: Claude) -> None:
    child = forked(parent)
    turns_of_new_version(child, parent)
    child.pin("Childs rule", "new in the child")
    text = child.event("SessionStart", source="compact")
    assert "| new in the child" in text


def test_a_fork_in_one_process_does_not_take_the_parents_later_notes_away(parent: Claude) -> None:
    child = forked(parent)
    turns_of_new_version(child, parent)
    text = parent.event("SessionStart", source="compact")
    assert "| never touch the schema" in text
    assert parent.record["forked_from"] == ""


def test_a_sample_that_a_fork_copied_from_before_its_boundary_is_not_its_size(parent: Claude) -> None:
    parent.answer(166_000)
    kept = json.loads(parent.transcript.read_bytes().splitlines()[-1])
    parent.boundary()
    lines = [json.loads(line) for line in parent.transcript.read_bytes().splitlines()]
    boundary, summary = lines[-2:]
    boundary["compactMetadata"]["preservedMessages"] = {"allUuids": [kept["uuid"]]}
    child = forked(parent)
    child.event("SessionStart", source="fork")
    child.write({"type": "mode"}, boundary, summary, kept)
    child.user()
    child.event("UserPromptSubmit", prompt="x")
    assert child.marks["tokens"] is None

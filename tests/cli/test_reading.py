"""List and get: order, filters, plain lines, full text, and nothing that could move a terminal's cursor."""

from __future__ import annotations

import time

import pytest

from cli.conftest import Desk
from context_anchor.cli import terminal
from context_anchor.wire import marks


def test_the_most_important_come_first_and_both_scopes_are_shown(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.pin("low", "c")
    ca.pin("shared", "c", "--scope", "workspace", "--priority", "high")
    ca.pin("top", "c", "--priority", "critical")
    document = ca("list", "--json").json
    assert [(a["title"], a["scope"]) for a in document["anchors"]] == [
        ("top", "session"), ("shared", "workspace"), ("low", "session"),
    ]  # fmt: skip
    assert [scope["scope"] for scope in document["scopes"]] == ["session", "workspace"]
    assert document["tokens"] == sum(a["tokens"] for a in document["anchors"])
    assert document["budget"]["left_out"] == 0


def test_a_pipe_gets_lines_of_eight_cells(ca: Desk) -> None:
    first = ca.pin("a title", "c", "--priority", "high", "--category", "task")
    answer = ca("list")
    cells = answer.out.rstrip("\n").split("\t")
    assert cells[:4] == [first, "high", "task", "workspace"]
    assert cells[6:] == [str(ca.project), "a title"]
    assert ca("list", "--priority", "critical").out == ""


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        (("--priority", "high"), ["one"]), (("--category", "pitfall"), ["two"]), (("--tag", "x"), ["one"]),
        (("--title", "TW"), ["two"]), (("--scope", "workspace"), ["one", "two"]), (("--tag", "none"), []),
    ],
)  # fmt: skip
def test_lists_are_filtered(ca: Desk, words: tuple[str, ...], titles: list[str]) -> None:
    ca.pin("one", "c", "--priority", "high", "--tag", "x")
    ca.pin("two", "c", "--category", "pitfall")
    assert ca.titles(*words) == titles


def test_unknown_values_of_a_filter_are_refused_with_those_there_are(ca: Desk) -> None:
    answer = ca("list", "--priority", "urgent")
    assert answer.code == 4
    assert "critical, high, normal" in answer.err


def test_all_lists_every_session_and_workspace(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.open_session("22222222-bbbb", folder=ca.home)
    ca.pin("one", "c", "--session", "11111111")
    ca.pin("two", "c", "--session", "22222222")
    ca.pin("three", "c", "--scope", "workspace")
    assert sorted(ca.titles()) == ["one", "three"]
    document = ca("list", "--all", "--json").json
    assert sorted((a["title"], a["where"]) for a in document["anchors"]) == [
        ("one", "claude-code/11111111-aaaa"), ("three", str(ca.project)), ("two", "claude-code/22222222-bbbb"),
    ]  # fmt: skip
    assert sorted(ca.titles("--all", "--scope", "session")) == ["one", "two"]
    assert ca("list", "--all", "--session", "11111111").code == 2


def test_the_table_says_when_anchors_last_reached_the_model(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ca.open_session("11111111-aaaa")
    ca.pin("one", "c", "--ref", "gone/file.py", "--scope", "workspace")
    state = marks.new()
    state["last_receipt"] = {
        "id": "r-0123456789", "at": time.time(), "units": 900, "tokens": 321, "kind": "recovery",
        "delivered": "yes", "delivered_at": 1_800_000_000.0,
    }  # fmt: skip
    marks.save(str(ca.data), "claude-code", session, state)
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: True)
    text = ca("list").out
    assert "last delivered to the model at 2027-01-15T08:00:00Z, 321 tokens" in text
    assert "refs that are not on disk: a-" in text
    document = ca("list", "--json").json
    assert document["delivery"] == {"at": "2027-01-15T08:00:00Z", "tokens": 321, "delivered": "yes"}
    assert document["anchors"][0]["missing_refs"] == ["gone/file.py"]


def test_nothing_pinned_is_said_to_a_person_and_is_no_line_in_a_pipe(
    ca: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ca("list").out == ""
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: True)
    assert "Nothing is pinned." in ca("list").out
    assert "Nothing is pinned." in ca("list", "--all").out
    assert not ca.data.exists() or ca.files() == {}


@pytest.mark.parametrize(
    "words", [("get", "the title"), ("get", "--title", "THE"), ("get", "--id", "{id}"), ("get", "{id}")]
)
def test_an_anchor_is_shown_in_full_by_id_title_or_part_of_it(ca: Desk, words: tuple[str, ...]) -> None:
    first = ca.pin("The title", "line one\nline two", "--ref", "gone.py", "--tag", "t")
    answer = ca(*(word.replace("{id}", first[:8]) for word in words))
    assert answer.code == 0
    assert answer.out.startswith(f"{first}  The title\n[normal] state, workspace {ca.project}, ~")
    assert "ref: gone.py (missing)\ntags: t\n\nline one\nline two\n" in answer.out


def test_get_prints_the_content_alone_for_scripts_and_all_anchors_on_demand(ca: Desk) -> None:
    ca.pin("one", "first")
    ca.pin("two", "second", "--priority", "high")
    assert ca("get", "one", "--content-only").out == "first\n"
    assert ca("get", "--all", "--content-only").out == "second\n\nfirst\n"
    assert [a["title"] for a in ca("get", "--all", "--json").json["anchors"]] == ["two", "one"]
    assert ca("get", "--all", "one").code == 2
    assert ca("get").code == 2
    assert ca("get", "one", "--title", "two").code == 2
    assert ca("get", "--id", "a-1", "--title", "two").code == 2


def test_a_near_miss_names_what_is_near(ca: Desk) -> None:
    ca.pin("Deployment steps")
    answer = ca("get", "--title", "Deploymnet step")
    assert answer.code == 3
    assert "Deployment steps" in answer.err


def test_stored_control_characters_never_reach_a_terminal(ca: Desk) -> None:
    ca.pin("victim", "harmless")
    path = next(p for p in ca.data.rglob("w-*.json") if "anchors" in p.parts)
    evil = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u202e\\u2028"
    text = path.read_text(encoding="utf-8").replace('"harmless"', f'"{evil}x"').replace('"victim"', f'"v{evil}"')
    path.write_text(text, encoding="utf-8")
    for words in ("list", "get --all", "list --json", "list --all", "unpin --all --scope workspace"):
        out = ca(*words.split())
        assert out.code == 0
        for char in "\x1b\x07\x9b\u202e\u2028":
            assert char not in out.out + out.err, words

"""Pin, unpin and replace: what is changed, what is kept, what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Desk

SECRET = "gh" + "p_" + "R9x2Kd71LmQ0pWz8VbN5cTy3HsGf6JaE4uXo"


def test_a_new_anchor_is_the_users_and_goes_to_the_only_live_session(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    answer = ca(
        "pin", "--title", "Tabs", "--content", "always", "--priority", "high", "--category", "decision",
        "--ref", "a.py", "--ref", "b.py", "--tag", "style", "--json",
    )  # fmt: skip
    anchor = answer.json["anchor"]
    assert answer.json["created"] is True
    assert answer.json["scope"] == {
        "scope": "session", "host": "claude-code", "session_id": "11111111-aaaa", "revision": 1,
        "found_by": "the only live session here",
    }  # fmt: skip
    assert (anchor["priority"], anchor["category"], anchor["refs"], anchor["tags"], anchor["origin"]) == (
        "high", "decision", ["a.py", "b.py"], ["style"], "user",
    )  # fmt: skip
    entry = ca("history", "--json").json["entries"][0]
    assert entry["actor"] == "user"


def test_the_text_says_where_it_went_and_how_that_was_chosen(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    answer = ca("pin", "--title", "Tabs", "--content", "always")
    assert "session 11111111-aaaa of claude-code (the only live session here)" in answer.out
    assert answer.err == ""
    other = ca("pin", "--title", "Tabs", "--content", "always", "--scope", "workspace")
    assert f"workspace {ca.project}" in other.out


def test_without_a_session_the_workspace_takes_it_and_it_is_said(ca: Desk) -> None:
    answer = ca("pin", "--title", "Tabs", "--content", "always")
    assert answer.code == 0
    assert f"in workspace {ca.project}" in answer.out
    assert "no session is known here" in answer.err


def test_of_two_live_sessions_none_is_taken_for_the_one(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.open_session("22222222-bbbb")
    answer = ca("pin", "--title", "Tabs", "--content", "always")
    assert f"in workspace {ca.project}" in answer.out
    assert "several sessions are live here" in answer.err
    assert ca("pin", "--title", "T", "--content", "c", "--scope", "session").code == 4


def test_the_same_title_changes_the_anchor_and_keeps_what_was_not_given(ca: Desk) -> None:
    first = ca.pin("Use Tabs", "one", "--priority", "critical", "--category", "constraint", "--ref", "x.py")
    answer = ca("pin", "--title", "use  TABS", "--content", "two", "--json")
    anchor = answer.json["anchor"]
    assert answer.json["created"] is False
    assert answer.json["superseded"]["content"] == "one"
    assert (anchor["id"], anchor["revision"], anchor["title"]) == (first, 2, "use TABS")
    assert (anchor["content"], anchor["priority"], anchor["category"], anchor["refs"]) == (
        "two", "critical", "constraint", ["x.py"],
    )  # fmt: skip
    ca("pin", "--title", "Use Tabs", "--priority", "normal")
    assert ca("get", first, "--json").json["anchor"]["content"] == "two"


def test_an_id_changes_that_anchor_and_a_stale_revision_is_refused(ca: Desk) -> None:
    first = ca.pin("Old title", "one")
    assert ca("pin", "--id", first[:8], "--title", "New title").code == 0
    assert ca.titles() == ["New title"]
    stale = ca("pin", "--id", first, "--content", "two", "--expected-revision", "1", "--json")
    assert (stale.code, stale.json["error"]["code"]) == (5, "stale_revision")
    assert ca("pin", "--id", first, "--content", "two", "--expected-revision", "2").code == 0
    assert ca("pin", "--id", "a-ffffffffff", "--content", "x").code == 3


def test_refs_and_tags_can_be_taken_away(ca: Desk) -> None:
    first = ca.pin("t", "c", "--ref", "x.py", "--tag", "y")
    ca("pin", "--id", first, "--ref", "", "--tag", "")
    anchor = ca("get", first, "--json").json["anchor"]
    assert (anchor["refs"], anchor["tags"]) == ([], [])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain"),
        ("\ufeffmarked ü".encode(), "marked ü"),
        ("windows ü\r\nlines".encode(), "windows ü\nlines"),
        ("breit ü".encode("utf-16"), "breit ü"),
        (b"nul\0 and \x1b[31mred\x1b[0m", "nul and red"),
    ],
    ids=["utf8", "bom", "crlf", "utf16", "controls"],
)
def test_content_comes_from_standard_input_or_a_file(ca: Desk, tmp_path: Path, data: bytes, text: str) -> None:
    assert ca("pin", "--title", "in", "--content", "-", stdin=data).code == 0
    assert ca("pin", "--title", "piped", stdin=data).code == 0
    (tmp_path / "note ü.txt").write_bytes(data)
    assert ca("pin", "--title", "file", "--file", str(tmp_path / "note ü.txt")).code == 0
    for title in ("in", "piped", "file"):
        assert ca("get", "--title", title, "--json").json["anchor"]["content"] == text


def test_a_secret_is_refused_unless_the_user_insists(ca: Desk) -> None:
    refused = ca("pin", "--title", "t", "--content", f"token {SECRET}")
    assert refused.code == 4
    assert "--allow-secret" in refused.err
    assert SECRET not in refused.err + refused.out
    assert not any(SECRET.encode() in data for data in ca.files().values())
    assert ca("pin", "--title", "t", "--content", f"token {SECRET}", "--allow-secret").code == 0


@pytest.mark.parametrize("words", [("--title", "TWO"), ("two",), ("--id", "{id}"), ("{id}",), ("--id", "{short}")])
def test_an_anchor_is_unpinned_by_title_or_id_and_undo_brings_it_back(ca: Desk, words: tuple[str, ...]) -> None:
    ca.pin("one")
    two = ca.pin("two")
    answer = ca("unpin", *(word.replace("{id}", two).replace("{short}", two[:7]) for word in words))
    assert answer.code == 0
    assert ca.titles() == ["one"]
    assert "context-anchor undo --scope workspace" in answer.out
    assert ca("undo").code == 0
    assert sorted(ca.titles()) == ["one", "two"]


def test_a_title_that_both_scopes_have_is_named_as_ambiguous(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.pin("same", "one", "--scope", "session")
    ca.pin("same", "two", "--scope", "workspace")
    answer = ca("unpin", "--title", "same", "--json")
    assert (answer.code, answer.json["error"]["code"]) == (4, "ambiguous_title")
    assert ca("unpin", "--title", "same", "--scope", "workspace").code == 0
    assert ca("get", "same", "--content-only").out == "one\n"


def test_unpinning_all_needs_a_scope_and_takes_only_that(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.pin("mine", "c", "--scope", "session")
    ca.pin("ours", "c", "--scope", "workspace")
    assert ca("unpin", "--all").code == 2
    assert ca("unpin", "--all", "--title", "mine").code == 2
    answer = ca("unpin", "--all", "--scope", "session", "--json")
    assert [anchor["title"] for anchor in answer.json["removed"]] == ["mine"]
    assert ca.titles() == ["ours"]
    again = ca("unpin", "--all", "--scope", "session")
    assert (again.code, "Nothing is pinned" in again.out) == (0, True)
    assert ca("undo", "--scope", "session").code == 0
    assert sorted(ca.titles()) == ["mine", "ours"]


def test_replace_makes_a_scope_hold_exactly_the_list(ca: Desk, tmp_path: Path) -> None:
    ca.pin("keep", "same")
    ca.pin("drop", "gone")
    kept = ca("get", "keep", "--json").json["anchor"]
    document = [kept, {"title": "new", "content": "fresh", "priority": "high"}]
    answer = ca("replace", "--scope", "workspace", "--json", stdin=json.dumps(document))
    assert answer.code == 0, answer
    assert [a["title"] for a in answer.json["added"]] == ["new"]
    assert [a["title"] for a in answer.json["removed"]] == ["drop"]
    assert answer.json["updated"] == []
    assert ca.titles() == ["new", "keep"]
    assert ca("get", "keep", "--json").json["anchor"]["id"] == kept["id"]
    path = tmp_path / "anchors.json"
    path.write_text(json.dumps({"anchors": [], "expected_revision": 3}), encoding="utf-8")
    assert ca("replace", str(path), "--scope", "workspace").code == 0
    assert ca.titles() == []


def test_what_list_prints_can_be_given_back_to_replace(ca: Desk) -> None:
    ca.pin("one", "1", "--priority", "critical", "--tag", "x", "--ref", "gone.py")
    ca.pin("two", "2")
    listed = ca("list", "--json").out
    answer = ca("replace", "--workspace", ".", "--json", stdin=listed)
    assert answer.code == 0, answer
    assert (answer.json["added"], answer.json["updated"], answer.json["removed"]) == ([], [], [])


def test_replace_refuses_a_stale_revision_and_never_guesses_the_scope(ca: Desk) -> None:
    ca.pin("one")
    stale = ca("replace", "--scope", "workspace", "--expected-revision", "0", "--json", stdin="[]")
    assert (stale.code, stale.json["error"]["code"]) == (5, "stale_revision")
    unknown = ca("replace", "--json", stdin="[]")
    assert (unknown.code, unknown.json["error"]["code"]) == (3, "session_unknown")
    assert ca.titles() == ["one"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 2), ("{", 2), ("[" * 100_000, 2), ("3", 4), ('"x"', 4), ("{}", 4), ('{"anchors": {}}', 4), ("[1]", 4),
        ('[{"title": "t"}]', 4), ('[{"title": 1, "content": "c"}]', 4), ('[{"title": "t", "content": null}]', 4),
        ('[{"title": "t", "content": "c", "priority": "urgent"}]', 4),
        ('[{"title": "t", "content": "c", "colour": "red"}]', 4),
        ('[{"title": "t", "content": "c", "refs": "a.py"}]', 4),
        ('[{"title": "t", "content": "c"}, {"title": "T", "content": "c"}]', 4),
        ('{"anchors": [], "expected_revision": "3"}', 4), ('{"anchors": [], "expected_revision": true}', 4),
        (json.dumps([{"title": str(n), "content": "c"} for n in range(201)]), 4),
        (json.dumps([{"title": "t", "content": "x" * 4001}]), 4),
    ],
)  # fmt: skip
def test_a_bad_list_is_refused_and_changes_nothing(ca: Desk, text: str, code: int) -> None:
    ca.pin("one")
    before = ca.files()
    answer = ca("replace", "--scope", "workspace", "--json", stdin=text)
    assert answer.code == code, answer
    assert answer.json["error"]["message"]
    assert ca.files() == before


def test_a_refused_entry_is_named_by_its_place(ca: Desk) -> None:
    document = [{"title": "a", "content": "c"}, {"title": "b", "content": "c", "priority": "urgent"}]
    answer = ca("replace", "--scope", "workspace", stdin=json.dumps(document))
    assert "anchors[1]" in answer.err


def test_a_change_by_another_between_read_and_write_is_not_lost(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_anchor.anchors.store import AnchorStore

    first = ca.pin("t", "one", "--tag", "a")
    original = AnchorStore.pin
    interrupted: list[int] = []

    def pin(self: AnchorStore, *arguments: object, **options: object) -> object:
        if not interrupted:
            interrupted.append(1)
            assert ca.process("pin", "--id", first, "--tag", "b").code == 0
        return original(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(AnchorStore, "pin", pin)
    assert ca("pin", "--id", first, "--content", "two").code == 0
    anchor = ca("get", first, "--json").json["anchor"]
    assert (anchor["content"], anchor["tags"], anchor["revision"]) == ("two", ["b"], 3)

"""History and undo: newest first, in words, and the scope that is meant."""

from __future__ import annotations

from cli.conftest import Desk


def test_history_tells_every_change_with_former_values(ca: Desk) -> None:
    first = ca.pin("t", "one")
    ca.pin("t", "two")
    ca("unpin", first)
    ca("undo")
    entries = ca("history", "--json").json["entries"]
    assert [(e["entry"], e["op"], e["undoes"]) for e in entries] == [
        (4, "undo", 3), (3, "unpin", None), (2, "update", None), (1, "pin", None),
    ]  # fmt: skip
    change = entries[2]["changes"][0]
    assert (change["before"]["content"], change["after"]["content"]) == ("one", "two")
    lines = ca("history").out.splitlines()
    assert lines[0].endswith(f"\tworkspace\tundo of 3: added {first} t")
    assert lines[2].endswith(f"update: changed content {first} t")
    assert lines[3].split("\t")[0] == "1"


def test_history_is_of_one_anchor_or_limited(ca: Desk) -> None:
    one = ca.pin("one", "1")
    ca.pin("two", "1")
    ca.pin("two", "2")
    ca("unpin", "one")
    assert len(ca("history", "--id", one, "--json").json["entries"]) == 2
    assert len(ca("history", "--title", "TWO", "--json").json["entries"]) == 2
    assert [e["entry"] for e in ca("history", "--limit", "1", "--json").json["entries"]] == [4]
    assert ca("history", "--limit", "0").out == ""
    assert ca("history", "--id", one, "--title", "two").code == 2
    assert ca("history", "--limit", "x").code == 2


def test_history_of_all_scopes_names_each(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.pin("one", "1", "--scope", "session")
    ca.pin("two", "1", "--scope", "workspace")
    entries = ca("history", "--all", "--json").json["entries"]
    assert {e["where"] for e in entries} == {"claude-code/11111111-aaaa", str(ca.project)}


def test_a_change_of_many_is_told_in_numbers_and_undone_at_once(ca: Desk) -> None:
    ca.pin("one")
    ca.pin("two")
    ca("unpin", "--all", "--scope", "workspace")
    assert "clear: 2 removed" in ca("history").out
    answer = ca("undo", "--json")
    assert sorted(a["title"] for a in answer.json["restored"]) == ["one", "two"]
    assert sorted(ca.titles()) == ["one", "two"]


def test_repeated_undo_walks_back_and_an_undo_can_be_undone(ca: Desk) -> None:
    ca.pin("t", "one")
    ca.pin("t", "two")
    assert ca("undo").code == 0
    assert ca("get", "t", "--content-only").out == "one\n"
    assert ca("undo").code == 0
    assert ca.titles() == []
    nothing = ca("undo", "--json")
    assert (nothing.code, nothing.json["error"]["code"]) == (3, "nothing_to_undo")
    assert ca("undo", "--entry", "4").code == 0
    assert ca("get", "t", "--content-only").out == "one\n"


def test_undo_without_a_scope_takes_the_scope_changed_last_and_says_so(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.pin("ours", "c", "--scope", "workspace")
    ca.pin("mine", "c", "--scope", "session")
    answer = ca("undo")
    assert "session 11111111-aaaa" in answer.out
    assert ca.titles() == ["ours"]
    ca.pin("mine", "c", "--scope", "session")
    assert ca("undo", "--scope", "workspace").code == 0
    assert ca.titles() == ["mine"]
    assert ca("undo", "--entry", "1").code == 2
    assert ca("undo", "--session", "11111111", "--entry", "99").code == 3


def test_there_is_nothing_to_undo_where_nothing_was_changed(ca: Desk) -> None:
    assert ca("undo").code == 3
    assert ca("history").out == ""


def test_undo_refuses_where_a_session_it_cannot_tell_was_changed_later(ca: Desk) -> None:
    ca.pin("shared", "1", "--scope", "workspace")
    for session in ("11111111-aaaa", "22222222-bbbb"):
        ca.open_session(session)
    ca.pin("mine", "1", "--session", "11111111-aaaa")
    ca("unpin", "mine", "--session", "11111111-aaaa")
    refused = ca("undo", "--json")
    assert refused.code == 2
    assert "--session 11111111-aaaa" in refused.json["error"]["hint"]
    assert ca.titles("--scope", "workspace") == ["shared"], "nothing was undone"
    assert ca("undo", "--scope", "session", "--session", "11111111-aaaa").code == 0
    ca.pin("shared", "2", "--scope", "workspace")
    assert ca("undo").code == 0, "the workspace's change is the newest"

"""The five tools over a real store: what they do, what they say, and how much."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_anchor.anchors.anchor import Anchor, Draft
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.errors import (
    AmbiguousTitleError,
    AnchorNotFoundError,
    ContentTooLongError,
    InvalidAnchorError,
    SecretRefusedError,
    SessionUnknownError,
    StaleRevisionError,
    UsageError,
    WorkspaceUnknownError,
)
from context_anchor.server import anchor_tools as tools
from context_anchor.server.caller import Call, Desk
from context_anchor.server.pages import PAGE_LIMIT, Reply
from context_anchor.wire import marks, workspace

DeskMaker = Callable[..., Desk]
Register = Callable[..., None]

SESSION = SessionScope("antigravity", "conv-1")


def walk_list(desk: Desk, call: Call, **arguments: Any) -> list[dict[str, Any]]:
    """Follow the cursors of a list to its end and return its rows."""
    rows: list[dict[str, Any]] = []
    reply = tools.list_pinned_context(desk, call, **arguments)
    for _ in range(500):
        assert reply.size <= PAGE_LIMIT
        rows += reply.structured["anchors"]
        if "cursor" not in reply.structured:
            return rows
        assert f'cursor="{reply.structured["cursor"]}"' in reply.text
        reply = tools.list_pinned_context(desk, call, cursor=reply.structured["cursor"])
    raise AssertionError("the list does not end")


def walk_get(desk: Desk, call: Call, **arguments: Any) -> dict[str, dict[str, Any]]:
    """Follow the cursors of a get to its end and return each anchor put together, from both forms."""
    found: dict[str, dict[str, Any]] = {}
    reply = tools.get_pinned_context(desk, call, **arguments)
    for _ in range(2_000):
        assert reply.size <= PAGE_LIMIT
        rest = reply.text
        for part in reply.structured["anchors"]:
            whole = found.setdefault(part["id"], {"content": "", "text": "", "refs": [], "tags": []})
            assert part["start"] == len(whole["content"])
            whole["content"] += part["content"]
            assert part["end"] == len(whole["content"])
            whole["refs"] += [ref["path"] for ref in part.get("refs", [])]
            whole["tags"] += part.get("tags", [])
            head, _, rest = rest.partition("\n")
            assert f"characters {part['start']}-{part['end']} of {part['length']}" in head
            size = part["end"] - part["start"]
            whole["text"] += rest[:size]
            rest = rest[size:].removeprefix("\n")
            while rest.startswith(("ref: ", "tag: ")):
                rest = rest.partition("\n")[2]
        if "cursor" not in reply.structured:
            return found
        reply = tools.get_pinned_context(desk, call, cursor=reply.structured["cursor"])
    raise AssertionError("the text does not end")


def test_a_pin_is_stored_with_what_was_said_and_defaults_else(desk: Desk, session: Call) -> None:
    reply = tools.pin_context(desk, session, title="Build", content="make -j2", refs=["Makefile"], tags=["ci"])
    assert reply.structured["created"] is True
    (anchor,) = desk.store.read(SESSION).anchors
    assert (anchor.priority, anchor.category, anchor.scope, anchor.origin) == (
        "normal",
        "state",
        "session",
        "agent",
    )
    assert (anchor.refs, anchor.tags) == (("Makefile",), ("ci",))
    assert reply.structured["anchor"]["id"] == anchor.id
    assert reply.text.startswith(f"Pinned {anchor.id} [normal] state, session, ~")
    assert desk.store.history(SESSION)[0].actor == "agent@antigravity"


def test_the_same_title_supersedes_and_what_is_left_out_is_kept(desk: Desk, session: Call) -> None:
    tools.pin_context(
        desk, session, title="Use tabs", content="1", priority="critical", category="constraint", refs=["a.py"]
    )
    reply = tools.pin_context(desk, session, title="use  TABS", content="2", tags=["style"])
    (anchor,) = desk.store.read(SESSION).anchors
    assert (anchor.content, anchor.priority, anchor.category) == ("2", "critical", "constraint")
    assert (anchor.refs, anchor.tags, anchor.revision) == (("a.py",), ("style",), 2)
    assert reply.structured["created"] is False
    assert reply.structured["superseded"] == {"revision": 1, "same_content": False}


def test_what_is_given_wins_over_what_is_kept(desk: Desk, session: Call) -> None:
    tools.pin_context(desk, session, title="T", content="1", priority="critical", refs=["a.py"])
    tools.pin_context(desk, session, title="T", content="2", priority="normal", refs=[])
    (anchor,) = desk.store.read(SESSION).anchors
    assert (anchor.priority, anchor.refs) == ("normal", ())


def test_a_pin_by_id_finds_its_scope_and_may_rename(desk: Desk, session: Call) -> None:
    first = tools.pin_context(desk, session, title="Old", content="1", scope="workspace", priority="high")
    anchor_id = first.structured["anchor"]["id"]
    reply = tools.pin_context(desk, session, title="New", content="2", anchor_id=anchor_id)
    assert reply.structured["anchor"]["scope"] == "workspace"
    assert reply.structured["anchor"]["title"] == "New"
    assert reply.structured["anchor"]["priority"] == "high"
    assert desk.store.read(SESSION).anchors == ()


def test_a_refused_pin_changes_nothing(desk: Desk, session: Call) -> None:
    tools.pin_context(desk, session, title="T", content="1")
    before = desk.store.read(SESSION)
    with pytest.raises(ContentTooLongError, match="pointer"):
        tools.pin_context(desk, session, title="T", content="x" * 4_001)
    with pytest.raises(InvalidAnchorError):
        tools.pin_context(desk, session, title="x" * 201, content="1")
    with pytest.raises(InvalidAnchorError):
        tools.pin_context(desk, session, title="T", content="a\u202eb")
    with pytest.raises(SecretRefusedError):
        tools.pin_context(desk, session, title="T", content="-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 64)
    with pytest.raises(AnchorNotFoundError):
        tools.pin_context(desk, session, title="T", content="2", anchor_id="a-0000000000")
    assert desk.store.read(SESSION) == before


def test_unpin_takes_exactly_one_way_of_naming(desk: Desk, session: Call) -> None:
    for arguments in ({}, {"title": "T", "clear_all": True}, {"title": "T", "anchor_id": "a-1"}):
        with pytest.raises(UsageError, match="exactly one"):
            tools.unpin_context(desk, session, **arguments)


def test_unpin_by_title_looks_in_session_and_workspace_and_lists_candidates(desk: Desk, session: Call) -> None:
    one = tools.pin_context(desk, session, title="Same", content="1").structured["anchor"]["id"]
    two = tools.pin_context(desk, session, title="Same", content="2", scope="workspace").structured["anchor"]["id"]
    with pytest.raises(AmbiguousTitleError) as caught:
        tools.unpin_context(desk, session, title="same")
    assert one in str(caught.value)
    assert two in str(caught.value)
    tools.unpin_context(desk, session, title="same", scope="workspace")
    reply = tools.unpin_context(desk, session, anchor_id=one)
    assert reply.structured["removed"] == [{"id": one, "title": "Same"}]
    assert walk_list(desk, session) == []


def test_clear_all_without_a_scope_leaves_what_other_sessions_share(desk: Desk, session: Call) -> None:
    tools.pin_context(desk, session, title="Mine", content="1")
    tools.pin_context(desk, session, title="Ours", content="1", scope="workspace")
    reply = tools.unpin_context(desk, session, clear_all=True)
    assert reply.structured["count"] == 1
    assert [row["title"] for row in walk_list(desk, session)] == ["Ours"]
    assert tools.unpin_context(desk, session, clear_all=True, scope="workspace").structured["count"] == 1
    assert tools.unpin_context(desk, session, clear_all=True).text.startswith("Unpinned 0 anchors.")


def test_a_long_answer_to_clear_all_still_fits(desk: Desk, session: Call) -> None:
    drafts = [Draft.checked(title=f"{n:03} " + "漢" * 150, content="c") for n in range(200)]
    desk.store.replace(SESSION, drafts, actor="test")
    reply = tools.unpin_context(desk, session, clear_all=True)
    assert reply.size <= PAGE_LIMIT
    assert reply.structured["count"] == 200
    assert len(reply.structured["removed"]) + reply.structured["more"] == 200


def test_list_says_session_scope_revisions_budget_and_delivery(
    desk: Desk, session: Call, data: Path, project: Path
) -> None:
    tools.pin_context(desk, session, title="One", content="1", priority="critical", category="constraint")
    tools.pin_context(desk, session, title="Two", content="2", scope="workspace")
    state = marks.new()
    state["last_receipt"] = {
        "id": "r-0123456789", "at": 1_700_000_000.0, "units": 400, "tokens": 101, "kind": "recovery",
        "delivered": "yes", "delivered_at": 1_700_000_005.0,
    }  # fmt: skip
    marks.save(str(data), "antigravity", "conv-1", state)
    reply = tools.list_pinned_context(desk, session)
    said = reply.structured
    assert said["count"] == 2
    assert said["session"] == {
        "host": "antigravity", "session_id": "conv-1", "found_by": "conversation", "revision": 1,
    }  # fmt: skip
    assert said["workspace"] == {"root": str(project), "revision": 1}
    assert said["budget"]["left_out"] == 0
    assert 0 < said["budget"]["used"] < said["budget"]["limit"] == 14_000
    assert said["last_delivery"] == {"at": "2023-11-14T22:13:25Z", "tokens": 101, "delivered": "yes"}
    assert "last delivered to the model at 2023-11-14T22:13:25Z, 101 tokens" in reply.text
    assert "r-0123456789" not in reply.text + str(said)
    assert [row["title"] for row in said["anchors"]] == ["One", "Two"]
    assert said["anchors"][0] | {"id": "", "age": ""} == {
        "id": "", "title": "One", "priority": "critical", "category": "constraint", "scope": "session",
        "tokens": 2, "revision": 1, "age": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("delivered", "words"),
    [("unknown", "keeps no trace"), ("no", "not seen by the model"), ("yes", "delivered to the model")],
)
def test_delivery_is_stated_no_surer_than_it_is(
    desk: Desk, session: Call, data: Path, delivered: str, words: str
) -> None:
    state = marks.new()
    state["last_receipt"] = {"id": "r-1", "at": 1_700_000_000.0, "tokens": 5, "delivered": delivered}
    marks.save(str(data), "antigravity", "conv-1", state)
    assert words in tools.list_pinned_context(desk, session).text


def test_the_claude_code_budget_is_the_hosts_cap_and_what_does_not_fit_is_named(
    desk: Desk, register: Register, project: Path
) -> None:
    register("claude-code", "s-1", project)
    call = Call()
    for n in range(4):
        reply = tools.pin_context(desk, call, title=f"Big {n}", content="x" * 3_900, session_id="s-1")
    assert reply.structured["budget"]["limit"] < 10_000
    assert reply.structured["budget"]["left_out"] >= 2
    assert reply.structured["budget"]["left_out_ids"]
    assert "left out" in reply.text


def test_a_missing_ref_makes_a_pin_stale_and_one_that_is_there_does_not(
    desk: Desk, session: Call, project: Path
) -> None:
    (project / "here.py").write_text("", encoding="utf-8")
    refs = ["here.py:12", "gone/away.py", str(project / "here.py"), "https://example.org/x", "//server/share/x"]
    tools.pin_context(desk, session, title="T", content="c", refs=refs)
    reply = tools.list_pinned_context(desk, session)
    (row,) = reply.structured["anchors"]
    assert (row["missing"], row["missing_refs"]) == (1, ["gone/away.py"])
    assert "stale: 1 of 5 refs missing: gone/away.py" in reply.text
    (part,) = tools.get_pinned_context(desk, session, title="T").structured["anchors"]
    assert [ref["path"] for ref in part["refs"] if ref.get("missing")] == ["gone/away.py"]


def test_ages_are_shown_and_never_negative(make_desk: DeskMaker, session: Call) -> None:
    desk = make_desk()
    tools.pin_context(desk, session, title="T", content="c")
    for shift, shown in ((-9_000, "0s"), (300, "5m"), (3 * 86_400 + 50, "3d")):
        at = time.time() + shift
        later = Desk(desk.data, desk.store, desk.folder, 0, desk.started_at, clock=lambda at=at: at, env={})
        assert tools.list_pinned_context(later, session).structured["anchors"][0]["age"] == shown


def test_get_by_title_and_by_id_give_the_whole_anchor(desk: Desk, session: Call) -> None:
    content = 'line one\n\n  indented "quoted" \\ back\ttab\nlast'
    anchor_id = tools.pin_context(
        desk, session, title="T", content=content, refs=["a.py", "b.py"], tags=["x"]
    ).structured["anchor"]["id"]
    for arguments in ({"title": "t"}, {"anchor_id": anchor_id}):
        whole = walk_get(desk, session, **arguments)[anchor_id]
        assert whole == {"content": content, "text": content, "refs": ["a.py", "b.py"], "tags": ["x"]}


@pytest.mark.parametrize("char", ["漢", "😀", "é", "x", '"', "\\", "a\n"])
def test_an_anchor_of_full_length_is_recovered_exactly_by_cursors(desk: Desk, session: Call, char: str) -> None:
    content = (char * 4_000)[:4_000].rstrip()
    refs = [f"dir/{char.strip()}{n:02}" + "r" * 900 for n in range(20)]
    reply = tools.pin_context(
        desk, session, title=(char.strip() or "t") * 200, content=content, refs=refs, tags=["tag"] * 2
    )
    (anchor,) = desk.store.read(SESSION).anchors
    whole = walk_get(desk, session, anchor_id=reply.structured["anchor"]["id"])[anchor.id]
    assert whole["content"] == whole["text"] == anchor.content == content
    assert tuple(whole["refs"]) == anchor.refs
    assert tuple(whole["tags"]) == anchor.tags


def test_get_without_a_name_gives_all_anchors_in_bundle_order(desk: Desk, session: Call) -> None:
    for n, priority in enumerate(["normal", "critical", "high"] * 3):
        tools.pin_context(desk, session, title=f"T{n}", content=f"{n} " + "y" * 700, priority=priority)
    whole = walk_get(desk, session)
    anchors = desk.store.read(SESSION).anchors
    assert list(whole) == [anchor.id for anchor in anchors]
    assert [part["content"] for part in whole.values()] == [anchor.content for anchor in anchors]


def test_get_of_nothing_says_so(desk: Desk, session: Call) -> None:
    assert tools.get_pinned_context(desk, session) == Reply("Nothing is pinned.", {"anchors": []})
    with pytest.raises(AnchorNotFoundError):
        tools.get_pinned_context(desk, session, title="no such")
    with pytest.raises(UsageError):
        tools.get_pinned_context(desk, session, title="a", anchor_id="b")


def test_a_cursor_into_an_anchor_that_changed_is_refused(desk: Desk, session: Call) -> None:
    for arguments in ({"title": "T"}, {}):
        tools.pin_context(desk, session, title="T", content="漢" * 4_000)
        cursor = tools.get_pinned_context(desk, session, **arguments).structured["cursor"]
        tools.pin_context(desk, session, title="T", content="字" * 4_000)
        with pytest.raises(StaleRevisionError, match="from the start"):
            tools.get_pinned_context(desk, session, cursor=cursor)


def test_a_list_that_changes_between_pages_says_so_and_repeats_nothing(desk: Desk, session: Call) -> None:
    for n in range(40):
        tools.pin_context(desk, session, title=f"T{n:02} " + "w" * 100, content="c")
    first = tools.list_pinned_context(desk, session)
    tools.unpin_context(desk, session, anchor_id=first.structured["anchors"][0]["id"])
    second = tools.list_pinned_context(desk, session, cursor=first.structured["cursor"])
    assert "changed since the first page" in second.text
    assert "changed since the first page" in second.structured["notices"][0]
    ids = [row["id"] for row in first.structured["anchors"] + second.structured["anchors"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "e30", "W10", base64.urlsafe_b64encode(b'["list"]').decode()])
def test_a_cursor_that_is_none_is_refused(desk: Desk, session: Call, cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        tools.list_pinned_context(desk, session, cursor=cursor)
    with pytest.raises(UsageError, match="cursor"):
        tools.get_pinned_context(desk, session, cursor=cursor)


def test_replace_makes_the_session_hold_exactly_the_list(desk: Desk, session: Call) -> None:
    tools.pin_context(desk, session, title="Keep", content="1", priority="critical")
    tools.pin_context(desk, session, title="Drop", content="1")
    tools.pin_context(desk, session, title="Ours", content="1", scope="workspace")
    reply = tools.replace_session_anchors(
        desk, session, anchors=[{"title": "Keep", "content": "2"}, {"title": "New", "content": "3", "tags": ["x"]}]
    )
    held = {anchor.title: anchor for anchor in desk.store.read(SESSION).anchors}
    assert set(held) == {"Keep", "New"}
    assert (held["Keep"].content, held["Keep"].priority, held["Keep"].revision) == ("2", "critical", 2)
    assert [reply.structured[key] for key in ("added", "updated", "removed", "count")] == [1, 1, 1, 2]
    assert {entry["id"] for entry in reply.structured["anchors"]} == {anchor.id for anchor in held.values()}
    assert [row["title"] for row in walk_list(desk, session, scope="workspace")] == ["Ours"]


def test_replace_refuses_a_stale_revision_and_a_bad_anchor_as_a_whole(desk: Desk, session: Call) -> None:
    tools.pin_context(desk, session, title="A", content="1")
    revision = tools.list_pinned_context(desk, session).structured["session"]["revision"]
    tools.pin_context(desk, session, title="B", content="1")
    before = desk.store.read(SESSION)
    with pytest.raises(StaleRevisionError):
        tools.replace_session_anchors(desk, session, anchors=[], expected_revision=revision)
    with pytest.raises(ContentTooLongError, match=r"anchors\[1\]: content has 5,000"):
        tools.replace_session_anchors(
            desk, session, anchors=[{"title": "C", "content": "1"}, {"title": "D", "content": "x" * 5_000}]
        )
    with pytest.raises(InvalidAnchorError):
        tools.replace_session_anchors(
            desk, session, anchors=[{"title": "Twin", "content": "1"}, {"title": "twin", "content": "2"}]
        )
    assert desk.store.read(SESSION) == before
    tools.replace_session_anchors(desk, session, anchors=[], expected_revision=revision + 1)
    assert desk.store.read(SESSION).anchors == ()


def test_without_any_session_workspace_scope_works_and_session_scope_says_what_to_do(desk: Desk) -> None:
    tools.pin_context(desk, Call(), title="T", content="c", scope="workspace")
    reply = tools.list_pinned_context(desk, Call())
    assert [row["title"] for row in reply.structured["anchors"]] == ["T"]
    assert reply.structured["session"] == {"unknown": "session_unknown"}
    assert "workspace scope only" in reply.text
    with pytest.raises(SessionUnknownError, match="scope=workspace") as caught:
        tools.pin_context(desk, Call(), title="T", content="c")
    assert "session_id" in caught.value.hint
    with pytest.raises(SessionUnknownError):
        tools.replace_session_anchors(desk, Call(), anchors=[])


def test_a_conversation_without_a_workspace_has_session_scope_only_and_says_so(
    desk: Desk, register: Register
) -> None:
    register("antigravity", "conv-2", None)
    call = Call(conversation_id="conv-2")
    tools.pin_context(desk, call, title="T", content="c")
    reply = tools.list_pinned_context(desk, call)
    assert reply.structured["workspace"] == {"unknown": "workspace_unknown"}
    assert "session scope only" in reply.text
    with pytest.raises(WorkspaceUnknownError, match="scope=session"):
        tools.pin_context(desk, call, title="T", content="c", scope="workspace")


_titles = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf"]), min_size=1, max_size=200).filter(str.strip)
_drafts = st.lists(
    st.fixed_dictionaries(
        {
            "title": _titles,
            "content": st.text(st.sampled_from('a漢😀"\\\n'), max_size=4_000).map(lambda text: "c" + text),
            "priority": st.sampled_from(["critical", "high", "normal"]),
            "refs": st.lists(st.text(st.sampled_from("a/漢."), min_size=1, max_size=400), max_size=20),
        }
    ),
    max_size=12,
    unique_by=lambda draft: draft["title"].strip().casefold(),
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(_drafts)
def test_every_page_fits_and_the_walks_miss_and_repeat_nothing(
    desk: Desk, session: Call, drafts: list[dict[str, Any]]
) -> None:
    try:
        checked = [Draft.checked(**draft) for draft in drafts]
        anchors = desk.store.replace(SESSION, checked, actor="test", allow_secret=True).anchors
    except InvalidAnchorError:
        return  # two titles that count as one
    assert [row["id"] for row in walk_list(desk, session)] == [anchor.id for anchor in anchors]
    whole = walk_get(desk, session)
    assert list(whole) == [anchor.id for anchor in anchors]
    for anchor in anchors:
        assert whole[anchor.id]["content"] == whole[anchor.id]["text"] == anchor.content
        assert tuple(whole[anchor.id]["refs"]) == anchor.refs


def test_two_hundred_anchors_are_listed_once_each(desk: Desk, session: Call) -> None:
    drafts = [Draft.checked(title=f"Title {n}", content=f"content {n} " * 20) for n in range(200)]
    anchors: tuple[Anchor, ...] = desk.store.replace(SESSION, drafts, actor="test").anchors
    assert [row["id"] for row in walk_list(desk, session)] == [anchor.id for anchor in anchors]


def test_a_file_of_a_newer_version_is_listed_as_read_only(desk: Desk, session: Call, data: Path) -> None:
    tools.pin_context(desk, session, title="T", content="c")
    (path,) = (data / "anchors" / "session").rglob("s-*.json")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("anchors/1", "anchors/99"), encoding="utf-8")
    fresh = Desk(desk.data, AnchorStore(desk.data), desk.folder, 0, desk.started_at, env={})
    reply = tools.list_pinned_context(fresh, session)
    assert any("newer" in notice for notice in reply.structured["notices"])
    assert "Notice: " in reply.text


def test_workspace_scope_is_shared_by_the_sessions_of_a_folder(
    make_desk: DeskMaker, register: Register, project: Path
) -> None:
    inner = project / "src"
    inner.mkdir()
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    register("claude-code", "s-1", project)
    register("antigravity", "conv-9", inner)
    tools.pin_context(make_desk(), Call(), title="T", content="c", scope="workspace", session_id="s-1")
    rows = walk_list(make_desk(inner), Call(conversation_id="conv-9"), scope="workspace")
    assert [row["title"] for row in rows] == ["T"]
    assert make_desk().store.read(WorkspaceScope(workspace.identify(str(project))[0])).revision == 1

"""Whose call it is: every way to find the session, and never a guess."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.errors import (
    ContextAnchorError,
    SessionAmbiguousError,
    SessionUnknownError,
    WorkspaceUnknownError,
)
from context_anchor.server import anchor_tools as tools
from context_anchor.server import caller
from context_anchor.server.caller import Call, Desk
from context_anchor.wire import registry, workspace

DeskMaker = Callable[..., Desk]
Register = Callable[..., None]
HOST_PID = os.getppid()  # a process that is really there, as a host is


def titles(desk: Desk, call: Call, scope: str | None = None) -> list[str]:
    return [row["title"] for row in tools.list_pinned_context(desk, call, scope=scope).structured["anchors"]]


@pytest.mark.parametrize(
    ("meta", "call"),
    [
        (None, Call()),
        ({}, Call()),
        ({"progressToken": 3}, Call()),
        ({"antigravity.google/conversation_id": "c-1", "progressToken": "x"}, Call("c-1", "")),
        ({"claudecode/toolUseId": "toolu_1"}, Call("", "toolu_1")),
        ({"claudecode/toolUseId": 5, "antigravity.google/conversation_id": None}, Call()),
        ({"claudecode/toolUseId": "", "antigravity.google/conversation_id": "x" * 513}, Call()),
        ({"claudecode/toolUseId": "a\nb", "antigravity.google/conversation_id": "\ud800"}, Call()),
    ],
)
def test_meta_gives_the_ids_that_hosts_send_and_bad_ones_are_ignored(
    meta: dict[str, Any] | None, call: Call
) -> None:
    assert caller.read_meta(meta) == call


def test_a_conversation_id_is_trusted_even_where_no_hook_ran(desk: Desk) -> None:
    place = desk.place(Call(conversation_id="conv-new"))
    assert place.session == SessionScope("antigravity", "conv-new")
    assert place.workspace is None
    assert place.warning


def test_a_noted_tool_call_names_the_session_even_among_several(
    make_desk: DeskMaker, register: Register, data: Path, project: Path
) -> None:
    for session_id in ("s-one", "s-two"):
        register("claude-code", session_id, project)
    registry.note_call(str(data), "claude-code", "toolu_7", "s-one", time.time())
    place = make_desk().place(Call(tool_use_id="toolu_7"))
    assert (place.session, place.how) == (SessionScope("claude-code", "s-one"), "call")
    with pytest.raises(SessionAmbiguousError, match="s-one"):
        make_desk().place(Call(tool_use_id="toolu_8")).scope("session")


def test_the_hosts_process_names_the_session_and_after_clear_the_new_one(
    make_desk: DeskMaker, register: Register, project: Path
) -> None:
    desk = make_desk(pid=HOST_PID)
    register("claude-code", "s-before", project, pid=HOST_PID)
    register("claude-code", "s-other", project)
    assert desk.place(Call()).session == SessionScope("claude-code", "s-before")
    tools.pin_context(desk, Call(), title="Before", content="c")
    register("claude-code", "s-after", project, pid=HOST_PID)
    place = desk.place(Call())
    assert (place.session, place.how) == (SessionScope("claude-code", "s-after"), "process")
    assert titles(desk, Call()) == []


def test_the_session_id_in_the_servers_own_environment_is_never_used(
    register: Register, data: Path, project: Path
) -> None:
    env = {
        "CONTEXT_ANCHOR_DATA_DIR": str(data), "CLAUDE_PROJECT_DIR": str(project),
        "CONTEXT_ANCHOR_HOST_PID": str(HOST_PID), "CLAUDE_CODE_SESSION_ID": "s-stale",
    }  # fmt: skip
    register("claude-code", "s-stale", project)
    register("claude-code", "s-now", project, pid=HOST_PID)
    desk = caller.open_desk(time.time(), env)
    assert desk.host_pid == HOST_PID
    assert desk.place(Call()).session == SessionScope("claude-code", "s-now")


def test_the_only_live_session_of_the_workspace_is_taken_and_an_ended_one_is_not(
    make_desk: DeskMaker, register: Register, data: Path, project: Path
) -> None:
    register("antigravity", "c-ended", project)
    record = registry.load(str(data), "antigravity", "c-ended")
    assert record is not None
    registry.save(str(data), {**record, "ended_at": time.time()})
    register("antigravity", "c-live", project)
    place = make_desk().place(Call())
    assert (place.session, place.how) == (SessionScope("antigravity", "c-live"), "only-live")


def test_two_live_sessions_are_an_error_that_lists_both_but_the_workspace_still_works(
    desk: Desk, register: Register, project: Path
) -> None:
    register("antigravity", "c-1", project)
    register("claude-code", "s-1", project)
    with pytest.raises(SessionAmbiguousError) as caught:
        tools.pin_context(desk, Call(), title="T", content="c")
    assert "c-1" in str(caught.value)
    assert "s-1" in str(caught.value)
    assert "scope=workspace" in caught.value.hint
    tools.pin_context(desk, Call(), title="Ours", content="c", scope="workspace")
    assert titles(desk, Call()) == ["Ours"]


def test_a_session_id_that_does_not_fit_is_an_error_even_where_another_way_would(desk: Desk, session: Call) -> None:
    with pytest.raises(SessionUnknownError, match="conv-1"):
        tools.list_pinned_context(desk, session, session_id="no-such-session")
    assert titles(desk, Call(), None) == []


@pytest.mark.parametrize("session_id", ["../../etc/passwd", "C:\\x", "a/../../b", "." * 20, "nul", "%2e%2e"])
def test_paths_as_session_ids_reach_nothing(desk: Desk, data: Path, session_id: str) -> None:
    with pytest.raises(ContextAnchorError):
        tools.pin_context(desk, Call(), title="T", content="c", session_id=session_id)
    assert not data.exists() or not list(data.rglob("*.json"))


def test_a_path_as_a_conversation_id_stays_inside_the_data_folder(desk: Desk, data: Path, tmp_path: Path) -> None:
    before = {path for path in tmp_path.rglob("*") if data not in path.parents}
    tools.pin_context(desk, Call(conversation_id="../../../out"), title="T", content="c")
    assert {path for path in tmp_path.rglob("*") if data not in path.parents} - {data} == before - {data}
    assert titles(desk, Call(conversation_id="../../../out")) == ["T"]


def test_two_projects_with_two_sessions_each_interleaved_mix_nothing(
    make_desk: DeskMaker, register: Register, data: Path, tmp_path: Path
) -> None:
    desks: dict[str, Desk] = {}
    for name in ("red", "blue"):
        (tmp_path / name).mkdir()
        desks[name] = make_desk(tmp_path / name)
        for number in (1, 2):
            register("claude-code", f"{name}-{number}", tmp_path / name)
    for turn in range(3):
        for name, desk in desks.items():
            for number in (1, 2):
                use = f"toolu-{name}-{number}-{turn}"
                registry.note_call(str(data), "claude-code", use, f"{name}-{number}", time.time())
                call = Call(tool_use_id=use)
                tools.pin_context(desk, call, title=f"{name}-{number} turn {turn}", content="c")
                tools.pin_context(desk, call, title=f"{name} shared {turn}", content="c", scope="workspace")
    for name, desk in desks.items():
        for number in (1, 2):
            call = Call(tool_use_id=f"toolu-{name}-{number}-0")
            assert sorted(titles(desk, call, "session")) == [f"{name}-{number} turn {turn}" for turn in range(3)]
            assert sorted(titles(desk, call, "workspace")) == [f"{name} shared {turn}" for turn in range(3)]


def test_a_fork_has_its_parents_anchors_from_its_first_call_on(
    desk: Desk, register: Register, data: Path, project: Path
) -> None:
    register("claude-code", "s-parent", project)
    tools.pin_context(desk, Call(), title="Inherited", content="c", session_id="s-parent")
    register("claude-code", "s-child", project)
    record = registry.load(str(data), "claude-code", "s-child")
    assert record is not None
    registry.save(str(data), {**record, "forked_from": "s-parent"})
    rows = tools.list_pinned_context(desk, Call(), session_id="s-child").structured["anchors"]
    assert [row["title"] for row in rows] == ["Inherited"]


def test_the_folder_is_the_named_one_then_the_projects_then_the_current(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"CONTEXT_ANCHOR_DATA_DIR": str(data)}
    assert caller.open_desk(0.0, env).folder == str(tmp_path)
    env["CLAUDE_PROJECT_DIR"] = str(tmp_path / "claude")
    assert caller.open_desk(0.0, env).folder == str(tmp_path / "claude")
    env["CONTEXT_ANCHOR_WORKSPACE"] = str(tmp_path / "named")
    assert caller.open_desk(0.0, env).folder == str(tmp_path / "named")


@pytest.mark.parametrize("value", ["", "x", "-3", "99999999999999"])
def test_without_a_sound_host_pid_the_parent_is_the_host(data: Path, value: str) -> None:
    env = {"CONTEXT_ANCHOR_DATA_DIR": str(data), "CONTEXT_ANCHOR_HOST_PID": value}
    assert caller.open_desk(0.0, env).host_pid == os.getppid()


def test_a_home_folder_is_no_workspace(
    make_desk: DeskMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for folder in (home, Path(home.anchor)):
        with pytest.raises(WorkspaceUnknownError, match="CONTEXT_ANCHOR_WORKSPACE"):
            tools.pin_context(make_desk(folder), Call(), title="T", content="c", scope="workspace")


def test_the_registered_workspace_wins_over_the_servers_folder(
    make_desk: DeskMaker, register: Register, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    register("antigravity", "c-1", project)
    place = make_desk(tmp_path / "elsewhere").place(Call(conversation_id="c-1"))
    assert place.workspace == WorkspaceScope(*workspace.identify(str(project)))


def test_notes_of_calls_are_removed_after_an_hour_and_not_before(desk: Desk, session: Call, data: Path) -> None:
    now = time.time()
    for name, age in (("toolu_old", 4_000), ("toolu_new", 60), ("toolu_future", -9_000)):
        registry.note_call(str(data), "claude-code", name, "s-1", now - age)
    notes = data / "calls"
    for note in notes.iterdir():
        age = 4_000 if "old" in note.name else -9_000 if "future" in note.name else 60
        os.utime(note, (now - age, now - age))
    (notes / "not-ours.txt").write_text("x", encoding="utf-8")
    os.utime(notes / "not-ours.txt", (1, 1))
    titles(desk, session)
    left = sorted(note.name for note in notes.iterdir())
    assert left == ["not-ours.txt", "s-toolu_5ffuture.json", "s-toolu_5fnew.json"]

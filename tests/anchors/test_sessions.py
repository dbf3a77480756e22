"""Which session a call belongs to: never a guess."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.anchors.process import is_running, parse_elapsed, started_at
from context_anchor.anchors.sessions import ResolvedSession, is_live, resolve_session
from context_anchor.errors import SessionAmbiguousError, SessionUnknownError, UsageError
from context_anchor.wire import registry, workspace

NOW = 1_800_000_000.0


def add(data: str, session_id: str, folder: Path | str = "", host: str = "claude-code", **more: object) -> None:
    record = registry.new(host, session_id, NOW - 60)
    if folder:
        record["workspace_id"], record["workspace_root"] = workspace.resolve(data, str(folder))
    record.update(more)
    registry.save(data, record)
    if record["host_pid"]:
        registry.note_process(data, host, record["host_pid"], session_id, record["seen_at"])


def resolve(data: str, **how: object) -> ResolvedSession:
    how = {"server_started_at": NOW - 100, "now": NOW} | how
    return resolve_session(data, **how)  # type: ignore[arg-type]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    return one, two


def test_an_explicit_id_whole_by_host_and_by_prefix(data: str, folders: tuple[Path, Path]) -> None:
    add(data, "abcdef-111", folders[0])
    add(data, "abcdef-222", folders[1])
    found = resolve(data, explicit=" abcdef-111 ", workspace=str(folders[0]))
    assert (found.session_id, found.how, found.warning) == ("abcdef-111", "explicit", "")
    assert found.workspace_root == str(folders[0].resolve())
    assert found.workspace_scope is not None and found.scope.session_id == "abcdef-111"
    assert resolve(data, explicit="claude-code/abcdef-222").session_id == "abcdef-222"
    assert resolve(data, explicit="abcdef-2").session_id == "abcdef-222"
    with pytest.raises(SessionAmbiguousError) as caught:
        resolve(data, explicit="abcdef")
    assert "abcdef-111" in str(caught.value) and "abcdef-222" in str(caught.value)
    with pytest.raises(SessionUnknownError):
        resolve(data, explicit="abcde")


def test_the_same_id_in_two_hosts_needs_the_host(data: str) -> None:
    add(data, "same-id-1")
    add(data, "same-id-1", host="antigravity")
    with pytest.raises(SessionAmbiguousError, match="host/id"):
        resolve(data, explicit="same-id-1")
    assert resolve(data, explicit="antigravity/same-id-1").host == "antigravity"


def test_an_unknown_explicit_id_is_refused_with_the_sessions_of_the_workspace(
    data: str, folders: tuple[Path, Path]
) -> None:
    for number in range(10):
        add(data, f"here-{number:02d}", folders[0], seen_at=NOW - 100 * number)
    add(data, "elsewhere", folders[1])
    with pytest.raises(SessionUnknownError) as caught:
        resolve(data, explicit="nobody-knows", workspace=str(folders[0]))
    text = str(caught.value)
    assert "'nobody-knows'" in text and "here-00" in text and "here-07" in text and "and 2 more" in text
    assert "here-08" not in text and "elsewhere" not in text


@pytest.mark.parametrize("bad", ["", "   ", "x" * 513, 7, ["a"]])
def test_an_explicit_id_of_the_wrong_form_is_a_usage_error(data: str, bad: object) -> None:
    with pytest.raises(UsageError, match="session_id"):
        resolve(data, explicit=bad)


@pytest.mark.parametrize("odd", ["../../etc/passwd", "a\x00b", "\ud800x", "*" * 300])
def test_odd_ids_are_just_unknown(data: str, odd: str) -> None:
    with pytest.raises(SessionUnknownError):
        resolve(data, explicit=odd)


def test_explicit_ids_that_may_be_a_mistake_come_with_a_warning(data: str, folders: tuple[Path, Path]) -> None:
    add(data, "session-a", folders[0])
    add(data, "session-b", folders[1])
    add(data, "session-c", folders[0], ended_at=NOW - 7200)
    assert "another workspace" in resolve(data, explicit="session-b", workspace=str(folders[0])).warning
    assert "came from conversation conv-9" in resolve(data, explicit="session-a", conversation_id="conv-9").warning
    assert "ended 2 h ago" in resolve(data, explicit="session-c").warning


def test_a_conversation_id_is_trusted_even_if_no_hook_ever_ran(data: str, folders: tuple[Path, Path]) -> None:
    found = resolve(data, conversation_id="conv-1", workspace=str(folders[0]))
    assert (found.host, found.session_id, found.how) == ("antigravity", "conv-1", "conversation")
    assert found.workspace_scope is None and "workspace is unknown" in found.warning
    assert resolve(data, explicit="conv-1", conversation_id="conv-1").how == "explicit"
    with pytest.raises(SessionUnknownError):
        resolve(data, explicit="conv-1", conversation_id="conv-2")
    add(data, "conv-1", folders[1], host="antigravity")
    found = resolve(data, conversation_id="conv-1", workspace=str(folders[0]))
    assert (found.workspace_root, found.warning) == (str(folders[1].resolve()), "")


def test_a_noted_tool_call_names_its_session_for_an_hour(data: str, folders: tuple[Path, Path]) -> None:
    add(data, "session-a", folders[0])
    add(data, "session-b", folders[0])
    registry.note_call(data, "claude-code", "toolu_1", "session-a", NOW - 1)
    registry.note_call(data, "claude-code", "toolu_2", "session-b", NOW - 1)
    registry.note_call(data, "claude-code", "toolu_old", "session-b", NOW - 3700)
    registry.note_call(data, "claude-code", "toolu_new", "not-registered-yet", NOW)
    assert resolve(data, tool_use_id="toolu_1").session_id == "session-a"
    assert resolve(data, tool_use_id="toolu_2").how == "call"
    for unknown in ("toolu_old", "toolu_none", "../toolu"):
        with pytest.raises(SessionAmbiguousError):
            resolve(data, tool_use_id=unknown, workspace=str(folders[0]))
    bare = resolve(data, tool_use_id="toolu_new", workspace=str(folders[0]))
    assert (bare.session_id, bare.workspace_root) == ("not-registered-yet", str(folders[0].resolve()))


def test_the_hosts_process_names_its_session_also_after_clear(data: str, folders: tuple[Path, Path]) -> None:
    add(data, "before-clear", folders[0], host_pid=4242, seen_at=NOW - 50, ended_at=NOW - 40)
    add(data, "after-clear", folders[0], host_pid=4242, seen_at=NOW - 30, cleared_from="before-clear")
    add(data, "other-window", folders[0], host_pid=4343)
    found = resolve(data, host_pid=4242, workspace=str(folders[0]))
    assert (found.session_id, found.how) == ("after-clear", "process")


@pytest.mark.parametrize(
    "change",
    [{"ended_at": NOW - 5}, {"subagent": True}, {"seen_at": NOW - 13 * 3600}, {"host_pid": 99}],
)
def test_a_process_whose_session_is_over_or_another_names_none(data: str, change: dict[str, object]) -> None:
    add(data, "session-a", host_pid=4242)
    record = registry.load(data, "claude-code", "session-a")
    assert record is not None
    registry.save(data, record | change)
    with pytest.raises(SessionUnknownError):
        resolve(data, host_pid=4242)


def test_a_process_number_that_was_used_again_names_none(data: str) -> None:
    own = os.getpid()
    add(data, "long-ago", host_pid=own, seen_at=time.time() - 11 * 3600)
    now = time.time()
    with pytest.raises(SessionUnknownError):
        resolve(data, host_pid=own, server_started_at=now, now=now)


def test_a_server_that_was_started_anew_still_belongs_to_its_process(data: str) -> None:
    own, now = os.getpid(), time.time()
    if started_at(own) is None:
        pytest.skip("the system does not tell when a process started")
    add(data, "session-a", host_pid=own, seen_at=now)
    found = resolve(data, host_pid=own, server_started_at=now + 3600, now=now + 3601)
    assert found.how == "process"


def test_a_process_with_several_conversations_names_none(data: str) -> None:
    add(data, "conv-1", host="antigravity", host_pid=4242)
    assert resolve(data, host_pid=4242).session_id == "conv-1"
    add(data, "conv-2", host="antigravity", host_pid=4242)
    with pytest.raises(SessionUnknownError):
        resolve(data, host_pid=4242)


def test_the_only_live_session_of_the_workspace_also_from_a_subfolder(
    data: str, folders: tuple[Path, Path]
) -> None:
    (folders[0] / ".git").mkdir()
    (folders[0] / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (folders[0] / "src").mkdir()
    add(data, "session-a", folders[0])
    add(data, "ended", folders[0], ended_at=NOW - 1)
    add(data, "helper", folders[0], subagent=True)
    add(data, "old", folders[0], seen_at=NOW - 13 * 3600)
    add(data, "elsewhere", folders[1])
    found = resolve(data, workspace=str(folders[0] / "src"))
    assert (found.session_id, found.how) == ("session-a", "only-live")
    with pytest.raises(SessionUnknownError, match="Sessions on this machine"):
        resolve(data)


def test_two_live_sessions_are_never_decided_by_which_is_newer(data: str, folders: tuple[Path, Path]) -> None:
    add(data, "session-a", folders[0], seen_at=NOW - 11 * 3600)
    add(data, "session-b", folders[0], seen_at=NOW)
    with pytest.raises(SessionAmbiguousError) as caught:
        resolve(data, workspace=str(folders[0]))
    assert "session-a (claude-code, seen 11 h ago)" in str(caught.value)
    assert "session-b (claude-code, seen 0 s ago)" in str(caught.value)


def test_a_session_not_seen_since_the_server_started_is_not_taken(data: str, folders: tuple[Path, Path]) -> None:
    add(data, "crashed", folders[0], seen_at=NOW - 3600)
    with pytest.raises(SessionUnknownError, match="before this server started"):
        resolve(data, workspace=str(folders[0]))
    assert resolve(data, workspace=str(folders[0]), server_started_at=0.0).session_id == "crashed"


@pytest.mark.skipif(os.name == "nt", reason="processes can't be asked there without risk")
def test_a_session_of_another_running_process_is_not_taken(data: str, folders: tuple[Path, Path]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        try:
            add(data, "theirs", folders[0], host_pid=other.pid)
            with pytest.raises(SessionUnknownError, match="another process"):
                resolve(data, workspace=str(folders[0]), host_pid=os.getpid())
        finally:
            other.communicate(b"\n", timeout=10)
    assert resolve(data, workspace=str(folders[0]), host_pid=os.getpid()).session_id == "theirs"


def test_a_clock_set_back_does_not_end_a_session(data: str) -> None:
    add(data, "session-a", seen_at=NOW + 5000)
    record = registry.load(data, "claude-code", "session-a")
    assert record is not None and is_live(record, NOW)


CALLERS = tuple(itertools.product(range(2), range(2)))


@given(order=st.permutations(CALLERS * 2), noted=st.sets(st.sampled_from(CALLERS)), pids=st.booleans())
@settings(max_examples=40, deadline=None)
def test_two_projects_with_two_sessions_each_mix_nothing(
    tmp_path_factory: pytest.TempPathFactory, order: list[tuple[int, int]], noted: set[tuple[int, int]], pids: bool
) -> None:
    top = tmp_path_factory.mktemp("mix")
    data = str(top / "data")
    for project, number in CALLERS:
        (top / f"p{project}").mkdir(exist_ok=True)
        pid = 70_000 + project * 10 + number if pids else 0
        add(data, f"session-{project}-{number}", top / f"p{project}", host_pid=pid)
    for step, (project, number) in enumerate(order):
        call = f"toolu_{step}"
        if (project, number) in noted:
            registry.note_call(data, "claude-code", call, f"session-{project}-{number}", NOW)
        try:
            found = resolve(
                data,
                tool_use_id=call,
                host_pid=70_000 + project * 10 + number,
                workspace=str(top / f"p{project}"),
            )
        except SessionAmbiguousError as refused:
            assert (project, number) not in noted and not pids
            assert f"session-{1 - project}-" not in str(refused)
        else:
            assert found.session_id == f"session-{project}-{number}"
            assert found.workspace_root == str((top / f"p{project}").resolve())


def test_elapsed_times_of_ps_are_read() -> None:
    assert parse_elapsed(" 01:02\n") == 62
    assert parse_elapsed("3-04:05:06") == 3 * 86400 + 4 * 3600 + 5 * 60 + 6
    with pytest.raises(ValueError):
        parse_elapsed("")


def test_this_process_runs_and_started_before_now() -> None:
    assert os.name == "nt" or is_running(os.getpid())
    assert not is_running(0)
    started = started_at(os.getpid())
    assert started is None or time.time() - 86400 < started <= time.time() + 1
    assert started_at(2**30) is None

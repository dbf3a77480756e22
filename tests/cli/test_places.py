"""Which session and workspace a command means, and what is said when that can't be told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cli.conftest import Desk


def where(ca: Desk, *words: str) -> str:
    """Return the scope in which `pin` puts an anchor."""
    answer = ca("pin", "--title", "t", "--content", "c", "--json", *words)
    if answer.code:
        return str(answer.json["error"]["code"])
    scope = answer.json["scope"]
    return str(scope.get("session_id") or scope["root"])


def test_a_session_is_named_by_its_id_host_and_id_or_a_prefix(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.open_session("11111111-bbbb", folder=ca.home)
    assert where(ca, "--session", "11111111-aaaa") == "11111111-aaaa"
    assert where(ca, "--session", "claude-code/11111111-bbbb") == "11111111-bbbb"
    assert where(ca, "--session", "11111111-b") == "11111111-bbbb"
    assert where(ca, "--session", "11111111") == "session_ambiguous"
    assert where(ca, "--session", "1111") == "session_unknown"
    assert where(ca, "--session", "zzzzzzzz") == "session_unknown"


def test_naming_a_session_of_another_workspace_is_possible_and_said(ca: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ca.open_session("22222222-bbbb", folder=other)
    answer = ca("pin", "--title", "t", "--content", "c", "--session", "22222222")
    assert answer.code == 0
    assert "belongs to another workspace" in answer.err
    assert where(ca, "--session", "22222222", "--scope", "workspace") == str(other)


@pytest.mark.parametrize(
    ("host", "variable"),
    [("claude-code", "CLAUDE_CODE_SESSION_ID"), ("antigravity", "ANTIGRAVITY_CONVERSATION_ID")],
)
def test_the_hosts_environment_decides_between_live_sessions(
    ca: Desk, monkeypatch: pytest.MonkeyPatch, host: str, variable: str
) -> None:
    ca.open_session("11111111-aaaa", host)
    ca.open_session("22222222-bbbb", host)
    monkeypatch.setenv(variable, "22222222-bbbb")
    answer = ca("pin", "--title", "t", "--content", "c")
    assert f"session 22222222-bbbb of {host} (named by {variable})" in answer.out


def test_an_environment_left_over_from_elsewhere_is_not_trusted(
    ca: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    ca.open_session("22222222-bbbb", folder=other)
    ca.open_session("33333333-cccc", ended_at=time.time())
    for stale in ("22222222-bbbb", "33333333-cccc", "44444444-dddd", "x" * 600, "../../etc/passwd"):
        monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", stale)
        assert where(ca) == str(ca.project), stale
    ca.open_session("11111111-aaaa")
    assert where(ca) == "11111111-aaaa"


def test_two_hosts_in_the_environment_are_no_answer(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", ca.open_session("11111111-aaaa"))
    monkeypatch.setenv("ANTIGRAVITY_CONVERSATION_ID", ca.open_session("22222222-bbbb", "antigravity"))
    assert where(ca) == str(ca.project)
    assert where(ca, "--scope", "session") == "session_ambiguous"


def test_ended_old_and_sub_sessions_are_not_live(ca: Desk) -> None:
    ca.open_session("11111111-aaaa", ended_at=time.time())
    ca.open_session("22222222-bbbb", seen_at=time.time() - 13 * 3600)
    ca.open_session("33333333-cccc", subagent=True)
    assert where(ca) == str(ca.project)
    assert where(ca, "--scope", "session") == "session_unknown"
    ca.open_session("44444444-dddd")
    assert where(ca) == "44444444-dddd"


def test_anchors_left_out_because_several_sessions_are_live_are_mentioned(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.open_session("22222222-bbbb")
    ca.pin("mine", "c", "--session", "11111111")
    for words in (("list",), ("get", "--all")):
        answer = ca(*words)
        assert (answer.code, "several sessions are live here" in answer.err) == (0, True)
        assert ca(*words, "--scope", "workspace").err == ""
    assert "several sessions are live here" in ca("get", "mine").err
    assert ca("get", "mine", "--session", "11111111").code == 0


def test_a_session_of_the_users_own_needs_no_host(ca: Desk) -> None:
    assert where(ca, "--session", "cli/notes") == "notes"
    assert ca.titles("--session", "cli/notes") == ["t"]
    assert where(ca, "--session", "cli/") == "session_unknown"
    assert where(ca, "--session", "cli/" + "x" * 600) == "usage"


def test_an_id_full_of_path_tricks_stays_inside_the_data_folder(ca: Desk, tmp_path: Path) -> None:
    for name in ("../../../../evil", "..", "a/../../b", "/etc/x", "C:\\x", "con", "nul.", "ünï ✓", "%2e%2e"):
        assert where(ca, "--session", f"cli/{name}") == name
        assert ca.titles("--session", f"cli/{name}") == ["t"]
    outside = [p for p in tmp_path.rglob("*") if p.is_file() and ca.data not in p.parents]
    assert outside == []


def test_a_workspace_is_named_by_any_of_its_folders_or_its_id(ca: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / ".git" / "HEAD").touch()
    (other / "deep" / "er").mkdir(parents=True)
    assert where(ca, "--workspace", str(other / "deep" / "er")) == str(other)
    assert ca.titles("--workspace", str(other)) == ["t"]
    (row,) = ca("workspaces", "--json").json["workspaces"]
    assert where(ca, "--workspace", row["workspace_id"]) == str(other)
    assert where(ca, "--workspace", row["workspace_id"][:12]) == str(other)
    for wrong in ("", "/no/such/folder", "w-00000000", "nul\0name", "x" * 5000, str(other / ".git" / "HEAD")):
        assert where(ca, "--workspace", wrong) == "workspace_unknown", wrong


def test_subfolders_share_the_workspace_of_the_repository(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (ca.project / ".git").mkdir()
    (ca.project / ".git" / "HEAD").touch()
    (ca.project / "src").mkdir()
    ca.pin("top")
    monkeypatch.chdir(ca.project / "src")
    assert ca.titles() == ["top"]


def test_the_workspace_alone_is_meant_when_only_it_is_named(ca: Desk) -> None:
    ca.open_session("11111111-aaaa")
    ca.pin("mine", "c", "--scope", "session")
    ca.pin("ours", "c", "--workspace", ".")
    assert ca.titles("--workspace", ".") == ["ours"]
    assert ca.titles("--workspace", ".", "--scope", "session") == ["mine"]


def test_the_home_folder_is_no_project(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ca.home)
    answer = ca("pin", "--title", "t", "--content", "c", "--scope", "workspace")
    assert answer.code == 3
    assert "--workspace" in answer.err
    assert where(ca, "--workspace", str(ca.home)) == str(ca.home.resolve())


def test_a_folder_deleted_under_the_command_is_no_crash(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ca.project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    answer = ca("list", "--json")
    assert (answer.code, answer.json["error"]["code"]) in ((3, "session_unknown"), (3, "workspace_unknown"))

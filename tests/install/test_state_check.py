"""What doctor reads from the data folder: store, locks, failures, heartbeats, deliveries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from context_anchor.install import state_check
from context_anchor.install.findings import Finding
from context_anchor.wire import hooklog, marks, registry

NOW = 1_800_000_000.0
DAY = 86400.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "dätä"
    made.mkdir(mode=0o700)
    return made


def add_session(data: Path, name: str, age_s: float, events: tuple[str, ...], **state: Any) -> None:
    record = registry.new("claude-code", name, NOW - age_s)
    record.update({key: state.pop(key) for key in ("ended_at", "subagent") if key in state})
    registry.save(str(data), record)
    value = marks.new()
    value["events"] = {event: int(NOW - age_s) for event in events}
    value.update(state)
    marks.save(str(data), "claude-code", name, value)


def named(findings: list[Finding], check: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


ALL = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "PostCompact")


def test_a_machine_on_which_nothing_happened_yet_is_no_error(tmp_path: Path) -> None:
    (finding,) = state_check.check(tmp_path / "none", ("claude-code",), NOW)
    assert finding.level == "info"
    assert not (tmp_path / "none").exists()


def test_looking_changes_nothing(data: Path) -> None:
    add_session(data, "one", 60, ALL)
    before = sorted(str(path) for path in data.rglob("*"))
    state_check.check(data, ("claude-code", "antigravity"), NOW)
    assert sorted(str(path) for path in data.rglob("*")) == before


def test_an_event_that_stays_away_is_counted_in_sessions(data: Path) -> None:
    for number in range(9):
        add_session(
            data, f"new-{number}", 100.0 + number, ("SessionStart", "UserPromptSubmit", "Stop"), compactions=1
        )
    add_session(data, "old", 10_000, ALL, compactions=1)
    found = state_check.heartbeats(data, "claude-code", NOW)
    assert any("PreCompact not seen for 9 sessions" in finding.what for finding in found), found
    assert all(finding.level in ("ok", "info") for finding in found)


def test_a_core_event_that_stays_away_is_a_warning(data: Path) -> None:
    for number in range(3):
        add_session(data, f"s-{number}", 100.0 + number, ("SessionStart",))
    found = state_check.heartbeats(data, "claude-code", NOW)
    assert any(f.level == "warning" and "UserPromptSubmit not seen for 3 sessions" in f.what for f in found)


def test_sessions_without_a_compaction_say_nothing_of_its_events(data: Path) -> None:
    for number in range(5):
        add_session(data, f"s-{number}", 100.0 + number, ("SessionStart", "UserPromptSubmit", "Stop"))
    assert not any("Compact" in finding.what for finding in state_check.heartbeats(data, "claude-code", NOW))


@pytest.mark.parametrize(
    ("receipt", "level", "words"),
    [
        ({"delivered": "yes", "delivered_at": NOW - 60, "tokens": 312, "kind": "recovery"}, "ok", "312 tokens"),
        ({"delivered": "no", "tokens": 5, "kind": "recovery"}, "warning", "did not reach the model"),
        ({"delivered": "unknown", "tokens": 77, "kind": "start"}, "info", "77 tokens"),
    ],
)
def test_the_last_delivery_is_told(data: Path, receipt: dict[str, Any], level: str, words: str) -> None:
    add_session(data, "s", 60, ALL, last_receipt={"id": "r-0123456789", "at": NOW - 90, "units": 9, **receipt})
    found = named(state_check.heartbeats(data, "claude-code", NOW), "claude-code.delivery")
    assert [finding.level for finding in found] == [level]
    assert words in found[0].what


def test_recent_failures_of_hooks_are_shown_and_old_ones_are_not(data: Path) -> None:
    hooklog.note(str(data), "claude-code", "Stop", "long ago", NOW - 30 * DAY)
    (clean,) = named(list(state_check.check(data, (), NOW)), "hooks.failures")
    assert clean.level == "ok"
    hooklog.note(str(data), "claude-code", "Stop", "the disk was full", NOW - 60)
    (found,) = named(list(state_check.check(data, (), NOW)), "hooks.failures")
    assert found.level == "warning" and "the disk was full" in found.what and "1 in the last" in found.what


def test_sessions_that_were_never_ended_are_counted(data: Path) -> None:
    add_session(data, "gone", 30 * DAY, ALL)
    add_session(data, "ended", 30 * DAY, ALL, ended_at=NOW - 29 * DAY)
    add_session(data, "live", 60, ALL)
    (found,) = named(list(state_check.check(data, ("claude-code",), NOW)), "sessions.stale")
    assert found.what.startswith("1 sessions")


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_a_folder_that_others_can_look_into_is_a_warning(data: Path) -> None:
    data.chmod(0o755)
    (found,) = named(list(state_check.check(data, (), NOW)), "data.folder")
    assert found.level == "warning" and "chmod 700" in found.cure


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(data: Path) -> None:
    data.chmod(0o500)
    try:
        assert any(f.level == "error" for f in named(list(state_check.check(data, (), NOW)), "data.folder"))
    finally:
        data.chmod(0o700)


def test_a_lock_that_is_held_for_long_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_check, "_LOCK_WAIT_S", 0.2)
    path = data / "marks" / "claude-code" / "s-x.json.lock"
    path.parent.mkdir(parents=True)
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from context_anchor.wire.atomic import Lock\n"
        "assert Lock(sys.argv[2]).acquire(); print('held', flush=True); sys.stdin.read()"
    )
    root = str(Path(state_check.__file__).resolve().parents[2])
    holder = subprocess.Popen(
        [sys.executable, "-c", code, root, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdout.readline().strip() == b"held"
    try:
        (found,) = named(list(state_check.check(data, (), NOW)), "data.locks")
        assert found.where == str(path)
    finally:
        holder.communicate()
    assert named(list(state_check.check(data, (), NOW)), "data.locks") == []


def test_a_damaged_file_of_anchors_is_found(data: Path) -> None:
    from context_anchor.anchors.anchor import Draft
    from context_anchor.anchors.store import AnchorStore, SessionScope

    AnchorStore(data).pin(SessionScope("claude-code", "s"), Draft.checked(title="T", content="C"), actor="user")
    assert [f.level for f in state_check.check_store(data)] == ["ok"]
    (path,) = list((data / "anchors").rglob("*.json"))
    path.write_text("{ broken", encoding="utf-8")
    found = state_check.check_store(data)
    assert any(f.level in ("error", "warning") and f.cure for f in found), found


def test_without_the_stores_packages_the_private_environment_looks(
    shared_environment: Path, tmp_path: Path
) -> None:
    """install.py runs doctor on a bare Python; a damaged store must be found all the same."""
    folder = tmp_path / "d"
    (folder / "anchors" / "session" / "cli").mkdir(parents=True)
    (folder / "env").symlink_to(shared_environment / "env")
    (folder / "anchors" / "session" / "cli" / "s-x.json").write_text("{ broken")
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); sys.modules['filelock'] = None\n"
        "from pathlib import Path; from context_anchor.install import state_check\n"
        "print(json.dumps([f.to_json() for f in state_check.check_store(Path(sys.argv[2]))]))"
    )
    root = str(Path(state_check.__file__).resolve().parents[2])
    out = subprocess.run(
        [sys.executable, "-c", code, root, str(folder)], capture_output=True, text=True, check=True
    )
    found = json.loads(out.stdout)
    assert any(item["level"] in ("error", "warning") and "s-x" in item.get("where", "") for item in found), found


def test_marks_of_a_newer_version_are_passed_over(data: Path) -> None:
    add_session(data, "s", 60, ALL)
    path = Path(marks.path_of(str(data), "claude-code", "s"))
    path.write_text(json.dumps({"format": "context-anchor-marks/9"}))
    (found,) = state_check.heartbeats(data, "claude-code", NOW)
    assert found.level == "info"


def test_times_that_are_no_times_do_not_end_the_look(data: Path) -> None:
    add_session(
        data, "s", 60, ALL, last_receipt={"id": "r-0123456789", "at": 1e300, "delivered": "yes", "tokens": None}
    )
    found = state_check.heartbeats(data, "claude-code", time.time())
    assert any("unknown time" in finding.what for finding in found)

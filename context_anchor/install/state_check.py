"""The data folder as it stands: folder, store, locks, hook failures, heartbeats, deliveries, stale sessions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from context_anchor.errors import ContextAnchorError
from context_anchor.install import environment
from context_anchor.install.findings import Finding, Level, from_error
from context_anchor.wire import atomic, hooklog, marks, registry

RECENT_S: Final = 7 * 86400.0
STALE_S: Final = 7 * 86400.0
_LOCK_WAIT_S: Final = 2.0  # longer than any change of ours holds one
_LOW_DISK: Final = 64 * 1024 * 1024
_SESSIONS: Final = 40  # newest looked at for heartbeats
# Events that a session of some length always brings; without them a hook is not registered or not called.
_CORE: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "claude-code": (("SessionStart",), ("UserPromptSubmit",), ("Stop",)),
    "antigravity": (("PreInvocation",),),
}
_WITH_COMPACTION: Final[dict[str, tuple[str, ...]]] = {
    "claude-code": ("PreCompact", "PostCompact"),
    "antigravity": (),
}
_STORE_CODE: Final = (
    "import sys, json; sys.path.insert(0, sys.argv[1]); from context_anchor.anchors.store import AnchorStore; "
    "print(json.dumps([[f.level, f.where, f.what, f.cure] for f in AnchorStore(sys.argv[2]).check()]))"
)


def check(data: Path, hosts: Sequence[str], now: float | None = None) -> tuple[Finding, ...]:
    """Return the findings on the data folder; reads only, but for a probe file that is removed again."""
    now = time.time() if now is None else now
    if not data.is_dir():
        return (Finding("info", "data.folder", "nothing was stored yet", where=str(data)),)
    found = list(_folder(data))
    found += check_store(data)
    found += _locks(data)
    found += _failures(data, now)
    for host in hosts:
        found += heartbeats(data, host, now)
    found += _stale(data, now)
    return tuple(found)


def _folder(data: Path) -> list[Finding]:
    found: list[Finding] = []
    try:
        handle, name = tempfile.mkstemp(prefix=".probe-", dir=data)
        os.close(handle)
        Path(name).unlink()
    except OSError as problem:
        found.append(
            Finding(
                "error",
                "data.folder",
                f"it can't be written: {problem}",
                "Give this user the right to write there, or set CONTEXT_ANCHOR_DATA_DIR for all hosts.",
                str(data),
            )
        )
    if os.name != "nt" and data.stat().st_mode & 0o077:
        found.append(
            Finding(
                "warning",
                "data.folder",
                "other users of this machine can look into it",
                f"Run: chmod 700 {data}",
                str(data),
            )
        )
    free = shutil.disk_usage(data).free
    if free < _LOW_DISK:
        found.append(
            Finding(
                "warning",
                "data.folder",
                f"only {free // 1048576} MB are free on its disk",
                "Make room: with a full disk nothing can be pinned.",
                str(data),
            )
        )
    return found or [Finding("ok", "data.folder", "readable and writable", where=str(data))]


def check_store(data: Path) -> list[Finding]:
    """Return what the store finds in its files; in the private environment where this Python lacks filelock."""
    try:
        from context_anchor.anchors.store import AnchorStore
    except ImportError:
        listed = _check_elsewhere(data)
        if isinstance(listed, Finding):
            return [listed]
    else:
        try:
            listed = [(f.level, f.where, f.what, f.cure) for f in AnchorStore(data).check()]
        except (ContextAnchorError, OSError) as problem:
            if isinstance(problem, ContextAnchorError):
                return [from_error("data.store", problem)]
            return [Finding("error", "data.store", str(problem), "See that the folder can be read.", str(data))]
    found = [Finding(_level(level), "data.store", what, cure, where) for level, where, what, cure in listed]
    return found or [Finding("ok", "data.store", "every file of anchors is sound")]


def _check_elsewhere(data: Path) -> list[tuple[str, str, str, str]] | Finding:
    python = environment.python_of(environment.folder_of(data))
    top = str(Path(__file__).resolve().parents[2])
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _STORE_CODE, top, str(data)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        return [(str(a), str(b), str(c), str(d)) for a, b, c, d in json.loads(done.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        return Finding(
            "warning",
            "data.store",
            f"anchors were not looked at: {problem}",
            "Install, so that the private environment is there.",
        )


def _level(text: str) -> Level:
    return "error" if text == "error" else "warning" if text == "warning" else "info"


def _locks(data: Path) -> list[Finding]:
    """Return the locks that are held for longer than any change takes: someone hangs."""
    held = []
    names = [*(data / "anchors").rglob("*.lock"), *(data / "marks").rglob("*.lock"), data / "env" / "lock"]
    deadline = time.monotonic() + _LOCK_WAIT_S
    for path in names:
        if not path.is_file():
            continue
        lock = atomic.Lock(str(path), max(deadline - time.monotonic(), 0.0))
        try:
            if lock.acquire():
                lock.release()
            else:
                held.append(path)
        except OSError:
            held.append(path)
    return [
        Finding(
            "warning",
            "data.locks",
            "another process holds this lock for long",
            "End the process that hangs; the system frees its locks.",
            str(path),
        )
        for path in held[:5]
    ]


def _failures(data: Path, now: float) -> list[Finding]:
    recent = [
        line for line in hooklog.recent(data=str(data), limit=200) if now - _number(line.get("at")) < RECENT_S
    ]
    if not recent:
        return [Finding("ok", "hooks.failures", "none in the last seven days")]
    last = recent[-1]
    what = (
        f"{len(recent)} in the last seven days, the newest {_when(_number(last.get('at')))} at "
        f"{last.get('host', '?')} {last.get('event', '?')}: {str(last.get('what', ''))[:200]}"
    )
    return [
        Finding(
            "warning",
            "hooks.failures",
            what,
            "The turn went on without that hook. If it repeats, report it.",
            hooklog.log_path(str(data)),
        )
    ]


def heartbeats(data: Path, host: str, now: float) -> list[Finding]:
    """Return which events of a host's hooks stay away, and when something last reached the model."""
    records = [r for r in registry.all_sessions(str(data), host) if not r["subagent"]][-_SESSIONS:]
    states = [(record, state) for record in reversed(records) if (state := _marks(data, host, record))]
    name = f"{host}.heartbeat"
    if not states:
        return [
            Finding(
                "info",
                name,
                "no conversation has been seen yet",
                "Open a new conversation in the host; those "
                "that were open before the installation do not load the plugin.",
            )
        ]
    found = []
    newest = states[0][1]["events"]
    last = max((_number(at) for at in newest.values()), default=0.0)
    found.append(Finding("ok", name, f"last event {_when(last)}, {len(states)} conversations looked at"))
    for names in _CORE[host]:
        missing = _sessions_without(names, [state for _, state in states])
        if missing >= 3:
            found.append(
                Finding(
                    "warning",
                    name,
                    f"{' or '.join(names)} not seen for {missing} sessions",
                    "Install again and open a new conversation; see the host's own log of hooks.",
                )
            )
    compacted = [state for _, state in states if _number(state.get("compactions")) > 0]
    for event in _WITH_COMPACTION[host]:
        missing = _sessions_without((event,), compacted)
        if missing >= 2:
            found.append(
                Finding(
                    "info",
                    name,
                    f"{event} not seen for {missing} sessions that were compacted",
                    "Nothing to do: recovery does not depend on it.",
                )
            )
    found += _delivery(host, [state for _, state in states])
    skipped = sum(int(_number(state.get("skipped_lines"))) for _, state in states)
    if skipped:
        found.append(
            Finding(
                "info",
                name,
                f"{skipped} transcript lines were too long to be read",
                "Nothing to do: sizes are told by the lines around them.",
            )
        )
    return found


def _sessions_without(events: tuple[str, ...], states: Sequence[Mapping[str, Any]]) -> int:
    """Return how many of the newest sessions, in a row, lack all of the events."""
    count = 0
    for state in states:
        if any(event in state["events"] for event in events):
            return count
        count += 1
    return count


def _delivery(host: str, states: Sequence[Mapping[str, Any]]) -> list[Finding]:
    receipts = [r for state in states if isinstance(r := state.get("last_receipt"), dict)]
    name = f"{host}.delivery"
    if not receipts:
        return []
    proven = [r for r in receipts if r.get("delivered") == "yes"]
    found = []
    if proven:
        best = max(proven, key=lambda r: _number(r.get("delivered_at")) or _number(r.get("at")))
        at = _when(_number(best.get("delivered_at")) or _number(best.get("at")))
        found.append(
            Finding(
                "ok",
                name,
                f"last delivered to the model {at}, {best.get('tokens', '?')} tokens "
                f"({best.get('kind', '?')}, receipt {best.get('id', '?')})",
            )
        )
    last = max(receipts, key=lambda r: _number(r.get("at")))
    if last.get("delivered") == "no":
        found.append(
            Finding(
                "warning",
                name,
                f"the last text, {_when(_number(last.get('at')))}, did not reach the model",
                "It is given once more by itself. If this repeats, report it.",
            )
        )
    elif not proven:
        found.append(
            Finding(
                "info",
                name,
                f"{last.get('tokens', '?')} tokens were handed over {_when(_number(last.get('at')))}; "
                "this host has left no trace of whether they arrived",
            )
        )
    return found


def _stale(data: Path, now: float) -> list[Finding]:
    open_ones = [r for r in registry.all_sessions(str(data)) if not r["ended_at"] and now - r["seen_at"] > STALE_S]
    if not open_ones:
        return []
    return [
        Finding(
            "info",
            "sessions.stale",
            f"{len(open_ones)} sessions were never ended and not seen for over seven days (closed window, crash)",
            "Nothing to do: they count as ended, and their anchors are kept "
            "(`context-anchor sessions` lists them).",
        )
    ]


def _marks(data: Path, host: str, record: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return marks.load(str(data), host, str(record["session_id"]))
    except (marks.NewerMarksError, OSError):
        return None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def _when(epoch_s: float) -> str:
    try:
        return datetime.fromtimestamp(epoch_s, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"

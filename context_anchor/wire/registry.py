"""One small file per session that hooks keep, and the ways to find a session by it."""

from __future__ import annotations

import os
import time

from context_anchor.wire import atomic, paths, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

FORMAT = "context-anchor-session/1"
_LIMIT = 65536
_MOST_KIN = 16  # forks remembered for one beginning
_FIELDS: tuple[tuple[str, Any], ...] = (
    ("workspace_id", ""), ("workspace_root", ""), ("cwd", ""), ("transcript_path", ""), ("host_pid", 0),
    ("first_line_id", ""), ("forked_from", ""), ("cleared_from", ""), ("started_at", 0.0), ("seen_at", 0.0),
    ("ended_at", 0.0), ("end_reason", ""), ("subagent", False), ("version", ""), ("model", ""),
)


def _read(path: str) -> dict[str, Any] | None:
    try:
        raw = atomic.read_bytes(path, _LIMIT)
        value = quickjson.loads(raw) if raw else None
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _checked(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a record with every field of the right type, or None if it is not one."""
    if not value or value.get("format") != FORMAT:
        return None
    if not isinstance(value.get("host"), str) or not isinstance(value.get("session_id"), str):
        return None
    for name, default in _FIELDS:
        have = value.get(name)
        if isinstance(default, float):
            if isinstance(have, bool) or not isinstance(have, (int, float)):
                value[name] = default
        elif type(have) is not type(default):
            value[name] = default
    return value


def new(host: str, session_id: str, now: float) -> dict[str, Any]:
    """Return a fresh record; times are epoch seconds, `ended_at` 0 means it has not ended."""
    record: dict[str, Any] = {"format": FORMAT, "host": host, "session_id": session_id}
    record.update(_FIELDS)
    record["started_at"] = record["seen_at"] = now
    return record


def load(data: str, host: str, session_id: str) -> dict[str, Any] | None:
    """Return a session's record, or None; a file that speaks of another session is none of this one's."""
    record = _checked(_read(paths.session_path(data, "registry", host, session_id)))
    if record and (record["host"] != host or record["session_id"] != session_id):
        return None
    return record


def standing(data: str, host: str, session_id: str) -> str:
    """Tell why `load` gave nothing: "" where there is no file, "newer", or "damaged"."""
    path = paths.session_path(data, "registry", host, session_id)
    if not os.path.lexists(path):
        return ""
    value = _read(path)
    name, _, number = str(value.get("format")).partition("/") if value else ("", "", "")
    if name == FORMAT.partition("/")[0] and number.isdecimal() and len(number) < 9 and int(number) > 1:
        return "newer"
    return "damaged"


def set_aside(data: str, host: str, session_id: str) -> str:
    """Move a damaged file out of the way and return its new path; raises OSError."""
    path = paths.session_path(data, "registry", host, session_id)
    aside = "%s.corrupt-%d" % (path, int(time.time()))
    os.replace(path, aside)
    return aside


def save(data: str, record: dict[str, Any]) -> None:
    """Write a record; raises OSError."""
    path = paths.session_path(data, "registry", record["host"], record["session_id"])
    paths.ensure_folder(os.path.dirname(path))
    atomic.replace_bytes(path, quickjson.dumps(record).encode("ascii"))


def all_sessions(data: str, host: str | None = None) -> list[dict[str, Any]]:
    """Return every readable session record, oldest seen first."""
    found = []
    top = os.path.join(data, "registry")
    for name in [paths.file_key(host)[2:]] if host else _names(top):
        folder = os.path.join(top, name)
        for entry in _names(folder):
            if entry.startswith("s-") and entry.endswith(".json"):
                record = _checked(_read(os.path.join(folder, entry)))
                if record:
                    found.append(record)
    found.sort(key=lambda r: r["seen_at"])
    return found


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _process_path(data: str, host: str, pid: int) -> str:
    return os.path.join(data, "registry", paths.file_key(host)[2:], "process-%d.json" % pid)


def note_process(data: str, host: str, pid: int, session_id: str, now: float) -> None:
    """Remember which session a host process is in now; after /clear the newer one replaces the older."""
    path = _process_path(data, host, pid)
    paths.ensure_folder(os.path.dirname(path))
    atomic.replace_bytes(path, quickjson.dumps({"session_id": session_id, "at": now}).encode("ascii"))


def by_process(data: str, pid: int, host: str | None = None) -> tuple[str, str, float] | None:
    """Return `(host, session_id, at)` that hooks noted for a host process, newest first wins, or None."""
    best: tuple[str, str, float] | None = None
    for name in [host] if host else _names(os.path.join(data, "registry")):
        value = _read(_process_path(data, name, pid))
        if value and isinstance(value.get("session_id"), str) and isinstance(value.get("at"), (int, float)):
            if best is None or value["at"] > best[2]:
                best = (name, value["session_id"], float(value["at"]))
    return best


def _first_path(data: str, host: str, line_id: str) -> str:
    return os.path.join(data, "registry", paths.file_key(host)[2:], "first-" + paths.file_key(line_id)[2:])


def note_first_line(data: str, host: str, line_id: str, session_id: str) -> None:
    """Remember a session under a line id that a fork's transcript may begin with.

    That is a transcript's first line, and each compaction's boundary: a fork copies its parent's lines from
    the last boundary on.
    """
    known = by_first_line(data, host, line_id)
    if session_id not in known:
        path = _first_path(data, host, line_id)
        paths.ensure_folder(os.path.dirname(path))
        text = quickjson.dumps([*known, session_id][-_MOST_KIN:])
        atomic.replace_bytes(path, text.encode("ascii"))


def by_first_line(data: str, host: str, line_id: str) -> list[str]:
    """Return the ids of the sessions that were noted under a line id, oldest first."""
    try:
        raw = atomic.read_bytes(_first_path(data, host, line_id), _LIMIT)
        value = quickjson.loads(raw) if raw else []
    except (OSError, ValueError):
        return []
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def _call_path(data: str, tool_use_id: str) -> str:
    return os.path.join(data, "calls", paths.file_key(tool_use_id) + ".json")


def note_call(data: str, host: str, tool_use_id: str, session_id: str, now: float) -> None:
    """Remember which session a call of our own tools comes from (the id reaches the server in `_meta`)."""
    path = _call_path(data, tool_use_id)
    paths.ensure_folder(os.path.dirname(path))
    record = {"host": host, "session_id": session_id, "at": now}
    atomic.replace_bytes(path, quickjson.dumps(record).encode("ascii"))


def find_call(data: str, tool_use_id: str) -> tuple[str, str, float] | None:
    """Return `(host, session_id, at)` noted for a tool call, or None."""
    value = _read(_call_path(data, tool_use_id))
    if not value or not isinstance(value.get("session_id"), str) or not isinstance(value.get("host"), str):
        return None
    return value["host"], value["session_id"], float(value.get("at") or 0)

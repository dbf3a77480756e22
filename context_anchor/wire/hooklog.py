"""The log of hook failures, which `doctor` reads."""

from __future__ import annotations

import os
import time

from context_anchor.wire import atomic, paths, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

MAX_BYTES = 262144


def log_path(data: str) -> str:
    """Return the log's path; when full it becomes `hooks.1.jsonl`."""
    return os.path.join(data, "log", "hooks.jsonl")


def note(data: str, host: str, event: str, what: object, now: float | None = None) -> bool:
    """Append one failure; returns False where even that can't be written, and never raises."""
    if not data:
        return False  # no data folder could be told
    try:
        path = log_path(data)
        paths.ensure_folder(os.path.dirname(path))
        try:
            if os.stat(path).st_size > MAX_BYTES:
                os.replace(path, path[:-6] + ".1.jsonl")
        except FileNotFoundError:
            pass  # the first failure on this machine
        line = quickjson.dumps({
            "at": time.time() if now is None else now, "host": str(host)[:40], "event": str(event)[:40],
            "what": str(what)[:600],
        })
        atomic.append_line(path, line.encode("ascii"))
        return True
    except Exception:  # a full disk must not cost a turn
        return False


def recent(data: str, limit: int = 20) -> list[dict[str, Any]]:
    """Return the newest failures, oldest first: dicts with at, host, event, what."""
    try:
        raw = atomic.read_bytes(log_path(data), 4 * MAX_BYTES) or b""
    except (OSError, ValueError):
        return []
    found = []
    for line in raw.splitlines()[-limit:]:
        try:
            value = quickjson.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found

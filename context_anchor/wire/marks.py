"""Per-session state of the hooks: small, versioned, and written by hooks alone."""

from __future__ import annotations

import errno
import os
import time

from context_anchor.wire import atomic, paths, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

FORMAT = "context-anchor-marks/1"
_LIMIT = 524288
_OPTIONAL = {"cursor": dict, "tokens": int, "window_threshold": int, "last_receipt": dict}


class NewerMarksError(Exception):
    """The file was written by a newer version and is left alone."""


def new() -> dict[str, Any]:
    """Return the state of a session not seen before."""
    return {
        "format": FORMAT,
        "cursor": None,
        "scan": {},
        "events": {},
        "tokens": None,
        "tokens_measured": False,
        "window_threshold": None,
        "compactions": 0,
        "nudged": 0,
        "nudges": 0,
        "shown": [],
        "recovery": {},
        "last_receipt": None,
        "skipped_lines": 0,
        "errors": 0,
        "greeted": False,
    }


def path_of(data: str, host: str, session_id: str) -> str:
    """Return the file of a session's marks."""
    return paths.session_path(data, "marks", host, session_id)


def load(data: str, host: str, session_id: str) -> dict[str, Any] | None:
    """Return a session's marks, or None when there are none that can be read. Never raises for bad data.

    Raises NewerMarksError for a file of a newer version, OSError when reading fails.
    """
    try:
        raw = atomic.read_bytes(path_of(data, host, session_id), _LIMIT)
        value = quickjson.loads(raw) if raw else None
    except ValueError:
        return None
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.EISDIR, errno.ELOOP):
            raise
        return None  # a folder, a pipe or a ring of links in the file's place
    return _checked(value)


def _checked(value: Any) -> dict[str, Any] | None:
    """Return marks in which every field that hooks use has its type, or None where these are no marks."""
    if not isinstance(value, dict) or not isinstance(value.get("format"), str):
        return None
    name, _, number = value["format"].partition("/")
    if name != "context-anchor-marks":
        return None
    if number.isdecimal() and (len(number) > 9 or int(number) > 1):
        raise NewerMarksError(value["format"])
    fresh = new()
    for key, default in fresh.items():
        have = value.get(key)
        ok = have is None or type(have) is _OPTIONAL[key] if default is None else type(have) is type(default)
        if not ok:
            value[key] = default
    for key in ("last_receipt", "last_nudge"):
        given = value.get(key)
        if given is not None and not (isinstance(given, dict) and isinstance(given.get("id"), str)):
            value[key] = None
    recovery = value["recovery"]
    for key, kind in (("state", str), ("receipt", str), ("since", str), ("tries", int), ("shown", list)):
        if key in recovery and type(recovery[key]) is not kind:
            del recovery[key]
    for holder in (value, recovery):
        if "shown" in holder:
            holder["shown"] = [item for item in holder["shown"] if isinstance(item, str)]
    return value


def save(data: str, host: str, session_id: str, value: dict[str, Any]) -> None:
    """Replace a session's marks; raises OSError."""
    path = path_of(data, host, session_id)
    try:
        atomic.replace_bytes(path, quickjson.dumps(value).encode("ascii"))
    except FileNotFoundError:
        paths.ensure_folder(os.path.dirname(path))
        atomic.replace_bytes(path, quickjson.dumps(value).encode("ascii"))


def set_aside(data: str, host: str, session_id: str) -> str:
    """Move a damaged file out of the way and return its new path, '' where there was none."""
    path = path_of(data, host, session_id)
    aside = "%s.corrupt-%d" % (path, int(time.time()))
    try:
        os.replace(path, aside)
    except FileNotFoundError:
        return ""
    return aside


def exists(data: str, host: str, session_id: str) -> bool:
    """Tell whether a session has a marks file at all, readable or not."""
    return os.path.lexists(path_of(data, host, session_id))

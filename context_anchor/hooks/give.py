"""What is handed to the model: bundles with a receipt, recovery, nudges."""

from __future__ import annotations

import os
import time

from context_anchor.hooks import texts
from context_anchor.watch import pressure
from context_anchor.wire import bundle as parts
from context_anchor.wire import paths, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any


_ECHO_S = 10


def session_entries(visit: Any, session_id: str) -> list[dict[str, Any]]:
    """Return the anchors of one session's own scope, ready made."""
    return _part(visit, paths.anchors_path(visit.data, "session", visit.host.HOST, session_id, ".bundle"))


def _part(visit: Any, path: str) -> list[dict[str, Any]]:
    """Return a part's entries; a damaged part, or one that is gone while its anchors are there, is noted.

    A damaged part is moved aside, so that the store renders it anew at its next use.
    """
    anchors = path[: -len(".bundle")] + ".json"
    try:
        revision, entries = parts.load_index(path)
        if revision or not os.path.exists(anchors):
            return entries
        visit.trouble("bundle part is gone or empty: %s" % path)
        damaged = os.path.exists(path)
    except (ValueError, KeyError, TypeError) as problem:
        visit.trouble("bundle part: %s" % problem)
        damaged = True
    except OSError as problem:
        visit.trouble("bundle part: %s" % problem)
        damaged = False
    visit.unreadable = True
    if damaged:
        try:
            os.replace(path, "%s.corrupt-%d" % (path, int(visit.now)))
        except OSError as problem:
            visit.trouble("bundle part: %s" % problem)
    return []


def entries_of(visit: Any) -> list[dict[str, Any]]:
    """Return the anchors of a session and its workspace in bundle order; a fork has its parent's at first."""
    record = visit.record
    own = paths.anchors_path(visit.data, "session", visit.host.HOST, record["session_id"], ".bundle")
    if record["forked_from"] and not os.path.exists(own):
        mine = session_entries(visit, record["forked_from"])
    else:
        mine = _part(visit, own)
    shared: list[dict[str, Any]] = []
    if record["workspace_id"]:
        shared = _part(visit, paths.anchors_path(visit.data, "workspace", "", record["workspace_id"], ".bundle"))
    return parts.merge([mine, shared])


def _stamp(now: float) -> str:
    """Return a moment as transcripts write it, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + ".%03d" % int(now % 1 * 1000)


def _new_receipt() -> str:
    return "r-" + os.urandom(5).hex()


def bundle(
    visit: Any, kind: str, head: list[str], entries: list[dict[str, Any]] | None = None,
    with_anchors: bool = True,
) -> str:
    """Return a text with a receipt, the head's lines and the anchors that fit; note what was given."""
    chosen = (visit.entries() if entries is None else entries) if with_anchors else []
    receipt = _new_receipt()
    lines = [texts.receipt_line(receipt, visit.record["session_id"]), *head]
    limit = parts.budget(visit.env, visit.host.CAP_UNITS)
    text, taken = parts.compose(lines, chosen, limit)
    marks = visit.marks
    given = ["%s:%s" % (e["id"], e["revision"]) for e in taken]
    if kind != "provisional":
        marks["shown"] = sorted(set(marks["shown"]).union(given))[-800:]
    size = parts.units(text)
    marks["last_receipt"] = {
        "id": receipt, "at": visit.now, "units": size, "tokens": size // 4 + 1, "kind": kind,
        "anchors": len(taken), "delivered": "unknown", "delivered_at": 0,
    }
    visit.given = given
    return text


def recovery(visit: Any, provisional: bool = False) -> str:
    """Return the bundle after a compaction, once; one line when nothing is pinned.

    SessionStart(compact) comes before the boundary is on disk, so what it gives is provisional until the
    transcript shows that the main session was compacted.
    """
    marks, env = visit.marks, visit.env
    entries = visit.entries()
    before = marks["recovery"]
    if provisional and before.get("state") == "provisional" and _told_twice(visit, before):
        return ""
    tries = before.get("tries", 0) if before.get("state") == "again" else 0
    # Answers from before this moment may reach the disk late and prove nothing about it.
    since = _stamp(visit.now)
    if visit.unreadable:
        return _unreadable(visit, provisional, entries)
    if not entries:
        # What the session was told at its start went with the compaction, its id among it.
        text = bundle(visit, "start", texts.nothing_pinned(visit.host.TOOL), entries)
        marks["recovery"] = {"state": "provisional" if provisional else "done", "receipt": "", "shown": [],
                             "since": since, "at": visit.now}
        return text
    recap = (env.get("CONTEXT_ANCHOR_POST_COMPACT_RECAP") or "").strip().lower() not in ("0", "false", "no", "off")
    kind = "provisional" if provisional else "recovery"
    notes = []
    if not visit.record["workspace_id"]:
        notes.append("No workspace is named here: session notes only.")
    text = bundle(visit, kind, texts.recovery(recap, notes), entries)
    receipt = marks["last_receipt"]
    receipt["kind"] = "recovery"
    marks["recovery"] = {"state": "provisional" if provisional else "handed", "receipt": receipt["id"],
                         "tries": tries + 1, "since": since, "at": visit.now}
    if provisional:
        marks["recovery"]["shown"] = visit.given
    return text


def _told_twice(visit: Any, before: dict[str, Any]) -> bool:
    """Tell whether SessionStart(compact) came a second time for one compaction (a plugin loaded twice).

    Each compaction has a PreCompact of its own; without one since, the second within seconds is an echo.
    """
    given = before.get("at") or 0
    prepared = visit.marks.get("prepared") or 0
    return bool(given - 1 < visit.now < given + _ECHO_S and prepared <= given)


def _unreadable(visit: Any, provisional: bool, entries: list[dict[str, Any]]) -> str:
    """Say once that notes could not be read, with those that could; the recovery stays due until they can."""
    marks = visit.marks
    told = bool(marks["recovery"].get("told"))
    if told and not provisional:
        return ""
    text = bundle(visit, "start", [texts.UNREADABLE, texts.FRAME], entries)
    state = "provisional" if provisional else "due"
    marks["recovery"] = {"state": state, "receipt": "", "tries": 0, "told": True, "since": _stamp(visit.now)}
    return text


def changed(visit: Any) -> str:
    """Return the anchors that a resumed session has not been shown in their present form; '' for none."""
    shown = set(visit.marks["shown"])
    fresh = [e for e in visit.entries() if "%s:%s" % (e["id"], e["revision"]) not in shown]
    if not fresh:
        return ""
    return bundle(visit, "resume", texts.changed(len(fresh)), fresh)


def nudge(visit: Any) -> str:
    """Return the reminder to pin when a level of pressure is newly reached, else ''."""
    marks = visit.marks
    tokens = marks["tokens"]
    if tokens is None or marks["recovery"].get("state") == "provisional":
        return ""  # not known until the model has answered
    visit.refresh_threshold(cheap=True)
    level = pressure.due(tokens, marks["window_threshold"], visit.env, marks["nudged"], marks["nudges"])
    if not level:
        return ""
    marks["nudged"] = level
    marks["nudges"] += 1
    receipt = _new_receipt()
    marks["last_nudge"] = {"id": receipt, "at": visit.now, "level": level, "delivered": "unknown"}
    return texts.nudge(
        receipt, visit.host.TOOL, tokens, marks["tokens_measured"], marks["window_threshold"], visit.entries()
    )


def precompact(visit: Any) -> str:
    """Return the plain text for the summariser, '' when nothing critical is pinned."""
    visit.marks["prepared"] = visit.now
    return texts.precompact(visit.entries(), quickjson.dumps)

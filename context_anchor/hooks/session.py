"""A session's beginning: registration, the id, restored anchors; and recovery by SessionStart(compact)."""

from __future__ import annotations

import os

from context_anchor.hooks import give, texts
from context_anchor.wire import hooklog, paths, registry, workspace
from context_anchor.wire.tail import read_end, read_head

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

_SERVER_IS_READY = (os.path.join("py", "ready.json"), "served")  # written by the installer, by the server
_SEEN_EVERY_S = 30
_KIN_BYTES = 1048576


def register(visit: Any) -> None:
    """Bring the session's record up to date with what the event tells."""
    ev, record, now = visit.ev, visit.record, visit.now
    before = dict(record)
    if ev["transcript"]:
        record["transcript_path"] = ev["transcript"]
    if ev["cwd"]:
        record["cwd"] = ev["cwd"]
    if ev["model"]:
        record["model"] = ev["model"]
    if ev["parent"] and ev["parent"] != ev["session_id"]:
        record["subagent"] = True
    if ev["folders"] and (not record["workspace_id"] or visit.event_kind == "start"):
        record["workspace_id"], record["workspace_root"] = workspace.resolve(visit.data, ev["folders"][0])
    if ev["host_pid"] and not ev["agent"]:
        record["host_pid"] = ev["host_pid"]
        if visit.event_kind == "start" or before["host_pid"] != ev["host_pid"]:
            registry.note_process(visit.data, visit.host.HOST, ev["host_pid"], ev["session_id"], now)
    if visit.event_kind != "end":
        record["ended_at"], record["end_reason"] = 0.0, ""
    if not record["first_line_id"]:
        _note_first_line(visit)


def save(visit: Any, before: dict[str, Any]) -> None:
    """Write the session's record when something in it changed or time passed."""
    record, now = visit.record, visit.now
    if visit.record_is_newer:
        return
    if record != before or now - record["seen_at"] >= _SEEN_EVERY_S or now < record["seen_at"]:
        record["seen_at"] = now
        registry.save(visit.data, record)


def _note_first_line(visit: Any) -> None:
    """Remember the first line's id; where another session has it already, this one is its fork."""
    record = visit.record
    if not hasattr(visit.host, "first_line_id") or not record["transcript_path"]:
        return
    path = visit.host.transcript_files(record["transcript_path"])
    head = read_head(path)
    identity = visit.host.first_line_id(head) if head else ""
    if not identity or len(identity) > paths.MAX_ID_CHARS:
        return
    record["first_line_id"] = identity
    kin = registry.by_first_line(visit.data, visit.host.HOST, identity)
    registry.note_first_line(visit.data, visit.host.HOST, identity, record["session_id"])
    kin = [k for k in kin if k != record["session_id"]]
    if kin and not record["forked_from"]:
        _fork_of(visit, _nearest(visit, path, kin))


def _fork_of(visit: Any, parent_id: str) -> None:
    record = visit.record
    record["forked_from"] = parent_id
    parent = registry.load(visit.data, visit.host.HOST, parent_id)
    if parent and parent["workspace_id"] and not record["workspace_id"]:
        record["workspace_id"] = parent["workspace_id"]
        record["workspace_root"] = parent["workspace_root"]


def _nearest(visit: Any, path: str, kin: list[str]) -> str:
    """Return which of several sessions with the same beginning a fork was made from.

    A fork of a fork begins as its grandparent does. The parent is the one whose last line stands furthest
    down in the fork's file.
    """
    if len(kin) == 1:
        return kin[0]
    text = read_end(path, _KIN_BYTES)
    best, best_at = kin[-1], -1
    for session_id in kin:
        other = registry.load(visit.data, visit.host.HOST, session_id)
        if not other or not other["transcript_path"]:
            continue
        for line in reversed(read_end(other["transcript_path"], _KIN_BYTES // 4).split(b"\n")):
            identity = visit.host.line_id(line)
            if identity:
                at = text.rfind(identity.encode("utf-8", "surrogatepass"))
                if at > best_at:
                    best, best_at = session_id, at
                break
    return best


def note_boundary(visit: Any, before: str) -> None:
    """Remember the newest boundary's id: a later fork's file begins with that line."""
    last = visit.marks["scan"].get("last") or ""
    if last and last != before and len(last) <= paths.MAX_ID_CHARS and not visit.record["subagent"]:
        registry.note_first_line(visit.data, visit.host.HOST, last, visit.record["session_id"])


def suspect_fork(visit: Any) -> None:
    """Watch for a parent when a session is first seen at a prompt: some versions start a fork unannounced.

    The same process was in another session until now, and that one was not ended by /clear. That is a
    hint; only shared lines prove it, since one process might hold two sessions.
    """
    pid = visit.ev["host_pid"]
    before = registry.by_process(visit.data, pid, visit.host.HOST) if pid else None
    if before is None or before[1] == visit.ev["session_id"]:
        return
    other = registry.load(visit.data, visit.host.HOST, before[1])
    if other and not other["ended_at"] and not other["subagent"]:
        visit.marks["fork_open"] = "suspected"


def start(visit: Any) -> str:
    """Answer SessionStart."""
    ev, marks = visit.ev, visit.marks
    if ev["agent"]:
        return ""  # a subagent's compaction: the main session's recovery is not used up
    source = ev["source"]
    visit.refresh_threshold()
    if source == "compact":
        return give.recovery(visit, provisional=True)
    if source == "resume" and marks["greeted"]:
        if marks["recovery"].get("state") in ("due", "again"):
            return give.recovery(visit)
        return give.changed(visit)
    if marks["greeted"] and source not in ("clear", "fork"):
        return ""  # the same start told twice
    return greet(visit)


def greet(visit: Any) -> str:
    """Return what a session is told at first sight, and remember that it was."""
    marks, record = visit.marks, visit.record
    if record["subagent"]:
        marks["greeted"] = True
        return ""
    notes: list[str] = []
    # Older clients say `resume` for a fork; a resumed session's file is there, a fork's comes later.
    open_fork = visit.ev["source"] == "fork" or (visit.ev["source"] == "resume" and marks["cursor"] is None)
    if open_fork and not record["forked_from"]:
        marks["fork_open"] = True
        notes.append(
            "This session is a fork; which session it came from shows with the first prompt, and its notes are"
            " given then."
        )
    elif record["forked_from"]:
        notes.append(_fork_note(record))
    if visit.ev["source"] == "clear":
        note = _cleared(visit)
        if note:
            notes.append(note)
    if not record["workspace_id"]:
        notes.append("No workspace is named here, so only this session's own notes exist (scope session).")
    if not any(os.path.exists(os.path.join(visit.data, "env", name)) for name in _SERVER_IS_READY):
        notes.append(
            "If the pin tool is missing: its server sets itself up at its very first start, which takes a minute"
            " or so; the tool is there in the next session."
        )
    notes.extend(_trouble(visit))
    marks["greeted"] = True
    return give.bundle(visit, "start", texts.first_sight(visit.host.TOOL, visit.has_anchors(), notes))


def fork_found(visit: Any) -> str:
    """Return the parent's bundle once the fork's file shows whose copy it is; a note when it is nobody's."""
    marks, record = visit.marks, visit.record
    if not marks.get("fork_open") or not record["first_line_id"]:
        return ""
    announced = marks["fork_open"] is True
    marks["fork_open"] = False
    if not record["forked_from"] and not announced:
        return ""
    if not record["forked_from"]:
        unknown = (
            "context-anchor knows no session that this fork came from; its session notes start empty."
            " `list_pinned_context` with a session_id shows another session's."
        )
        return give.bundle(visit, "start", [unknown], with_anchors=False)
    return give.bundle(visit, "start", [_fork_note(record), texts.FRAME])


def _fork_note(record: dict[str, Any]) -> str:
    return (
        "This session was forked from session %s; that session's notes are this one's too from here on."
        % record["forked_from"]
    )


def _cleared(visit: Any) -> str:
    """Return where the notes of the session before /clear are."""
    old = ""
    newest = 0.0
    pid = visit.ev["host_pid"]
    for record in registry.all_sessions(visit.data, visit.host.HOST):
        if record["host_pid"] != pid or record["session_id"] == visit.ev["session_id"]:
            continue
        if record["end_reason"] == "clear" and record["ended_at"] > newest:
            old, newest = record["session_id"], record["ended_at"]
    if not old:
        return ""
    visit.record["cleared_from"] = old
    count = len(give.session_entries(visit, old))
    return (
        "The session before /clear was %s; its %d session note(s) are kept and can be read with"
        " `list_pinned_context` or `get_pinned_context` and that session_id." % (old, count)
    )


def _trouble(visit: Any) -> list[str]:
    """Return one line, once for each new failure on record, that hooks have failed."""
    log = hooklog.log_path(visit.data)
    told = os.path.join(os.path.dirname(log), "told")
    try:
        failed = os.stat(log).st_mtime
        if visit.now - failed > 3 * 86400:
            return []
        try:
            if os.stat(told).st_mtime >= failed:
                return []
        except FileNotFoundError:
            failed = visit.now
        with open(told, "wb"):
            os.utime(told, (visit.now, max(visit.now, failed)))
    except OSError:
        return []  # no log, no trouble
    return ["Tell the user: context-anchor logged hook failures lately; `context-anchor doctor` shows them."]

"""From a host's event to one document on stdout, exit code 0 whatever happens."""

from __future__ import annotations

import os
import sys
import time

from context_anchor.hooks import give, intake, observe, session
from context_anchor.wire import hooklog, marks, paths, registry
from context_anchor.wire.atomic import Lock

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

_LOCK_S = 0.5


class Visit:
    """One call of a hook: the event, the session's record and marks, and what it may look up."""

    def __init__(self, host: Any, ev: dict[str, Any], data: str, now: float) -> None:
        self.host = host
        self.ev = ev
        self.data = data
        self.now = now
        self.env = os.environ
        self.event_kind = host.EVENTS.get(ev["event"], "")
        self.given: list[str] = []
        self.first = False
        self.record_is_newer = False
        self.unreadable = False  # a bundle part that should be there could not be read
        self.marks: dict[str, Any] = marks.new()
        self.record: dict[str, Any] = registry.new(host.HOST, ev["session_id"], now)
        self._entries: list[dict[str, Any]] | None = None

    def entries(self) -> list[dict[str, Any]]:
        """Return the anchors of this session and its workspace, read once."""
        if self._entries is None:
            self._entries = give.entries_of(self)
        return self._entries

    def has_anchors(self) -> bool:
        """Tell whether anything is pinned here."""
        return bool(self.entries())

    def trouble(self, what: str) -> None:
        """Log a failure for `doctor`."""
        self.marks["errors"] += 1
        hooklog.note(self.data, self.host.HOST, self.ev["event"], what, self.now)

    def refresh_threshold(self, cheap: bool = False) -> None:
        """Work out at how many tokens the host compacts; settings files are read unless `cheap`."""
        if not hasattr(self.host, "threshold"):
            return
        state = self.marks
        if not cheap or not isinstance(state.get("settings"), dict):
            state["settings"] = self.host.read_settings(self.env, self.record["workspace_root"])
        state["window_threshold"] = self.host.threshold(
            self.record["model"], self.record["version"], self.env, state["settings"], state["tokens"] or 0
        )


def answer(visit: Visit) -> tuple[str, str]:
    """Return `(text, kind)` for an event; kind tells a nudge from what must stay."""
    kind, state = visit.event_kind, visit.marks
    state["now"] = visit.now
    if kind == "call":
        if visit.ev["tool_use_id"] and visit.host.owns_tool(visit.ev["tool_name"]):
            registry.note_call(
                visit.data, visit.host.HOST, visit.ev["tool_use_id"], visit.ev["session_id"], visit.now
            )
        return "", ""
    before = dict(visit.record)
    if kind == "end":
        visit.record["ended_at"] = visit.now
        visit.record["end_reason"] = visit.ev["reason"][:40] or "other"
    if visit.first and visit.event_kind == "turn" and not visit.ev["agent"]:
        session.suspect_fork(visit)
    try:
        session.register(visit)
    except (OSError, ValueError) as problem:
        visit.trouble("registry: %s" % problem)
    text, found = _told(visit)
    try:
        session.save(visit, before)
    except (OSError, ValueError) as problem:
        visit.trouble("registry: %s" % problem)
    return text, found


def _told(visit: Visit) -> tuple[str, str]:
    kind, state = visit.event_kind, visit.marks
    state["events"][visit.ev["event"]] = int(visit.now)
    if visit.ev["agent"]:
        return "", ""  # a subagent's event: no nudge, no recovery, and its transcript is another one
    if kind in ("end", "note"):
        return "", ""
    boundary = state["scan"].get("last") or ""
    try:
        observe.observe(visit.host, visit.ev, state, visit.record, visit.env)
        session.note_boundary(visit, boundary)
    except (OSError, ValueError) as problem:  # what is pinned is given even where the transcript can't be read
        visit.trouble("transcript: %s" % problem)
    if visit.record["subagent"]:
        return "", ""
    if kind == "start":
        return session.start(visit), "start"
    if kind == "precompact":
        return give.precompact(visit), "precompact"
    if kind != "turn":
        return "", ""
    return _turn(visit)


def _turn(visit: Visit) -> tuple[str, str]:
    state = visit.marks
    if not state["greeted"]:
        visit.refresh_threshold()
        return session.greet(visit), "start"
    found = session.fork_found(visit)
    if found:
        return found, "start"
    pending = state["recovery"].get("state")
    if pending in ("due", "again"):
        text = give.recovery(visit)
        if text:
            return text, "recovery"
    text = give.nudge(visit)
    return text, "nudge"


def run(host: Any, event: str, raw: dict[str, Any], data: str, now: float) -> str:
    """Return the document for one event; the session's state is written before it is given."""
    ev = host.read_payload(event, raw, os.environ)
    if not ev["session_id"] or len(ev["session_id"]) > paths.MAX_ID_CHARS:
        hooklog.note(data, host.HOST, event, "payload without a usable session id", now)
        return str(host.respond(event, "", ""))
    visit = Visit(host, ev, data, now)
    if visit.event_kind == "call":
        answer(visit)
        return str(host.respond(event, "", ""))
    lock = Lock(marks.path_of(data, host.HOST, ev["session_id"]) + ".lock", _LOCK_S)
    held = False
    try:
        try:
            paths.ensure_folder(os.path.dirname(lock.path))
            held = lock.acquire()
        except OSError as problem:
            visit.trouble("data folder: %s" % problem)
        newer = _load(visit, held)
        if not held:
            visit.trouble("no lock on the session's marks within %.1f s" % _LOCK_S)
        text, kind = answer(visit)
        saved = held and not newer and _saved(visit)
        if not saved and visit.event_kind not in ("start", "precompact"):
            text = ""  # what can't be remembered as given would be given at every call
        return str(host.respond(event, text, kind))
    finally:
        lock.release()


def _load(visit: Visit, held: bool) -> bool:
    """Read the session's marks and record into the visit; tell whether a newer version wrote the marks.

    What is damaged is moved aside; what a newer version wrote is left alone.
    """
    data, host, session_id = visit.data, visit.host.HOST, visit.ev["session_id"]
    loaded, newer = None, False
    try:
        loaded = marks.load(data, host, session_id)
    except marks.NewerMarksError as problem:
        newer = True
        visit.trouble("marks of a newer version are left alone: %s" % problem)
    if loaded is None and not newer and held and marks.exists(data, host, session_id):
        visit.trouble("damaged marks set aside as %s" % marks.set_aside(data, host, session_id))
    record = registry.load(data, host, session_id)
    if record is None:
        standing = registry.standing(data, host, session_id)
        if standing == "newer":
            visit.record_is_newer = True
            visit.trouble("a registry file of a newer version is left alone")
        elif standing and held:
            visit.trouble("damaged registry file set aside as %s" % registry.set_aside(data, host, session_id))
    visit.marks = loaded or visit.marks
    visit.first = record is None and loaded is None
    visit.record = record or visit.record
    return newer


def _saved(visit: Visit) -> bool:
    try:
        marks.save(visit.data, visit.host.HOST, visit.ev["session_id"], visit.marks)
        return True
    except OSError as problem:
        visit.trouble("marks not written: %s" % problem)
    except ValueError as problem:  # a field that is no JSON, read from a file that somebody changed
        aside = marks.set_aside(visit.data, visit.host.HOST, visit.ev["session_id"])
        visit.trouble("marks set aside as %s: %s" % (aside, problem))
    return False


def find_host(name: str) -> Any:
    """Return a host's module by its name, None for an unknown one; only that one is imported."""
    if name == "claude-code":
        from context_anchor.hosts import claude_code

        return claude_code
    if name == "antigravity":
        from context_anchor.hosts import antigravity

        return antigravity
    return None


def main(argv: list[str]) -> None:
    """Run one hook and end the process with exit code 0."""
    out = "{}"
    data = ""
    name, event = [*argv, "", ""][:2]
    if event in ("PreCompact", "PostCompact"):
        out = ""
    try:
        data = paths.data_dir()
        now = time.time()
        raw, complaint = intake.read_payload(0)
        host = find_host(name)
        if host is None or event not in host.EVENTS:
            complaint = complaint or "unknown host or event: %s %s" % (name[:40], event[:40])
        if complaint:
            hooklog.note(data, name, event, complaint, now)
        elif raw:
            out = run(host, event, raw, data, now)
    except BaseException as problem:  # a hook never fails a turn
        where = ""
        trace = problem.__traceback__
        while trace is not None:
            where = "%s:%d" % (os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
            trace = trace.tb_next
        hooklog.note(data, name, event, "%s at %s: %s" % (type(problem).__name__, where, problem))
    intake.write_document(1, out)
    sys.stderr = None
    os._exit(0)  # nothing is buffered, and tearing the interpreter down would cost a millisecond

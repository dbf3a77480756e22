"""Which session a call belongs to: certain, or refused with the list of sessions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from context_anchor.anchors.process import is_running, started_at
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.text import shorten
from context_anchor.errors import SessionAmbiguousError, SessionUnknownError, UsageError
from context_anchor.wire import paths, registry
from context_anchor.wire import workspace as workspaces

LIVE_S = 12 * 3600
"""Seconds after which a session that was not seen any more no longer counts as live."""
CALL_S = 3600
"""Seconds for which a tool call that a hook noted counts."""
MIN_PREFIX = 6
_LISTED = 8
_GRACE_S = 60.0
_TRUSTED_HOST = "antigravity"

Record: TypeAlias = dict[str, Any]
How: TypeAlias = Literal["explicit", "conversation", "call", "process", "only-live"]


@dataclass(frozen=True, slots=True)
class ResolvedSession:
    """A session and how it was found; `workspace_id` and `workspace_root` are "" where unknown.

    `warning` is a sentence to hand on with the result, or "".
    """

    host: str
    session_id: str
    workspace_id: str
    workspace_root: str
    how: How
    warning: str = ""

    @property
    def scope(self) -> SessionScope:
        """The session's own anchors."""
        return SessionScope(self.host, self.session_id)

    @property
    def workspace_scope(self) -> WorkspaceScope | None:
        """The anchors of the session's workspace, or None where it has none."""
        return WorkspaceScope(self.workspace_id, self.workspace_root) if self.workspace_id else None


@dataclass(frozen=True, slots=True)
class _Call:
    """One call's circumstances."""

    data: str
    conversation_id: str
    tool_use_id: str
    host_pid: int
    workspace_id: str
    workspace_root: str
    server_started_at: float
    now: float


def resolve_session(
    data: str,
    *,
    explicit: str | None = None,
    conversation_id: str | None = None,
    tool_use_id: str | None = None,
    host_pid: int | None = None,
    workspace: str | None = None,
    server_started_at: float,
    now: float,
) -> ResolvedSession:
    """Return the session a call belongs to, by the first of these that says so.

    1. `explicit`: a whole id, `host/id`, or a unique prefix of at least 6 characters, of a session that
       hooks registered; 2. `conversation_id`, the host's own word in `_meta`, trusted even where no hook
       ever ran; 3. `tool_use_id`, noted by a hook just before the call; 4. `host_pid`, the process that
       started the server, if a hook noted its session; 5. the only live session of the folder `workspace`.

    A live session has not ended, is no subagent and was seen within 12 hours. It is never the newest of
    several. `server_started_at` and `now` are epoch seconds; 0 where no server is concerned.

    Raises SessionUnknownError or SessionAmbiguousError that list the sessions there are.
    """
    workspace_id, root = workspaces.resolve(data, workspace) if workspace else ("", "")
    call = _Call(
        data,
        _id("conversation_id", conversation_id),
        _id("tool_use_id", tool_use_id),
        host_pid or 0,
        workspace_id,
        root,
        server_started_at,
        now,
    )
    if explicit is not None:
        return _explicit(call, _id("session_id", explicit.strip() if isinstance(explicit, str) else explicit))
    found = _by_conversation(call) or _by_call(call) or _by_process(call)
    return found or _only_live(call)


def is_live(record: Record, now: float) -> bool:
    """Tell whether a session counts as live; a clock set back does not end it."""
    return not record["ended_at"] and not record["subagent"] and now - record["seen_at"] <= LIVE_S


def _id(name: str, value: object) -> str:
    if value is None:
        return ""
    try:
        paths.file_key(value)  # type: ignore[arg-type]  # it checks the type itself
    except ValueError:
        raise UsageError(
            f"{name} {shorten(value)} is no id", hint=f"An id is a text of 1 to {paths.MAX_ID_CHARS} characters."
        ) from None
    return str(value)


def _resolved(record: Record, how: How, warning: str = "") -> ResolvedSession:
    return ResolvedSession(
        record["host"], record["session_id"], record["workspace_id"], record["workspace_root"], how, warning
    )


def _bare(session_id: str, how: How) -> ResolvedSession:
    """Return a conversation that no hook registered, on its host's word.

    Its workspace stays unknown: one server of that host may serve the conversations of many folders.
    """
    warning = "No hook has registered this conversation, so its workspace is unknown; its own anchors work."
    return ResolvedSession(_TRUSTED_HOST, session_id, "", "", how, warning)


def _explicit(call: _Call, wanted: str) -> ResolvedSession:
    known = registry.all_sessions(call.data)
    found = [r for r in known if wanted in (r["session_id"], f"{r['host']}/{r['session_id']}")]
    if not found and wanted == call.conversation_id:
        return _bare(wanted, "explicit")
    if not found and len(wanted) >= MIN_PREFIX:
        found = [r for r in known if r["session_id"].startswith(wanted)]
    if len(found) > 1:
        raise SessionAmbiguousError(
            f"{len(found)} sessions fit {shorten(wanted)}: {_listed(found, call.now)}",
            hint="Give the whole id, or host/id.",
        )
    if not found:
        raise SessionUnknownError(
            f"no session {shorten(wanted)} is known. {_known(call, known)}",
            hint=(
                "Give one of these ids; the start of each conversation names its own."
                if known
                else "Leave session_id out, or pin for the workspace (pin_context with scope=workspace)."
            ),
        )
    return _resolved(found[0], "explicit", _doubts(call, found[0]))


def _doubts(call: _Call, record: Record) -> str:
    """Return why the named session may not be the one that is meant, or ""."""
    session_id = record["session_id"]
    if call.conversation_id and call.conversation_id != session_id:
        return f"The call came from conversation {call.conversation_id}, not from session {session_id}."
    if call.workspace_id and record["workspace_id"] and record["workspace_id"] != call.workspace_id:
        return f"Session {session_id} belongs to another workspace: {record['workspace_root']}."
    if record["ended_at"]:
        return f"Session {session_id} ended {_ago(call.now - record['ended_at'])}."
    return ""


def _by_conversation(call: _Call) -> ResolvedSession | None:
    if not call.conversation_id:
        return None
    record = registry.load(call.data, _TRUSTED_HOST, call.conversation_id)
    if record is None:
        same = [r for r in registry.all_sessions(call.data) if r["session_id"] == call.conversation_id]
        if len(same) > 1:
            raise SessionAmbiguousError(
                f"{len(same)} hosts have a session {shorten(call.conversation_id)}: {_listed(same, call.now)}",
                hint="Give host/id as session_id.",
            )
        record = same[0] if same else None
    if record is None:
        return _bare(call.conversation_id, "conversation")
    return _resolved(record, "conversation")


def _by_call(call: _Call) -> ResolvedSession | None:
    noted = registry.find_call(call.data, call.tool_use_id) if call.tool_use_id else None
    if noted is None or not -CALL_S <= call.now - noted[2] <= CALL_S:
        return None
    host, session_id, _ = noted
    record = registry.load(call.data, host, session_id)
    if record is None:  # the hook that noted the call writes the record a moment later
        return ResolvedSession(host, session_id, call.workspace_id, call.workspace_root, "call")
    return _resolved(record, "call")


def _by_process(call: _Call) -> ResolvedSession | None:
    """Return the session that hooks noted for the process that started this server, if it is certain."""
    noted = registry.by_process(call.data, call.host_pid) if call.host_pid > 1 else None
    if noted is None:
        return None
    host, session_id, at = noted
    record = registry.load(call.data, host, session_id)
    if record is None or record["host_pid"] != call.host_pid or not is_live(record, call.now):
        return None
    if at < call.server_started_at and not _same_process(call, at):
        return None  # the number was another process's when the hook noted it
    if record["host"] != "claude-code":
        # A Claude Code process is in one session at a time; another host's may hold many conversations.
        here = [
            r
            for r in registry.all_sessions(call.data, record["host"])
            if r["host_pid"] == call.host_pid and is_live(r, call.now)
        ]
        if len(here) != 1:
            return None
    return _resolved(record, "process")


def _same_process(call: _Call, at: float) -> bool:
    started = started_at(call.host_pid)
    if started is None:
        return at >= call.server_started_at - _GRACE_S
    return started <= at + 2.0


def _only_live(call: _Call) -> ResolvedSession:
    known = registry.all_sessions(call.data)
    live = [
        r for r in known if call.workspace_id and r["workspace_id"] == call.workspace_id and is_live(r, call.now)
    ]
    if len(live) > 1:
        raise SessionAmbiguousError(
            f"{len(live)} sessions are live in {call.workspace_root}: {_listed(live, call.now)}",
            hint="Give session_id; the start of each conversation names its own.",
        )
    if not live:
        raise SessionUnknownError(
            f"no live session is known here. {_known(call, known)}",
            hint="Give session_id if you have one, or pin for the workspace (pin_context with scope=workspace).",
        )
    record = live[0]
    if record["seen_at"] < call.server_started_at - _GRACE_S:
        raise SessionUnknownError(
            "the only session known here was last seen before this server started, so it may be another one's: "
            + _listed(live, call.now),
            hint="Give session_id if it is that one, or use the workspace's anchors (scope=workspace).",
        )
    if _is_elsewhere(call, record):
        raise SessionUnknownError(
            f"the only session known here runs in another process: {_listed(live, call.now)}",
            hint="Give session_id if it is that one, or use the workspace's anchors (scope=workspace).",
        )
    return _resolved(record, "only-live")


def _is_elsewhere(call: _Call, record: Record) -> bool:
    """Tell whether another Claude Code process than this server's is in that session."""
    theirs = record["host_pid"]
    if record["host"] != "claude-code" or call.host_pid <= 1 or theirs <= 1 or theirs == call.host_pid:
        return False
    return call.server_started_at > 0 and theirs != os.getppid() and is_running(theirs)


def _known(call: _Call, known: Sequence[Record]) -> str:
    here = [r for r in known if r["workspace_id"] == call.workspace_id] if call.workspace_id else list(known)
    place = f"of {call.workspace_root}" if call.workspace_id else "on this machine"
    if here:
        return f"Sessions {place}: {_listed(here, call.now)}"
    return f"No session {place} is registered" + (": hooks have not run there" if call.workspace_id else "")


def _listed(records: Iterable[Record], now: float) -> str:
    newest = sorted(records, key=lambda r: -float(r["seen_at"]))
    shown = [
        f"{shorten(r['session_id'], 80)[1:-1]} ({r['host']}, "
        f"{'ended' if r['ended_at'] else 'subagent' if r['subagent'] else 'seen'} "
        f"{_ago(now - (r['ended_at'] or r['seen_at']))})"
        for r in newest[:_LISTED]
    ]
    if len(newest) > _LISTED:
        shown.append(f"and {len(newest) - _LISTED} more")
    return ", ".join(shown)


def _ago(seconds: float) -> str:
    if seconds < 90:
        return f"{max(0, round(seconds))} s ago"
    if seconds < 5400:
        return f"{round(seconds / 60)} min ago"
    if seconds < 2 * 86400:
        return f"{round(seconds / 3600)} h ago"
    return f"{round(seconds / 86400)} days ago"

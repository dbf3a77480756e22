"""Whose call it is: the session and workspace that a tool call works on.

The host's own word comes first and the model is asked last (`anchors.sessions.resolve_session` holds the order).
A call without any session still has a workspace, so that hosts without hooks can pin for the whole project.
"""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from context_anchor.anchors.scope import AnyScope, SessionScope, WorkspaceScope
from context_anchor.anchors.sessions import CALL_S, ResolvedSession, resolve_session
from context_anchor.anchors.store import AnchorStore
from context_anchor.errors import (
    AnchorNotFoundError,
    ContextAnchorError,
    SessionAmbiguousError,
    SessionUnknownError,
    UsageError,
    WorkspaceUnknownError,
)
from context_anchor.wire import paths, workspace

CONVERSATION_META: Final = "antigravity.google/conversation_id"
TOOL_USE_META: Final = "claudecode/toolUseId"
_MAX_ID: Final = paths.MAX_ID_CHARS
_REMEMBERED: Final = 16
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Call:
    """What the host said about one call in the request's `_meta`; '' where it said nothing."""

    conversation_id: str = ""
    tool_use_id: str = ""


def read_meta(meta: Mapping[str, Any] | None) -> Call:
    """Return what is known of the caller from a request's `_meta`; ids of the wrong form are ignored."""
    if not meta:
        return Call()
    return Call(_id(meta.get(CONVERSATION_META)), _id(meta.get(TOOL_USE_META)))


def _id(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_ID or not value.isprintable():
        return ""
    return value


@dataclass(frozen=True, slots=True)
class Place:
    """The scopes of one call, or the reason why there is none of a kind."""

    session: SessionScope | None
    workspace: WorkspaceScope | None
    how: str
    warning: str
    session_problem: ContextAnchorError | None
    workspace_problem: ContextAnchorError | None

    @property
    def host(self) -> str:
        """The host of the session, '' without one."""
        return self.session.host if self.session else ""

    def scope(self, kind: str) -> AnyScope:
        """Return the scope of a kind.

        Raises:
            SessionUnknownError, SessionAmbiguousError: there is no session to be sure of.
            WorkspaceUnknownError: the session has no workspace.
        """
        found = self.session if kind == "session" else self.workspace
        if found is not None:
            return found
        problem = self.session_problem if kind == "session" else self.workspace_problem
        raise problem or UsageError(f"there is no scope {kind}")

    def scopes(self, kind: str | None) -> tuple[AnyScope, ...]:
        """Return the named scope, or without a name those that there are, session first."""
        if kind is not None:
            return (self.scope(kind),)
        both = tuple(scope for scope in (self.session, self.workspace) if scope is not None)
        if not both:
            raise self.session_problem or self.workspace_problem or AnchorNotFoundError("there are no anchors")
        return both


@dataclass(frozen=True, slots=True)
class Desk:
    """What the tools of one server process work with; made at the first call, never before."""

    data: str
    store: AnchorStore
    folder: str
    host_pid: int
    started_at: float
    clock: Callable[[], float] = time.time
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _swept_at: list[float] = field(default_factory=list)
    _memory: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)

    def place(self, call: Call, session_id: str | None = None) -> Place:
        """Return the scopes of a call.

        Raises:
            SessionUnknownError, SessionAmbiguousError: a session id was given and does not fit.
        """
        self._sweep()
        known: ResolvedSession | None = None
        problem: ContextAnchorError | None = None
        try:
            known = resolve_session(
                self.data,
                explicit=session_id,
                conversation_id=call.conversation_id or None,
                tool_use_id=call.tool_use_id or None,
                host_pid=self.host_pid or None,
                workspace=self.folder or None,
                server_started_at=self.started_at,
                now=self.clock(),
            )
        except (SessionUnknownError, SessionAmbiguousError) as error:
            if session_id is not None:
                raise
            problem = _with_advice(error)
        if known is None:
            own, no_workspace = self._own_workspace()
            return Place(None, own, "none", "", problem, no_workspace)
        shared = known.workspace_scope
        missing = None if shared else _no_workspace(known.scope)
        return Place(known.scope, shared, known.how, known.warning, None, missing)

    def remembered(self, key: Hashable, work_out: Callable[[], _T]) -> _T:
        """Return what was worked out for a key that holds all it depends on; the newest few are kept."""
        try:
            value: _T = self._memory[key]
        except KeyError:
            value = self._memory[key] = work_out()
            while len(self._memory) > _REMEMBERED:
                self._memory.popitem(last=False)
        return value

    def _sweep(self) -> None:
        """Remove the notes of calls that are over, at most once an hour: hooks only ever add them."""
        now = self.clock()
        if self._swept_at and abs(now - self._swept_at[0]) < CALL_S:
            return
        self._swept_at[:] = [now]
        for note in Path(self.data, "calls").glob("s-*.json"):
            try:
                if now - note.stat().st_mtime > CALL_S:
                    note.unlink()
            except OSError:
                continue  # another server was faster, or the folder is read-only; the note does no harm

    def _own_workspace(self) -> tuple[WorkspaceScope | None, ContextAnchorError | None]:
        """Return the workspace this process was started in; a home or root folder is none."""
        if not self.folder or _is_no_project(self.folder):
            return None, WorkspaceUnknownError(
                f"The server was started in {self.folder or 'an unknown folder'}, which is no project",
                hint="Start the host in the project's folder, or set CONTEXT_ANCHOR_WORKSPACE for the server.",
            )
        return WorkspaceScope(*workspace.resolve(self.data, self.folder)), None


def open_desk(started_at: float, env: Mapping[str, str] | None = None) -> Desk:
    """Open the store for this process: the data folder, the host's process and the folder it works in.

    Raises OSError when the data folder can't be used: without it no session could be known either, and the
    agent should hear of the folder.
    """
    from context_anchor.anchors import legacy  # seldom has anything to do

    env = os.environ if env is None else env
    data = paths.data_dir(dict(env))
    paths.ensure_folder(data)
    store = AnchorStore(data)
    try:
        legacy.import_once(data, Path.home())
    except (ContextAnchorError, OSError, RuntimeError) as error:
        print(f"context-anchor: earlier anchors were not imported: {error}", file=sys.stderr)  # noqa: T201
    return Desk(data, store, _folder(env), _host_pid(env), started_at, env=env)


def _folder(env: Mapping[str, str]) -> str:
    named = env.get("CONTEXT_ANCHOR_WORKSPACE") or env.get("CLAUDE_PROJECT_DIR") or ""
    try:
        return os.path.abspath(os.path.expanduser(named)) if named else str(Path.cwd())  # noqa: PTH100, PTH111
    except OSError:
        return ""  # the folder was deleted under the process


def _host_pid(env: Mapping[str, str]) -> int:
    named = env.get("CONTEXT_ANCHOR_HOST_PID", "")
    return int(named) if named.isdecimal() and len(named) < 12 else os.getppid()


def _is_no_project(folder: str) -> bool:
    path = Path(folder)
    try:
        return path == path.parent or path.resolve() == Path.home().resolve()
    except (OSError, RuntimeError):
        return False


def _no_workspace(session: SessionScope) -> WorkspaceUnknownError:
    return WorkspaceUnknownError(
        f"The host named no workspace for session {session.session_id}",
        hint="Use scope=session, which this conversation alone sees.",
    )


def _with_advice(error: ContextAnchorError) -> ContextAnchorError:
    advice = [] if "scope=workspace" in error.hint else ["Or use scope=workspace, which needs no session."]
    advice.append("On a host without context-anchor's hooks only scope=workspace works.")
    return type(error)(error.message, hint=" ".join([error.hint, *advice]).strip())

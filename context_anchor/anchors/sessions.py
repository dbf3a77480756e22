"""Which session a call belongs to: certain, or refused with the list of sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from context_anchor.anchors.scope import SessionScope, WorkspaceScope


@dataclass(frozen=True, slots=True)
class ResolvedSession:
    """A session and how it was found; `workspace_id` and `workspace_root` are "" where unknown.

    `warning` is a sentence to hand on with the result, or "".
    """

    host: str
    session_id: str
    workspace_id: str
    workspace_root: str
    how: Literal["explicit", "conversation", "call", "process", "only-live"]
    warning: str = ""

    @property
    def scope(self) -> SessionScope:
        """The session's own anchors."""
        return SessionScope(self.host, self.session_id)

    @property
    def workspace_scope(self) -> WorkspaceScope | None:
        """The anchors of the session's workspace, or None where it has none."""
        return WorkspaceScope(self.workspace_id, self.workspace_root) if self.workspace_id else None


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
    """Return the session a call belongs to."""
    raise NotImplementedError

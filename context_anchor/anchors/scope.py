"""Where an anchor belongs: one session of one host, or one workspace of all hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from context_anchor.anchors.text import shorten
from context_anchor.errors import UsageError
from context_anchor.wire import paths


@dataclass(frozen=True, slots=True)
class SessionScope:
    """Anchors of one conversation, keyed by the host's name and the conversation's id."""

    host: str
    session_id: str
    kind: ClassVar[Literal["session"]] = "session"

    def __post_init__(self) -> None:
        _check("host", self.host)
        _check("session_id", self.session_id)

    @property
    def label(self) -> str:
        """How messages name this scope."""
        return f"session {shorten(self.session_id)[1:-1]} of {self.host}"


@dataclass(frozen=True, slots=True)
class WorkspaceScope:
    """Anchors of one workspace, shared by all hosts; `root` is its folder, or "" where unknown."""

    workspace_id: str
    root: str = ""
    kind: ClassVar[Literal["workspace"]] = "workspace"

    def __post_init__(self) -> None:
        _check("workspace_id", self.workspace_id)

    @property
    def label(self) -> str:
        """How messages name this scope."""
        return f"workspace {self.root or self.workspace_id}"


AnyScope: TypeAlias = SessionScope | WorkspaceScope


@dataclass(frozen=True, slots=True)
class ScopeFiles:
    """Paths of everything the store keeps for one scope."""

    anchors: str
    journal: str
    bundle: str
    lock: str

    @classmethod
    def of(cls, data: str, scope: AnyScope) -> ScopeFiles:
        """Return the paths of a scope below a data folder; ids can't reach outside it."""
        if isinstance(scope, SessionScope):
            host, identity = scope.host, scope.session_id
        else:
            host, identity = "", scope.workspace_id
        anchors, journal, bundle = (
            paths.anchors_path(data, scope.kind, host, identity, suffix)
            for suffix in (".json", ".journal.jsonl", ".bundle")
        )
        return cls(anchors=anchors, journal=journal, bundle=bundle, lock=anchors + ".lock")


def identity(scope: AnyScope) -> dict[str, str]:
    """Return the fields that name a scope in stored files."""
    if isinstance(scope, SessionScope):
        return {"scope": "session", "host": scope.host, "session_id": scope.session_id}
    return {"scope": "workspace", "workspace_id": scope.workspace_id, "root": scope.root}


def from_identity(value: Mapping[str, object]) -> AnyScope:
    """Return the scope that stored fields name; raises UsageError."""
    texts = {name: value.get(name) for name in ("host", "session_id", "workspace_id", "root")}
    named = {name: text for name, text in texts.items() if isinstance(text, str)}
    if value.get("scope") == "session":
        return SessionScope(named.get("host", ""), named.get("session_id", ""))
    if value.get("scope") == "workspace":
        return WorkspaceScope(named.get("workspace_id", ""), named.get("root", ""))
    raise UsageError(f"scope {shorten(value.get('scope'))} is unknown", hint="Use session or workspace.")


def _check(name: str, value: str) -> None:
    try:
        paths.file_key(value)
    except ValueError:
        raise UsageError(
            f"{name} {shorten(value)} is no id",
            hint=f"An id is a text of 1 to {paths.MAX_ID_CHARS} characters.",
        ) from None

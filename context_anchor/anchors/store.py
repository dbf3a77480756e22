"""The store of anchors: every read and every change of a scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from context_anchor.anchors.anchor import Anchor, Draft
from context_anchor.anchors.results import (
    Finding,
    JournalEntry,
    PinResult,
    ReplaceResult,
    Snapshot,
    UndoResult,
    UnpinResult,
)
from context_anchor.anchors.scope import AnyScope, SessionScope, WorkspaceScope

__all__ = [
    "AnchorStore",
    "Finding",
    "JournalEntry",
    "PinResult",
    "ReplaceResult",
    "SessionScope",
    "Snapshot",
    "UndoResult",
    "UnpinResult",
    "WorkspaceScope",
]


class AnchorStore:
    """Anchors of all scopes below one data folder; safe for many processes at once."""

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        lock_wait_s: float = 10.0,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        raise NotImplementedError

    def read(self, scope: AnyScope) -> Snapshot:
        """Return a scope's anchors in bundle order."""
        raise NotImplementedError

    def pin(
        self,
        scope: AnyScope,
        draft: Draft,
        *,
        actor: str,
        anchor_id: str | None = None,
        expected_revision: int | None = None,
        allow_secret: bool = False,
    ) -> PinResult:
        """Pin a draft; the same title (or the named anchor) is superseded. expected_revision: the anchor's."""
        raise NotImplementedError

    def unpin(
        self,
        scope: AnyScope,
        *,
        actor: str,
        anchor_id: str | None = None,
        title: str | None = None,
        clear_all: bool = False,
    ) -> UnpinResult:
        """Take out one anchor by id or title, or all."""
        raise NotImplementedError

    def replace(
        self,
        scope: AnyScope,
        drafts: Sequence[Draft],
        *,
        actor: str,
        expected_revision: int | None = None,
        allow_secret: bool = False,
    ) -> ReplaceResult:
        """Make a scope hold exactly these anchors. expected_revision: the scope's."""
        raise NotImplementedError

    def merge(
        self, scope: AnyScope, drafts: Sequence[Draft], *, actor: str, allow_secret: bool = False
    ) -> ReplaceResult:
        """Add drafts to a scope by title in one change; nothing is removed."""
        raise NotImplementedError

    def find(
        self,
        scopes: Sequence[AnyScope],
        *,
        anchor_id: str | None = None,
        title: str | None = None,
        partial: bool = False,
    ) -> Anchor:
        """Return the one anchor with that id (or unique prefix) or title; partial: title may be a part."""
        raise NotImplementedError

    def history(
        self, scope: AnyScope, *, anchor_id: str | None = None, limit: int = 50
    ) -> tuple[JournalEntry, ...]:
        """Return a scope's changes, newest first."""
        raise NotImplementedError

    def undo(self, scope: AnyScope, *, actor: str, entry: int | None = None) -> UndoResult:
        """Take back the newest change not yet taken back, or the one with that number."""
        raise NotImplementedError

    def adopt_fork(self, parent: SessionScope, child: SessionScope) -> int:
        """Copy a parent session's anchors to a fork once; returns how many."""
        raise NotImplementedError

    def scopes(self) -> tuple[AnyScope, ...]:
        """Return every scope that has files."""
        raise NotImplementedError

    def check(self) -> tuple[Finding, ...]:
        """Look over every file; for doctor."""
        raise NotImplementedError

    def rebuild_bundles(self) -> int:
        """Render every scope's bundle part anew; returns how many."""
        raise NotImplementedError

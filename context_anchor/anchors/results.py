"""What the store hands back: snapshots, outcomes of changes, journal entries, findings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from context_anchor.anchors.anchor import Anchor

Operation: TypeAlias = Literal[
    "pin", "update", "unpin", "clear", "replace", "undo", "import", "adopt", "baseline"
]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A scope's anchors at one moment.

    `anchors` stand in bundle order. `revision` is the number of the scope's newest change (0: none
    yet). `notices` are sentences for the person or agent: a file restored, a newer format. `writable`
    is False where a newer version wrote the files.
    """

    anchors: tuple[Anchor, ...]
    revision: int
    notices: tuple[str, ...] = ()
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """One anchor's former and new value; None before it was pinned or after it was unpinned."""

    before: Anchor | None
    after: Anchor | None


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One acknowledged change of a scope. `undoes` is the number of the entry an undo took back."""

    entry: int
    at: datetime
    actor: str
    op: Operation
    changes: tuple[Change, ...]
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class PinResult:
    """Outcome of a pin: `superseded` is the former value if an anchor was updated, else None."""

    anchor: Anchor
    created: bool
    superseded: Anchor | None
    revision: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnpinResult:
    """Outcome of an unpin: the anchors taken out, in bundle order; none if there were none to clear."""

    removed: tuple[Anchor, ...]
    revision: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplaceResult:
    """Outcome of a replace or import: all anchors now there, and which of them are new or changed."""

    anchors: tuple[Anchor, ...]
    added: tuple[Anchor, ...]
    updated: tuple[Anchor, ...]
    removed: tuple[Anchor, ...]
    revision: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UndoResult:
    """Outcome of an undo: the entry taken back, and the anchors that now have another value."""

    undone: JournalEntry
    restored: tuple[Anchor, ...]
    removed: tuple[Anchor, ...]
    revision: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something `doctor` should say about the store: how bad, where (a path), what, and the cure."""

    level: Literal["error", "warning", "info"]
    where: str
    what: str
    cure: str

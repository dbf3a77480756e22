"""Which change of a journal an undo takes back, and what that changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from context_anchor.anchors.anchor import Anchor, matching_title
from context_anchor.anchors.results import Change, JournalEntry
from context_anchor.errors import NothingToUndoError, StaleRevisionError


def newest_undoable(entries: Iterator[JournalEntry], wanted: int | None, where: str) -> JournalEntry:
    """Return the entry to take back from entries that come newest first.

    Without `wanted`: the newest that is no undo and is not taken back now. An undo that was itself
    taken back no longer counts, so its entry may be undone again. Raises NothingToUndoError.
    """
    taken_back: dict[int, int] = {}
    for entry in entries:
        is_taken_back = entry.entry in taken_back
        if entry.op == "undo" and entry.undoes is not None and not is_taken_back:
            taken_back.setdefault(entry.undoes, entry.entry)
        if wanted is None:
            if entry.op not in ("undo", "baseline") and not is_taken_back:
                return entry
        elif entry.entry == wanted:
            if entry.op == "baseline":
                raise NothingToUndoError(f"entry {wanted} of {where} records a state, not a change")
            if is_taken_back:
                raise NothingToUndoError(
                    f"entry {wanted} of {where} is already undone, by entry {taken_back[wanted]}",
                    hint=f"Undo entry {taken_back[wanted]} to bring it back.",
                )
            return entry
        elif entry.entry < wanted:
            break
    if wanted is not None:
        raise NothingToUndoError(f"{where} has no entry {wanted}", hint="See the history for the numbers.")
    raise NothingToUndoError(f"{where} has no change left to undo")


def reverse(entry: JournalEntry, anchors: Mapping[str, Anchor]) -> tuple[Change, ...]:
    """Return the changes that take an entry back.

    A value that returns keeps its former time and gets a revision not used before. Raises
    StaleRevisionError if an anchor is no longer as the entry left it.
    """
    changes: list[Change] = []
    state = dict(anchors)
    for change in entry.changes:
        before, after = change.before, change.after
        known = after or before
        if known is None:
            continue
        now = anchors.get(known.id)
        if (now is None) != (after is None) or (now and after and now.draft != after.draft):
            raise StaleRevisionError(
                f"anchor {known.id} ({known.title!r}) was changed again after entry {entry.entry}",
                hint="Undo the later changes first (see the history of that anchor).",
            )
        if before is None:
            state.pop(known.id, None)
            changes.append(Change(now, None))
            continue
        revision = max(before.revision, now.revision if now else 0) + 1
        back = replace(before, revision=revision)
        state[back.id] = back
        changes.append(Change(now, back))
    for change in changes:
        if change.after is None:
            continue
        title = matching_title(change.after.title)
        for other in state.values():
            if other.id != change.after.id and matching_title(other.title) == title:
                raise StaleRevisionError(
                    f"the title {change.after.title!r} is now that of anchor {other.id}",
                    hint="Unpin or rename that one first.",
                )
    return tuple(changes)

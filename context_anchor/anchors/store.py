"""The store of anchors: every read and every change of a scope."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from context_anchor.anchors import bundle
from context_anchor.anchors.anchor import MAX_ANCHORS, Anchor, Draft, matching_title, whole_ms
from context_anchor.anchors.keeper import Keeper, Loaded
from context_anchor.anchors.lookup import (
    find_by_id,
    find_by_title,
    not_found,
    one_selector,
    refuse_secrets,
    same_title,
)
from context_anchor.anchors.results import (
    Change,
    Finding,
    JournalEntry,
    Operation,
    PinResult,
    ReplaceResult,
    Snapshot,
    UndoResult,
    UnpinResult,
)
from context_anchor.anchors.scope import AnyScope, SessionScope, WorkspaceScope
from context_anchor.anchors.undo import newest_undoable, reverse
from context_anchor.errors import (
    AmbiguousTitleError,
    InvalidAnchorError,
    ScopeFullError,
    StaleRevisionError,
    StoreError,
)
from context_anchor.wire import paths

__all__ = [
    "AnchorStore",
    "Change",
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


def _fresh_id() -> str:
    return "a-" + os.urandom(5).hex()


class AnchorStore:
    """Anchors of all scopes below one data folder; safe for many processes at once.

    A change is acknowledged when its journal entry is durable; the file of anchors and the bundle part
    follow within the same lock. Every method may raise StoreUnavailableError; those that change
    anything also StoreNewerError and LockTimeoutError, and then nothing has changed.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        lock_wait_s: float = 10.0,
        new_id: Callable[[], str] = _fresh_id,
    ) -> None:
        """Use a data folder (default: the user's); it is made at the first write.

        `now` and `new_id` are the clock and the source of ids; `lock_wait_s` bounds the wait for other
        processes in seconds.
        """
        self.data = str(data) if data is not None else paths.data_dir()
        self._now = now
        self._new_id = new_id
        self._keeper = Keeper(self.data, now, lock_wait_s)

    def read(self, scope: AnyScope) -> Snapshot:
        """Return a scope's anchors in bundle order; a scope never written is empty.

        What a crash left half done is finished on the way, and a damaged file is set aside and restored;
        the notices say so. A fork's anchors are copied from its parent at the first use.
        """
        notices: tuple[str, ...] = ()
        try:
            self._keeper.adopt_if_forked(scope)
        except StoreError as problem:
            notices = (f"The anchors of the session this one was forked from could not be copied: {problem}",)
        loaded = self._keeper.load_settled(scope)
        anchors = bundle.in_order(loaded.anchors.values())
        return Snapshot(anchors, loaded.revision, (*notices, *loaded.notices), loaded.writable)

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
        """Pin a draft; an anchor of the same title, or the one that `anchor_id` names, is superseded.

        A superseded anchor keeps its id; its former value stays in the journal. `expected_revision` is
        the revision of the anchor that the caller has seen.

        Raises SecretRefusedError, ScopeFullError, AnchorNotFoundError, AmbiguousTitleError,
        StaleRevisionError; InvalidAnchorError if the new title is another anchor's.
        """
        if not allow_secret:
            refuse_secrets((draft,))
        with self._keeper.writing(scope) as loaded:
            former = self._target(loaded, draft, anchor_id)
            if expected_revision is not None and expected_revision != (former.revision if former else 0):
                raise StaleRevisionError(
                    f"anchor {former.id if former else draft.title!r} is at revision "
                    f"{former.revision if former else 0}, not {expected_revision}",
                    hint="Read it again and decide on its present content.",
                )
            if former is None and len(loaded.anchors) >= MAX_ANCHORS:
                raise _full(scope, len(loaded.anchors) + 1)
            anchor = (
                former.superseded_by(draft, self._now())
                if former
                else self._new_anchor(scope, draft, loaded.anchors)
            )
            op: Operation = "update" if former else "pin"
            revision, notices = self._keeper.commit(scope, loaded, op, (Change(former, anchor),), actor)
        return PinResult(anchor, former is None, former, revision, notices)

    def unpin(
        self,
        scope: AnyScope,
        *,
        actor: str,
        anchor_id: str | None = None,
        title: str | None = None,
        clear_all: bool = False,
    ) -> UnpinResult:
        """Take out the anchor of an id (or unique prefix of it) or title, or all with `clear_all`.

        Raises UsageError unless exactly one of the three is given, AnchorNotFoundError,
        AmbiguousTitleError.
        """
        one_selector(anchor_id, title, clear_all)
        with self._keeper.writing(scope) as loaded:
            if clear_all:
                removed = bundle.in_order(loaded.anchors.values())
                if not removed:
                    return UnpinResult((), loaded.revision, loaded.notices)
            else:
                removed = (self._one(loaded, scope, anchor_id, title),)
            changes = tuple(Change(anchor, None) for anchor in removed)
            op: Operation = "clear" if clear_all else "unpin"
            revision, notices = self._keeper.commit(scope, loaded, op, changes, actor)
        return UnpinResult(removed, revision, notices)

    def replace(
        self,
        scope: AnyScope,
        drafts: Sequence[Draft],
        *,
        actor: str,
        expected_revision: int | None = None,
        allow_secret: bool = False,
    ) -> ReplaceResult:
        """Make a scope hold exactly these anchors, in one change.

        A draft with the title of an anchor that is there keeps that anchor's id, and the anchor stays as
        it is where nothing differs. `expected_revision` is the scope's. Raises StaleRevisionError,
        SecretRefusedError, ScopeFullError; InvalidAnchorError for two drafts of one title.
        """
        return self._put(scope, drafts, "replace", actor, expected_revision, allow_secret)

    def merge(
        self,
        scope: AnyScope,
        drafts: Sequence[Draft],
        *,
        actor: str,
        expected_revision: int | None = None,
        allow_secret: bool = False,
    ) -> ReplaceResult:
        """Add drafts to a scope, superseding those of the same title, in one change; else as `replace`."""
        return self._put(scope, drafts, "import", actor, expected_revision, allow_secret)

    def find(
        self,
        scopes: Sequence[AnyScope],
        *,
        anchor_id: str | None = None,
        title: str | None = None,
        partial: bool = False,
    ) -> Anchor:
        """Return the one anchor of an id (or unique prefix of 6 characters or more) or a title.

        With `partial`, a title that none has exactly may be a part of one. Raises AnchorNotFoundError,
        AmbiguousTitleError that lists the candidates, UsageError unless one of the two is given.
        """
        one_selector(anchor_id, title, False)
        anchors = [anchor for scope in scopes for anchor in self.read(scope).anchors]
        if anchor_id is not None:
            return find_by_id(anchors, anchor_id)
        return find_by_title(anchors, title or "", partial=partial)

    def history(
        self, scope: AnyScope, *, anchor_id: str | None = None, limit: int = 50
    ) -> tuple[JournalEntry, ...]:
        """Return at most `limit` changes of a scope, or of one anchor in it, newest first.

        `anchor_id` may be a prefix of 6 characters or more; anchors no longer there are found too.
        """
        found: list[JournalEntry] = []
        for entry in self._keeper.entries_backwards(scope):
            if len(found) >= limit:
                break
            if entry.op == "baseline":
                continue
            touched = {side.id for change in entry.changes for side in (change.before, change.after) if side}
            if (
                anchor_id is None
                or anchor_id in touched
                or (len(anchor_id) >= 6 and any(one.startswith(anchor_id) for one in touched))
            ):
                found.append(entry)
        return tuple(found)

    def undo(self, scope: AnyScope, *, actor: str, entry: int | None = None) -> UndoResult:
        """Take back the newest change that has not been taken back, so that repeating walks back.

        With `entry` the change of that number is taken back, which may itself be an undo, if the anchors
        it touched are as it left them. Raises NothingToUndoError, StaleRevisionError, ScopeFullError.
        """
        with self._keeper.writing(scope) as loaded:
            target = newest_undoable(self._keeper.entries_backwards(scope), entry, scope.label)
            changes = reverse(target, loaded.anchors)
            after = len(loaded.anchors) + sum(
                (change.after is not None) - (change.before is not None) for change in changes
            )
            if after > max(MAX_ANCHORS, len(loaded.anchors)):
                raise _full(scope, after)
            revision, notices = self._keeper.commit(
                scope, loaded, "undo", changes, actor, undoes=target.entry
            )
        restored = tuple(change.after for change in changes if change.after)
        removed = tuple(change.before for change in changes if change.before and not change.after)
        return UndoResult(target, restored, removed, revision, notices)

    def adopt_fork(self, parent: SessionScope, child: SessionScope, *, at: datetime | None = None) -> int:
        """Copy a parent session's anchors to a fork, once; returns how many were copied.

        `at` is the moment of the fork (default: when the registry first saw the child): what the parent
        pinned later is left out. A child that has a file already is left as it is.
        """
        return self._keeper.adopt(parent, child, at)

    def scopes(self) -> tuple[AnyScope, ...]:
        """Return every scope that has files, sessions first."""
        return self._keeper.scopes()

    def check(self) -> tuple[Finding, ...]:
        """Look over every file and change nothing; for `doctor`."""
        from context_anchor.anchors.checkup import check_store

        return check_store(self.data)

    def rebuild_bundles(self) -> int:
        """Render every scope's bundle part anew and finish what a crash left; returns how many scopes."""
        return sum(self._keeper.rebuild(scope) for scope in self.scopes())

    def _new_anchor(self, scope: AnyScope, draft: Draft, taken: Mapping[str, Anchor]) -> Anchor:
        fresh = self._new_id()
        while fresh in taken:
            fresh = self._new_id()
        at = whole_ms(self._now())
        return Anchor(
            id=fresh,
            title=draft.title,
            content=draft.content,
            priority=draft.priority,
            category=draft.category,
            scope=scope.kind,
            refs=draft.refs,
            tags=draft.tags,
            created_at=at,
            updated_at=at,
            origin=draft.origin,
            revision=1,
        )

    def _target(self, loaded: Loaded, draft: Draft, anchor_id: str | None) -> Anchor | None:
        titled = same_title(loaded.anchors.values(), draft.title)
        if anchor_id is None:
            if len(titled) > 1:
                raise AmbiguousTitleError(
                    f"{len(titled)} anchors have the title {draft.title!r}: "
                    + ", ".join(anchor.id for anchor in titled),
                    hint="Name the one to supersede with anchor_id.",
                )
            return titled[0] if titled else None
        former = find_by_id(tuple(loaded.anchors.values()), anchor_id)
        others = [anchor.id for anchor in titled if anchor.id != former.id]
        if others:
            raise InvalidAnchorError(
                f"title {draft.title!r} is already that of anchor {others[0]}",
                hint="Choose another title, or unpin that one first.",
            )
        return former

    def _one(self, loaded: Loaded, scope: AnyScope, anchor_id: str | None, title: str | None) -> Anchor:
        anchors = tuple(loaded.anchors.values())
        if not anchors:
            raise not_found(anchor_id or title or "", (), where=scope.label)
        return find_by_id(anchors, anchor_id) if anchor_id is not None else find_by_title(anchors, title or "")

    def _put(
        self,
        scope: AnyScope,
        drafts: Sequence[Draft],
        op: Operation,
        actor: str,
        expected_revision: int | None,
        allow_secret: bool,
    ) -> ReplaceResult:
        by_title: dict[str, Draft] = {}
        for draft in drafts:
            if by_title.setdefault(matching_title(draft.title), draft) is not draft:
                raise InvalidAnchorError(
                    f"two of the anchors have the title {draft.title!r}", hint="Merge them into one."
                )
        if not allow_secret:
            refuse_secrets(drafts)
        with self._keeper.writing(scope) as loaded:
            if expected_revision is not None and expected_revision != loaded.revision:
                raise StaleRevisionError(
                    f"{scope.label} is at revision {loaded.revision}, not {expected_revision}",
                    hint="List the anchors again, merge what is new into yours and repeat with that revision.",
                )
            former: dict[str, Anchor] = {}
            for anchor in bundle.in_order(loaded.anchors.values()):
                former.setdefault(matching_title(anchor.title), anchor)
            added: list[Anchor] = []
            changes: list[Change] = []
            taken = dict(loaded.anchors)
            for title, draft in by_title.items():
                old = former.get(title)
                if old is None:
                    new = self._new_anchor(scope, draft, taken)
                    added.append(new)
                elif old.draft == draft:
                    continue
                else:
                    new = old.superseded_by(draft, self._now())
                taken[new.id] = new
                changes.append(Change(old, new))
            removed: tuple[Anchor, ...] = ()
            if op == "replace":
                kept = {former[title].id for title in by_title if title in former}
                removed = bundle.in_order(a for a in loaded.anchors.values() if a.id not in kept)
                changes += [Change(anchor, None) for anchor in removed]
            size = len(taken) - len(removed)
            if size > MAX_ANCHORS and added:
                raise _full(scope, size)
            revision, notices = loaded.revision, loaded.notices
            if changes:
                revision, notices = self._keeper.commit(scope, loaded, op, tuple(changes), actor)
        gone = {anchor.id for anchor in removed}
        anchors = bundle.in_order(anchor for anchor in taken.values() if anchor.id not in gone)
        updated = tuple(change.after for change in changes if change.before and change.after)
        return ReplaceResult(anchors, tuple(added), updated, removed, revision, notices)


def _full(scope: AnyScope, size: int) -> ScopeFullError:
    return ScopeFullError(
        f"{scope.label} would hold {size} anchors, at most {MAX_ANCHORS} fit",
        hint="Unpin what is settled, or merge related anchors with replace_session_anchors.",
    )


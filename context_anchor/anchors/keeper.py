"""Loading, committing and recovering one scope's files, under its lock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from context_anchor.anchors import bundle, disk, document, journal
from context_anchor.anchors.anchor import Anchor, whole_ms
from context_anchor.anchors.document import Document
from context_anchor.anchors.listing import list_scopes
from context_anchor.anchors.results import Change, JournalEntry, Operation
from context_anchor.anchors.scope import AnyScope, ScopeFiles, SessionScope, WorkspaceScope
from context_anchor.errors import (
    StoreCorruptError,
    StoreError,
    StoreNewerError,
)
from context_anchor.wire import atomic, paths, quickjson, registry, workspace

_REPAIR_WAIT_S = 0.25
_RESTORE_WAIT_S = 2.0
_MAX_FORK_DEPTH = 16
_CACHED_FILES = 16
_MAX_EPOCH = 4_102_444_800  # the year 2100: a later start is a broken clock
_REVISION = re.compile(rb'"revision":\s*([0-9]{1,15})')


def _printable(actor: str) -> str:
    """Return an actor's name (a program may have chosen it) without invisible characters, at most 120."""
    return "".join(c for c in actor[:500] if c.isprintable())[:120]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A scope as its file and its journal together have it.

    `corrupt` holds the bytes of a damaged file that is still in place; `absent` says there is none.
    """

    document: Document
    anchors: Mapping[str, Anchor]
    revision: int
    tail: journal.Tail
    notices: tuple[str, ...] = ()
    writable: bool = True
    corrupt: bytes | None = None
    absent: bool = False

    @property
    def unsettled(self) -> bool:
        """Whether the file is not what it should be: damaged, or behind the journal."""
        return self.corrupt is not None or self.document.revision != self.revision


class Keeper:
    """The files of all scopes: the one place that writes them."""

    def __init__(self, data: str, now: Callable[[], datetime], lock_wait_s: float) -> None:
        self.data = data
        self._now = now
        self._lock_wait_s = lock_wait_s
        self._parsed: dict[str, tuple[bytes, Document]] = {}

    def files(self, scope: AnyScope) -> ScopeFiles:
        """Return the paths of a scope."""
        return ScopeFiles.of(self.data, scope)

    def load(self, scope: AnyScope) -> Loaded:
        """Return a scope's state without lock or change; raises StoreUnavailableError."""
        files = self.files(scope)
        raw = disk.read(files.anchors)
        corrupt: bytes | None = None
        held = Document()
        if raw is not None:
            try:
                held = self._parse(raw, files.anchors)
            except StoreNewerError as problem:
                held = document.parse_newer(raw)
                notice = f"{problem.message}; it can be read but not changed here."
                return Loaded(held, held.anchors, held.revision, journal.Tail(), (notice,), writable=False)
            except StoreCorruptError:
                corrupt = raw
        try:
            tail = journal.read_tail(
                files.journal, held.revision, want_all=corrupt is not None or raw is None
            )
        except OSError as problem:
            raise disk.unavailable(problem, files.journal) from problem
        anchors = journal.apply(held.anchors, tail.entries)
        revision = max(held.revision, tail.last)
        notices: list[str] = []
        if held.unread:
            notices.append(
                f"{len(held.unread)} entries of {files.anchors} are no anchors to this version; they are kept."
            )
        if tail.newer:
            notices.append(f"A newer version continued {files.journal}; it can be read but not changed here.")
        elif tail.gap:
            notices.append(f"{files.journal} is damaged: changes before entry {tail.last} may be missing.")
        if corrupt is not None and (tail.gap or not tail.entries):
            saved = document.salvage(corrupt)
            anchors = {**saved, **anchors}
            found = _REVISION.search(corrupt[:4096])
            revision = max(revision, int(found.group(1)) if found else 0, 1 if saved else 0)
        return Loaded(
            held, anchors, revision, tail, tuple(notices), not tail.newer, corrupt, raw is None
        )

    def _parse(self, raw: bytes, path: str) -> Document:
        """Parse a file's bytes, or return what the same bytes gave before (a server reads them often)."""
        known = self._parsed.get(path)
        if known is None or known[0] != raw:
            known = raw, document.parse(raw, path)
        self._remember(path, *known)
        return known[1]

    def _remember(self, path: str, raw: bytes, held: Document) -> None:
        self._parsed.pop(path, None)
        self._parsed[path] = raw, held
        if len(self._parsed) > _CACHED_FILES:
            self._parsed.pop(next(iter(self._parsed)), None)

    def load_settled(self, scope: AnyScope) -> Loaded:
        """Return a scope's state for a reader, finishing what a crash left where that is possible now."""
        loaded = self.load(scope)
        if not loaded.writable:
            return loaded
        files = self.files(scope)
        stale = loaded.revision > 0 and not bundle.is_fresh(files.bundle, scope.kind, loaded.revision)
        if not loaded.unsettled and not stale:
            return loaded
        wait = _RESTORE_WAIT_S if loaded.corrupt is not None else _REPAIR_WAIT_S
        try:
            with disk.locked(files.lock, min(wait, self._lock_wait_s)):
                return self._settle(scope, self.load(scope))
        except StoreError as problem:
            if loaded.corrupt is None:
                return loaded  # a writer is at work, or the folder is read-only: the journal has the truth
            notice = f"{files.anchors} is damaged and could not be restored now: {problem.message}"
            return replace(loaded, notices=(*loaded.notices, notice))

    @contextmanager
    def writing(self, scope: AnyScope) -> Iterator[Loaded]:
        """Hold a scope's lock and give its state, settled where its file was damaged.

        Raises StoreNewerError, LockTimeoutError, StoreUnavailableError.
        """
        self.adopt_if_forked(scope)
        with disk.locked(self.files(scope).lock, self._lock_wait_s):
            yield self._writable(scope)

    def _writable(self, scope: AnyScope) -> Loaded:
        loaded = self.load(scope)
        if not loaded.writable:
            raise StoreNewerError(
                f"the anchors of {scope.label} were written by a newer version and can only be read here",
                hint="Update context-anchor.",
            )
        return self._settle(scope, loaded) if loaded.corrupt is not None else loaded

    def commit(
        self,
        scope: AnyScope,
        loaded: Loaded,
        op: Operation,
        changes: tuple[Change, ...],
        actor: str,
        *,
        undoes: int | None = None,
    ) -> tuple[int, tuple[str, ...]]:
        """Make changes durable and return `(revision, notices)`; the caller is inside `writing`.

        All bytes are on the disk before the journal entry is; once the entry is durable the change has
        happened, and what comes after is finished by the next use if this process dies.
        """
        files = self.files(scope)
        at = whole_ms(self._now())
        entries: list[JournalEntry] = []
        number = loaded.revision + 1
        if (loaded.tail.behind or loaded.tail.gap) and loaded.anchors:
            baseline = tuple(Change(None, anchor) for anchor in loaded.anchors.values())
            entries.append(JournalEntry(number, at, "context-anchor", "baseline", baseline))
            number += 1
        entry = JournalEntry(number, at, _printable(actor), op, changes, undoes)
        entries.append(entry)
        anchors = journal.apply(loaded.anchors, (entry,))
        root = (scope.root if isinstance(scope, WorkspaceScope) else "") or loaded.document.root
        held = replace(loaded.document, anchors=anchors, revision=number, root=root)
        notices = list(loaded.notices)
        try:
            self._note_workspace(scope)
            staged = self._stage(scope, held)
            try:
                cut = journal.append(files.journal, tuple(entries), scope)
            except OSError:
                for one in staged:
                    one.discard()
                raise
        except OSError as problem:
            raise disk.unavailable(problem, files.anchors) from problem
        if cut:
            notices.append(f"An unfinished line of {cut} bytes was cut off {files.journal}.")
        notices += self._place(files, staged)
        return number, tuple(notices)

    def _stage(self, scope: AnyScope, held: Document) -> tuple[disk.Staged, ...]:
        files = self.files(scope)
        try:
            raw = document.render(held, scope)
        except ValueError as problem:
            raise StoreCorruptError(
                f"{files.anchors} holds unknown fields that can't be written back: {problem}",
                hint="Move that file away; the journal restores the anchors.",
            ) from problem
        part = bundle.render_part(
            held.anchors.values(), scope.kind, held.revision, self._root(scope, held.root)
        )
        self._remember(files.anchors, raw, held)
        first = disk.Staged(files.anchors, raw)
        try:
            return first, disk.Staged(files.bundle, part)
        except OSError:
            first.discard()
            raise

    def _place(self, files: ScopeFiles, staged: tuple[disk.Staged, ...]) -> list[str]:
        """Put staged files in place; what fails is told, since the journal holds the change already."""
        notices = []
        for one in staged:
            try:
                one.commit()
            except OSError as problem:  # on Windows, a reader that has the file open
                one.discard()
                notices.append(f"{one.path} will be brought up to date at the next use: {problem.strerror}.")
        try:
            atomic.sync_folder(str(Path(files.anchors).parent))
        except OSError as problem:
            notices.append(f"{Path(files.anchors).parent} could not be synchronised: {problem.strerror}.")
        return notices

    def _settle(self, scope: AnyScope, loaded: Loaded) -> Loaded:
        """Bring file and bundle in line with the loaded state; the caller holds the lock."""
        files = self.files(scope)
        notices = list(loaded.notices)
        if not loaded.writable or (loaded.revision == 0 and loaded.corrupt is None):
            return loaded
        held = replace(loaded.document, anchors=loaded.anchors, revision=loaded.revision)
        try:
            if loaded.corrupt is not None:
                kept = disk.set_aside(files.anchors, self._now().astimezone(timezone.utc))
                source = "the journal" if loaded.tail.entries else "what could still be read of it"
                notices.append(
                    f"{files.anchors} was damaged: it was set aside as {kept}, and {len(loaded.anchors)} anchors "
                    f"were restored from {source}."
                )
            notices += self._place(files, self._stage(scope, held))
        except OSError as problem:
            raise disk.unavailable(problem, files.anchors) from problem
        return replace(loaded, document=held, notices=tuple(notices), corrupt=None, absent=False)

    def _root(self, scope: AnyScope, known: str) -> str:
        """Return the folder from which relative refs start, or ""."""
        if isinstance(scope, SessionScope):
            record = registry.load(self.data, scope.host, scope.session_id)
            return str(record["workspace_root"] or record["cwd"]) if record else ""
        if scope.root or known:
            return scope.root or known
        stored = workspace.load(self.data, scope.workspace_id)
        return str(stored.get("root") or "") if stored else ""

    def _note_workspace(self, scope: AnyScope) -> None:
        """Record a workspace's root, so that it can be listed and a moved one attached; keeps the rest."""
        if not isinstance(scope, WorkspaceScope) or not scope.root:
            return
        stored = workspace.load(self.data, scope.workspace_id)
        if stored and stored.get("root") == scope.root:
            return
        record = {
            "format": workspace.FORMAT,
            "workspace_id": scope.workspace_id,
            "attached_to": None,
            **(stored or {}),
            "root": scope.root,
            "seen_at": self._now().timestamp(),
        }
        path = workspace.record_path(self.data, scope.workspace_id)
        paths.ensure_folder(str(Path(path).parent))
        atomic.replace_bytes(path, quickjson.dumps(record).encode("ascii"), durable=True)

    def entries_backwards(self, scope: AnyScope) -> Iterator[JournalEntry]:
        """Yield a scope's journal entries, newest first; raises StoreUnavailableError."""
        path = self.files(scope).journal
        try:
            yield from journal.entries_backwards(path)
        except OSError as problem:
            raise disk.unavailable(problem, path) from problem

    def adopt_if_forked(self, scope: AnyScope, depth: int = 0) -> None:
        """Copy the parent's anchors to a fork that is used for the first time."""
        if not isinstance(scope, SessionScope) or depth > _MAX_FORK_DEPTH:
            return
        files = self.files(scope)
        if Path(files.anchors).exists() or Path(files.journal).exists():
            return
        record = registry.load(self.data, scope.host, scope.session_id)
        if not record or not record["forked_from"] or record["forked_from"] == scope.session_id:
            return
        self.adopt(SessionScope(scope.host, record["forked_from"]), scope, None, depth + 1)

    def adopt(self, parent: SessionScope, child: SessionScope, at: datetime | None, depth: int = 1) -> int:
        """Copy a parent's anchors to a child without a file; see `AnchorStore.adopt_fork`."""
        files = self.files(child)
        if Path(files.anchors).exists() or Path(files.journal).exists():
            return 0
        self.adopt_if_forked(parent, depth)
        if at is None:
            record = registry.load(self.data, child.host, child.session_id)
            started = record["started_at"] if record else 0.0
            at = datetime.fromtimestamp(started, timezone.utc) if 0 < started < _MAX_EPOCH else None
        source = self._state_at(parent, at)
        with disk.locked(files.lock, self._lock_wait_s):
            loaded = self._writable(child)
            if not loaded.absent or loaded.revision:
                return 0
            changes = tuple(Change(None, anchor) for anchor in source.values())
            self.commit(child, loaded, "adopt", changes, f"fork of {parent.session_id}")
        return len(source)

    def _state_at(self, scope: AnyScope, at: datetime | None) -> dict[str, Anchor]:
        """Return a scope's anchors at a moment, by walking its journal back; None: now."""
        state = dict(self.load_settled(scope).anchors)
        if at is None:
            return state
        for entry in self.entries_backwards(scope):
            if entry.at <= at:
                break
            if entry.op == "baseline":
                continue
            for change in entry.changes:
                if change.after is not None:
                    state.pop(change.after.id, None)
                if change.before is not None:
                    state[change.before.id] = change.before
        return state

    def scopes(self) -> tuple[AnyScope, ...]:
        """Return every scope that has files, sessions first."""
        return list_scopes(self.data)

    def rebuild(self, scope: AnyScope) -> bool:
        """Render a scope's file and bundle anew; False where a newer version wrote it."""
        with disk.locked(self.files(scope).lock, self._lock_wait_s):
            loaded = self.load(scope)
            if loaded.writable:
                self._settle(scope, loaded)
            return loaded.writable

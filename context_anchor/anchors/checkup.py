"""A look over every stored file, for `doctor`; changes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from context_anchor.anchors import bundle, disk, document, journal
from context_anchor.anchors.document import Document
from context_anchor.anchors.listing import scope_at, stems
from context_anchor.anchors.results import Finding
from context_anchor.anchors.scope import ScopeFiles
from context_anchor.errors import ContextAnchorError, StoreCorruptError, StoreNewerError

_RESTORE = "Read that scope once (context-anchor list): the file is set aside and restored from the journal."
_REBUILD = "Nothing is lost; the next change in that scope renders it anew."


def check_store(data: str) -> tuple[Finding, ...]:
    """Return what is wrong or worth knowing about a data folder's anchors, by path."""
    if not Path(data).exists():
        return ()
    return (*_folder(data), *(finding for stem in stems(data) for finding in _scope(data, stem)))


def _folder(data: str) -> Iterator[Finding]:
    top = Path(data)
    if not os.access(data, os.W_OK | os.X_OK):
        yield Finding(
            "error",
            data,
            "the data folder can't be written",
            "Make it writable, or name another with CONTEXT_ANCHOR_DATA_DIR.",
        )
    if os.name != "nt" and stat.S_IMODE(top.stat().st_mode) & 0o077:
        yield Finding("warning", data, "others on this machine may read the data folder", f"chmod 700 {data}")
    for path in sorted(top.glob("anchors/**/*.corrupt-*")):
        yield Finding(
            "info",
            str(path),
            "a damaged file was set aside here earlier",
            "Compare it with the list of anchors; delete it when nothing is missing.",
        )


def _scope(data: str, stem: str) -> Iterator[Finding]:
    files = ScopeFiles(stem + ".json", stem + ".journal.jsonl", stem + ".bundle", stem + ".json.lock")
    held = Document()
    try:
        raw = disk.read(files.anchors)
        if raw is not None:
            held = document.parse(raw, files.anchors)
    except StoreNewerError as problem:
        yield Finding("warning", files.anchors, problem.message, problem.hint)
        return
    except StoreCorruptError as problem:
        yield Finding("error", files.anchors, problem.message, _RESTORE)
        return
    except ContextAnchorError as problem:
        yield Finding("error", files.anchors, problem.message, problem.hint)
        return
    if held.unread:
        yield Finding(
            "warning",
            files.anchors,
            f"{len(held.unread)} entries are no anchors to this version; they are kept",
            "Update context-anchor, or restore them by hand.",
        )
    try:
        whole = journal.read_tail(files.journal, 0, want_all=True)
    except OSError as problem:
        unreadable = disk.unavailable(problem, files.journal)
        yield Finding("error", files.journal, unreadable.message, unreadable.hint)
        return
    if raw is not None or whole.last or whole.damaged:  # else a first pin that was never acknowledged
        yield from _place(data, stem, files)
    yield from _journal(files, held, whole)
    revision = max(held.revision, whole.last)
    if whole.last <= held.revision and held.revision and not bundle.is_whole(files.bundle, revision):
        yield Finding("warning", files.bundle, "the bundle part is missing, damaged or out of date", _REBUILD)


def _place(data: str, stem: str, files: ScopeFiles) -> Iterator[Finding]:
    scope = scope_at(stem)
    if scope is None:
        yield Finding("warning", files.anchors, "no file tells whose anchors these are", "Pin anything there.")
    elif ScopeFiles.of(data, scope).anchors != files.anchors:
        yield Finding(
            "error",
            files.anchors,
            f"the file is that of {scope.label} and lies in the wrong place",
            f"Move it and its journal to {ScopeFiles.of(data, scope).anchors}.",
        )


def _journal(files: ScopeFiles, held: Document, whole: journal.Tail) -> Iterator[Finding]:
    if whole.newer:
        yield Finding("warning", files.journal, "a newer version continued this journal", "Update context-anchor.")
        return
    if whole.torn:
        yield Finding(
            "info",
            files.journal,
            f"the last line is unfinished ({whole.torn} bytes); it was never acknowledged",
            "Nothing to do: the next change cuts it off.",
        )
    if whole.damaged:
        yield Finding(
            "warning",
            files.journal,
            f"{whole.damaged} damaged lines; those changes can't be seen or undone",
            "The anchors themselves are safe in their file; keep a backup of it.",
        )
    if whole.last < held.revision:
        yield Finding(
            "warning",
            files.journal,
            f"the journal ends at entry {whole.last}, the file is at {held.revision}",
            "Nothing to do: the next change records the whole state first.",
        )
    elif whole.last > held.revision:
        yield Finding(
            "warning",
            files.anchors,
            f"the file is at revision {held.revision}, its journal at {whole.last}: a write was cut short",
            "Nothing is lost; the next use of that scope brings the file up to date.",
        )
    elif not whole.gap and whole.last and journal.apply({}, whole.entries) != held.anchors:
        yield Finding(
            "warning",
            files.anchors,
            "the file and its journal disagree: it was changed by another program",
            "The file counts. Undo it there, or pin again to record the present state.",
        )

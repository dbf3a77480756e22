"""The append-only journal of one scope, format `context-anchor-journal/1`: every former value.

One entry a line, ASCII JSON: format, the scope's identity, entry, at, actor, op, undoes, changes
(a list of {before, after}), and last `sum`, the CRC-32 of the line's bytes before it as 8 hex digits.
Entry numbers order the entries, never their times. An entry whose line is durable has happened: the
file of anchors and the bundle only follow it.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast, get_args

from context_anchor.anchors.anchor import Anchor, format_time, parse_time
from context_anchor.anchors.disk import OPEN_FLAGS
from context_anchor.anchors.document import dumps, newer_version
from context_anchor.anchors.results import Change, JournalEntry, Operation
from context_anchor.anchors.scope import AnyScope, from_identity, identity
from context_anchor.errors import InvalidAnchorError, UsageError
from context_anchor.wire import atomic, quickjson

NAME = "context-anchor-journal/"
VERSION = 1
FORMAT = f"{NAME}{VERSION}"
OPERATIONS: tuple[str, ...] = get_args(Operation)
_CHUNK = 65536
_HEAD = re.compile(rb'\{"format":"([^"\\]{1,60})","entry":([0-9]{1,15}),')
_SUM = re.compile(rb',"sum":"([0-9a-f]{8})"\}\Z')


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a journal file: where it ends, and its entry number, or None where it is damaged.

    `newer` says that a later version wrote it. `raw` has no line end.
    """

    raw: bytes
    entry: int | None
    newer: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """What a journal says beyond a revision that is already known.

    `entries` are the later ones, oldest first; a baseline among them is the first. `last` is the number
    of the newest sound entry (0: none). `gap` says that entries in between are missing or damaged,
    `behind` that the journal ends before the known revision. `torn` counts the bytes of an unfinished
    last line, `damaged` the unreadable lines seen on the way.
    """

    entries: tuple[JournalEntry, ...] = ()
    last: int = 0
    gap: bool = False
    behind: bool = False
    torn: int = 0
    damaged: int = 0
    newer: bool = False


def render_entry(entry: JournalEntry, scope: AnyScope) -> bytes:
    """Return an entry's line without the line end."""
    value: dict[str, object] = {
        "format": FORMAT,
        "entry": entry.entry,
        **identity(scope),
        "at": format_time(entry.at),
        "actor": entry.actor,
        "op": entry.op,
        "undoes": entry.undoes,
        "changes": [
            {
                "before": change.before.to_json() if change.before else None,
                "after": change.after.to_json() if change.after else None,
            }
            for change in entry.changes
        ],
    }
    body = dumps(value)[:-1].encode("ascii")
    return body + b',"sum":"%08x"}' % zlib.crc32(body)


def _line(raw: bytes) -> Line:
    head, sum_ = _HEAD.match(raw), _SUM.search(raw)
    if head is None or sum_ is None or zlib.crc32(raw[: sum_.start()]) != int(sum_.group(1), 16):
        return Line(raw, None, False)
    tag = head.group(1).decode("utf-8", "replace")
    if tag != FORMAT:
        return Line(raw, None, newer_version(tag, NAME, VERSION))
    return Line(raw, int(head.group(2)), False)


def parse_entry(raw: bytes) -> tuple[JournalEntry, Mapping[str, object]] | None:
    """Return the entry of a sound line and the fields that name its scope; None where it is damaged."""
    if _line(raw).entry is None:
        return None
    try:
        value = quickjson.loads(raw)
        op, undoes = value["op"], value["undoes"]
        if op not in OPERATIONS or not (undoes is None or isinstance(undoes, int)):
            return None
        changes = tuple(
            Change(
                *(None if change[side] is None else Anchor.from_json(change[side]) for side in ("before", "after"))
            )
            for change in value["changes"]
        )
        entry = JournalEntry(
            value["entry"], parse_time(value["at"]), str(value["actor"]), cast(Operation, op), changes, undoes
        )
    except (ValueError, KeyError, TypeError, InvalidAnchorError):
        return None
    return entry, value


def lines_backwards(path: str) -> Iterator[tuple[Line, bool]]:
    """Yield a journal's lines, newest first, each with whether its line end is there.

    A missing file has none. Raises OSError.
    """
    try:
        fd = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return
    with os.fdopen(fd, "rb") as file:
        at = file.seek(0, os.SEEK_END)
        pieces: list[bytes] = []  # of the line being put together, last piece first
        ended = False
        while at > 0:
            size = min(_CHUNK, at)
            at -= size
            file.seek(at)
            chunk = file.read(size)
            stop = len(chunk)
            while (cut := chunk.rfind(b"\n", 0, stop)) >= 0:
                raw = chunk[cut + 1 : stop] + b"".join(reversed(pieces))
                pieces.clear()
                if raw:
                    yield _line(raw), ended
                ended, stop = True, cut
            pieces.append(chunk[:stop])
        raw = b"".join(reversed(pieces))
        if raw:
            yield _line(raw), ended


def entries_backwards(path: str) -> Iterator[JournalEntry]:
    """Yield a journal's sound entries, newest first; damaged lines are passed over. Raises OSError."""
    for line, _ in lines_backwards(path):
        parsed = parse_entry(line.raw) if line.entry is not None else None
        if parsed:
            yield parsed[0]


def read_tail(path: str, revision: int, *, want_all: bool = False) -> Tail:
    """Return what a journal says beyond `revision`; reads no further back than it must.

    With `want_all` everything is read back to the newest baseline, whatever the revision, so that a
    state can be made from nothing. Raises OSError.
    """
    later: list[JournalEntry] = []
    last = torn = damaged = 0
    newer = reached = behind = False
    for line, ended in lines_backwards(path):
        newer = newer or line.newer
        parsed = None
        if line.entry is not None:
            if not want_all and line.entry <= revision:
                last = last or line.entry
                behind, reached = last < revision, True
                break
            parsed = parse_entry(line.raw)
        if parsed is None:
            if ended:
                damaged += 1
            else:
                torn = len(line.raw)
            continue
        last = last or parsed[0].entry
        later.append(parsed[0])
        if parsed[0].op == "baseline":
            reached = True
            break
    later.reverse()
    if not reached:
        behind = last < revision
    numbers = [entry.entry for entry in later]
    start = numbers[0] if later and later[0].op == "baseline" else (0 if want_all else revision) + 1
    gap = bool(numbers) and numbers != list(range(start, start + len(numbers)))
    return Tail(tuple(later), last, gap, behind, torn, damaged, newer)


def apply(anchors: Mapping[str, Anchor], entries: tuple[JournalEntry, ...]) -> dict[str, Anchor]:
    """Return the anchors after entries, oldest first."""
    state = dict(anchors)
    for entry in entries:
        if entry.op == "baseline":
            state.clear()
        for change in entry.changes:
            if change.after is not None:
                if change.before is not None and change.before.id != change.after.id:
                    state.pop(change.before.id, None)
                state[change.after.id] = change.after
            elif change.before is not None:
                state.pop(change.before.id, None)
    return state


def append(path: str, entries: tuple[JournalEntry, ...], scope: AnyScope) -> int:
    """Append entries durably and return how many bytes of an unfinished last line were cut off.

    The caller holds the scope's lock. Raises OSError and leaves the journal as it was.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        end, glue, cut = size, b"", 0
        if size:
            line, ended = next(iter(lines_backwards(path)), (None, True))
            if not ended and line is not None:
                if line.entry is not None:
                    glue = b"\n"  # whole but for its line end
                else:
                    cut = len(line.raw)
                    end = size - cut
        data = glue + b"".join(render_entry(entry, scope) + b"\n" for entry in entries)
        try:
            if cut:
                os.ftruncate(fd, end)
            os.lseek(fd, end, os.SEEK_SET)
            atomic.write_all(fd, data)
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, end)
            raise
        return cut
    finally:
        os.close(fd)


def scope_of(path: str) -> AnyScope | None:
    """Return the scope that a journal's newest sound entry names, or None."""
    try:
        for line, _ in lines_backwards(path):
            parsed = parse_entry(line.raw)
            if parsed:
                return from_identity(parsed[1])
    except (OSError, UsageError):
        return None
    return None


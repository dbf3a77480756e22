"""Pages of anchors, as lists and as full text, and the positions cursors stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from context_anchor.anchors.anchor import Anchor
from context_anchor.anchors.scope import AnyScope
from context_anchor.errors import StaleRevisionError
from context_anchor.server import summaries
from context_anchor.server.pages import (
    PAGE_LIMIT,
    Reply,
    clip,
    clip_path,
    decode_cursor,
    encode_cursor,
    fitting,
    inner_bytes,
    json_bytes,
)

_CURSOR_ROOM: Final = 420
"""Bytes kept for the cursor in both forms and the words around it."""
_LEAST_PIECE: Final = 120
"""Bytes of content below which an anchor is rather begun on the next page."""
_ITEM_BYTES: Final = 1_400
"""Bytes of one ref on a page; a longer path is cut from the front and is whole in the CLI."""


@dataclass(frozen=True, slots=True)
class ListPosition:
    """Where a list goes on: after the anchor with this order and id; `scope` is '' for both scopes."""

    scope: str
    after: tuple[tuple[int, int, int], str]
    revisions: tuple[int, ...]

    @classmethod
    def of(cls, cursor: str) -> ListPosition:
        """Return the position of a cursor of `list_pinned_context`; raises UsageError."""
        scope, rank, category, newest, anchor_id, first, second = decode_cursor(
            cursor, "list", (str, int, int, int, str, int, int)
        )
        revisions = (first,) if second < 0 else (first, second)
        return cls(
            scope if scope in ("session", "workspace") else "", ((rank, category, newest), anchor_id), revisions
        )

    def cursor(self) -> str:
        """Return the cursor of this position."""
        first, second = (*self.revisions, -1)[:2]
        return encode_cursor("list", self.scope, *self.after[0], self.after[1], first, second)


@dataclass(frozen=True, slots=True)
class GetPosition:
    """Where a text goes on: `at` counts the content's characters, then refs, then tags, of one anchor."""

    one: bool
    order: tuple[int, int, int]
    anchor_id: str
    revision: int
    at: int

    @classmethod
    def start_of(cls, anchor: Anchor) -> GetPosition:
        """Return the beginning of one anchor that is read alone."""
        return cls(True, anchor.order, anchor.id, anchor.revision, 0)

    @classmethod
    def of(cls, cursor: str) -> GetPosition:
        """Return the position of a cursor of `get_pinned_context`; raises UsageError."""
        one, rank, category, newest, anchor_id, revision, at = decode_cursor(
            cursor, "get", (int, int, int, int, str, int, int)
        )
        return cls(one == 1, (rank, category, newest), anchor_id, revision, max(at, 0))

    def cursor(self) -> str:
        """Return the cursor of this position."""
        return encode_cursor("get", int(self.one), *self.order, self.anchor_id, self.revision, self.at)


def list_page(
    lines: list[str],
    structured: dict[str, Any],
    anchors: Sequence[Anchor],
    position: ListPosition | None,
    scope: str | None,
    revisions: Mapping[AnyScope, int],
    root: str,
    now: float,
) -> Reply:
    """Return the anchors after a position, as many as fit below the lines and keys already there."""
    rows: list[dict[str, Any]] = []
    structured["anchors"] = rows
    room = PAGE_LIMIT - json_bytes("\n".join(lines)) - json_bytes(structured) - _CURSOR_ROOM
    start = position.after if position else None
    wanted = [anchor for anchor in anchors if start is None or (anchor.order, anchor.id) > start]
    for index, anchor in enumerate(wanted):
        row, line = _row(anchor, root, now)
        room -= json_bytes(row) + inner_bytes(line) + 3
        if room < 0:
            before = wanted[index - 1] if index else None
            after = (before.order, before.id) if before else start
            if after is None:
                after = ((-1, -1, 0), "")
            kept = position.revisions if position else tuple(revisions.values())
            cursor = ListPosition((position.scope if position else scope) or "", after, kept).cursor()
            structured["cursor"] = cursor
            lines.append(f'{len(wanted) - index} more: list_pinned_context(cursor="{cursor}")')
            break
        rows.append(row)
        lines.append(line)
    return Reply("\n".join(line for line in lines if line), structured)


def _row(anchor: Anchor, root: str, now: float) -> tuple[dict[str, Any], str]:
    row = summaries.summary(anchor)
    row["age"] = summaries.age(anchor, now)
    line = f"{anchor.id} [{anchor.priority}] {summaries.details(anchor)}, {row['age']}: {row['title']}"
    gone = summaries.missing_refs(anchor.refs, root)
    if gone:
        row["missing_refs"] = [clip_path(ref, 80) for ref in gone[:2]]
        row["missing"] = len(gone)
        line += f" (stale: {len(gone)} of {len(anchor.refs)} refs missing: {', '.join(row['missing_refs'])})"
    return row, line


def get_page(anchors: Sequence[Anchor], position: GetPosition | None, root: str) -> Reply:
    """Return the text from a position on: one anchor, or as many as fit, the last perhaps in part.

    Raises StaleRevisionError when an anchor that was shown in part has changed since.
    """
    parts: list[dict[str, Any]] = []
    lines: list[str] = []
    structured: dict[str, Any] = {"anchors": parts}
    room = PAGE_LIMIT - json_bytes(structured) - _CURSOR_ROOM
    one = position is not None and position.one
    for anchor, at in _from(anchors, position):
        part, line, end = _part(anchor, at, room, root, must=not parts)
        if part is not None:
            room -= json_bytes(part) + inner_bytes(line) + 3
            parts.append(part)
            lines.append(line)
        if end is not None:
            cursor = GetPosition(one, anchor.order, anchor.id, anchor.revision, end).cursor()
            structured["cursor"] = cursor
            lines.append(f'goes on: get_pinned_context(cursor="{cursor}")')
            break
    return Reply("\n".join(lines) or "Nothing is pinned.", structured)


def _from(anchors: Sequence[Anchor], position: GetPosition | None) -> Iterable[tuple[Anchor, int]]:
    if position is None:
        return [(anchor, 0) for anchor in anchors]
    here = next((a for a in anchors if a.id == position.anchor_id and a.revision == position.revision), None)
    if here is None and position.at > 0:
        raise StaleRevisionError(
            f"Anchor {position.anchor_id} has changed or gone since its first part was read",
            hint="Get it again from the start, by anchor_id without a cursor.",
        )
    start = (position.order, position.anchor_id)
    rest = [a for a in anchors if (a.order, a.id) >= start or a is here]
    return [(anchor, position.at if anchor is here else 0) for anchor in rest]


def _part(
    anchor: Anchor, at: int, room: int, root: str, *, must: bool
) -> tuple[dict[str, Any] | None, str, int | None]:
    """Return as much of an anchor as fits: its object, its text, and where it goes on, None at the end.

    Without `must` an anchor of which next to nothing would fit is left for the next page.
    """
    length = len(anchor.content)
    part: dict[str, Any] = {"id": anchor.id}
    if at == 0:
        part = summaries.summary(anchor)
        part |= {"updated": summaries.moment(anchor.updated_at.timestamp()), "origin": anchor.origin}
        head = f"## [{anchor.priority}] {part['title']} {{{anchor.id}}} ({summaries.details(anchor)})"
    else:
        head = f"## {{{anchor.id}}} continued"
    start = min(at, length)
    part |= {"content": "", "start": start, "end": length, "length": length}
    head += f", characters {start}-{length} of {length}"
    room -= json_bytes(part) + inner_bytes(head) + 40
    end = fitting(anchor.content, start, room // 2)
    if end < length and not must and inner_bytes(anchor.content[start:end]) < _LEAST_PIECE:
        return None, "", at
    piece = anchor.content[start:end]
    part["content"], part["end"] = piece, end
    lines = [head.replace(f"-{length} of", f"-{end} of"), *([piece] if piece else [])]
    if end < length:
        return part, "\n".join(lines), end
    room -= 2 * inner_bytes(piece)
    items = [("refs", ref) for ref in anchor.refs] + [("tags", tag) for tag in anchor.tags]
    first = max(at - length, 0)
    for index, (kind, value) in enumerate(items[first:], first):
        form, line = _item(kind, value, root)
        cost = inner_bytes(line) + 2 + json_bytes(form) + 12
        if cost > room and not (must and not piece and index == first):
            return part, "\n".join(lines), length + index
        room -= cost
        part.setdefault(kind, []).append(form)
        lines.append(line)
    return part, "\n".join(lines), None


def _item(kind: str, value: str, root: str) -> tuple[dict[str, Any] | str, str]:
    """Return a ref or tag as an object and as a line; a ref that is not on disk says so."""
    if kind == "tags":
        tag = clip(value, _ITEM_BYTES)
        return tag, f"tag: {tag}"
    form: dict[str, Any] = {"path": clip_path(value, _ITEM_BYTES)}
    if not summaries.missing_refs([value], root):
        return form, f"ref: {form['path']}"
    form["missing"] = True
    return form, f"ref: {form['path']} (missing on disk)"

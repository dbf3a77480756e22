"""Tables in terminal columns, where East Asian characters take two and marks none."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_GAP = "  "
_LEAST_LAST = 16


def display_width(text: str) -> int:
    """Return how many terminal columns a line of text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def fit(text: str, columns: int) -> str:
    """Return text cut to at most so many columns, with `...` where something was cut off."""
    if display_width(text) <= columns:
        return text
    room, kept = max(0, columns - 3), []
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept.append(char)
    return ("".join(kept).rstrip() + "...")[: max(3, columns)]


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Return text filled up with spaces to so many columns."""
    space = " " * max(0, columns - display_width(text))
    return space + text if right else text + space


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int, right: Sequence[int] = ()) -> str:
    """Return an aligned table; the last column is cut so that lines keep within `width` columns.

    `right` are the indexes of columns that are aligned to the right. Where even that leaves too little
    for the last column, whole lines are longer than the terminal rather than unreadable.
    """
    last = len(head) - 1
    sizes = [max(display_width(row[at]) for row in (head, *rows)) for at in range(last)]
    room = max(_LEAST_LAST, width - sum(sizes) - len(_GAP) * last)
    lines = []
    for row in (head, *rows):
        cells = [pad(row[at], sizes[at], right=at in right) for at in range(last)]
        lines.append(_GAP.join([*cells, fit(row[last], room)]).rstrip())
    return "\n".join(lines)


def plain(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines of tab-separated cells, for a pipe."""
    return "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in rows)

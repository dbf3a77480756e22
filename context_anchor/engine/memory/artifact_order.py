"""Records by time, newest first, without reading all of them.

A generated id holds the time it was drawn, and its record's `createdAt` is that time or (in stores of the
earlier system) a moment later. So a record can be told once it is newer, by a margin, than every id unread.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from context_anchor.engine.ids import stamp_digits

Record = dict[str, Any]

_MARGIN = timedelta(seconds=60)
_LONG_AGO = datetime.min.replace(tzinfo=timezone.utc)
_ALWAYS = datetime.max.replace(tzinfo=timezone.utc)


def _drawn_at(identifier: str) -> datetime | None:
    digits = stamp_digits(identifier)
    if digits is None:
        return None
    try:
        at = datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
    except ValueError:
        return None
    return at.replace(microsecond=int(digits[14:]) * 1000, tzinfo=timezone.utc)


def _created_at(record: Record) -> datetime:
    try:
        at = datetime.fromisoformat(record["createdAt"].replace("Z", "+00:00"))
    except (KeyError, AttributeError, ValueError):
        return _LONG_AGO
    return at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)


class _Newer:
    """A record in an order in which the newest, then the greatest id, comes first."""

    __slots__ = ("at", "identifier", "record")

    def __init__(self, identifier: str, record: Record) -> None:
        self.at = _created_at(record)
        self.identifier = identifier
        self.record = record

    def __lt__(self, other: _Newer) -> bool:
        return (self.at, self.identifier) > (other.at, other.identifier)


def newest_first(identifiers: Iterable[str], read: Callable[[str], Record | None]) -> Iterator[Record]:
    """Yield records by `createdAt`, then id, both descending; `read` returns None for one to pass over."""
    # An id that tells no time may be of any, so it is read first.
    pending = sorted(((_drawn_at(name) or _ALWAYS, name) for name in identifiers), reverse=True)
    waiting: list[_Newer] = []
    for drawn_at, identifier in pending:
        newest_unread = drawn_at if drawn_at == _ALWAYS else drawn_at + _MARGIN
        while waiting and waiting[0].at > newest_unread:
            yield heapq.heappop(waiting).record
        record = read(identifier)
        if record is not None:
            heapq.heappush(waiting, _Newer(identifier, record))
    while waiting:
        yield heapq.heappop(waiting).record

"""Whole new lines of a file that another program is writing, in bounded memory."""

from __future__ import annotations

import os

from context_anchor.wire.atomic import open_regular

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FIRST_BYTES = 131072  # first look at a big file; measured: the last 128 KB hold 57 lines on average
LINE_BYTES = 1048576  # a longer line is skipped and counted
CHUNK_BYTES = 262144
CATCH_UP_BYTES = 16777216  # more than this unread: begin again at the tail
_GUARD_BYTES = 48
_BOM = b"\xef\xbb\xbf"


class Tail:
    """One reading of a growing file from a remembered place.

    `cursor` is a JSON object to keep for the next reading: device, inode, offset (bytes), `guard` (hex of
    the bytes before the offset), `mid` (the offset is inside a line that is being skipped). After the
    lines were consumed: `reset` says why reading began anew ("", "first", "replaced", "truncated",
    "rewritten", "behind"), `skipped` counts lines that were too long, `missing` tells that there is no
    file, `from_start` that the first line given was the file's first.
    """

    def __init__(
        self, path: str, cursor: dict[str, Any] | None = None, final: bool = False, whole: bool = False
    ) -> None:
        self.path = path
        self.cursor = dict(cursor) if cursor else {}
        self.final = final
        self.whole = whole  # a first reading begins at the file's start: it is known to be new
        self.reset = ""
        self.skipped = 0
        self.missing = False
        self.from_start = False
        self.unread_bytes = 0  # bytes before the place where a first reading began

    def lines(self) -> Iterator[bytes]:
        """Yield complete lines without their line ends; raises OSError only when reading fails."""
        try:
            fd = open_regular(self.path)
        except (FileNotFoundError, NotADirectoryError):
            self.missing = True
            return
        try:
            yield from self._read(fd)
        finally:
            os.close(fd)

    def _read(self, fd: int) -> Iterator[bytes]:
        status = os.fstat(fd)
        size = status.st_size
        offset = self._trusted_offset(fd, status.st_dev, status.st_ino, size)
        mid = bool(self.cursor.get("mid")) if offset is not None else False
        if offset is not None and size - offset > CATCH_UP_BYTES:
            self.reset, offset = "behind", None
        if offset is None:
            offset, mid = self._first_place(fd, size)
            self.unread_bytes = offset
        self.from_start = offset == 0
        self._keep(fd, status.st_dev, status.st_ino, offset, mid)
        if offset >= size:
            return
        at, pending, start = offset, b"", offset
        os.lseek(fd, at, os.SEEK_SET)
        while at < size:
            block = os.read(fd, min(CHUNK_BYTES, size - at))
            if not block:
                break
            at += len(block)
            if start == 0 and not pending and block[:3] == _BOM:
                block = block[3:]
                start = 3
            parts = (pending + block).split(b"\n")
            pending = parts.pop()
            for line in parts:
                start += len(line) + 1
                if mid or len(line) > LINE_BYTES:
                    self.skipped += 0 if mid else 1
                    mid = False
                    continue
                yield line[:-1] if line[-1:] == b"\r" else line
            if len(pending) > LINE_BYTES or (mid and pending):
                # Too long to hold: count it once, forget it, and skip to its end when that comes.
                self.skipped += 0 if mid else 1
                start += len(pending)
                pending, mid = b"", True
        if self.final and pending and not mid:
            start += len(pending)
            yield pending
        self._keep(fd, status.st_dev, status.st_ino, start, mid)

    def _trusted_offset(self, fd: int, device: int, inode: int, size: int) -> int | None:
        cursor = self.cursor
        offset = cursor.get("offset")
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            self.reset = "first"
            return None
        if cursor.get("dev") != device or cursor.get("ino") != inode:
            self.reset = "replaced"
            return None
        if size < offset:
            self.reset = "truncated"
            return None
        if _guard(fd, offset) != cursor.get("guard"):
            self.reset = "rewritten"
            return None
        return offset

    def _first_place(self, fd: int, size: int) -> tuple[int, bool]:
        """Return where a first reading begins, and whether that is inside a line to be skipped."""
        if size <= (CATCH_UP_BYTES if self.whole else FIRST_BYTES):
            return 0, False
        window = FIRST_BYTES
        while True:
            begin = max(0, size - window)
            os.lseek(fd, begin, os.SEEK_SET)
            block = _read_exactly(fd, size - begin)
            first = block.find(b"\n")
            # A complete line needs a newline before it and one at its end.
            if begin == 0:
                return 0, False
            if first >= 0 and block.find(b"\n", first + 1) >= 0:
                return begin + first + 1, False
            if window >= LINE_BYTES:
                self.skipped += 1
                return (begin + first + 1, False) if first >= 0 else (size, True)
            window *= 2

    def _keep(self, fd: int, device: int, inode: int, offset: int, mid: bool) -> None:
        self.cursor = {"dev": device, "ino": inode, "offset": offset, "guard": _guard(fd, offset), "mid": mid}


def _read_exactly(fd: int, count: int) -> bytes:
    parts = []
    while count > 0:
        part = os.read(fd, min(count, CHUNK_BYTES))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _guard(fd: int, offset: int) -> str:
    begin = max(0, offset - _GUARD_BYTES)
    os.lseek(fd, begin, os.SEEK_SET)
    return _read_exactly(fd, offset - begin).hex()


def read_head(path: str, limit: int = 262144) -> bytes:
    """Return a file's first bytes, at most `limit`; b'' where there is no file yet. Raises OSError."""
    try:
        fd = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        return _read_exactly(fd, limit)
    finally:
        os.close(fd)


def read_end(path: str, limit: int) -> bytes:
    """Return a file's last bytes, at most `limit`; b'' where there is no file. Raises OSError."""
    try:
        fd = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        os.lseek(fd, max(0, size - limit), os.SEEK_SET)
        return _read_exactly(fd, min(size, limit))
    finally:
        os.close(fd)

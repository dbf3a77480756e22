"""The text of an artifact as a stream: written, measured, verified and cut to lines, piece by piece.

No function here holds a whole text unless a single line is that long.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from context_anchor.engine.memory import files
from context_anchor.engine.text import unit_length, utf8_bytes

_PIECE_CHARS = 1 << 20


@dataclass(frozen=True, slots=True)
class TextMeasure:
    """What is known of a text once it has passed by: UTF-16 code units, UTF-8 bytes, bare hex SHA-256."""

    chars: int
    bytes: int
    sha256: str


def pieces(content: str | Iterable[str]) -> Iterator[str]:
    """Yield a text in pieces of about a million characters, no surrogate pair divided between two."""
    source = (content,) if isinstance(content, str) else content
    held = ""
    for whole in source:
        for start in range(0, len(whole), _PIECE_CHARS):
            piece = held + whole[start : start + _PIECE_CHARS]
            held = piece[-1] if "\ud800" <= piece[-1:] <= "\udbff" else ""
            yield piece[: len(piece) - len(held)]
    if held:
        yield held


def write_text(staged: files.Staged, content: str | Iterable[str]) -> TextMeasure:
    """Write a text to a staged file and return its measure; raises OSError."""
    chars = size = 0
    digest = hashlib.sha256()
    for piece in pieces(content):
        data = utf8_bytes(piece)
        staged.write(data)
        digest.update(data)
        chars += unit_length(piece)
        size += len(data)
    return TextMeasure(chars, size, digest.hexdigest())


def read_pieces(path: Path) -> Iterator[str]:
    """Yield a file's text, bytes that are no UTF-8 replaced; raises OSError."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for data in files.read_chunks(path):
        yield decoder.decode(data)
    yield decoder.decode(b"", True)


def text_digest(path: Path) -> str:
    """Return the bare SHA-256 of a file's text; where its bytes are no UTF-8 it is not the bytes' own.

    Raises OSError.
    """
    digest = hashlib.sha256()
    for piece in read_pieces(path):
        digest.update(piece.encode("utf-8"))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class LineRange:
    """Some lines of a text without their ends, how many lines it has, and the whole text's SHA-256."""

    lines: tuple[str, ...]
    total_lines: int
    sha256: str


def read_lines(path: Path, start: int, end: int) -> LineRange:
    """Return the lines from `start` to `end`, both counted from 1 and included, in one pass of the file.

    Lines end with LF or CR LF. Raises OSError.
    """
    digest = hashlib.sha256()
    found: list[str] = []
    open_line: list[str] = []  # pieces of the wanted line that has not ended yet
    line = 1
    for piece in read_pieces(path):
        digest.update(piece.encode("utf-8"))
        ends = piece.count("\n")
        if line > end or line + ends < start:
            line += ends
            continue
        position = 0
        for _ in range(ends):
            stop = piece.index("\n", position)
            if start <= line <= end:
                open_line.append(piece[position:stop])
                found.append("".join(open_line).removesuffix("\r"))
                open_line = []
            position = stop + 1
            line += 1
            if line > end:
                line += piece.count("\n", position)
                break
        if start <= line <= end:
            open_line.append(piece[position:])
    if start <= line <= end:
        found.append("".join(open_line))
    return LineRange(tuple(found), line, digest.hexdigest())

"""Strings as the protocol counts them: in UTF-16 code units, with the white space of ECMAScript.

Budgets, digests and ids were first defined over such strings. A Python string may hold a surrogate pair as
two characters; every function here takes that for the one character it means.
"""

from __future__ import annotations

import math
import re

# Source: ECMA-262, WhiteSpace and LineTerminator.
WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that ECMAScript trims, line ends included."""
_SPACES = re.compile(f"[{WHITE_SPACE}]+")
_LINE_END = re.compile("\r?\n")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ASTRAL_OR_SURROGATE = re.compile("[\U00010000-\U0010ffff\ud800-\udfff]")

MIDDLE_OMITTED = "\n...[middle omitted]...\n"
"""What stands in place of an omitted middle; digests depend on its bytes."""


def unit_length(text: str) -> int:
    """Return a text's length in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def unit_slice(text: str, start: int, end: int | None = None) -> str:
    """Return the code units from `start` (inclusive) to `end` (exclusive); both at least 0.

    A pair that is cut leaves a lone surrogate.
    """
    if start < 0 or (end is not None and end < 0):
        raise ValueError("positions count from the beginning of the text")
    if _ASTRAL_OR_SURROGATE.search(text) is None:
        return text[start:end]
    units = text.encode("utf-16-le", "surrogatepass")
    part = units[start * 2 : None if end is None else end * 2]
    return part.decode("utf-16-le", "surrogatepass")


def unit_key(text: str) -> bytes:
    """Return the key that sorts texts by code units: an astral character stands before U+E000 to U+FFFF."""
    return text.encode("utf-16-be", "surrogatepass")


def compare_units(left: str, right: str) -> int:
    """Return -1, 0 or 1 as `left` stands before, at or after `right` in the order of code units."""
    one, other = unit_key(left), unit_key(right)
    return (one > other) - (one < other)


def has_surrogates(text: str) -> bool:
    """Return whether a text holds surrogate characters, lone or paired."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def paired(text: str) -> str:
    """Return the text with surrogates that form a pair joined to one character; lone ones stay."""
    if not has_surrogates(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def utf8_bytes(text: str) -> bytes:
    """Return a text's UTF-8 bytes; every lone surrogate becomes U+FFFD."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def utf8_length(text: str) -> int:
    """Return how many bytes a text has in UTF-8."""
    return len(text) if text.isascii() else len(utf8_bytes(text))


def trim(text: str) -> str:
    """Return a text without ECMAScript white space at its ends (`str.strip()` takes another set)."""
    return text.strip(WHITE_SPACE)


def collapse_spaces(text: str) -> str:
    """Return a text with each run of white space as one space, and none at its ends."""
    return trim(_SPACES.sub(" ", text))


def split_lines(text: str) -> list[str]:
    """Return the lines between LF or CR LF; an empty text has one, a final newline adds an empty one."""
    return _LINE_END.split(text)


def truncate_middle(text: str | None, maximum: int, marker: str = MIDDLE_OMITTED) -> str:
    """Return at most `maximum` code units of a text: 60 % of what is left from its head, the rest from its tail.

    None counts as empty. Where the marker alone fills the room, its beginning is returned.
    """
    if text is None or maximum <= 0:
        return ""
    length = unit_length(text)
    if length <= maximum:
        return text
    room = maximum - unit_length(marker)
    if room <= 0:
        return unit_slice(marker, 0, maximum)
    head = math.ceil(room * 0.6)
    tail = room - head
    # A tail of nothing is nothing; the first implementation added the whole text there.
    ending = unit_slice(text, length - tail) if tail else ""
    return paired(unit_slice(text, 0, head) + marker + ending)

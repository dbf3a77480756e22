"""Cleaning of text that people and agents pin, and an estimate of its tokens."""

from __future__ import annotations

import re
import unicodedata

from context_anchor.errors import InvalidAnchorError

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_SPACES = re.compile(r"\s+")


def clean_block(text: str, field: str) -> str:
    """Return text fit to be pinned: lines end in LF, no control characters but LF and TAB.

    Terminal colour sequences, NUL and other control characters are taken out, a lone surrogate (which
    no UTF-8 file can hold) becomes U+FFFD, line and paragraph separators become LF, blank lines at both
    ends go. Raises InvalidAnchorError for bidirectional overrides and isolates (U+202A-202E,
    U+2066-2069), which make text read differently from what it says.
    """
    found = _BIDI.search(text)
    if found:
        point = ord(found.group())
        raise InvalidAnchorError(
            f"{field} holds U+{point:04X} ({unicodedata.name(chr(point), 'bidirectional control')}) at "
            f"character {found.start()}, which makes text read differently from what it says",
            hint="Remove the invisible direction characters and pin again.",
        )
    text = _BREAKS.sub("\n", _ANSI.sub("", text))
    text = _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))
    return text.strip("\n").rstrip()


def clean_line(text: str, field: str) -> str:
    """Return text as one line with single spaces; cleaned and refused as by `clean_block`."""
    return _SPACES.sub(" ", clean_block(text, field)).strip()


def matching_title(title: str) -> str:
    """Return the form under which titles count as the same: NFKC, case folded, single spaces."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", title).casefold())
    return _SPACES.sub(" ", folded).strip()


def shorten(value: object, limit: int = 60) -> str:
    """Return a value's `repr` for an error message, in printable ASCII, at most `limit` characters."""
    if isinstance(value, (str, bytes)):
        value = value[: limit + 1]
    elif isinstance(value, (list, tuple, dict, set)):
        return f"{type(value).__name__} of {len(value)}"
    shown = ascii(value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: a quarter per ASCII character, a third per other UTF-8 byte.

    So one token for four Latin letters, one for a Chinese character, four thirds for an emoji. An
    estimate, meant to be near for prose and code with current model families; never a billing figure.
    """
    encoded = len(text.encode("utf-8", "surrogatepass"))
    if not encoded:
        return 0
    ascii_count = encoded if encoded == len(text) else sum(1 for c in text if c < "\x80")
    return max(1, -(-(3 * ascii_count + 4 * (encoded - ascii_count)) // 12))

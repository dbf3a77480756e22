"""Replies that stay under the hosts' result limit, and cursors that continue them.

Antigravity hides a result whose text exceeds 4,096 bytes in a file and shows the model only its path. Hosts also
differ in what they show: Antigravity the text alone, Claude Code the structured form alone (of an error the
text). So both forms say the same, and the limit holds for the two together as they stand on the wire.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from context_anchor.errors import ContextAnchorError, UsageError

RESULT_LIMIT: Final = 3_900
"""UTF-8 bytes of a whole result on the wire: text, structured form and the protocol's own fields."""

PAGE_LIMIT: Final = 3_700
"""UTF-8 bytes that text and structured form may take, so that the protocol's fields still fit."""

_ERROR_TEXT_BYTES: Final = 2_000
_ERROR_FIELD_BYTES: Final = 500


@dataclass(frozen=True, slots=True)
class Reply:
    """What one tool call answers: a short text, and the same as an object."""

    text: str
    structured: Mapping[str, Any]
    is_error: bool = False

    @property
    def size(self) -> int:
        """UTF-8 bytes of the text as a JSON string plus those of the structured form."""
        return json_bytes(self.text) + json_bytes(self.structured)


def json_bytes(value: object) -> int:
    """Return the UTF-8 bytes of a value as compact JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))


def inner_bytes(text: str) -> int:
    """Return the bytes that a text takes inside a JSON string, without the quotes."""
    return json_bytes(text) - 2


def fitting(text: str, start: int, room: int) -> int:
    """Return the end of the longest `text[start:end]` that takes at most `room` bytes inside a JSON string."""
    end = start
    low, high = start, min(len(text), start + max(room, 0))
    while low <= high:
        middle = (low + high) // 2
        if inner_bytes(text[start:middle]) <= room:
            end, low = middle, middle + 1
        else:
            high = middle - 1
    return end


def clip(text: str, room: int) -> str:
    """Return a text cut to `room` bytes inside a JSON string, with an ellipsis where something was cut."""
    return text if inner_bytes(text) <= room else text[: fitting(text, 0, room - 3)] + "…"


def clip_path(path: str, room: int) -> str:
    """Return a path cut from the front, since its end tells more."""
    return path if inner_bytes(path) <= room else "…" + clip_end(path, room - 3)


def clip_end(text: str, room: int) -> str:
    """Return the longest end of a text that takes at most `room` bytes inside a JSON string."""
    backwards = text[::-1]
    return text[len(text) - fitting(backwards, 0, room) :]


def error_reply(error: ContextAnchorError) -> Reply:
    """Return an error as a result the model sees: the code in brackets, what was wrong, what to do."""
    message = clip(_printable(error.message), _ERROR_FIELD_BYTES)
    hint = clip(_printable(error.hint), _ERROR_FIELD_BYTES)
    text = clip(_printable(f"[{error.code}] {error}"), _ERROR_TEXT_BYTES)
    fields = {"code": error.code, "message": message, "hint": hint}
    return Reply(text, {"error": {key: value for key, value in fields.items() if value}}, is_error=True)


def _printable(text: str) -> str:
    """Return a text that can be sent: lone surrogates and control characters are written as escapes."""
    kept = (c if c in "\n\t" or (c.isprintable() and c.isascii()) else _escaped(c) for c in text)
    return "".join(kept)


def _escaped(char: str) -> str:
    if ord(char) >= 0xA0 and not 0xD800 <= ord(char) <= 0xDFFF and not 0x202A <= ord(char) <= 0x202E:
        return char
    return ascii(char)[1:-1]


def encode_cursor(kind: str, *position: str | int) -> str:
    """Return an opaque cursor for a position in a listing."""
    plain = json.dumps([kind, *position], separators=(",", ":")).encode("ascii")
    return base64.urlsafe_b64encode(plain).decode("ascii").rstrip("=")


def decode_cursor(cursor: str, kind: str, shape: tuple[type, ...]) -> tuple[Any, ...]:
    """Return the position in a cursor made by `encode_cursor`.

    Raises:
        UsageError: it is not a cursor of this tool.
    """
    try:
        plain = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        value = json.loads(plain)
    except (ValueError, binascii.Error, RecursionError):
        value = None
    if (
        isinstance(value, list)
        and len(value) == len(shape) + 1
        and value[0] == kind
        and all(type(have) is want for have, want in zip(value[1:], shape, strict=True))
    ):
        return tuple(value[1:])
    raise UsageError(
        "The cursor is not one that this tool returned",
        hint="Leave cursor out to begin again; use a cursor only with the tool that returned it.",
    )

"""Bounded reading of a payload from stdin, and writing the one document."""

from __future__ import annotations

import os
import select
import time

from context_anchor.wire import quickjson
from context_anchor.wire.atomic import write_all

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

KEEP_BYTES = 1048576  # a larger payload (tool outputs) is drained, and its leading fields are used
WAIT_S = 1.0
_BLOCK = 65536


def read_payload(fd: int) -> tuple[dict[str, Any], str]:
    """Return `(payload, complaint)`: a JSON object and "", or {} and what was wrong with the input.

    Waits at most one second, and not for the end of input once a whole object is there: a host that keeps
    the pipe open must not hold up a turn. An empty input is no complaint.
    """
    kept: list[bytes] = []
    size = 0
    deadline = time.monotonic() + WAIT_S
    ended = False
    while not ended:
        looks_whole = _looks_whole(kept)
        block = _next(fd, 0.02 if looks_whole else deadline - time.monotonic())
        if block is None:
            if looks_whole and time.monotonic() < deadline and not _is_whole(kept, size):
                # A brace inside, and a writer that rests.
                block = _next(fd, deadline - time.monotonic())
            if block is None:
                break
        if not block:
            ended = True
        elif size < KEEP_BYTES:
            kept.append(block[: KEEP_BYTES - size])
        size += len(block)
        if time.monotonic() > deadline + 4:
            break
    raw = b"".join(kept)
    if not raw.strip():
        return {}, "" if ended else "no payload within %.0f s" % WAIT_S
    if raw[:3] == b"\xef\xbb\xbf":
        raw = raw[3:]
    if size > KEEP_BYTES:
        found = _proper(leading_fields(quickjson.frugal_text(raw)), size)
        return found, "" if found else "payload of %d bytes is not a JSON object" % size
    try:
        value = quickjson.loads(quickjson.frugal_text(raw))
    except ValueError as problem:
        return {}, "payload is not JSON: %s" % problem
    if not isinstance(value, dict):
        return {}, "payload is not a JSON object"
    return _proper(value, size), ""


def _proper(fields: dict[str, Any], size: int) -> dict[str, Any]:
    if size <= quickjson.LONG_BYTES:
        return fields
    return {quickjson.proper(name): quickjson.proper(value) for name, value in fields.items()}


def _looks_whole(kept: list[bytes]) -> bool:
    return bool(kept) and kept[-1].rstrip()[-1:] == b"}"


def _is_whole(kept: list[bytes], size: int) -> bool:
    if size > KEEP_BYTES:
        return True  # only its leading fields are used
    try:
        quickjson.loads(b"".join(kept))
    except ValueError:
        return False
    return True


def _next(fd: int, wait_s: float) -> bytes | None:
    """Return the next block, b'' at the end, None when nothing came in time."""
    try:
        if os.name != "nt" and not select.select([fd], [], [], max(wait_s, 0))[0]:
            return None
        return os.read(fd, _BLOCK)
    except (OSError, ValueError):
        return b""  # stdin is closed


def leading_fields(text: str) -> dict[str, Any]:
    """Return the fields of a JSON object that are whole in its first part."""
    at = text.find("{") + 1
    found: dict[str, Any] = {}
    if not at or text[: at - 1].strip():
        return found
    while True:
        try:
            name, at = quickjson.decode_prefix(text, at)
            while text[at : at + 1].isspace():
                at += 1
            if not isinstance(name, str) or text[at : at + 1] != ":":
                return found
            value, at = quickjson.decode_prefix(text, at + 1)
        except ValueError:
            return found
        found[name] = value
        while text[at : at + 1].isspace():
            at += 1
        if text[at : at + 1] != ",":
            return found
        at += 1


def write_document(fd: int, text: str) -> None:
    """Write ASCII text; characters that are not ASCII become escapes, a closed pipe is nobody's loss."""
    try:
        write_all(fd, text.encode("ascii", "backslashreplace"))
    except OSError:
        return

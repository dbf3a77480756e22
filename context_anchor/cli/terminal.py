"""The standard streams: UTF-8 whatever the locale, and no control character on a terminal."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from context_anchor.errors import UsageError

MAX_INPUT_BYTES = 64 << 20

# C0 without TAB and LF, DEL, C1; direction overrides and isolates; invisible separators and the BOM.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def harmless(text: str) -> str:
    """Return text that a terminal only shows: no escape sequence, no control character but LF and TAB."""
    return _SURROGATE.sub(_REPLACEMENT, _UNSAFE.sub(_REPLACEMENT, text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """Return text as one harmless line without tabs."""
    return " ".join(harmless(text).split())


def words_of_process() -> list[str]:
    """Return this process's arguments; bytes that a C locale could not decode are read as UTF-8."""
    return [word if word.isascii() else _redecoded(word) for word in sys.argv[1:]]


def _redecoded(word: str) -> str:
    if not _SURROGATE.search(word):
        return word
    try:
        return os.fsencode(word).decode("utf-8")
    except UnicodeError:
        return word  # no UTF-8 either: what is pinned is cleaned, a path may be just that


def path_of(text: str) -> Path:
    """Return the path that an argument names, also where the locale has no name for its characters."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        text = os.fsdecode(text.encode("utf-8", "surrogateescape"))
    return Path(text)


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; a closed or missing one is none."""
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):
        return False


def width() -> int:
    """Return the terminal's width in columns, between 40 and 400."""
    return min(400, max(40, shutil.get_terminal_size().columns))


class OutputFailedError(OSError):
    """The output could not be written, as on a full disk."""


def write(text: str, stream: TextIO | None = None) -> None:
    """Write text as UTF-8 to a stream (standard output). Raises BrokenPipeError when its reader is gone."""
    stream = sys.stdout if stream is None else stream
    if stream is None:
        return  # started without streams, as by a desktop
    raw = getattr(stream, "buffer", None)
    try:
        if raw is None:
            stream.write(text.encode("utf-8", "replace").decode("utf-8"))
        else:
            stream.flush()
            raw.write(text.encode("utf-8", "replace"))
        stream.flush()
    except OSError as problem:
        # Windows says EINVAL where a pipe's reader is gone.
        if os.name == "nt" and problem.errno == errno.EINVAL:
            raise BrokenPipeError(errno.EPIPE, "the reader of the output is gone") from problem
        if isinstance(problem, BrokenPipeError):
            raise
        raise OutputFailedError(problem.errno, problem.strerror) from problem


def write_lines(text: str, stream: TextIO | None = None) -> None:
    """Write harmless text that ends with one line break; nothing where there is none."""
    if text:
        write(harmless(text).rstrip("\n") + "\n", stream)


def write_json(document: Mapping[str, Any]) -> None:
    """Write one JSON document in ASCII and a line break."""
    write(json.dumps(_writable(document), indent=2, allow_nan=False) + "\n")


def _writable(value: Any) -> Any:
    """Return a value without lone surrogates, which many JSON readers refuse."""
    if isinstance(value, str):
        return _SURROGATE.sub(_REPLACEMENT, value)
    if isinstance(value, Mapping):
        return {_SURROGATE.sub(_REPLACEMENT, str(key)): _writable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value


def say(text: str) -> None:
    """Write a line for the person to standard error, which pipes and `--json` leave alone."""
    write_lines(text, sys.stderr)


def give_up_output() -> None:
    """Point standard output nowhere, so that the interpreter's last flush has no one to fail at."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        sys.stdout = None  # no stream of the system's behind it: nothing is flushed then


def read_text(source: str, what: str) -> str:
    """Return the text of a file, or of standard input for `-`.

    UTF-8 with or without BOM, and UTF-16 with one (PowerShell's pipes and files). Raises UsageError.
    """
    name = "standard input" if source == "-" else one_line(source)
    try:
        if source != "-":
            with path_of(source).open("rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
        elif sys.stdin is None:
            data = b""
        else:
            raw = getattr(sys.stdin, "buffer", None)
            data = raw.read(MAX_INPUT_BYTES + 1) if raw else sys.stdin.read().encode("utf-8", "surrogateescape")
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise UsageError(f"{what} can't be read from {name}: {reason}", hint="Check the path.") from None
    if len(data) > MAX_INPUT_BYTES:
        raise UsageError(f"{what} from {name} is larger than {MAX_INPUT_BYTES >> 20} MiB")
    return decode(data, f"{what} from {name}")


def decode(data: bytes, what: str) -> str:
    """Return bytes as text: UTF-8, or UTF-16 where they begin with its mark. Raises UsageError."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as problem:
        raise UsageError(
            f"{what} is not UTF-8 (byte {problem.start} is 0x{data[problem.start]:02x})",
            hint="Save or send it as UTF-8. In PowerShell: $OutputEncoding = [Text.Encoding]::UTF8",
        ) from None

"""JSON without the cost of importing `json` (11 ms), which it falls back to."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

try:
    from _json import encode_basestring_ascii as _quote
    from _json import make_scanner as _make_scanner
except ImportError:  # another Python implementation
    _make_scanner = None  # type: ignore[assignment,misc]
    _quote = None  # type: ignore[assignment]

LONG_BYTES = 65536
_SPACE = " \t\n\r"
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Context:
    """What CPython's scanner reads its options from (json.decoder.JSONDecoder has the same attributes)."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__
    parse_object = None
    parse_array = None
    parse_string = None
    memo: dict[str, str] = {}  # noqa: RUF012


def _scanner() -> Any:
    if _make_scanner is None:
        return None
    probe = '{"a": [1, 2.5, "\\u00e9", null, true]}'
    try:
        scan = _make_scanner(_Context)  # type: ignore[arg-type]
        if scan(probe, 0) == ({"a": [1, 2.5, "\xe9", None, True]}, len(probe)):
            return scan
    except Exception:  # a newer interpreter wants more of its context
        return None
    return None


_scan = _scanner()


def _text(source: str | bytes) -> str:
    if isinstance(source, str):
        return source
    return bytes(source).decode("utf-8", "replace")


def frugal_text(raw: bytes) -> str:
    """Return UTF-8 bytes as text, above 64 KB with one character a byte.

    A single wide character makes a whole text four times as large, and a hook's memory is bounded. JSON's
    own signs are ASCII and mean the same either way; `proper` gives a string its characters back.
    """
    return raw.decode("latin-1") if len(raw) > LONG_BYTES else raw.decode("utf-8", "replace")


def proper(value: Any) -> Any:
    """Return a string, or a list's strings, of a `frugal_text` with the characters that its bytes stand for.

    Strings above 8,192 bytes are no names or paths and stay as they are.
    """
    if isinstance(value, list):
        return [proper(item) for item in value]
    if not isinstance(value, str) or value.isascii() or len(value) > 8192:
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value  # it was written with escapes


def decode_prefix(source: str | bytes, at: int = 0) -> tuple[Any, int]:
    """Return `(value, end)` of the JSON value that starts at or after `at`; raises ValueError.

    Control characters inside strings are let through, as transcripts of other programs hold them.
    """
    text = _text(source)
    size = len(text)
    while at < size and text[at] in _SPACE:
        at += 1
    scan = _scan
    if scan is None:
        from json import JSONDecoder

        decoder: Any = JSONDecoder(strict=False)
        scan = decoder.scan_once
    try:
        found: tuple[Any, int] = scan(text, at)
        return found
    except StopIteration:
        raise ValueError("no JSON value at character %d" % at) from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except SystemError:
        # The C scanner looks for json.decoder's error class and finds that module not imported.
        raise ValueError("not JSON at or after character %d" % at) from None


def loads(source: str | bytes) -> Any:
    """Return the one JSON value in a text or UTF-8 bytes; raises ValueError on anything else."""
    text = _text(source)
    if text[:1] == "\ufeff":
        text = text[1:]
    value, end = decode_prefix(text)
    if text[end:].strip(_SPACE):
        raise ValueError("text after the JSON value at character %d" % end)
    return value


def _slow_quote() -> Any:
    from json.encoder import py_encode_basestring_ascii

    return py_encode_basestring_ascii


def dumps(value: Any) -> str:
    """Return compact ASCII JSON for dicts with string keys, lists, strings, numbers, booleans and None.

    Raises ValueError for anything else, numbers that JSON has not and nesting above 60 among it.
    """
    out: list[str] = []
    _write(value, out.append, _slow_quote() if _quote is None else _quote, 0)
    return "".join(out)


def _write(value: Any, put: Any, quote: Any, depth: int) -> None:
    if depth > 60:
        raise ValueError("value nested too deeply")
    if isinstance(value, str):
        put(quote(value))
    elif value is None:
        put("null")
    elif value is True:
        put("true")
    elif value is False:
        put("false")
    elif isinstance(value, int):
        put(int.__repr__(value))
    elif isinstance(value, float):
        if value != value or value in (_CONSTANTS["Infinity"], _CONSTANTS["-Infinity"]):
            raise ValueError("not a JSON number: %r" % value)
        put(float.__repr__(value))
    elif isinstance(value, dict):
        sep = "{"
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError("keys must be strings")
            put(sep + quote(key) + ":")
            _write(item, put, quote, depth + 1)
            sep = ","
        put("{}" if sep == "{" else "}")
    elif isinstance(value, (list, tuple)):
        sep = "["
        for item in value:
            put(sep)
            _write(item, put, quote, depth + 1)
            sep = ","
        put("[]" if sep == "[" else "]")
    else:
        raise ValueError("not JSON: %s" % type(value).__name__)


def is_fast() -> bool:
    """Tell whether the C scanner is in use (`doctor` reports it)."""
    return _scan is not None and "json" not in sys.modules

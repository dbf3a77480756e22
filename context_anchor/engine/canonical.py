"""JSON texts byte for byte as the protocol's digests need them, and the digests.

Numbers are laid out as ECMAScript does, strings are counted in UTF-16 code units, keys that are array
indexes come first. Source: ECMA-262, Number::toString and OrdinaryOwnPropertyKeys.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from context_anchor.engine.text import has_surrogates, paired, unit_key, utf8_bytes
from context_anchor.errors import NotJsonError

MAX_SAFE_INTEGER = 9007199254740991
"""The largest whole number that a double holds exactly with both neighbours."""

_MAX_INDEX = 4294967294
_INDEX = re.compile("0|[1-9][0-9]{0,9}")
_LONE = re.compile("[\ud800-\udfff]")
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_quote: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode


def is_safe_integer(value: object) -> bool:
    """Return whether a value is a whole number of at most 2^53 - 1; `5.0` is, a boolean is not."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER
    return isinstance(value, float) and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER


def number_text(value: int | float) -> str:
    """Return a number as JSON: shortest digits that give it back; NaN and infinities are `null`."""
    if isinstance(value, int):
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            return "null"
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or "0")
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    return ("-" if value < 0 else "") + _laid_out(digits, point)


def _laid_out(digits: str, point: int) -> str:
    """Return `0.digits x 10^point` in the layout of ECMAScript."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    mantissa = digits[0] + (f".{digits[1:]}" if count > 1 else "")
    exponent = point - 1
    return f"{mantissa}e{'+' if exponent >= 0 else '-'}{abs(exponent)}"


def string_text(value: str) -> str:
    """Return a string as JSON: non-ASCII raw, a lone surrogate as a lower-case escape."""
    if not has_surrogates(value):
        return _quote(value)
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", _quote(paired(value)))


def _is_index(key: str) -> bool:
    return _INDEX.fullmatch(key) is not None and int(key) <= _MAX_INDEX


def ordered_keys(keys: Iterable[str], *, by_unit: bool = False) -> list[str]:
    """Return keys as a JSON text has them: array indexes ascending, then the rest as given or by code units."""
    indexes: list[str] = []
    others: list[str] = []
    for key in keys:
        (indexes if _is_index(key) else others).append(key)
    indexes.sort(key=int)
    if by_unit:
        others.sort(key=unit_key)
    return indexes + others


def _keys(value: dict[str, Any], by_unit: bool) -> list[str]:
    for key in value:
        if type(key) is not str:
            raise NotJsonError(f"an object's key is of type {type(key).__name__}, not text: {key!r}")
    return ordered_keys(value, by_unit=by_unit)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if type(value) is int or type(value) is float:
        return number_text(value)
    raise NotJsonError(f"a value of type {type(value).__name__} is not JSON data")


def _write(value: object, out: list[str], by_unit: bool) -> None:
    if type(value) is str:
        out.append(string_text(value))
    elif isinstance(value, dict):
        mark = "{"
        for key in _keys(value, by_unit):
            out += (mark, string_text(key), ":")
            _write(value[key], out, by_unit)
            mark = ","
        out.append("{}" if mark == "{" else "}")
    elif isinstance(value, list):
        mark = "["
        for element in value:
            out.append(mark)
            _write(element, out, by_unit)
            mark = ","
        out.append("[]" if mark == "[" else "]")
    else:
        out.append(_scalar(value))


def _write_pretty(value: object, out: list[str], margin: str) -> None:
    if type(value) is str:
        out.append(string_text(value))
    elif isinstance(value, dict):
        mark, inner = "{", margin + "  "
        for key in _keys(value, False):
            out += (mark, inner, string_text(key), ": ")
            _write_pretty(value[key], out, inner)
            mark = ","
        out.append("{}" if mark == "{" else margin + "}")
    elif isinstance(value, list):
        mark, inner = "[", margin + "  "
        for element in value:
            out += (mark, inner)
            _write_pretty(element, out, inner)
            mark = ","
        out.append("[]" if mark == "[" else margin + "]")
    else:
        out.append(_scalar(value))


def cjson(value: object) -> str:
    """Return compact JSON, keys in their order; raises NotJsonError."""
    out: list[str] = []
    try:
        _write(value, out, False)
    except RecursionError:
        raise _too_deep() from None
    return "".join(out)


def canonical_json(value: object) -> str:
    """Return compact JSON with the keys of every object sorted by code units; raises NotJsonError."""
    out: list[str] = []
    try:
        _write(value, out, True)
    except RecursionError:
        raise _too_deep() from None
    return "".join(out)


def pjson(value: object) -> str:
    """Return JSON indented by two, one entry a line, without a final newline; raises NotJsonError."""
    out: list[str] = []
    try:
        _write_pretty(value, out, "\n")
    except RecursionError:
        raise _too_deep() from None
    return "".join(out)


def canonical(value: Any) -> Any:
    """Return a copy with the keys of every object sorted by code units; raises NotJsonError."""
    try:
        return _sorted(value)
    except RecursionError:
        raise _too_deep() from None


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in _keys(value, True)}
    if isinstance(value, list):
        return [_sorted(element) for element in value]
    if type(value) is not str:
        _scalar(value)
    return value


def string_form(value: object) -> str:
    """Return a value as text: none as empty, a string as it is, anything else as compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else cjson(value)


def _too_deep() -> NotJsonError:
    return NotJsonError("a value holds itself or is nested too deeply for JSON")


def digest(text: str) -> str:
    """Return `sha256:` and the hex SHA-256 of a text's UTF-8 bytes; raises TypeError for anything but text."""
    if not isinstance(text, str):
        raise TypeError(f"a digest is taken of text, not of {type(text).__name__}")
    return "sha256:" + hashlib.sha256(utf8_bytes(text)).hexdigest()


def bare_digest(text: str) -> str:
    """Return the hex digits of a digest that stands with or without its prefix (one is removed)."""
    return text.removeprefix("sha256:")


def is_digest(value: object) -> bool:
    """Return whether a value is a digest with its prefix."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None

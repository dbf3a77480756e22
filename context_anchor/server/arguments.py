"""Checks of tool arguments against the input schemas that are listed.

Hosts differ in what they check, and the protocol library checks nothing at this level, so each call is checked
here in full before anything is touched. Messages name the place (`anchors[3].title`), the value in short, and
what would be taken; they never echo text that could not be sent back (control characters, lone surrogates).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from context_anchor.errors import ContextAnchorError, InvalidAnchorError, UsageError

# Lengths of these are checked where an anchor is made, with advice that fits the field.
_ANCHOR_TEXT: Final = frozenset({"title", "content", "refs", "tags", "priority", "category"})
MAX_NAME_CHARS: Final = 1_000
_SHOWN_CHARS: Final = 60


def check(schema: Mapping[str, Any], arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments that were really given, each of the type its schema states.

    A null, and an empty string for an optional id, title, scope or cursor, count as not given: models fill
    optional fields that way. A whole float is taken as an integer.

    Raises:
        UsageError: unknown, missing or wrongly typed argument, or one out of its bounds.
        InvalidAnchorError: the same for a field of an anchor.
    """
    return _object(schema, arguments if arguments is not None else {}, "")


def _object(schema: Mapping[str, Any], value: Mapping[str, Any], at: str) -> dict[str, Any]:
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    required: Sequence[str] = schema.get("required", ())
    found: dict[str, Any] = {}
    for name, given in value.items():
        if name not in properties:
            raise UsageError(_unknown(name, properties, at), hint=f"It takes: {', '.join(properties)}.")
        if name not in required and (given is None or given == ""):
            continue
        found[name] = _value(properties[name], given, f"{at}.{name}" if at else name)
    missing = [name for name in required if name not in found]
    if missing:
        raise UsageError(
            f"{at or 'The call'} lacks {' and '.join(missing)}", hint=f"It takes: {', '.join(properties)}."
        )
    return found


def _unknown(name: str, properties: Mapping[str, Any], at: str) -> str:
    place = f" in {at}" if at else ""
    near = difflib.get_close_matches(name[:_SHOWN_CHARS], list(properties), n=1)
    return f"Unknown argument {shown(name)}{place}" + (f", did you mean {near[0]}?" if near else "")


def _value(schema: Mapping[str, Any], value: Any, at: str) -> Any:
    match schema["type"]:
        case "string":
            return _string(schema, value, at)
        case "boolean":
            if not isinstance(value, bool):
                raise _wrong(at, value, "true or false")
            return value
        case "integer":
            return _integer(schema, value, at)
        case "array":
            return _array(schema, value, at)
        case "object":
            if not isinstance(value, Mapping):
                raise _wrong(at, value, "an object")
            return _object(schema, value, at)
        case kind:
            raise AssertionError(f"the listing uses a type that is not checked: {kind}")


def _string(schema: Mapping[str, Any], value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise _wrong(at, value, "a string")
    choices: Sequence[str] | None = schema.get("enum")
    if choices is not None:
        if value not in choices:
            raise _error(at, f"{at} is {shown(value)}", f"It is one of: {', '.join(choices)}.")
        return value
    if "\0" in value:
        raise _error(at, f"{at} holds a NUL character at {value.index(chr(0))}", "Send plain text.")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise _error(
                at, f"{at} holds half of a surrogate pair at {error.start}", "Send whole characters."
            ) from None
    if _field(at) not in _ANCHOR_TEXT and len(value) > MAX_NAME_CHARS:
        raise _error(at, f"{at} has {len(value)} characters, at most {MAX_NAME_CHARS} are taken", "")
    return value


def _integer(schema: Mapping[str, Any], value: Any, at: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(at, value, "an integer")
    if value < schema.get("minimum", value):
        raise _error(at, f"{at} is below {schema['minimum']}", "")
    return value


def _array(schema: Mapping[str, Any], value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(at, value, "a list")
    limit = schema.get("maxItems", len(value))
    if len(value) > limit:
        raise _error(at, f"{at} has {len(value)} items, at most {limit} are taken", "")
    return [_value(schema["items"], item, f"{at}[{index}]") for index, item in enumerate(value)]


def _field(at: str) -> str:
    """Return the argument's own name: `tags` for `anchors[3].tags[1]`."""
    return at.rpartition(".")[2].partition("[")[0]


def _error(at: str, message: str, hint: str) -> ContextAnchorError:
    if _field(at) in _ANCHOR_TEXT:
        return InvalidAnchorError(message, hint=hint)
    return UsageError(message, hint=hint)


def _wrong(at: str, value: Any, wanted: str) -> ContextAnchorError:
    have = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string",
            list: "a list", dict: "an object"}.get(type(value), type(value).__name__)  # fmt: skip
    return _error(at, f"{at} must be {wanted}, not {have}", "")


def shown(value: str) -> str:
    """Return a value in quotes, ASCII-safe and short, for a message."""
    text = ascii(value[:_SHOWN_CHARS])
    return text if len(value) <= _SHOWN_CHARS else f"{text[:-1]}...{text[-1]}"

"""Messages in the form a model may see, and JSON data that is copied or can't be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from context_anchor.engine.canonical import cjson
from context_anchor.errors import NotJsonError

WIRE_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content")
"""The only keys of a message that leave the engine, in the order in which they do."""


class FrozenDict(dict[str, Any]):
    """A JSON object that raises TypeError on every change; it equals and serialises like a dict."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this object is frozen; clone it to get one that can be changed")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __deepcopy__(self, _: dict[int, Any]) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(list[Any]):
    """A JSON array that raises TypeError on every change; it equals and serialises like a list."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this list is frozen; clone it to get one that can be changed")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __iadd__ = _refuse
    __imul__ = _refuse
    append = _refuse
    clear = _refuse
    extend = _refuse
    insert = _refuse
    pop = _refuse
    remove = _refuse
    reverse = _refuse
    sort = _refuse

    def __deepcopy__(self, _: dict[int, Any]) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenList, (list(self),)


_SCALARS = (str, int, float, bool, type(None))


def clone(value: Any) -> Any:
    """Return a deep copy that can be changed; raises NotJsonError for anything that is not JSON data."""
    try:
        return _copied(value, dict, list)
    except RecursionError:
        raise _too_deep() from None


def freeze(value: Any) -> Any:
    """Return a deep copy that can't be changed, at any depth; raises NotJsonError."""
    try:
        return _copied(value, FrozenDict, FrozenList)
    except RecursionError:
        raise _too_deep() from None


def _copied(value: Any, mapping: type[dict[str, Any]], sequence: type[list[Any]]) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise NotJsonError(f"an object's key is of type {type(key).__name__}, not text: {key!r}")
        return mapping({key: _copied(inner, mapping, sequence) for key, inner in value.items()})
    if isinstance(value, list):
        return sequence([_copied(inner, mapping, sequence) for inner in value])
    raise NotJsonError(f"a value of type {type(value).__name__} is not JSON data and can't be copied")


def _too_deep() -> NotJsonError:
    return NotJsonError("a value holds itself or is nested too deeply for JSON")


def wire_form(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a message that a model, a host or a log for them may see; raises NotJsonError.

    The engine's own `context_os` and every other key stay behind; a key with null stays, an absent one is absent.
    """
    return {key: clone(message[key]) for key in WIRE_KEYS if key in message}


def unit_text(message: Mapping[str, Any]) -> str:
    """Return the text that stands for a message in a context unit.

    The content alone where the wire form has one key beside it and the content is text, else its JSON.
    """
    wire = wire_form(message)
    content = wire.get("content")
    return content if len(wire) == 2 and isinstance(content, str) else cjson(wire)

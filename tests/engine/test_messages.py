"""What of a message leaves the engine, and data that is copied or can't be changed."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from context_anchor.engine import messages
from context_anchor.engine.messages import clone, freeze, unit_text, wire_form
from context_anchor.errors import NotJsonError

TOOL = {
    "context_os": {"durable": True, "artifactId": "a-1"},
    "content": "ok",
    "name": "f",
    "tool_call_id": "c1",
    "role": "tool",
    "extra": 1,
}


def test_only_the_known_keys_leave_in_their_order_and_engine_metadata_never_does() -> None:
    assert list(wire_form(TOOL)) == ["role", "content", "name", "tool_call_id"]
    every = dict.fromkeys(reversed(messages.WIRE_KEYS))
    assert list(wire_form(every)) == list(messages.WIRE_KEYS)


def test_null_stays_and_absent_stays_absent() -> None:
    assert wire_form({"role": "assistant", "content": None}) == {"role": "assistant", "content": None}
    assert wire_form({}) == {}


def test_the_wire_form_shares_nothing_with_the_message() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "a"}]}
    wire = wire_form(message)
    wire["content"][0]["text"] = "b"
    assert message["content"] == [{"type": "text", "text": "a"}]


def test_a_plain_message_is_its_content_and_any_other_its_json() -> None:
    assert unit_text({"role": "user", "content": "hello", "context_os": {}}) == "hello"
    assert unit_text(TOOL) == '{"role":"tool","content":"ok","name":"f","tool_call_id":"c1"}'
    assert unit_text({"role": "assistant", "content": None}) == '{"role":"assistant","content":null}'
    assert unit_text({"content": "x"}) == '{"content":"x"}'


@pytest.mark.parametrize("value", [(1,), {"a": {1}}, [b"x"], {"a": print}, {1: "a"}, object()])
@pytest.mark.parametrize("copied", [clone, freeze])
def test_a_copy_of_what_is_not_json_data_is_refused(copied: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(NotJsonError):
        copied(value)


def test_a_copy_of_a_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    with pytest.raises(NotJsonError, match="deeply"):
        clone(loop)


DATA = {"a": [1, {"b": None}], "c": {"d": [True, 0.5, "é"]}}

CHANGES: list[Callable[[Any], object]] = [
    lambda v: v.__setitem__("a", 1),
    lambda v: v.__delitem__("a"),
    lambda v: v.update(a=1),
    lambda v: v.pop("a"),
    lambda v: v.popitem(),
    lambda v: v.clear(),
    lambda v: v.setdefault("z", 1),
    lambda v: v.__ior__({"z": 1}),
    lambda v: v["a"].append(1),
    lambda v: v["a"].extend([1]),
    lambda v: v["a"].insert(0, 1),
    lambda v: v["a"].pop(),
    lambda v: v["a"].remove(1),
    lambda v: v["a"].reverse(),
    lambda v: v["a"].sort(),
    lambda v: v["a"].clear(),
    lambda v: v["a"].__setitem__(0, 2),
    lambda v: v["a"].__delitem__(0),
    lambda v: v["a"].__iadd__([1]),
    lambda v: v["a"].__imul__(2),
    lambda v: v["a"][1].__setitem__("b", 1),
    lambda v: v["c"]["d"].append(1),
]


@pytest.mark.parametrize("change", CHANGES)
def test_frozen_data_refuses_every_change_at_any_depth(change: Callable[[Any], object]) -> None:
    frozen = freeze(DATA)
    with pytest.raises(TypeError, match="frozen"):
        change(frozen)
    assert frozen == DATA


def test_frozen_data_serialises_and_copies_like_any_other() -> None:
    frozen = freeze(DATA)
    assert json.loads(json.dumps(frozen)) == DATA
    assert pickle.loads(pickle.dumps(frozen)) == DATA
    assert copy.deepcopy(frozen) is frozen
    thawed = clone(frozen)
    thawed["a"][1]["b"] = 5
    assert type(thawed) is dict and frozen == DATA


def test_freezing_leaves_the_given_value_free() -> None:
    given = copy.deepcopy(DATA)
    frozen = freeze(given)
    given["a"].append(2)  # type: ignore[attr-defined]
    assert frozen == DATA

"""What a host sees in `tools/list`: its price, its types, its annotations."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from context_anchor.anchors import anchor
from context_anchor.server import anchor_tools, tool_listing

NAMES = ["pin_context", "unpin_context", "list_pinned_context", "get_pinned_context", "replace_session_anchors"]


def tokens_at_most(text: str) -> int:
    """An upper estimate of tokens, made like a byte-pair vocabulary splits JSON.

    Words of up to seven letters are one token and each further seven letters another; digits go in threes;
    punctuation goes in threes. The vocabulary published for Claude 2 gives 11 % less on this listing.
    """
    total = 0
    for word, number, marks in re.findall(r" ?([A-Za-z]+)|(\d+)|([^\sA-Za-z\d]+)", text):
        total += -(-len(word) // 7) + -(-len(number) // 3) + -(-len(marks) // 3)
    return total


def test_the_whole_listing_stays_under_1_100_tokens() -> None:
    listing = json.dumps({"tools": tool_listing.as_json()}, separators=(",", ":"))
    assert tokens_at_most(listing) < 1_100
    assert len(listing) / 4 < 1_100


def test_descriptions_and_instructions_stay_under_2_kb() -> None:
    assert len(tool_listing.INSTRUCTIONS.encode()) < 2_000
    for tool in tool_listing.TOOLS:
        assert len(tool.description.encode()) < 2_000


def test_the_five_tools_are_listed_in_a_fixed_order_and_each_has_its_function() -> None:
    assert [tool.name for tool in tool_listing.TOOLS] == NAMES
    assert list(anchor_tools.FUNCTIONS) == NAMES


def test_no_title_keys_are_paid_for() -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            assert not isinstance(value.get("title"), str)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(tool_listing.as_json())


@pytest.mark.parametrize("tool", tool_listing.TOOLS, ids=lambda tool: tool.name)
def test_schemas_are_valid_closed_and_typed_at_every_property(tool: tool_listing.Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(dict(tool.input_schema))
    jsonschema.Draft202012Validator.check_schema(dict(tool.output_schema))
    assert tool.input_schema["additionalProperties"] is False
    for schema in tool.input_schema["properties"].values():
        assert schema["type"] in {"string", "boolean", "integer", "array"}


def test_bounds_and_choices_of_the_listing_are_those_of_the_anchor() -> None:
    pin = tool_listing.BY_NAME["pin_context"].input_schema["properties"]
    assert tuple(pin["priority"]["enum"]) == anchor.PRIORITIES
    assert tuple(pin["category"]["enum"]) == anchor.CATEGORIES
    assert tuple(pin["scope"]["enum"]) == anchor.SCOPES
    assert pin["title"]["maxLength"] == anchor.MAX_TITLE
    assert pin["content"]["maxLength"] == anchor.MAX_CONTENT
    assert pin["refs"]["maxItems"] == anchor.MAX_REFS
    assert pin["tags"]["maxItems"] == anchor.MAX_TAGS
    replace = tool_listing.BY_NAME["replace_session_anchors"].input_schema["properties"]
    assert replace["anchors"]["maxItems"] == anchor.MAX_ANCHORS


def test_annotations_tell_readers_from_writers_and_all_are_closed_world() -> None:
    hints = {tool.name: tool.annotations for tool in tool_listing.TOOLS}
    assert {name for name, hint in hints.items() if hint["readOnlyHint"]} == {
        "list_pinned_context",
        "get_pinned_context",
    }
    assert {name for name, hint in hints.items() if hint["destructiveHint"]} == {
        "unpin_context",
        "replace_session_anchors",
    }
    assert not any(hint["openWorldHint"] for hint in hints.values())

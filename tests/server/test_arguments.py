"""Arguments are checked in full before anything is touched."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.errors import ContextAnchorError, InvalidAnchorError, UsageError
from context_anchor.server import arguments, tool_listing

PIN = tool_listing.BY_NAME["pin_context"].input_schema
UNPIN = tool_listing.BY_NAME["unpin_context"].input_schema
LIST = tool_listing.BY_NAME["list_pinned_context"].input_schema
REPLACE = tool_listing.BY_NAME["replace_session_anchors"].input_schema

ANCHOR = {"title": "T", "content": "C"}


@pytest.mark.parametrize(
    ("schema", "given_arguments", "error", "words"),
    [
        (PIN, {}, UsageError, "lacks title and content"),
        (PIN, {"title": "T"}, UsageError, "lacks content"),
        (PIN, {**ANCHOR, "prio": "high"}, UsageError, "did you mean priority?"),
        (PIN, {**ANCHOR, "zzz": 1}, UsageError, "Unknown argument 'zzz'"),
        (PIN, {**ANCHOR, "title": 7}, InvalidAnchorError, "title must be a string, not a number"),
        (PIN, {**ANCHOR, "content": None}, InvalidAnchorError, "content must be a string, not null"),
        (PIN, {**ANCHOR, "content": ["x"]}, InvalidAnchorError, "content must be a string, not a list"),
        (PIN, {**ANCHOR, "priority": "urgent"}, InvalidAnchorError, "critical, high, normal"),
        (PIN, {**ANCHOR, "category": "CONSTRAINT"}, InvalidAnchorError, "constraint"),
        (PIN, {**ANCHOR, "scope": "global"}, UsageError, "session, workspace"),
        (PIN, {**ANCHOR, "refs": "a.py"}, InvalidAnchorError, "refs must be a list, not a string"),
        (PIN, {**ANCHOR, "refs": ["a", 3]}, InvalidAnchorError, "refs[1] must be a string"),
        (PIN, {**ANCHOR, "tags": ["t"] * 21}, InvalidAnchorError, "at most 20"),
        (PIN, {**ANCHOR, "content": "a\0b"}, InvalidAnchorError, "NUL character at 1"),
        (PIN, {**ANCHOR, "content": "a\ud83d"}, InvalidAnchorError, "half of a surrogate pair at 1"),
        (PIN, {**ANCHOR, "session_id": "s\0"}, UsageError, "NUL"),
        (PIN, {**ANCHOR, "session_id": "s" * 10_000_000}, UsageError, "10000000 characters"),
        (UNPIN, {"clear_all": "yes"}, UsageError, "clear_all must be true or false, not a string"),
        (UNPIN, {"clear_all": 1}, UsageError, "clear_all must be true or false, not a number"),
        (LIST, {"cursor": {}}, UsageError, "cursor must be a string, not an object"),
        (REPLACE, {}, UsageError, "lacks anchors"),
        (REPLACE, {"anchors": {}}, UsageError, "anchors must be a list"),
        (REPLACE, {"anchors": ["T"]}, UsageError, "anchors[0] must be an object"),
        (REPLACE, {"anchors": [ANCHOR, {"title": "T"}]}, UsageError, "anchors[1] lacks content"),
        (REPLACE, {"anchors": [{**ANCHOR, "scope": "session"}]}, UsageError, "'scope' in anchors[0]"),
        (REPLACE, {"anchors": [{**ANCHOR, "tags": ["\udfff"]}]}, InvalidAnchorError, "anchors[0].tags[0]"),
        (REPLACE, {"anchors": [ANCHOR] * 201}, UsageError, "at most 200"),
        (REPLACE, {"anchors": [], "expected_revision": -1}, UsageError, "below 0"),
        (REPLACE, {"anchors": [], "expected_revision": True}, UsageError, "integer, not a boolean"),
        (REPLACE, {"anchors": [], "expected_revision": 1.5}, UsageError, "integer"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    schema: dict[str, Any], given_arguments: dict[str, Any], error: type[ContextAnchorError], words: str
) -> None:
    with pytest.raises(error) as caught:
        arguments.check(schema, given_arguments)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500
    str(caught.value).encode("utf-8")


def test_nulls_and_empty_strings_of_optional_arguments_count_as_not_given() -> None:
    checked = arguments.check(UNPIN, {"anchor_id": "", "title": "T", "scope": None, "session_id": ""})
    assert checked == {"title": "T"}


def test_missing_arguments_as_a_whole_are_an_empty_object() -> None:
    assert arguments.check(LIST, None) == {}


def test_a_whole_float_is_an_integer() -> None:
    checked = arguments.check(REPLACE, {"anchors": [], "expected_revision": 7.0})
    assert checked["expected_revision"] == 7
    assert type(checked["expected_revision"]) is int


def test_long_content_is_left_to_the_anchor_which_knows_the_advice() -> None:
    assert len(arguments.check(PIN, {"title": "T", "content": "x" * 10_000_000})["content"]) == 10_000_000


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_names = st.sampled_from(sorted({name for tool in tool_listing.TOOLS for name in tool.input_schema["properties"]}))


@given(st.sampled_from(tool_listing.TOOLS), st.dictionaries(_names | st.text(max_size=4), _json, max_size=6))
def test_every_object_is_taken_or_refused_and_what_is_taken_fits_the_listed_schema(
    tool: tool_listing.Tool, raw: dict[str, Any]
) -> None:
    try:
        checked = arguments.check(tool.input_schema, raw)
    except ContextAnchorError as error:
        json.dumps(str(error)).encode()
        return
    loose = json.loads(json.dumps(tool.input_schema).replace('"maxLength"', '"x"').replace('"minLength"', '"y"'))
    jsonschema.validate(checked, loose)

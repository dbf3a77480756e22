"""Estimates of texts, values and whole requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_anchor.engine.tokens import account, estimate_tokens


@pytest.mark.parametrize(
    ("value", "tokens"),
    [("", 1), ("abc", 1), ("abcd", 2), ("汉字", 2), ("\U0001f600", 2),
     ({"a": 1}, 3), ([], 1), ({}, 1), (None, 2), (True, 2), ("\ud83d", 1)],
)  # fmt: skip
def test_the_golden_vectors_of_estimates(value: Any, tokens: int) -> None:
    assert estimate_tokens(value) == tokens


def test_an_absent_value_costs_one() -> None:
    assert estimate_tokens() == 1


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "hello", "context_os": {"durable": False}},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "ok", "context_os": {"durable": True}},
]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def test_the_golden_vector_of_a_request() -> None:
    assert json.dumps(account(MESSAGES, [TOOL], 512).to_json()) == json.dumps(
        {"messageTokens": 97, "toolTokens": 31, "fixedPromptOverheadTokens": 512, "totalTokens": 640}
    )


def test_no_tools_cost_nothing_and_the_overhead_has_a_default() -> None:
    breakdown = account([])
    assert (breakdown.message_tokens, breakdown.tool_tokens, breakdown.total_tokens) == (0, 0, 512)


def test_engine_metadata_is_not_counted() -> None:
    bare = [{k: v for k, v in message.items() if k != "context_os"} for message in MESSAGES]
    assert account(bare) == account(MESSAGES)

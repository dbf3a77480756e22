"""Token estimates: three UTF-8 bytes a token, deliberately high for mixed CJK text and code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_anchor.engine.canonical import cjson
from context_anchor.engine.messages import wire_form
from context_anchor.engine.text import utf8_length

BYTES_PER_TOKEN = 3
TOKENS_PER_MESSAGE = 8
"""What a message costs beside its text: role marks and separators of a chat template."""
DEFAULT_PROMPT_OVERHEAD_TOKENS = 512


def estimate_tokens(value: object = "") -> int:
    """Return the estimated tokens of a text, or of another value's compact JSON; at least 1.

    Formula: max(1, ceil(UTF-8 bytes / 3)). Raises NotJsonError.
    """
    text = value if isinstance(value, str) else cjson(value)
    return max(1, -(-utf8_length(text) // BYTES_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class TokenBreakdown:
    """What a request costs, in estimated tokens."""

    message_tokens: int
    tool_tokens: int
    fixed_prompt_overhead_tokens: int

    @property
    def total_tokens(self) -> int:
        """The sum of the three."""
        return self.message_tokens + self.tool_tokens + self.fixed_prompt_overhead_tokens

    def to_json(self) -> dict[str, int]:
        """Return `{messageTokens, toolTokens, fixedPromptOverheadTokens, totalTokens}`."""
        return {
            "messageTokens": self.message_tokens,
            "toolTokens": self.tool_tokens,
            "fixedPromptOverheadTokens": self.fixed_prompt_overhead_tokens,
            "totalTokens": self.total_tokens,
        }


def estimate_message_tokens(message: Mapping[str, Any]) -> int:
    """Return the estimated tokens of one message's wire form, its frame included; raises NotJsonError."""
    return estimate_tokens(wire_form(message)) + TOKENS_PER_MESSAGE


def estimate_tool_tokens(tools: Sequence[Mapping[str, Any]]) -> int:
    """Return the estimated tokens of tool schemas as a request carries them; 0 for none."""
    if not tools:
        return 0
    return estimate_tokens({"tools": list(tools), "tool_choice": "auto"})


def account(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    prompt_overhead_tokens: int = DEFAULT_PROMPT_OVERHEAD_TOKENS,
) -> TokenBreakdown:
    """Return what a request of these messages and tools costs; raises NotJsonError."""
    return TokenBreakdown(
        message_tokens=sum(map(estimate_message_tokens, messages)),
        tool_tokens=estimate_tool_tokens(tools),
        fixed_prompt_overhead_tokens=prompt_overhead_tokens,
    )

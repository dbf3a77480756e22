"""Facts of the real Antigravity runtime that the plugin, and the emulation in these tests, rest on."""

from __future__ import annotations

from pathlib import Path

from .antigravity import anchors
from .antigravity.anchors import pin, shell, tool
from .antigravity.hook_calls import SYSTEM_STEP_HEAD
from .antigravity.host import Antigravity
from .antigravity.model import OUTPUT_TOKENS, Reply
from .test_antigravity import COMPACTS_AT, RULE

RESTORED = (
    "context-anchor receipt r-0123456789 | session s\n## [critical] T {a-1} (state, session)\n| \u00fc <b> &lt;x"
)


def test_the_runtime_shows_injected_steps_as_the_emulation_does(antigravity_python: Path, tmp_path: Path) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        host.model.boundary = None  # steps come through the runtime itself here, as history
        history = [("user", "Before."), ("model", "Hm."), ("system", RESTORED), ("ephemeral", "Pin now.")]
        chat = host.open(seed=history, compact_at=COMPACTS_AT)
        chat.say("Go on.", Reply("a", (shell(),), tokens=60_000), Reply("b", tokens=COMPACTS_AT + 1))
        chat.say("And on.")
        first, second, compacted = host.model.of(chat.id)
        system = [text for role, text in first.sent if role == "user" and RESTORED in text]
        assert len(system) == 1, "whole and unaltered"
        assert system[0].startswith(SYSTEM_STEP_HEAD)
        assert ("user", "Pin now.") in first.sent, "an ephemeral step is a user message of exactly that text"
        assert RESTORED in second.text, "a system step stays"
        assert "Pin now." not in second.text, "an ephemeral one does not"
        assert chat.compactions == 1
        assert RESTORED not in compacted.text, "a compaction takes it away"


def test_the_transcript_is_up_to_date_and_carries_sizes_when_a_request_arrives(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open(compact_at=COMPACTS_AT, extra={"mcp_max_output_bytes": 200})
        listing = tool("list_pinned_context")
        pins = (RULE, *(pin(f"Note {n}", "long words " * 20) for n in range(4)))
        chat.say(
            "Work.",
            Reply("a", pins, tokens=30_000, cached=12_000),
            Reply("b", (listing,), tokens=60_000),
            Reply("c", (shell(),), tokens=COMPACTS_AT + 1),
            Reply("d", tokens=20_000),
        )
        steps = {line["step_index"]: line for line in host.transcript(chat.id)}
        for call in host.hooks.of(chat.id, "PreInvocation"):
            there = {index for index, _ in call.transcript}
            assert there == {index for index in steps if index <= max(there)}, "no earlier step is missing"
        seen = [call.transcript[-1][1] for call in host.hooks.of(chat.id, "PreInvocation")]
        assert seen == ["USER_INPUT", "MCP_TOOL", "MCP_TOOL", "CHECKPOINT"], "each the step before the request"

        answers = [line for line in steps.values() if line["type"] == "PLANNER_RESPONSE"]
        sizes = [(line["input_tokens"], line["cache_read_tokens"], line["output_tokens"]) for line in answers]
        assert sizes[0] == (18_000, 12_000, OUTPUT_TOKENS), "input is the prompt without its cached part"
        (checkpoint,) = [line for line in steps.values() if line["type"] == "CHECKPOINT"]
        assert checkpoint["content"].startswith("# Resuming from a compaction")
        assert checkpoint["input_tokens"] == 1_000, "of the summary's own request, not of the conversation"

        # What assert_sound looks for in every other test would be seen if it were there.
        hidden = anchors.results(host.model.of(chat.id)[2])[-1]
        assert "saved to: file://" in hidden

"""Pressure in a real Claude Code client: the reminder to pin, at the request where it is due."""

from __future__ import annotations

from pathlib import Path

from .claude_code import anchors
from .claude_code.anchors import ALLOWED, PREFIX, nudges, pinning_chat
from .claude_code.client import COMPACTS_AT, ClaudeCode
from .claude_code.model import Call, Reply
from .test_claude_code import CHOICE, RULE, both

PIN_TOOL = PREFIX + "pin_context"


def at(share: float) -> Reply:
    """An answer after which the context holds this share of the client's own threshold."""
    return Reply("ok", tokens=round(COMPACTS_AT * share), output_tokens=5)


@both
def test_each_level_is_told_once_with_the_next_prompt_and_again_after_compaction(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, _ = pinning_chat(host, RULE, CHOICE)
        seen = []
        for share in (0.59, 0.61, 0.70, 0.81, 0.85, 0.93, 0.95):
            host.model.plan(at(share))
            chat.say(f"Now {share}.")
            seen.append(len(nudges(host.model.main[-1])))
        # A prompt carries the reminder for the size that the answer before it left.
        assert seen == [0, 0, 1, 1, 2, 2, 3]
        last = nudges(host.model.main[-1])[-1]
        assert PIN_TOOL in last
        assert f"{round(COMPACTS_AT * 0.93) + 5:,}" in last
        assert f"{COMPACTS_AT:,}" in last
        assert "Never touch billing" in last
        assert "Store is SQLite" in last

        assert chat.say("/compact").compacted
        host.model.plan(at(0.30), at(0.65))
        chat.say("After it.")
        assert nudges(host.model.main[-1]) == [], "the old size is no news after a compaction"
        chat.say("On.")
        assert nudges(host.model.main[-1]) == []
        chat.say("On and on.")
        assert len(nudges(host.model.main[-1])) == 1, "levels are armed anew"
        assert anchors.hook_failures(host) == ""
        assert chat.close() == 0


def test_a_level_reached_in_a_tool_loop_is_told_before_the_next_step(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat = host.chat(*ALLOWED)
        step = (Call(PREFIX + "list_pinned_context"),)
        for share in (0.2, 0.65, 0.66, 0.67):
            host.model.plan(Reply("look", step, tokens=round(COMPACTS_AT * share)))
        turn = chat.say("Work.")
        anchors.assert_sound(host, turn)
        seen = [len(nudges(request)) for request in host.model.main]
        # The client writes its transcript beside the turn: on a busy machine the answer may reach the disk
        # after the hook has looked, and the reminder then comes one step later.
        assert seen in ([0, 0, 1, 1, 1], [0, 0, 0, 1, 1])
        assert "Nothing is pinned yet" in nudges(host.model.main[-1])[0]
        assert chat.close() == 0


def test_settings_of_the_user_win_over_the_clients_threshold(client: Path, plugin: Path, tmp_path: Path) -> None:
    chosen = {"CONTEXT_ANCHOR_NUDGE_START_TOKENS": "50000", "CONTEXT_ANCHOR_NUDGE_INTERVAL_TOKENS": "20000"}
    with ClaudeCode(client, tmp_path, plugin, env=chosen) as host:
        chat = host.chat(*ALLOWED)
        seen = []
        for tokens in (49_000, 51_000, 69_000, 71_000, 71_500):
            host.model.plan(Reply("ok", tokens=tokens))
            chat.say(f"Now {tokens}.")
            seen.append(len(nudges(host.model.main[-1])))
        assert seen == [0, 0, 1, 1, 2]
        assert chat.close() == 0

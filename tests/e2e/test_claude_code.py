"""The plugin in a real Claude Code client: what the core of every session leans on, on both versions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from . import hosts
from .claude_code import anchors
from .claude_code.anchors import ALLOWED, PREFIX, blocks, pin, pinning_chat, receipts
from .claude_code.client import COMPACTS_AT, ClaudeCode
from .claude_code.model import SUMMARY, Call, Reply

both = pytest.mark.parametrize("client", hosts.CLAUDE_CODE_VERSIONS, indirect=True)

RULE = pin("Never touch billing", "BILLING-RULE: leave src/billing alone", "critical", category="constraint")
CHOICE = pin("Store is SQLite", "STORE-CHOICE: one file, WAL mode", "high", category="decision")
NOTE = pin("Left off at the parser", "PARSER-NOTE: parse_header is half done", "normal")


@both
def test_a_pin_through_mcp_is_stored_for_the_session_that_made_it(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, turn = pinning_chat(host, RULE)
        anchors.assert_sound(host, turn)
        first, after = host.model.main[:2]
        assert set(anchors.TOOLS) <= set(first.tools), "the five tools are offered whole in the first request"
        (stored,) = anchors.session_anchors(host, turn.session_id)
        assert (stored["title"], stored["priority"], stored["scope"]) == (
            "Never touch billing",
            "critical",
            "session",
        )
        assert stored["id"] in after.last_user, "the result tells the model the id"
        assert turn.session_id in first.text, "the agent is told its session id at first sight"
        assert chat.close() == 0


@both
def test_manual_compaction_gives_the_pins_once_in_the_next_request(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, NOTE, CHOICE, RULE)
        compaction = chat.say("/compact keep it short")
        assert compaction.compacted
        answered = chat.say("What now?")
        again = chat.say("And then?")
        anchors.assert_sound(host, first, compaction, answered, again)

        (summary,) = host.model.of_kind("summary")
        asked = summary.last_user
        assert "keep it short" in asked
        assert "Never touch billing" in asked.split("keep it short")[1], "the summariser is asked to keep it"
        restored, later = host.model.main[-2:]
        assert SUMMARY in restored.text
        given = receipts(restored)
        assert len(given) == 1
        for needle in ("BILLING-RULE", "STORE-CHOICE", "PARSER-NOTE"):
            assert blocks(restored, needle) == 1, needle
        order = [restored.text.index(f"| {word}") for word in ("BILLING-RULE", "STORE-CHOICE", "PARSER-NOTE")]
        assert order == sorted(order), "critical before high before normal"
        assert "recap" in anchors.restored(restored)
        assert receipts(later) == given, "the same one, still in the history, and no other"
        receipt = anchors.marks(host, first.session_id)["last_receipt"]
        assert (receipt["id"], receipt["delivered"]) == (given[0], "yes"), "the trace proves the delivery"

        host.model.plan(Reply("more", tokens=60_000))
        chat.say("More.")
        assert chat.say("/compact").compacted
        chat.say("Still there?")
        second = host.model.main[-1]
        assert len(receipts(second)) == 1
        assert receipts(second) != given
        assert blocks(second, "BILLING-RULE") == 1
        assert chat.close() == 0


@both
def test_automatic_compaction_in_a_tool_loop_gives_the_pins_before_the_next_step(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, RULE)
        step = (Call(PREFIX + "list_pinned_context"),)
        host.model.plan(
            Reply("look", step, tokens=90_000),
            Reply("look again", step, tokens=COMPACTS_AT + 500),
            Reply("once more", step, tokens=25_000),
            Reply("done", tokens=26_000),
        )
        long = chat.say("Work on.")
        anchors.assert_sound(host, first, long)
        assert long.compacted
        assert long.result["result"] == "done"
        numbers = {request.number: request for request in host.model.requests}
        (summary,) = host.model.of_kind("summary")
        restored, next_step = numbers[summary.number + 1], numbers[summary.number + 2]
        assert blocks(numbers[summary.number - 1], "BILLING-RULE") == 0
        assert len(receipts(restored)) == 1
        assert blocks(restored, "BILLING-RULE") == 1
        assert receipts(next_step) == receipts(restored)
        chat.say("Next task.")
        assert receipts(host.model.main[-1]) == receipts(restored)
        assert chat.close() == 0


@both
def test_a_resumed_session_holds_its_pins_once(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, RULE)
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        chat.close()
        for prompt in ("Back again.", "And once more."):
            chat = host.chat(*ALLOWED, "--resume", first.session_id)
            turn = chat.say(prompt)
            assert turn.session_id == first.session_id
            anchors.assert_sound(host, turn)
            assert blocks(host.model.main[-1], "BILLING-RULE") == 1, prompt
            assert len(receipts(host.model.main[-1])) == 1, prompt
            chat.close()


@both
def test_clear_starts_a_session_of_its_own_and_says_where_the_old_pins_are(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, RULE, pin("House style", "STYLE-RULE: tabs", scope="workspace"))
        chat.say("/clear")
        host.model.plan(Reply("I pin.", (NOTE,)), Reply("Pinned."))
        turn = chat.say("A new task.")
        new = turn.session_id
        assert new != first.session_id
        anchors.assert_sound(host, turn)
        request = host.model.main[-2]
        assert blocks(request, "BILLING-RULE") == 0, "the old session's pins are not the new one's"
        assert blocks(request, "STYLE-RULE") == 1, "the workspace's are"
        assert first.session_id in request.text, "it is told which session holds them"
        assert anchors.titles(host, new) == {"Left off at the parser"}, "the server followed the change of session"
        assert "Left off at the parser" not in anchors.titles(host, first.session_id)
        assert chat.close() == 0


@both
@pytest.mark.parametrize("compacted", [False, True], ids=["plain", "compacted"])
def test_a_fork_carries_its_parents_pins_and_leaves_the_parent_alone(
    client: Path, plugin: Path, tmp_path: Path, compacted: bool
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, RULE)
        if compacted:
            assert chat.say("/compact").compacted
            chat.say("Go on.")
        chat.close()
        fork = host.chat(*ALLOWED, "--resume", first.session_id, "--fork-session")
        fork.say("Try another way.")
        host.model.plan(Reply("I pin.", (NOTE,)), Reply("Pinned."))
        turn = fork.say("Pin that.")
        assert turn.session_id != first.session_id
        anchors.assert_sound(host, turn)
        assert anchors.titles(host, turn.session_id) == {"Never touch billing", "Left off at the parser"}
        assert anchors.titles(host, first.session_id) == {"Never touch billing"}
        assert fork.say("/compact").compacted
        fork.say("Go on.")
        restored = host.model.main[-1]
        assert len(receipts(restored)) == 1
        assert blocks(restored, "BILLING-RULE") == 1
        assert blocks(restored, "PARSER-NOTE") == 1
        assert fork.close() == 0


@both
def test_a_subagents_compaction_does_not_use_up_the_main_sessions(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, RULE, arguments=("--dangerously-skip-permissions",))
        step = (Call("Bash", {"command": "echo step", "description": "a step"}),)
        sizes = (30_000, 60_000, 100_000, COMPACTS_AT + 500, 20_000)
        host.model.when(
            lambda request: request.kind == "subagent",
            *(Reply("work", step, tokens=size) for size in sizes),
            Reply("sub done"),
        )
        task = {
            "description": "sub",
            "prompt": "Look around.",
            "subagent_type": "general-purpose",
            "run_in_background": False,
        }
        host.model.plan(Reply("I ask.", (Call("Agent", task),), tokens=40_000), Reply("heard", tokens=41_000))
        turn = chat.say("Send someone.")
        anchors.assert_sound(host, first, turn)
        assert len(host.model.of_kind("summary")) == 1, "the subagent compacted"
        assert turn.result["result"] == "heard"
        assert host.model.of_kind("subagent")[-1].number > host.model.of_kind("summary")[0].number
        after = host.model.main[-1]
        before = receipts(host.model.main[0])
        assert receipts(after) == before, "nothing of it reaches the main conversation"
        time.sleep(0.5)
        chat.say("Thanks.")
        assert receipts(host.model.main[-1]) == before, "nor is it given there later"
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        assert len(receipts(host.model.main[-1])) == 1
        assert blocks(host.model.main[-1], "BILLING-RULE") == 1
        assert chat.close() == 0

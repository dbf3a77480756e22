"""The plugin in the real Antigravity runtime: compactions that come in a row, side by side, late to the
disk, at a bad moment, and under the user's settings. "emulated" as in test_antigravity.
"""

from __future__ import annotations

import json
from pathlib import Path

from .antigravity import anchors
from .antigravity.anchors import blocks, injecting, nudges, pin, receipts, tool
from .antigravity.host import Antigravity
from .antigravity.late_transcript import LateTranscript
from .antigravity.model import Call, Reply, Request
from .test_antigravity import CHOICE, COMPACTS_AT, NOTE, RULE, STEP

FULL = COMPACTS_AT + 500


def first_after_each(host: Antigravity, conversation: str) -> list[Request]:
    """The first request after each compaction of a conversation, in order."""
    summaries = [request.number for request in host.model.of(conversation, "summary")]
    requests = host.model.of(conversation)
    return [next(r for r in requests if r.number > number) for number in summaries]


def test_two_compactions_in_one_tool_loop_give_what_is_pinned_at_each_of_them_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open(compact_at=COMPACTS_AT)
        changed = (
            tool("unpin_context", title="Store is SQLite"),
            pin("Never touch billing", "BILLING-SINCE: the freeze ended", "critical", category="constraint"),
            NOTE,
        )
        chat.say(
            "Work.",
            Reply("I pin.", (RULE, CHOICE), tokens=30_000),
            Reply("full", STEP, tokens=FULL),
            Reply("full again at once", changed, tokens=FULL),
            Reply("on", STEP, tokens=20_000),
            Reply("done", tokens=21_000),
        )
        anchors.assert_sound(host)
        assert chat.compactions == 2
        first, second = first_after_each(host, chat.id)
        assert (blocks(first, "BILLING-RULE"), blocks(first, "STORE-CHOICE")) == (1, 1)
        assert blocks(first, "PARSER-NOTE") == 0
        assert (blocks(second, "BILLING-SINCE"), blocks(second, "PARSER-NOTE")) == (1, 1)
        assert (blocks(second, "BILLING-RULE"), blocks(second, "STORE-CHOICE")) == (0, 0), "superseded, taken back"
        assert len(receipts(first)) == len(receipts(second)) == 1
        assert receipts(first) != receipts(second)
        assert len(injecting(host, chat.id, "system")) == 3, "first sight, and one for each compaction"
        assert injecting(host, chat.id, "ephemeral") == [], "what was before a compaction is no pressure after it"
        assert anchors.marks(host, chat.id)["compactions"] == 2


def test_two_conversations_that_compact_at_once_get_their_own_pins_back_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chats = {"LEFT": host.open(compact_at=COMPACTS_AT), "RIGHT": host.open(compact_at=COMPACTS_AT)}
        for word, chat in chats.items():
            side = pin("Side", f"{word}-SIDE: mine", "critical")
            chat.send(
                "Work.",
                Reply("I pin.", (side,), tokens=30_000),
                Reply("full", STEP, tokens=FULL),
                Reply("on", STEP, tokens=20_000),
                Reply("full", STEP, tokens=FULL),
                Reply("done", tokens=20_000),
            )
        for chat in chats.values():
            chat.wait()
        anchors.assert_sound(host)
        given: set[str] = set()
        for word, chat in chats.items():
            other = "RIGHT" if word == "LEFT" else "LEFT"
            assert chat.compactions == 2
            for request in first_after_each(host, chat.id):
                assert blocks(request, f"{word}-SIDE") == 1
                assert len(receipts(request)) == 1
                given.update(receipts(request))
            assert all(f"{other}-SIDE" not in request.text for request in host.model.of(chat.id))
            assert anchors.marks(host, chat.id)["compactions"] == 2
        assert len(given) == 4, "each recovery is one of its own"


def test_where_the_transcript_is_flushed_late_the_pins_come_with_the_first_request_that_can_know_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        late = LateTranscript(host)
        late.behind = 1
        chat = host.open(compact_at=COMPACTS_AT)
        chat.say("Pin.", Reply("I pin.", (RULE,), tokens=30_000), Reply("Pinned.", tokens=31_000))

        def catching_up(request: Request) -> Reply:
            late.behind = 0
            return Reply("all there", STEP, tokens=23_000)

        late.behind = 3  # the checkpoint, and the answer and the tool after it
        chat.say(
            "Work.",
            Reply("full", STEP, tokens=FULL),
            Reply("one", STEP, tokens=20_000),
            Reply("two", STEP, tokens=21_000),
            Reply("three", STEP, tokens=22_000),
            catching_up,
            Reply("done", tokens=24_000),
        )
        anchors.assert_sound(host)
        assert chat.compactions == 1
        (compacted,) = first_after_each(host, chat.id)
        after = [request for request in host.model.of(chat.id) if request.number >= compacted.number]
        assert [blocks(request, "BILLING-RULE") for request in after] == [0, 0, 1, 1, 1]
        assert receipts(after[2]) == receipts(after[-1]), "once, also when the rest of the file is there"
        assert len(receipts(after[2])) == 1
        assert after[2].spliced[-1].at == len(after[2].contents)
        # In the second, the newest size on the disk is still the one that filled the context up.
        assert [nudges(request) for request in after] == [[], [f"{FULL:,}"], [], [], []]
        assert anchors.marks(host, chat.id)["compactions"] == 1
        assert anchors.marks(host, chat.id)["tokens"] == 24_000


def test_a_runtime_killed_in_the_request_that_restored_is_resumed_without_a_second_one_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open(compact_at=COMPACTS_AT)
        chat.say("Pin.", Reply("I pin.", (RULE,), tokens=30_000), Reply("Pinned.", tokens=31_000))

        def killed(request: Request) -> Reply:
            chat.kill()
            return Reply("nobody hears it")

        chat.send("Work.", Reply("full", STEP, tokens=FULL), killed)
        chat.process.wait(60)
        again = host.open(chat.id, compact_at=COMPACTS_AT)
        again.say("Back.", Reply("back", STEP, tokens=22_000), Reply("full", STEP, tokens=FULL), Reply("done"))
        anchors.assert_sound(host)
        assert again.compactions == 1
        restored, second = first_after_each(host, chat.id)
        resumed = [r for r in host.model.of(chat.id) if restored.number < r.number < second.number]
        assert len(resumed) == 2
        for request in (restored, *resumed):
            assert receipts(request) == receipts(restored)
            assert blocks(request, "BILLING-RULE") == 1
        assert receipts(second) != receipts(restored), "the next compaction counts again"
        assert blocks(second, "BILLING-RULE") == 1
        assert len(host.hooks.of(chat.id, "SessionStart")) == 1
        assert anchors.marks(host, chat.id)["compactions"] == 2


def test_what_a_subagent_grows_to_and_falls_from_leaves_the_main_conversations_recovery_alone_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open(compact_at=COMPACTS_AT)
        worker = {
            "name": "worker", "description": "works", "system_prompt": "You work.", "enable_mcp_tools": False,
            "enable_write_tools": True, "enable_subagent_tools": False, "toolSummary": "x", "toolAction": "y",
        }  # fmt: skip
        task = {"TypeName": "worker", "Role": "Worker", "Prompt": "Look around.", "Model": "inherit"}
        ask = Call("invoke_subagent", {"Subagents": [task], "toolSummary": "x", "toolAction": "y"})
        host.model.plan_others(
            Reply("work", STEP, tokens=60_000), Reply("work", STEP, tokens=FULL),
            Reply("small again", STEP, tokens=20_000), Reply("sub done", tokens=21_000),
        )  # fmt: skip
        chat.say(
            "Send someone.",
            Reply("I pin.", (RULE,), tokens=30_000),
            Reply("I make one.", (Call("define_subagent", worker),), tokens=31_000),
            Reply("I ask.", (ask,), tokens=32_000),
            Reply("Waiting.", tokens=33_000),
            Reply("Heard.", STEP, tokens=FULL),
            Reply("on", STEP, tokens=20_000),
            Reply("done", tokens=21_000),
        )
        anchors.assert_sound(host)
        assert chat.compactions == 1
        (sub,) = {request.conversation for request in host.model.requests} - {chat.id}
        assert host.model.of(sub, "summary") == [], "the runtime compacts the main conversation alone"
        assert injecting(host, sub) == []
        (restored,) = first_after_each(host, chat.id)
        before = [r for r in host.model.of(chat.id) if r.number < restored.number]
        assert all(blocks(request, "BILLING-RULE") == 0 for request in before), "nothing lost yet, nothing restored"
        assert blocks(restored, "BILLING-RULE") == 1
        assert len(injecting(host, chat.id, "system")) == 2
        assert anchors.marks(host, chat.id)["compactions"] == 1


def test_the_users_settings_hold_for_levels_step_size_and_recap_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        host.environment.update(
            CONTEXT_ANCHOR_NUDGE_START_TOKENS="40000",
            CONTEXT_ANCHOR_NUDGE_INTERVAL_TOKENS="30000",
            CONTEXT_ANCHOR_MAX_INJECT_CHARS="2000",
            CONTEXT_ANCHOR_POST_COMPACT_RECAP="false",
            CONTEXT_ANCHOR_ANTIGRAVITY_STEP="userMessage",
        )
        chat = host.open(compact_at=COMPACTS_AT)
        long = pin("Long story", "LONG-NOTE " + "word " * 500, "normal")
        chat.say(
            "Work.",
            Reply("I pin.", (RULE, long), tokens=39_999),
            Reply("a", STEP, tokens=40_000),
            Reply("b", STEP, tokens=69_999),
            Reply("c", STEP, tokens=70_000),
            Reply("full", STEP, tokens=FULL),
            Reply("on", STEP, tokens=20_000),
            Reply("done", tokens=21_000),
        )
        anchors.assert_sound(host)
        requests = host.model.of(chat.id)
        assert {n: nudges(r) for n, r in enumerate(requests) if nudges(r)} == {2: ["40,000"], 4: ["70,000"]}
        (restored,) = first_after_each(host, chat.id)
        (call,) = [c for c in host.hooks.of(chat.id) if c.request == restored.number]
        ((kind, text),) = call.steps
        assert kind == "user"
        assert json.loads(call.stdout) == {"injectSteps": [{"userMessage": text}]}
        assert len(text) <= 2_000
        assert blocks(restored, "BILLING-RULE") == 1
        assert blocks(restored, "LONG-NOTE") == 0, "a pin is given whole or named, never cut"
        assert "Long story" in text
        assert "get_pinned_context" in text
        assert "recap" not in text.lower()
        assert len(injecting(host, chat.id, "system")) == 0
        assert len(injecting(host, chat.id, "ephemeral")) == 2, "a nudge passes, whatever lasting text comes as"

"""The plugin in the real Antigravity runtime: conversations side by side, resumed, of subagents, without a
workspace, and the skill's way through a compaction. "emulated" as in test_antigravity.
"""

from __future__ import annotations

import json
from pathlib import Path

from .antigravity import anchors
from .antigravity.anchors import blocks, injecting, nudges, pin, receipts, shell, tool
from .antigravity.host import Antigravity
from .antigravity.model import Call, Reply, Request
from .test_antigravity import COMPACTS_AT, NOTE, RULE, STEP


def test_a_resumed_conversation_is_given_nothing_twice_and_what_is_due_once_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open(compact_at=COMPACTS_AT)
        chat.say("Pin.", Reply("I pin.", (RULE,), tokens=90_000), Reply("Pinned.", tokens=95_000))
        chat.say("Fill.", Reply("more", STEP, tokens=COMPACTS_AT + 500), Reply("done", tokens=30_000))
        chat.say("On.", Reply("on", tokens=31_000))
        given = len(injecting(host, chat.id))
        assert chat.compactions == 1
        assert chat.close() == 0

        again = host.open(chat.id, compact_at=COMPACTS_AT)
        again.say("Back.", Reply("back", STEP, tokens=32_000), Reply("hm", tokens=33_000))
        assert len(injecting(host, chat.id)) == given, "a resume is no compaction, and nothing is new"
        resumed = host.model.of(chat.id)[-1]
        assert len(receipts(resumed)) == 1
        assert blocks(resumed, "BILLING-RULE") == 1, "what was restored is still in the history"
        told = ("--session", chat.id, "--title", "By hand", "--content", "HAND-NOTE: ship on Friday")
        pinned = host.run(*host.cli("pin", *told))
        assert pinned.returncode == 0, pinned.stderr
        # It fills up with the last answer, and the runtime is killed before the next request.
        again.say("Fill.", Reply("more", STEP, tokens=60_000), Reply("full", tokens=COMPACTS_AT + 500))
        assert again.compactions == 1
        again.kill()

        third = host.open(chat.id, compact_at=COMPACTS_AT)
        third.say("Back.", Reply("back", STEP, tokens=32_000), Reply("hm", tokens=33_000))
        anchors.assert_sound(host)
        assert third.compactions == 0
        first, second = host.model.of(chat.id)[-2:]
        assert blocks(first, "BILLING-RULE") == 1
        assert blocks(first, "HAND-NOTE") == 1, "what the user pinned meanwhile is there too"
        assert len(receipts(first)) == 1
        assert receipts(first) != receipts(resumed), "the second compaction's own, once"
        assert receipts(second) == receipts(first)
        assert len(host.hooks.of(chat.id, "SessionStart")) == 1


def test_two_conversations_at_once_in_one_workspace_keep_their_pins_apart_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    # On some builds SessionStart never fires: all must come with the first PreInvocation.
    with Antigravity(antigravity_python, tmp_path, with_session_start=False) as host:
        one, two = host.open(compact_at=COMPACTS_AT), host.open(compact_at=COMPACTS_AT)
        one_notes = [RULE, pin("Side", "ONE-SIDE: left")]
        two_notes = [NOTE, pin("Side", "TWO-SIDE: right")]
        for chat, notes in ((one, one_notes), (two, two_notes)):
            sent = [Reply(f"pin {n}", (note,), tokens=30_000) for n, note in enumerate(notes)]
            chat.send("Pin.", *sent, Reply("Pinned.", tokens=31_000))
        one.wait()
        two.wait()
        full = Reply("full", STEP, tokens=COMPACTS_AT + 500)
        one.send("Work.", full, Reply("one", STEP, tokens=30_000), Reply("done", tokens=31_000))
        two.send(
            "Work.", Reply("a", STEP, tokens=90_000), Reply("b", STEP, tokens=91_000), Reply("c", tokens=92_000)
        )
        one.wait()
        two.wait()
        anchors.assert_sound(host)
        assert (one.compactions, two.compactions) == (1, 0)
        assert anchors.titles(host, one.id) == {"Never touch billing", "Side"}
        assert anchors.titles(host, two.id) == {"Left off at the parser", "Side"}
        for chat, others in ((one, two), (two, one)):
            first = host.model.of(chat.id)[0]
            assert [kind for c in host.hooks.of(chat.id)[:1] for kind, _ in c.steps] == ["system"]
            assert chat.id in first.text
            assert all(others.id not in request.text for request in host.model.of(chat.id))
        restored, other = host.model.of(one.id)[-2], host.model.of(two.id)[-1]
        assert (blocks(restored, "BILLING-RULE"), blocks(restored, "ONE-SIDE")) == (1, 1)
        assert (blocks(restored, "TWO-SIDE"), blocks(restored, "PARSER-NOTE")) == (0, 0)
        assert blocks(other, "") == 0, "what one conversation lost is not restored in the other"
        assert len(injecting(host, two.id, "system")) == 1
        assert len(injecting(host, two.id, "ephemeral")) == 1
        assert injecting(host, one.id, "ephemeral") == []


def test_a_subagents_conversation_is_told_nothing_and_is_not_live_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open()
        style = pin("House style", "STYLE-RULE: tabs", "high", scope="workspace")
        worker = {
            "name": "worker", "description": "works", "system_prompt": "You work.", "enable_mcp_tools": False,
            "enable_write_tools": True, "enable_subagent_tools": False, "toolSummary": "x", "toolAction": "y",
        }  # fmt: skip
        task = {"TypeName": "worker", "Role": "Worker", "Prompt": "Look around.", "Model": "inherit"}
        ask = Call("invoke_subagent", {"Subagents": [task], "toolSummary": "x", "toolAction": "y"})
        finding = pin("Found by the worker", "WORKER-NOTE: the cache is cold")
        sizes = (90_000, 130_000)
        host.model.plan_others(
            *(Reply("work", STEP, tokens=size) for size in sizes),
            Reply("I pin.", (finding,), tokens=30_000),  # also a fall in size means nothing there
            Reply("sub done", tokens=31_000),
        )
        chat.say(
            "Send someone.",
            Reply("I pin.", (style, RULE), tokens=30_000),
            Reply("I make one.", (Call("define_subagent", worker),), tokens=31_000),
            Reply("I ask.", (ask,), tokens=32_000),
            Reply("Waiting.", tokens=33_000),
            Reply("Heard.", tokens=34_000),
        )
        anchors.assert_sound(host)
        (sub,) = {request.conversation for request in host.model.requests} - {chat.id}
        assert host.transcript(sub)[0]["type"] == "SYSTEM_MESSAGE"
        requests = host.model.of(sub)
        assert len(requests) == 4
        assert len(host.hooks.of(sub, "PreInvocation")) == 4, "hooks fire in it as well"
        assert injecting(host, sub) == []
        assert all(not receipts(request) and not nudges(request) for request in requests)
        assert anchors.registered(host, sub)["subagent"] is True
        assert anchors.registered(host, chat.id)["subagent"] is False
        assert anchors.titles(host, chat.id) == {"Never touch billing"}, "its pin is its own"
        assert anchors.titles(host, sub) == {"Found by the worker"}
        heard = host.model.of(chat.id)[-1]
        assert receipts(heard) == receipts(host.model.of(chat.id)[0]), "nothing of it reaches the main one"
        live = host.run(*host.cli("sessions", "--json"))
        assert live.returncode == 0, live.stderr
        states = {row["session_id"]: row["state"] for row in json.loads(live.stdout)["sessions"]}
        assert states[chat.id] == "live"
        assert states[sub] != "live"


def test_without_a_workspace_the_session_scope_works_and_the_other_is_refused_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open()
        host.workspaces[chat.id] = []  # as the CLI's print mode tells
        style = pin("House style", "STYLE-RULE: tabs", scope="workspace")
        chat.say("Pin.", Reply("I pin.", (RULE, style)), Reply("Pinned."))
        anchors.assert_sound(host)
        first, after = host.model.of(chat.id)
        assert "No workspace is named here" in first.text
        assert anchors.titles(host, chat.id) == {"Never touch billing"}
        assert anchors.shared_titles(host) == set()
        assert "workspace_unknown" in anchors.results(after)[1]


def test_the_skills_three_steps_end_with_a_short_prompt_that_holds_the_saved_pins_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open(compact_at=COMPACTS_AT)
        twice = pin("Billing again", "BILLING-TWICE: do not touch billing")
        chat.say("Pin.", Reply("I pin.", (RULE, twice), tokens=60_000), Reply("Pinned.", tokens=61_000))

        def saving(request: Request) -> Reply:
            listed = anchors.results(request)[-1]
            assert "Billing again" in listed
            assert "revision" in listed
            revision = int(listed.split("revision ")[1].split()[0].rstrip(",.;:"))
            merged = {"title": "Billing", "content": "MERGED-RULE: leave src/billing alone", "priority": "critical"}
            state = {"title": "State", "content": "NEXT-STEP: finish parse_header", "priority": "high"}
            return Reply(
                "I save.",
                (tool("replace_session_anchors", anchors=[state, merged], expected_revision=revision),),
                tokens=COMPACTS_AT - 2_000,
            )

        audit = Reply("I audit.", (tool("list_pinned_context", scope="session"),), tokens=90_000)
        chat.say("/context-anchor", audit, saving, Reply("Saved, two pins. Go on.", tokens=COMPACTS_AT + 500))
        assert chat.compactions == 1, "this host compacts by itself"
        chat.say("继续", Reply("Recap: ...", tokens=20_000))
        anchors.assert_sound(host)
        assert anchors.titles(host, chat.id) == {"Billing", "State"}
        restored = host.model.of(chat.id)[-1]
        assert "继续" in restored.text
        assert restored.text.index("| MERGED-RULE") < restored.text.index("| NEXT-STEP")
        assert (blocks(restored, "MERGED-RULE"), blocks(restored, "BILLING-")) == (1, 0)
        assert "recap" in restored.view[-1][1]


def test_a_long_command_and_its_late_end_are_no_compaction_emulated(
    antigravity_python: Path, tmp_path: Path
) -> None:
    with Antigravity(antigravity_python, tmp_path) as host:
        chat = host.open()
        big = shell("head -c 60000 /dev/zero | tr '\\0' x; echo")
        late = Call("run_command", {**shell("sleep 1; echo late").arguments, "WaitMsBeforeAsync": 100})
        chat.say(
            "Work.",
            Reply("big", (big,), tokens=70_000),
            Reply("late", (late,), tokens=72_000),
            Reply("wait", tokens=72_500),
            Reply("it ended", tokens=73_000),
        )
        anchors.assert_sound(host)
        (first_sight,) = injecting(host, chat.id)
        assert first_sight.event == "SessionStart"
        assert anchors.marks(host, chat.id)["compactions"] == 0
        assert anchors.marks(host, chat.id)["tokens"] == 73_000

"""A conversation of Antigravity from first sight to the end, by real hook processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hooks.driver import Antigravity, Host

RESTORED = "Pinned context, restored after compaction."


def checkpoint(host: Antigravity, number: int, text: str = "summary") -> None:
    host.step("CHECKPOINT", f"{{{{ CHECKPOINT {number} }}}}\n **The earlier parts have been truncated** {text}")


def test_a_whole_conversation_is_told_warned_and_restored_once_each(antigravity: Antigravity) -> None:
    host = antigravity
    host.pin("Shared rule", "never force-push", priority="high", shared=True)
    first = host.open()
    assert host.kind == "systemMessage"
    assert host.session in first
    assert "`pin_context`" in first
    assert "context-anchor_anchors" in first
    assert "| never force-push" in first
    checkpoint(host, 0)
    assert host.turn() == ""
    note = host.pin("API limit", "60 requests a minute 🙂", priority="critical")
    assert host.turn(80_000) == ""
    nudge = host.turn(240_000)
    assert host.kind == "ephemeralMessage"
    assert "estimated" in nudge
    assert note.id in nudge
    assert "limit of this model is not known" in nudge
    assert host.turn() == "", "each level once"
    host.step("RUN_COMMAND", "output")
    checkpoint(host, 1)
    text = host.event("PreInvocation", invocationNum=5)
    assert host.kind == "systemMessage"
    assert text.count(RESTORED) == 1
    assert text.index("| 60 requests a minute 🙂") < text.index("| never force-push")
    assert [host.turn(), host.turn(), host.turn()] == ["", "", ""]
    assert host.event("Stop", terminationReason="NO_TOOL_CALL") == ""
    assert host.marks["compactions"] == 1
    assert host.marks["last_receipt"]["delivered"] == "unknown"
    assert host.marks["tokens_measured"] is False
    assert host.failures == []


def test_a_receipt_that_the_model_cites_proves_delivery(antigravity: Antigravity) -> None:
    host = antigravity
    host.open()
    host.pin("Rule")
    host.turn()
    checkpoint(host, 1)
    text = host.event("PreInvocation")
    receipt = text[text.index("receipt r-") + 8 :][:12]
    host.step("PLANNER_RESPONSE", f"as noted in receipt {receipt}")
    assert host.event("PreInvocation") == ""
    assert host.marks["last_receipt"]["delivered"] == "yes"
    assert [host.turn(), host.turn()] == ["", ""]


def test_reported_tokens_are_used_where_a_build_has_them(antigravity: Antigravity) -> None:
    host = antigravity
    host.open()
    assert host.turn(tokens=79_000) == ""
    assert "80,500 tokens" in host.turn(tokens=80_500)
    assert host.marks["tokens_measured"] is True
    assert host.turn(tokens=90_000) == ""


def test_a_fall_of_reported_tokens_is_the_last_resort_and_a_late_checkpoint_is_the_same_one(
    antigravity: Antigravity,
) -> None:
    host = antigravity
    host.open()
    host.pin("Rule", "keep the API stable")
    host.turn(tokens=70_000)
    late = host.index + 1
    host.index += 1  # the checkpoint's place, written later
    assert RESTORED in host.turn(tokens=20_000)
    line = {"step_index": late, "source": "SYSTEM", "type": "CHECKPOINT", "status": "DONE",
            "content": "{{ CHECKPOINT 1 }}", "input_tokens": 90_000}  # fmt: skip
    host.write(line)
    assert host.event("PreInvocation") == ""
    assert host.turn(tokens=21_000) == ""
    assert host.marks["compactions"] == 1
    assert host.marks["tokens"] == 21_000


def test_the_size_of_before_a_checkpoint_never_counts_as_after_it(antigravity: Antigravity) -> None:
    host = antigravity
    host.open()
    host.turn(tokens=79_000)
    before = host.index
    checkpoint(host, 1)
    host.write({"step_index": before, "source": "MODEL", "type": "PLANNER_RESPONSE", "status": "DONE",
                "input_tokens": 150_000})  # fmt: skip
    host.event("PreInvocation")
    assert host.marks["tokens"] is None
    assert host.event("PreInvocation") == ""


def test_the_drop_ratio_is_a_setting(antigravity: Antigravity) -> None:
    host = antigravity
    host.env["CONTEXT_ANCHOR_DROP_RATIO"] = "0.3"
    host.open()
    host.pin("Rule")
    host.turn(tokens=70_000)
    assert host.turn(tokens=30_000) == ""
    host.turn(tokens=70_000)
    assert RESTORED in host.turn(tokens=20_000)


def test_an_edit_by_the_user_is_no_compaction(antigravity: Antigravity) -> None:
    host = antigravity
    host.open()
    host.pin("Rule")
    for _ in range(5):
        host.turn(tokens=70_000)
    host.index = 0
    host.step("USER_INPUT", "<USER_REQUEST>other</USER_REQUEST>")
    assert host.turn(tokens=12_000) == ""
    assert host.marks["compactions"] == 0


def test_a_subagents_conversation_gets_nothing_and_is_marked(antigravity: Antigravity) -> None:
    host = antigravity
    host.pin("Shared", shared=True)
    host.step("SYSTEM_MESSAGE", "You are a subagent")
    assert host.event("PreInvocation") == ""
    assert host.turn(400_000) == ""
    checkpoint(host, 1)
    assert host.event("PreInvocation") == ""
    assert host.record["subagent"] is True


def test_a_conversation_that_names_a_parent_is_a_subagents(antigravity: Antigravity) -> None:
    assert antigravity.event("PreInvocation", parentConversationId="conv-0") == ""
    assert antigravity.record["subagent"] is True


def test_without_a_workspace_there_are_session_notes_only_and_it_says_so(antigravity: Antigravity) -> None:
    host = antigravity
    host.pin("Shared", "not for this one", shared=True)
    text = host.event("PreInvocation", workspacePaths=[])
    assert "No workspace is named" in text
    assert "not for this one" not in text
    assert host.record["workspace_id"] == ""
    host.pin("Mine", "session only")
    host.step("USER_INPUT", "x")
    host.event("PreInvocation", workspacePaths=[])
    checkpoint(host, 1)
    text = host.event("PreInvocation", workspacePaths=[])
    assert "| session only" in text
    assert "No workspace is named" in text


def test_the_setting_gives_lasting_text_as_a_user_message_and_nudges_stay_ephemeral(
    antigravity: Antigravity,
) -> None:
    host = antigravity
    host.env["CONTEXT_ANCHOR_ANTIGRAVITY_STEP"] = "userMessage"
    host.open()
    assert host.kind == "userMessage"
    host.pin("Rule")
    host.turn(600_000)
    assert host.kind == "ephemeralMessage"
    checkpoint(host, 1)
    assert RESTORED in host.event("PreInvocation")
    assert host.kind == "userMessage"


def test_a_session_start_event_tells_it_and_the_first_invocation_does_not_again(antigravity: Antigravity) -> None:
    assert antigravity.session in antigravity.event("SessionStart")
    assert antigravity.open() == ""


def test_a_checkpoint_number_that_was_seen_is_not_new_and_after_a_rewind_new_text_is(
    antigravity: Antigravity,
) -> None:
    host = antigravity
    host.open()
    host.pin("Rule")
    host.turn()
    checkpoint(host, 1)
    assert RESTORED in host.event("PreInvocation")
    checkpoint(host, 1)
    assert host.event("PreInvocation") == ""
    host.index = 0
    host.step("USER_INPUT", "edited")
    host.turn()
    checkpoint(host, 1, "another summary")
    assert RESTORED in host.event("PreInvocation")


@pytest.mark.parametrize("name", ["transcript.jsonl", "transcript_full.jsonl"])
def test_whichever_transcript_is_named_the_unclipped_one_is_read(antigravity: Antigravity, name: str) -> None:
    host = antigravity
    path = str(host.transcript.with_name(name))
    host.event("PreInvocation", transcriptPath=path)
    host.pin("Rule")
    lines = [
        {"step_index": 0, "type": "USER_INPUT", "content": "x"},
        {"step_index": 1, "type": "CHECKPOINT", "content": "{{ CHECKPOINT 1 }}"},
    ]
    host.transcript.with_name("transcript_full.jsonl").write_text("".join(json.dumps(v) + "\n" for v in lines))
    host.transcript.write_text(json.dumps(lines[0]) + "\n")
    assert RESTORED in host.event("PreInvocation", transcriptPath=path)
    assert host.event("PreInvocation", transcriptPath=path) == ""


def test_a_transcript_that_the_host_rewrites_at_a_compaction_is_one_compaction(antigravity: Antigravity) -> None:
    host = antigravity
    host.open()
    host.pin("Rule")
    for _ in range(10):
        host.turn(tokens=70_000)
    kept = host.transcript.read_bytes().splitlines(keepends=True)[-4:]
    replacement = host.transcript.with_name("new")
    checkpoint(host, 1)
    last = host.transcript.read_bytes().splitlines(keepends=True)[-1]
    replacement.write_bytes(b"".join([*kept, last]))
    replacement.replace(host.transcript)
    assert RESTORED in host.event("PreInvocation")
    assert [host.turn(tokens=20_000), host.turn(tokens=21_000)] == ["", ""]
    assert host.marks["compactions"] == 1


def test_a_file_that_is_rewritten_without_a_compaction_repeats_nothing(antigravity: Antigravity) -> None:
    host = antigravity
    host.open()
    host.pin("Rule")
    host.turn(tokens=60_000)
    checkpoint(host, 1)
    assert RESTORED in host.event("PreInvocation")
    for tokens in (20_000, 40_000, 70_000):
        host.turn(tokens=tokens)
    raw = host.transcript.read_bytes()
    replacement = host.transcript.with_name("new")
    replacement.write_bytes(raw)
    replacement.replace(host.transcript)
    assert host.event("PreInvocation") == ""
    assert host.turn(tokens=71_000) == ""
    assert host.marks["compactions"] == 1


def test_two_conversations_in_one_workspace_keep_apart(antigravity: Antigravity) -> None:
    one, two = antigravity, replace(antigravity, session="conv-2")
    one.open()
    two.open()
    one.pin("Of one", "first conversation")
    two.pin("Of two", "second conversation")
    one.turn()
    two.turn()
    checkpoint(one, 1)
    assert two.turn() == ""
    text = one.event("PreInvocation")
    assert "| first conversation" in text
    assert "second conversation" not in text
    checkpoint(two, 1)
    assert "| second conversation" in two.event("PreInvocation")


def test_the_notes_of_a_workspace_are_shared_by_the_hosts(antigravity: Antigravity, claude: Host) -> None:
    claude.pin("Shared", "pinned in the other host", shared=True)
    assert Path(antigravity.project) == Path(claude.project)
    assert "| pinned in the other host" in antigravity.open()

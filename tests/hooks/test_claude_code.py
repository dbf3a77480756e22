"""A session of Claude Code from first sight to the end, by real hook processes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hooks.driver import Claude

TOOL = "mcp__plugin_context-anchor_anchors__pin_context"
RESTORED = "Pinned context, restored after compaction."
RECEIPT = re.compile(r"receipt (r-[0-9a-f]{10})\b")


def receipt(text: str) -> str:
    found: list[str] = RECEIPT.findall(text)
    assert len(found) == 1, text
    return found[0]


def compacted(claude: Claude, delivered: bool = True) -> str:
    """Compact as 2.1.332 does; return what SessionStart(compact) gave."""
    claude.event("PreCompact", trigger="auto", custom_instructions=None)
    text = claude.event("SessionStart", source="compact", model=claude.model)
    claude.event("PostCompact", trigger="auto", compact_summary="...")
    claude.boundary()
    if text and delivered:
        claude.trace(text)
    return text


def test_a_whole_session_is_told_warned_and_restored_once_each(claude: Claude) -> None:
    claude.pin("Shared rule", "never force-push", priority="high", shared=True)
    first = claude.event("SessionStart", source="startup")
    assert claude.session in first
    assert TOOL in first
    assert "| never force-push" in first
    claude.trace(first)
    claude.user()
    assert claude.event("UserPromptSubmit", prompt="go") == ""
    assert claude.at(40_000) == ""

    secret = claude.pin("API limit", "60 requests a minute 🙂", priority="critical", category="constraint")
    plain = claude.pin("Where the parser lives", "src/parse.py", category="file_map")
    nudges = [claude.at(tokens) for tokens in (100_100, 101_000, 102_000, 134_000, 135_000, 154_000, 166_900)]
    assert [bool(text) for text in nudges] == [False, True, False, True, False, True, False]
    nudge = nudges[1]
    for part in ("101,000 tokens", "167,000", TOOL, secret.id, "API limit"):
        assert part in nudge
    assert len({receipt(n) for n in nudges if n}) == 3
    assert claude.at(167_100) == "", "too late: the host compacts before the next request"

    before = claude.event("PreCompact", trigger="auto", custom_instructions=None)
    assert secret.id in before
    assert "API limit" in before
    assert plain.id not in before
    assert "receipt" not in before
    assert "<" not in before
    text = claude.event("SessionStart", source="compact", model=claude.model)
    assert text.count(RESTORED) == 1
    assert "recap" in text
    at = [text.index(part) for part in ("| 60 requests a minute 🙂", "| never force-push", "| src/parse.py")]
    assert at == sorted(at), "critical, then high, then normal"
    assert claude.event("PostCompact", trigger="auto", compact_summary="...") == ""
    claude.boundary()
    claude.trace(text)
    claude.user()
    assert claude.event("UserPromptSubmit", prompt="continue") == ""
    assert claude.at(45_000) == ""
    assert claude.at(60_000) == ""
    assert claude.marks["compactions"] == 1
    assert claude.marks["last_receipt"]["delivered"] == "yes"
    assert claude.marks["last_receipt"]["id"] == receipt(text)

    assert claude.at(101_000) != "", "each level counts anew after a compaction"
    assert claude.event("Stop", stop_hook_active=False) == ""
    assert claude.event("SessionEnd", reason="other") == ""
    assert claude.record["ended_at"] > 0
    assert claude.record["end_reason"] == "other"
    assert claude.failures == []


def test_the_size_is_unknown_between_a_boundary_and_the_next_answer(claude: Claude) -> None:
    claude.open()
    claude.at(150_000)
    compacted(claude)
    assert claude.event("UserPromptSubmit", prompt="x") == ""
    assert claude.marks["tokens"] is None


def test_a_boundary_without_the_start_event_is_recovered_at_the_next_turn_once(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    claude.boundary()
    text = claude.event("UserPromptSubmit", prompt="x")
    assert text.count(RESTORED) == 1
    assert "| keep the API stable" in text
    claude.trace(text, "UserPromptSubmit")
    assert [claude.at(50_000), claude.event("UserPromptSubmit", prompt="y"), claude.at(51_000)] == ["", "", ""]


def test_a_boundary_in_a_tool_loop_is_recovered_after_the_batch(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    claude.boundary()
    claude.answer(40_000)
    assert RESTORED in claude.event("PostToolBatch", tool_calls=[])
    claude.trace(claude.last, "PostToolBatch")
    assert claude.at(41_000) == ""


@pytest.mark.parametrize("lines", [1, 2])
def test_what_was_handed_over_and_never_reached_the_model_is_given_once_more(claude: Claude, lines: int) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    first = compacted(claude, delivered=False)
    assert RESTORED in first
    if lines == 2:
        claude.event("Stop")  # the boundary is seen before the answer is
    claude.answer(40_000)
    again = claude.event("UserPromptSubmit", prompt="x")
    assert RESTORED in again
    assert receipt(again) != receipt(first)
    assert [claude.at(41_000), claude.event("UserPromptSubmit", prompt="y"), claude.at(42_000)] == ["", "", ""]


def test_what_was_given_again_is_not_given_a_third_time_after_the_next_compaction_either(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    for _ in range(2):
        first = compacted(claude, delivered=False)
        claude.answer(40_000)
        again = claude.event("UserPromptSubmit", prompt="x")
        assert RESTORED in first
        assert RESTORED in again
        assert claude.at(41_000) == ""
        assert claude.event("UserPromptSubmit", prompt="y") == ""


def test_where_the_host_records_no_injections_nothing_is_repeated(claude: Claude) -> None:
    claude.event("SessionStart", source="startup")  # no trace of it is ever written
    claude.user()
    claude.answer(30_000)
    claude.event("UserPromptSubmit", prompt="x")
    claude.pin("Rule")
    compacted(claude, delivered=False)
    claude.answer(40_000)
    assert claude.event("UserPromptSubmit", prompt="x") == ""
    assert claude.marks["last_receipt"]["delivered"] == "unknown"


def test_a_late_flush_is_not_taken_for_a_lost_recovery(claude: Claude) -> None:
    """2.1.197 writes boundary and trace some 100 ms after the next prompt's hook has run."""
    claude.open()
    claude.pin("Rule")
    text = claude.event("SessionStart", source="compact")
    assert RESTORED in text
    assert claude.event("UserPromptSubmit", prompt="x") == ""
    claude.boundary()
    claude.trace(text)
    claude.answer(40_000)
    assert claude.event("PostToolBatch", tool_calls=[]) == ""
    assert claude.event("UserPromptSubmit", prompt="y") == ""
    assert claude.marks["compactions"] == 1


def test_an_answer_of_before_the_compaction_that_is_flushed_late_proves_nothing(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule")
    claude.answer(166_000, timestamp="2026-01-01T00:00:00.000Z")
    text = claude.event("SessionStart", source="compact")
    claude.answer(166_500, timestamp="2026-01-01T00:00:01.000Z")
    assert claude.event("UserPromptSubmit", prompt="x") == ""
    claude.boundary()
    claude.trace(text)
    claude.answer(40_000)
    assert claude.event("PostToolBatch", tool_calls=[]) == ""


@pytest.mark.parametrize("start_event", [True, False])
def test_a_subagents_compaction_without_agent_fields_does_not_use_up_the_main_sessions(
    claude: Claude, start_event: bool
) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    assert RESTORED in claude.event("SessionStart", source="compact")  # lands in the subagent
    assert claude.at(60_000) == ""  # the main session answers, and no boundary is in its file
    assert claude.at(61_000) == ""
    assert claude.marks["compactions"] == 0
    if start_event:
        text = compacted(claude)
    else:
        claude.boundary()
        text = claude.event("UserPromptSubmit", prompt="x")
        claude.trace(text, "UserPromptSubmit")
    assert RESTORED in text
    assert claude.at(40_000) == ""
    assert claude.marks["compactions"] == 1


def test_events_of_subagents_give_nothing_and_use_nothing_up(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule", priority="critical")
    claude.answer(140_000)
    agent = {"agent_id": "agent-7", "agent_type": "general-purpose"}
    for name in ("PostToolBatch", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop"):
        assert claude.event(name, **agent) == ""
    assert claude.event("SessionStart", source="compact", **agent) == ""
    assert "tokens" in claude.event("PostToolBatch", tool_calls=[])
    claude.boundary()
    assert claude.event("PostToolBatch", tool_calls=[], **agent) == ""
    assert RESTORED in claude.event("PostToolBatch", tool_calls=[])


def test_a_resume_gives_the_changed_anchors_alone(claude: Claude) -> None:
    kept = claude.pin("Kept", "same as ever", shared=True)
    changing = claude.pin("Changing", "first form", shared=True)
    first = claude.open()
    assert "| first form" in first
    assert claude.event("SessionStart", source="resume") == ""
    claude.pin("Changing", "second form", shared=True)
    new = claude.pin("New", "a third note")
    text = claude.event("SessionStart", source="resume")
    assert "| second form" in text
    assert "| a third note" in text
    assert kept.id not in text
    assert {changing.id, new.id} <= set(re.findall(r"a-[0-9a-f]{10}", text))
    assert claude.event("SessionStart", source="resume") == ""
    assert claude.event("UserPromptSubmit", prompt="x") == ""


def test_a_resume_after_a_recovery_gives_nothing_and_one_before_it_gives_it_once(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    compacted(claude)
    claude.answer(40_000)
    claude.event("Stop")
    assert claude.event("SessionStart", source="resume") == ""
    claude.boundary()
    claude.event("Stop")  # seen, and no event could give it since
    text = claude.event("SessionStart", source="resume")
    assert RESTORED in text
    claude.trace(text)
    assert claude.event("UserPromptSubmit", prompt="x") == ""
    assert claude.at(40_000) == ""


def test_a_session_that_is_resumed_before_it_was_ever_seen_is_told_everything(claude: Claude) -> None:
    claude.user()
    claude.answer(120_000)
    claude.pin("Rule", "keep the API stable", shared=True)
    text = claude.event("SessionStart", source="resume")
    assert claude.session in text
    assert "| keep the API stable" in text
    assert "fork" not in text


def test_a_plugin_that_is_new_in_a_running_session_is_introduced_at_the_next_prompt(claude: Claude) -> None:
    claude.user()
    claude.answer(140_000)
    claude.boundary()
    claude.answer(50_000)
    text = claude.event("UserPromptSubmit", prompt="x")
    assert claude.session in text
    assert TOOL in text
    assert claude.event("UserPromptSubmit", prompt="y") == "", "an old compaction is history"


def test_clear_starts_a_session_that_names_the_old_one_and_its_notes(claude: Claude) -> None:
    claude.open()
    old = claude.session
    claude.pin("One")
    claude.pin("Two")
    claude.pin("Shared", "stays", shared=True)
    claude.event("SessionEnd", reason="clear")
    claude.session = "22222222-2222-4333-8444-555555555555"
    text = claude.event("SessionStart", source="clear")
    assert old in text
    assert "2 session note" in text
    assert "| stays" in text
    assert "One" not in text
    assert claude.record["cleared_from"] == old
    assert claude.event("UserPromptSubmit", prompt="x") == ""


def test_a_clear_in_another_process_is_not_ours(claude: Claude) -> None:
    claude.open()
    claude.event("SessionEnd", reason="clear")
    other = replace(claude, session="33333333-2222-4333-8444-555555555555", pid=999)
    assert claude.session not in other.event("SessionStart", source="clear")


def test_a_second_compaction_is_recovered_too(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule")
    texts = []
    for _ in range(3):
        texts.append(compacted(claude))
        assert claude.at(50_000) == ""
    assert all(RESTORED in text for text in texts)
    assert len({receipt(text) for text in texts}) == 3
    assert claude.marks["compactions"] == 3


def test_two_compactions_seen_in_one_look_are_one_recovery(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule")
    claude.boundary()
    claude.answer(40_000)
    claude.boundary()
    assert RESTORED in claude.event("UserPromptSubmit", prompt="x")
    assert claude.event("UserPromptSubmit", prompt="y") == ""
    assert claude.marks["compactions"] == 2


def test_a_boundary_copied_in_again_is_no_new_compaction(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule")
    start = claude.transcript.read_bytes()
    claude.boundary()
    lines = claude.transcript.read_bytes()[len(start) :]
    assert RESTORED in claude.event("UserPromptSubmit", prompt="x")
    claude.trace(claude.last, "UserPromptSubmit")
    claude.answer(40_000)
    with claude.transcript.open("ab") as out:
        out.write(lines)
    assert claude.event("UserPromptSubmit", prompt="y") == ""
    assert claude.at(41_000) == ""


def test_after_a_compaction_with_nothing_pinned_one_line_says_how_to_pin_once(claude: Claude) -> None:
    claude.open()
    text = compacted(claude)
    assert claude.session in text
    assert TOOL in text
    assert RESTORED not in text
    assert claude.at(40_000) == ""
    assert claude.event("UserPromptSubmit", prompt="x") == ""


@pytest.mark.parametrize(("value", "recap"), [("", True), ("true", True), ("false", False), ("0", False)])
def test_the_recap_is_asked_for_unless_it_is_switched_off(claude: Claude, value: str, recap: bool) -> None:
    claude.env["CONTEXT_ANCHOR_POST_COMPACT_RECAP"] = value
    claude.open()
    claude.pin("Rule")
    text = compacted(claude)
    assert RESTORED in text
    assert ("recap" in text) is recap


def test_the_users_nudge_variables_win_over_the_hosts_threshold(claude: Claude) -> None:
    claude.env.update(CONTEXT_ANCHOR_NUDGE_START_TOKENS="35000", CONTEXT_ANCHOR_NUDGE_INTERVAL_TOKENS="10000")
    claude.open()
    sizes = range(32_000, 60_000, 2000)
    assert [tokens for tokens in sizes if claude.at(tokens)] == [36_000, 46_000, 56_000]


def test_an_unknown_model_is_nudged_at_absolute_levels_and_told_so(claude: Claude) -> None:
    claude.model = "some-gateway/model"
    claude.open()
    assert claude.at(79_000) == ""
    assert "limit of this model is not known" in claude.at(80_000)
    assert claude.at(81_000) == ""


def test_a_resume_that_lowers_the_size_rearms_the_levels_above(claude: Claude) -> None:
    claude.open()
    assert claude.at(135_000)
    assert claude.at(60_000) == ""
    assert claude.at(101_000)
    assert claude.marks["compactions"] == 0


def test_the_bundle_stays_below_the_cap_and_names_what_it_leaves_out(claude: Claude) -> None:
    claude.open()
    notes = [
        claude.pin(f"Note {n:02d}", "🙂" * 900, priority="critical" if n == 7 else "normal") for n in range(12)
    ]
    text = compacted(claude)
    assert len(text.encode("utf-16-le")) // 2 <= 9900
    assert text.index(notes[7].id) < min(text.index(n.id) for n in notes if n is not notes[7])
    assert all(n.id in text for n in notes)
    assert "get_pinned_context" in text
    assert 3 <= text.count("🙂" * 900) < 12


def test_the_users_own_limit_on_injections_holds(claude: Claude) -> None:
    claude.env["CONTEXT_ANCHOR_MAX_INJECT_CHARS"] = "2000"
    claude.open()
    for n in range(12):
        claude.pin(f"Note {n}", "x" * 300)
    assert len(compacted(claude)) <= 2000


def test_a_ref_that_is_gone_is_named_as_missing(claude: Claude) -> None:
    (claude.project / "here.py").write_text("")
    claude.open()
    claude.pin("Files", "see refs", refs=[str(claude.project / "here.py"), str(claude.project / "gone.py")])
    head = compacted(claude).split("\n## ")[0]
    assert "gone.py" in head
    assert "here.py" not in head


def test_a_call_of_our_own_tools_is_noted_for_the_server_and_others_are_not(claude: Claude) -> None:
    from context_anchor.wire import registry

    assert claude.event("PreToolUse", tool_name=TOOL, tool_use_id="toolu_1", tool_input={}) == ""
    assert claude.event("PreToolUse", tool_name="Bash", tool_use_id="toolu_2", tool_input={}) == ""
    found = registry.find_call(str(claude.data), "toolu_1")
    assert found is not None
    assert found[:2] == ("claude-code", claude.session)
    assert registry.find_call(str(claude.data), "toolu_2") is None


def test_the_record_says_where_a_session_is_and_which_process_holds_it(claude: Claude) -> None:
    from context_anchor.wire import registry, workspace

    claude.open()
    claude.at(40_000)
    record = claude.record
    assert (record["workspace_id"], record["workspace_root"]) == workspace.identify(str(claude.project))
    assert (record["model"], record["version"]) == (claude.model, "2.1.332")
    assert record["transcript_path"] == str(claude.transcript)
    holder = registry.by_process(str(claude.data), claude.pid)
    assert holder == ("claude-code", claude.session, record["started_at"])
    assert set(claude.marks["events"]) == {"SessionStart", "UserPromptSubmit", "PostToolBatch"}

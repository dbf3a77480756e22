"""Readers over lines that real hosts wrote."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from context_anchor.hosts import antigravity, claude_code
from context_anchor.watch import compaction

RECORDED = Path(__file__).resolve().parents[1] / "fixtures" / "transcripts"
COMPACTIONS = ("boundary", "summary", "checkpoint", "drop")


def signals(host: ModuleType, name: str) -> list[tuple[Any, ...]]:
    lines = (RECORDED / name).read_bytes().splitlines()
    return [s for n, line in enumerate(lines) for s in host.read_line(line, n == 0)]


def verdicts(host: ModuleType, found: list[tuple[Any, ...]]) -> list[str]:
    state = compaction.start()
    known = [s for s in found if s[0] not in ("trace", "subagent", "model", "version")]
    every = [compaction.advance(state, s, drops=host.DROPS_ARE_COMPACTIONS) for s in known]
    return [v for v in every if v in COMPACTIONS]


def test_a_resume_with_a_synthetic_answer_and_then_a_manual_compaction_is_one_compaction() -> None:
    found = signals(claude_code, "claude-code-resume-then-compact.jsonl")
    samples = [s[2] for s in found if s[0] == "sample"]
    assert samples[0] == 8 + 468 + 148_834 + 1
    assert 0 not in samples
    assert samples[-1] < 80_000
    assert verdicts(claude_code, found) == ["boundary"]


def test_two_records_on_one_line_lose_neither_and_one_message_is_one_size() -> None:
    found = signals(claude_code, "claude-code-two-records-on-a-line.jsonl")
    assert [(s[1], s[2]) for s in found if s[0] == "sample"] == [("msg_01Q6cn6FTRN2yHUYVw8q2pUK", 130_141)] * 2
    assert verdicts(claude_code, found) == []


def test_usage_of_subagents_in_progress_lines_and_tool_results_is_not_the_sessions() -> None:
    raw = (RECORDED / "claude-code-subagent-usage.jsonl").read_bytes()
    assert raw.count(b'"usage"') >= 3
    assert signals(claude_code, "claude-code-subagent-usage.jsonl") == []


def test_checkpoint_0_and_a_resumed_conversation_are_no_compaction() -> None:
    found = signals(antigravity, "antigravity-checkpoint-0.jsonl")
    assert [s[1] for s in found if s[0] == "checkpoint"] == [0]
    assert verdicts(antigravity, found) == []


def test_a_checkpoint_written_behind_later_steps_is_one_compaction_and_no_rewind() -> None:
    found = signals(antigravity, "antigravity-checkpoint-late.jsonl")
    [checkpoint] = [s for s in found if s[0] == "checkpoint"]
    assert checkpoint[1] == 1
    assert checkpoint[4] < max(s[1] for s in found if s[0] == "step")
    assert verdicts(antigravity, found) == ["checkpoint"]


def test_no_recorded_line_is_mistaken_for_a_receipt_or_a_subagent() -> None:
    for path in RECORDED.glob("*.jsonl"):
        host = claude_code if path.name.startswith("claude") else antigravity
        assert not [s for s in signals(host, path.name) if s[0] in ("trace", "subagent")]

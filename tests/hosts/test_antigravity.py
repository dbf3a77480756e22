"""Antigravity: payloads, transcript lines to signals, documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.hosts import antigravity
from context_anchor.watch import compaction


def line(kind: str, index: Any = 5, **fields: Any) -> bytes:
    return json.dumps({"step_index": index, "type": kind, "status": "DONE", **fields}).encode()


def read(raw: bytes, at_start: bool = False) -> list[tuple[Any, ...]]:
    return list(antigravity.read_line(raw, at_start))


def test_reported_tokens_are_input_plus_cache_and_numbers_may_be_text() -> None:
    raw = line("PLANNER_RESPONSE", input_tokens="4876", cache_read_tokens=8134, output_tokens=99)
    assert ("sample", "", 13_010, 5) in read(raw)
    for absent in (0, -1, True, None, "x", "²", 1.5, "9" * 30, 10**300):
        assert not [s for s in read(line("PLANNER_RESPONSE", input_tokens=absent)) if s[0] == "sample"]


def test_the_tokens_of_a_checkpoint_are_the_summary_calls_and_no_size() -> None:
    raw = line("CHECKPOINT", content="{{ CHECKPOINT 2 }} text", input_tokens=9000)
    [signal] = read(raw)
    assert signal[:2] == ("checkpoint", 2)
    assert signal[3:] == (23, 5)


@pytest.mark.parametrize(
    ("content", "number"),
    [("{{ CHECKPOINT 0 }}", 0), ("{{ CHECKPOINT 12 }}\n **x", 12), ("{{CHECKPOINT 3}}", 3),
     ("  {{ CHECKPOINT 4 }}", 4),
     ("# Resuming from a compaction", None), ("", None), ("CHECKPOINT 5", None), ("{{ CHECKPOINT x }}", None),
     ("{{ CHECKPOINT ² }}", None), ("x" * 300 + "{{ CHECKPOINT 6 }}", None)],
)  # fmt: skip
def test_the_number_of_a_checkpoint_is_that_of_its_mark(content: str, number: int | None) -> None:
    assert antigravity.checkpoint_number(content) == number


def test_clipped_text_counts_with_what_the_log_left_out() -> None:
    clipped = line("RUN_COMMAND", content="a" * 40 + "<truncated 4000 bytes>" + "b" * 40)
    [size] = [s[1] for s in read(clipped) if s[0] == "text"]
    assert 1010 <= size <= 1040
    calls = [{"name": "x", "args": {"Code": "<truncated 8000 bytes>"}}]
    [size] = [s[1] for s in read(line("PLANNER_RESPONSE", thinking="t" * 400, tool_calls=calls)) if s[0] == "text"]
    assert 2100 <= size <= 2150
    for odd in ("<truncated ² bytes>", "<truncated  bytes>", "<truncated 5", "<truncated " + "9" * 25 + " bytes>"):
        assert antigravity._clipped(odd) == 0


def test_what_comes_and_goes_is_not_estimated() -> None:
    assert not [s for s in read(line("EPHEMERAL_MESSAGE", content="x" * 4000)) if s[0] == "text"]


def test_a_conversation_that_starts_with_a_system_message_is_a_subagents() -> None:
    assert ("subagent",) in read(line("SYSTEM_MESSAGE", 0, content="x"), at_start=True)
    assert ("subagent",) not in read(line("SYSTEM_MESSAGE", 6, content="x"))
    assert ("subagent",) not in read(line("USER_INPUT", 0, content="x"), at_start=True)


def test_a_receipt_that_the_model_cites_is_a_trace_and_others_are_not() -> None:
    assert ("trace", "r-0123456789") in read(line("PLANNER_RESPONSE", content="see receipt r-0123456789 above"))
    assert ("trace", "r-0123456789") not in read(line("USER_INPUT", content="see receipt r-0123456789"))


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"null", b"[]", b'"step_index" "type"', line("X", True), line("X", None), line("X", "5"),
     line("X", 1.5),
     json.dumps({"step_index": 1, "type": 5}).encode(), b'indow","step_index":5,"type":"PLANNER_RESPONSE"}'],
)  # fmt: skip
def test_a_line_of_another_shape_gives_no_signal(raw: bytes) -> None:
    assert read(raw, at_start=True) == []


NASTY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.sampled_from(["{{ CHECKPOINT 3 }}", "<truncated 5 bytes>", "<truncated", "receipt r-0123456789"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(
    st.sampled_from(["USER_INPUT", "PLANNER_RESPONSE", "CHECKPOINT", "GENERIC", "EPHEMERAL_MESSAGE", "NEW"]),
    st.integers(-5, 50) | st.integers(),
    st.dictionaries(
        st.sampled_from(["content", "thinking", "tool_calls", "input_tokens", "cache_read_tokens", "status"]), NASTY
    ),
    st.integers(0, 9),
)
def test_no_line_whatever_its_shape_raises_or_gives_a_signal_that_the_judge_refuses(
    kind: str, index: int, fields: dict[str, Any], cut: int
) -> None:
    raw = line(kind, index, **fields)
    state = compaction.start()
    for text in (raw, raw[: len(raw) - cut], raw[cut:], raw + raw):
        for signal in antigravity.read_line(text, True):
            if signal[0] not in ("trace", "subagent"):
                compaction.advance(state, signal, drops=True)
    assert isinstance(json.dumps(state), str)


def test_the_unclipped_sibling_is_read_where_it_is_there(tmp_path: Path) -> None:
    clipped, full = tmp_path / "transcript.jsonl", tmp_path / "transcript_full.jsonl"
    clipped.write_bytes(b"")
    assert antigravity.transcript_files(str(clipped)) == str(clipped)
    full.write_bytes(b"")
    assert antigravity.transcript_files(str(clipped)) == str(full)
    assert antigravity.transcript_files(str(full)) == str(full)
    assert antigravity.transcript_files(str(tmp_path / "other.jsonl")) == str(tmp_path / "other.jsonl")


def test_a_payload_is_taken_by_type_and_the_id_may_come_from_the_environment() -> None:
    raw = {"conversationId": 5, "workspacePaths": ["/a", 7, "", "file:///b"], "parentConversationId": "p"}
    ev = antigravity.read_payload("Stop", raw, {"ANTIGRAVITY_CONVERSATION_ID": "c"})
    assert (ev["session_id"], ev["folders"], ev["parent"]) == ("c", ["/a", "/b"], "p")
    assert antigravity.read_payload("Stop", {"workspacePaths": "x"}, {})["folders"] == []
    assert antigravity.read_payload("Stop", {}, {})["session_id"] == ""


def test_a_folder_given_as_an_address_is_decoded() -> None:
    ev = antigravity.read_payload("Stop", {"workspacePaths": ["file:///a%20b/%C3%BC"]}, {})
    assert ev["folders"] == ["/a b/ü"]
    odd = ["file:///100%", "file:///%zz%4", "file:///C:/x", "/plain%20path"]
    folders = antigravity.read_payload("Stop", {"workspacePaths": odd}, {})["folders"]
    assert folders == ["/100%", "/%zz%4", "C:/x", "/plain%20path"]


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=60))
def test_documents_are_one_injected_step_of_one_field(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONTEXT_ANCHOR_ANTIGRAVITY_STEP", raising=False)
        lasting = antigravity.respond("PreInvocation", text, "recovery")
        nudge = antigravity.respond("PreInvocation", text, "nudge")
        patch.setenv("CONTEXT_ANCHOR_ANTIGRAVITY_STEP", "userMessage")
        other = antigravity.respond("PreInvocation", text, "recovery")
        other_nudge = antigravity.respond("PreInvocation", text, "nudge")
    assert json.loads(lasting) == {"injectSteps": [{"systemMessage": {"systemMessage": text}}]}
    assert json.loads(nudge) == json.loads(other_nudge) == {"injectSteps": [{"ephemeralMessage": text}]}
    assert json.loads(other) == {"injectSteps": [{"userMessage": text}]}
    assert (lasting + nudge + other).isascii()


def test_stop_and_silence_are_an_empty_object() -> None:
    assert antigravity.respond("Stop", "text", "start") == "{}"
    assert antigravity.respond("PreInvocation", "", "nudge") == "{}"

"""Claude Code: payloads, transcript lines to signals, documents."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.hosts import claude_code
from context_anchor.watch import compaction

RECEIPT = "r-0123456789"


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def answer(tokens: int = 1000, *, message: str = "msg_1", **fields: Any) -> bytes:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 90, "cache_read_input_tokens": tokens - 100,
             "output_tokens": 7}  # fmt: skip
    body = {"id": message, "model": "claude-opus-4-6", "role": "assistant", "content": [], "usage": usage}
    body.update(fields.pop("message_fields", {}))
    row = {"type": "assistant", "uuid": "u1", "isSidechain": False, "version": "2.1.332", "message": body}
    return line(**(row | fields))


def read(raw: bytes) -> list[tuple[Any, ...]]:
    return list(claude_code.read_line(raw))


def kinds(raw: bytes) -> set[str]:
    return {signal[0] for signal in read(raw)}


def sizes(raw: bytes) -> list[int]:
    return [s[2] for s in read(raw) if s[0] == "sample"]


def test_the_size_is_the_sum_of_the_input_fields_and_the_output() -> None:
    assert sizes(answer(50_000)) == [50_007]
    assert ("model", "claude-opus-4-6") in read(answer())
    assert ("version", "2.1.332") in read(answer())


@pytest.mark.parametrize(
    "usage",
    [{"input_tokens": 5}, {"input_tokens": 5, "cache_read_input_tokens": None},
     {"input_tokens": 5, "cache_read_input_tokens": True, "output_tokens": "9"},
     {"input_tokens": 5, "cache_read_input_tokens": -3}, {"input_tokens": 5, "output_tokens": 10**400}],
)  # fmt: skip
def test_missing_fields_and_what_is_no_number_count_as_zero(usage: dict[str, Any]) -> None:
    assert sizes(answer(message_fields={"usage": usage})) == [5]


@pytest.mark.parametrize(
    "raw",
    [
        answer(isSidechain=True),
        answer(message_fields={"model": "<synthetic>"}),
        answer(isApiErrorMessage=True),
        answer(message_fields={"usage": {"input_tokens": 0, "output_tokens": 900}}),
        answer(message_fields={"usage": None}),
        line(type="assistant", message="text", usage={}),
        line(type="progress", data={"message": {"message": {"usage": {"input_tokens": 9}}}}),
        line(type="user", toolUseResult={"usage": {"input_tokens": 9}}),
        line(type="api-request", message={"usage": {"input_tokens": 9}}),
        line(type="user", message={"content": '{"type":"assistant","message":{"usage":{"input_tokens":9}}}'}),
    ],
)
def test_rows_that_are_no_size_of_the_session_give_none(raw: bytes) -> None:
    assert sizes(raw) == []


def test_a_boundary_and_its_summary_name_each_other() -> None:
    boundary = line(
        type="system", subtype="compact_boundary", uuid="b1",
        compactMetadata={"trigger": "auto", "preTokens": 167_000, "postTokens": 900,
                         "preservedMessages": {"allUuids": ["u7", 5, "u8"]}},
    )  # fmt: skip
    summary = line(type="user", isCompactSummary=True, parentUuid="b1", uuid="s1", message={"content": "..."})
    assert read(boundary) == [("boundary", "b1", ["u7", "u8"])]
    assert read(summary) == [("summary", "b1", "s1")]


def test_post_tokens_is_never_taken_for_the_size() -> None:
    boundary = line(type="system", subtype="compact_boundary", uuid="b", compactMetadata={"postTokens": 851})
    assert kinds(boundary) == {"boundary"}


@pytest.mark.parametrize(
    "metadata", [None, 5, [], {"preservedMessages": 5}, {"preservedMessages": {"allUuids": 5}}]
)
def test_a_boundary_counts_whatever_its_metadata_are(metadata: Any) -> None:
    raw = line(type="system", subtype="compact_boundary", uuid=5, compactMetadata=metadata)
    assert kinds(raw) == {"boundary"}


@pytest.mark.parametrize(
    "raw",
    [
        line(type="system", subtype="microcompact_boundary", content="compact_boundary"),
        line(type="system", subtype="compact_boundary", isSidechain=True, uuid="b"),
        line(type="user", isCompactSummary="true", message={}),
        line(type="user", isCompactSummary=True, isSidechain=True),
        line(type="user", message={"content": '{"subtype":"compact_boundary","isCompactSummary":true}'}),
        line(type="attachment", attachment={"type": "file", "content": "compact_boundary"}),
    ],
)
def test_what_only_speaks_of_a_compaction_is_none(raw: bytes) -> None:
    assert not kinds(raw) & {"boundary", "summary"}


def test_only_what_the_host_added_counts_as_a_trace() -> None:
    text = f"context-anchor receipt {RECEIPT} | session s"
    added = line(type="attachment", attachment={"type": "hook_additional_context", "content": [text]})
    ran = line(type="attachment", attachment={"type": "hook_success", "stdout": text, "content": ""})
    said = line(type="user", message={"content": text})
    assert read(added) == [("trace", RECEIPT)]
    assert read(ran) == read(said) == []


def test_receipts_are_told_from_what_only_looks_like_one() -> None:
    text = f"receipt r-xyz receipt r-012345678 receipt r-012345678G receipt {RECEIPT}receipt r-abcdef0123"
    assert list(claude_code.traces(text)) == [("trace", RECEIPT), ("trace", "r-abcdef0123")]


NASTY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.sampled_from(["assistant", "system", "user", "attachment", "compact_boundary", "hook_additional_context",
                       f"context-anchor receipt {RECEIPT}"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["type", "subtype", "message", "usage", "id", "model", "uuid", "content", "attachment",
                         "input_tokens", "isCompactSummary", "compactMetadata", "preservedMessages", "allUuids"]),
        inner, max_size=8,
    ),
    max_leaves=25,
)  # fmt: skip


@given(NASTY, st.sampled_from(["assistant", "system", "user", "attachment", 5]), st.integers(0, 9))
def test_no_line_whatever_its_shape_raises_or_gives_a_signal_that_the_judge_refuses(
    value: Any, kind: Any, cut: int
) -> None:
    fields = value if isinstance(value, dict) else {"message": value, "attachment": value}
    raw = json.dumps({**fields, "type": kind, "x": '"usage" compact_boundary isCompactSummary'}).encode()
    raw = raw[:-1] + b',"usage":0,"k":"context-anchor receipt r-"}'
    state = compaction.start()
    for text in (raw, raw[: len(raw) - cut], raw[cut:], raw + raw):
        for signal in claude_code.read_line(text):
            if signal[0] not in ("trace", "model", "version"):
                compaction.advance(state, signal)
    assert isinstance(json.dumps(state), str)


@pytest.mark.parametrize("content", [[[[1]]], [float("nan")], {"a": 1}, None, 5])
def test_an_attachment_of_another_shape_is_passed_over(content: Any) -> None:
    deep: Any = f"receipt {RECEIPT}"
    for _ in range(200):
        deep = [deep]
    for value in (content, deep):
        raw = line(type="attachment", attachment={"type": "hook_additional_context", "content": value})
        assert read(raw + b"context-anchor receipt r-") == []


def test_bad_utf_8_and_control_characters_in_a_line_do_not_hide_its_usage() -> None:
    raw = answer().replace(b'"role"', b'"x": "\xff\x00\x1f", "role"')
    assert sizes(raw) == [1007]


def test_the_first_line_with_an_id_is_found_behind_lines_without_one() -> None:
    head = b'{"type":"mode"}\n{"type":"queue-operation"}\nnonsense "uuid"\n{"uuid":"first"}\n{"uuid":"second"}\n'
    assert claude_code.first_line_id(head) == "first"
    assert claude_code.first_line_id(b"") == claude_code.first_line_id(b'{"uuid":5}\n{"uuid":"cut') == ""


def test_a_payload_is_taken_by_type_and_what_is_of_another_counts_as_absent() -> None:
    raw = {"session_id": "s", "transcript_path": 5, "cwd": None, "source": ["x"], "agent_id": "a", "reason": {}}
    ev = claude_code.read_payload("Stop", raw, {})
    assert (ev["session_id"], ev["transcript"], ev["cwd"], ev["source"], ev["agent"]) == ("s", "", "", "", True)
    assert ev["folders"] == []
    assert claude_code.read_payload("Stop", {}, {})["host_pid"] == os.getppid()


@pytest.mark.parametrize(("pid", "want"), [("77", 77), ("", None), ("x", None), ("²", None), ("9" * 30, None)])
def test_the_clients_process_is_told_by_its_variable_or_by_the_parent(pid: str, want: int | None) -> None:
    assert claude_code.read_payload("Stop", {}, {"CLAUDE_PID": pid})["host_pid"] == (want or os.getppid())


def test_the_project_folder_of_the_environment_wins_over_the_working_folder() -> None:
    raw = {"session_id": "s", "cwd": "/p/src"}
    assert claude_code.read_payload("Stop", raw, {"CLAUDE_PROJECT_DIR": "/p"})["folders"] == ["/p"]
    assert claude_code.read_payload("Stop", raw, {})["folders"] == ["/p/src"]


@pytest.mark.parametrize(
    ("name", "ours"),
    [("mcp__plugin_context-anchor_anchors__pin_context", True), ("mcp__anchors__pin_context", True),
     ("mcp__plugin_other_anchors__pin", False), ("Bash", False), ("", False)],
)  # fmt: skip
def test_our_own_tools_are_known_by_name(name: str, ours: bool) -> None:
    assert claude_code.owns_tool(name) is ours


@given(st.text(st.characters(exclude_categories=()), max_size=60), st.sampled_from(sorted(claude_code.EVENTS)))
def test_documents_have_the_form_that_their_event_wants(text: str, event: str) -> None:
    out = claude_code.respond(event, text, "")
    if event == "PreCompact":
        assert out == text
    elif event == "PostCompact":
        assert out == ""
    elif event in ("Stop", "SessionEnd", "PreToolUse") or not text:
        assert out == "{}"
    else:
        assert out.isascii()
        assert json.loads(out) == {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}

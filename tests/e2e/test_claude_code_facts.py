"""Facts about the real Claude Code client that the plugin leans on, seen with a recording plugin.

When a version is added to the pinned ones and a test here fails, the code that relies on the fact
is what has to change; `docs/hosts.md` says which.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .claude_code.client import COMPACTS_AT, ClaudeCode
from .claude_code.model import Call, Reply
from .claude_code.probe import TOOL, Probe
from .test_claude_code import both

NOTE = (Call(TOOL, {"text": "x"}),)


def outline(lines: list[dict[str, Any]]) -> list[str]:
    """One word for each transcript line that matters to recovery, in file order."""
    words = []
    for line in lines:
        attachment = line.get("attachment", {})
        if line.get("subtype") == "compact_boundary":
            words.append("boundary")
        elif line.get("isCompactSummary"):
            words.append("summary")
        elif line["type"] == "assistant":
            words.append("assistant")
        elif attachment.get("type") == "hook_additional_context":
            words.append("trace:" + attachment["hookName"])
    return words


def first_uuid(lines: list[dict[str, Any]]) -> str:
    return next(line["uuid"] for line in lines if "uuid" in line)


@both
def test_events_traces_and_processes_around_a_compaction_in_a_tool_loop(client: Path, tmp_path: Path) -> None:
    probe = Probe(tmp_path / "probe")
    probe.answer(
        SessionStart__compact={"context": "AFTER-COMPACTION"},
        PostToolBatch={"context": "AFTER-TOOLS"},
        PreCompact="KEEP-THIS",
        UserPromptSubmit="PLAIN-WORDS",
    )
    with ClaudeCode(client, tmp_path / "host", probe.plugin, env=probe.environment) as host:
        chat = host.chat("--allowedTools", TOOL)
        host.model.plan(Reply("a", tokens=30_000), Reply("b", tokens=60_000))
        session_id = chat.say("one").session_id
        chat.say("two")
        host.model.plan(
            Reply("c", NOTE, tokens=COMPACTS_AT + 500), Reply("d", NOTE, tokens=20_000), Reply("e", tokens=21_000)
        )
        turn = chat.say("three")
        assert turn.compacted
        assert not turn.init.get("plugin_errors")
        pid = chat.process.pid
        chat.close()

        events = [call["event"] for call in probe.calls()]
        start = events.index("PreCompact")
        assert events[start - 1 : start + 4] == [
            "PostToolBatch",
            "PreCompact",
            "SubagentStop",
            "SessionStart",
            "PostCompact",
        ]
        recovery = probe.calls("SessionStart")[-1]
        assert recovery["payload"]["source"] == "compact"
        for call in (recovery, *probe.calls("PostCompact")):
            assert not any("compact_boundary" in word for word in call["disk"]), "not on disk yet"
        last_batch = probe.calls("PostToolBatch")[-1]["disk"]
        at = next(n for n, word in enumerate(last_batch) if "compact_boundary" in word)
        assert "attachment/hook_additional_context:SessionStart" in last_batch[at:], "the trace is, by then"

        words = outline(host.lines(session_id))
        words = words[words.index("boundary") :]
        assert words[:4] == ["boundary", "summary", "trace:SessionStart", "assistant"]
        (summary,) = host.model.of_kind("summary")
        after = next(request for request in host.model.main if request.number > summary.number)
        assert (summary.count("KEEP-THIS"), after.count("KEEP-THIS")) == (1, 0)
        assert after.count("AFTER-COMPACTION") == 1
        assert host.model.main[0].count("UserPromptSubmit hook success: PLAIN-WORDS") == 1

        assert {call["parents"][0] for call in probe.calls()} == {pid}, "exec form: the client is the parent"
        lines = probe.server_lines()
        assert lines[0]["parent"] == pid
        called = [line["params"] for line in lines if line.get("method") == "tools/call"]
        registered = [call["payload"]["tool_use_id"] for call in probe.calls("PreToolUse")]
        assert [params["_meta"]["claudecode/toolUseId"] for params in called] == registered
        assert TOOL in host.model.main[0].tools, "alwaysLoad puts the definition in the first request"


@both
def test_a_fork_copies_lines_with_their_ids_from_the_last_boundary_on(client: Path, tmp_path: Path) -> None:
    probe = Probe(tmp_path / "probe")
    with ClaudeCode(client, tmp_path / "host", probe.plugin, env=probe.environment) as host:
        chat = host.chat()
        parent = chat.say("one").session_id
        chat.say("two")
        chat.close()
        plain = host.chat("--resume", parent, "--fork-session")
        copied = plain.say("three").session_id
        plain.close()
        assert copied != parent
        assert first_uuid(host.lines(copied)) == first_uuid(host.lines(parent))
        prompts = [c for c in probe.calls("UserPromptSubmit") if c["payload"]["session_id"] == copied]
        assert prompts[0]["disk"] is None, "a fork's file is not there at its first prompt"

        again = host.chat("--resume", parent)
        again.say("/compact")
        again.say("four")
        again.close()
        fork = host.chat("--resume", parent, "--fork-session")
        compacted = fork.say("five").session_id
        fork.close()
        boundary = next(line for line in host.lines(parent) if line.get("subtype") == "compact_boundary")
        assert first_uuid(host.lines(compacted)) == boundary["uuid"]


@both
def test_clear_ends_the_old_session_before_the_new_one_starts_in_the_same_process(
    client: Path, tmp_path: Path
) -> None:
    probe = Probe(tmp_path / "probe")
    with ClaudeCode(client, tmp_path / "host", probe.plugin, env=probe.environment) as host:
        chat = host.chat()
        old = chat.say("one").session_id
        chat.say("/clear")
        new = chat.say("two").session_id
        chat.close()
        calls = probe.calls()
        at = next(n for n, call in enumerate(calls) if call["payload"].get("reason") == "clear")
        ended, started = calls[at], calls[at + 1]
        assert (ended["event"], ended["payload"]["session_id"]) == ("SessionEnd", old)
        assert (started["event"], started["payload"]["session_id"]) == ("SessionStart", new)
        assert started["payload"]["source"] == "clear"
        assert {call["parents"][0] for call in calls} == {chat.process.pid}
        starts = [line for line in probe.server_lines() if "parent" in line]
        assert [line["env"]["CLAUDE_CODE_SESSION_ID"] for line in starts] == [old], "the server is not restarted"


@both
def test_a_resumed_session_is_given_its_last_recovery_again_by_the_client(client: Path, tmp_path: Path) -> None:
    probe = Probe(tmp_path / "probe")
    probe.answer(SessionStart__compact={"context": "AFTER-COMPACTION"})
    with ClaudeCode(client, tmp_path / "host", probe.plugin, env=probe.environment) as host:
        chat = host.chat()
        session_id = chat.say("one").session_id
        chat.say("two")
        assert chat.say("/compact").compacted
        chat.say("three")
        chat.close()
        chat = host.chat("--resume", session_id)
        chat.say("four")
        chat.close()
        assert probe.calls("SessionStart")[-1]["payload"]["source"] == "resume"
        assert host.model.main[-1].count("AFTER-COMPACTION") == 1


def test_more_than_the_cap_reaches_the_model_as_a_preview(client: Path, tmp_path: Path) -> None:
    probe = Probe(tmp_path / "probe")
    with ClaudeCode(client, tmp_path / "host", probe.plugin, env=probe.environment) as host:
        chat = host.chat()
        for size, whole in ((10_000, True), (10_001, False)):
            probe.answer(UserPromptSubmit={"context": "x" * (size - 4) + "TAIL"})
            chat.say("go")
            assert (host.model.main[-1].last_user.count("TAIL") == 1) is whole
            assert ("persisted-output" in host.model.main[-1].last_user) is not whole
        chat.close()

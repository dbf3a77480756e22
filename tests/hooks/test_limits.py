"""What a hook loads and how much memory it takes, whatever it is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hooks.driver import ANTIGRAVITY_EVENTS, CLAUDE_EVENTS, HOOK, Antigravity, Claude, Host, command, environment

DEAR = {
    "json", "re", "typing", "dataclasses", "pathlib", "logging", "tempfile", "hashlib", "subprocess", "threading",
    "enum", "functools", "collections", "contextlib", "socket", "signal", "random", "datetime", "inspect", "ast",
    "argparse", "traceback", "shutil", "urllib", "importlib.metadata", "site", "warnings", "weakref", "operator",
}  # fmt: skip
# What the interpreter itself and `os` bring, on any supported version and system.
BARE = {
    "sys", "builtins", "_frozen_importlib", "_imp", "_thread", "_warnings", "_weakref", "_io", "marshal", "posix",
    "nt", "_frozen_importlib_external", "time", "zipimport", "_codecs", "codecs", "encodings", "encodings.aliases",
    "encodings.utf_8", "encodings.cp1252", "encodings.ascii", "_signal", "_abc", "abc", "io", "__main__", "_stat",
    "stat", "_collections_abc", "posixpath", "ntpath", "genericpath", "os.path", "os", "winreg", "_winapi",
    "encodings.latin_1", "encodings.mbcs", "linecache",
}  # fmt: skip
OURS = {"__future__", "errno", "select", "_json", "fcntl", "msvcrt"}
CAP_KB = 16 * 1024


def loaded(claude: Host, event: str, host: str, **fields: str) -> set[str]:
    """Run a hook in a process that tells at its end which modules it holds."""
    code = (
        "import os, sys\n"
        "leave = os._exit\n"
        "def tell(code):\n"
        "    os.write(2, ' '.join(sorted(sys.modules)).encode())\n"
        "    leave(code)\n"
        "os._exit = tell\n"
        "sys.argv = sys.argv[1:]\n"
        "path = sys.argv[0]\n"
        "exec(compile(open(path, 'rb').read(), path, 'exec'), {'__name__': '__main__', '__file__': path})\n"
    )
    stdin = json.dumps(claude.payload(event, **fields)).encode()
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, str(HOOK), host, event], input=stdin,
                          capture_output=True, env=environment(claude.data), check=True)  # fmt: skip
    assert done.stdout or event in ("PreCompact", "PostCompact")
    return set(done.stderr.decode().split())


@pytest.mark.parametrize("event", CLAUDE_EVENTS)
def test_claude_codes_hooks_load_exactly_the_modules_of_the_fast_rooms(claude: Claude, event: str) -> None:
    claude.pin("Rule", "x", priority="critical")
    claude.user()
    claude.answer(120_000)
    claude.boundary()
    names = loaded(claude, event, "claude-code", source="compact", prompt="x")
    ours = {n for n in names if n.split(".")[0] == "context_anchor"}
    assert ours == {
        "context_anchor", "context_anchor.hooks", "context_anchor.hooks.dispatch", "context_anchor.hooks.give",
        "context_anchor.hooks.intake", "context_anchor.hooks.observe", "context_anchor.hooks.session",
        "context_anchor.hooks.texts", "context_anchor.hosts", "context_anchor.hosts.claude_code",
        "context_anchor.watch", "context_anchor.watch.compaction", "context_anchor.watch.pressure",
        "context_anchor.wire", "context_anchor.wire.atomic", "context_anchor.wire.bundle",
        "context_anchor.wire.hooklog", "context_anchor.wire.marks", "context_anchor.wire.paths",
        "context_anchor.wire.quickjson", "context_anchor.wire.registry", "context_anchor.wire.tail",
        "context_anchor.wire.workspace",
    }  # fmt: skip
    assert names - ours <= BARE | OURS
    assert not names & DEAR


@pytest.mark.parametrize("event", ANTIGRAVITY_EVENTS)
def test_antigravitys_hooks_load_their_own_host_alone_and_nothing_dear(antigravity: Host, event: str) -> None:
    names = loaded(antigravity, event, "antigravity")
    assert "context_anchor.hosts.antigravity" in names
    assert "context_anchor.hosts.claude_code" not in names
    assert not names & DEAR
    assert {n for n in names if n.split(".")[0] != "context_anchor"} <= BARE | OURS


def peak_kb(words: list[str], stdin: bytes, env: dict[str, str]) -> tuple[int, bytes]:
    """Return a process's peak memory in KB, and its stdout.

    A child is charged with what its parent held at the fork, so a bare interpreter starts it.
    """
    starter = (
        "import os,sys\npid=os.fork()\nif pid==0: os.execv(sys.argv[1],sys.argv[1:])\n"
        "u=os.wait4(pid,0)\nassert u[1]==0\nos.write(2,str(u[2].ru_maxrss).encode())"
    )
    argv = [sys.executable, "-I", "-S", "-c", starter, *words]
    done = subprocess.run(argv, input=stdin, capture_output=True, env=env, check=True)
    return int(done.stderr) // (1024 if sys.platform == "darwin" else 1), done.stdout


needs_wait4 = pytest.mark.skipif(not hasattr(os, "wait4"), reason="the system tells no child's memory")


def grown(path: Path, line: bytes, megabytes: int) -> None:
    """Write whole lines up to a size; the first part as a hole, which reads as one long line of NUL."""
    with path.open("wb") as out:
        out.truncate((megabytes - 20) << 20)
        out.seek(0, os.SEEK_END)
        out.write(b"\n")
        block = line * (1 + (1 << 20) // len(line))
        for _ in range(20):
            out.write(block)


@needs_wait4
@pytest.mark.parametrize("width", [300, 100_000, 900_000, 3_000_000])
def test_a_transcript_of_200_megabytes_takes_less_than_16(claude: Claude, width: int) -> None:
    claude.answer(40_000, filler="x" * width)
    line = claude.transcript.read_bytes()
    grown(claude.transcript, line, 200)
    env = environment(claude.data)
    for event in ("SessionStart", "UserPromptSubmit"):
        stdin = json.dumps(claude.payload(event, source="startup")).encode()
        peak, out = peak_kb(command("claude-code", event), stdin, env)
        assert peak < CAP_KB, event
        assert out.isascii()
    with claude.transcript.open("ab") as out_file:  # as much new as is read in one go
        for _ in range(1 + (12 << 20) // len(line)):
            out_file.write(line)
    stdin = json.dumps(claude.payload("PostToolBatch")).encode()
    peak, _ = peak_kb(command("claude-code", "PostToolBatch"), stdin, env)
    assert peak < CAP_KB
    assert claude.failures == []


@needs_wait4
@pytest.mark.parametrize("host", ["claude-code", "antigravity"])
def test_one_wide_character_in_lines_of_a_megabyte_does_not_make_them_four(
    host: str, claude: Host, antigravity: Host
) -> None:
    running = claude if host == "claude-code" else antigravity
    usage = {"message": {"id": "m", "model": "x", "usage": {"input_tokens": 50_000}}}
    line: dict[str, Any] = {"type": "assistant", **usage, "filler": "x" * 1_030_000 + "🙂"}
    if host == "antigravity":
        line = {"type": "PLANNER_RESPONSE", "step_index": 1, "input_tokens": 50_000, "content": line["filler"]}
    raw = json.dumps(line, ensure_ascii=False).encode() + b"\n"
    event = "SessionStart"
    for _ in range(2):
        with running.transcript.open("ab") as out:
            out.write(raw * 6)
        stdin = json.dumps(running.payload(event, source="startup")).encode()
        peak, _ = peak_kb(command(host, event), stdin, environment(running.data))
        assert peak < CAP_KB
        event = "UserPromptSubmit" if host == "claude-code" else "PreInvocation"
    assert running.marks["tokens"] == 50_000


@needs_wait4
@pytest.mark.parametrize("size", [300_000, 1_000_000, 3_000_000])
def test_one_wide_character_in_a_large_payload_does_not_make_it_four(claude: Claude, size: int) -> None:
    raw = {**claude.payload("UserPromptSubmit"), "prompt": "x" * size + "🙂"}
    stdin = json.dumps(raw, ensure_ascii=False).encode()
    peak, out = peak_kb(command("claude-code", "UserPromptSubmit"), stdin, environment(claude.data))
    assert peak < CAP_KB
    assert claude.session.encode() in out
    assert claude.record["cwd"] == str(claude.project), "letters beyond ASCII are themselves"


@needs_wait4
@pytest.mark.parametrize("event", ["PostToolBatch", "UserPromptSubmit", "PreCompact"])
def test_50_megabytes_on_stdin_take_less_than_16(claude: Claude, event: str) -> None:
    stdin = json.dumps(claude.payload(event)).encode()[:-1] + b', "tool_calls": "' + b"y" * (50 << 20) + b'"}'
    peak, _ = peak_kb(command("claude-code", event), stdin, environment(claude.data))
    assert peak < CAP_KB
    peak, _ = peak_kb(command("claude-code", event), b"\xff" * (50 << 20), environment(claude.data))
    assert peak < CAP_KB


@needs_wait4
def test_a_recovery_of_a_full_scope_takes_less_than_16_megabytes(claude: Claude) -> None:
    from context_anchor.anchors.anchor import Draft
    from context_anchor.anchors.scope import SessionScope

    drafts = [Draft.checked(title=f"Note {n}", content="ü" * 4000) for n in range(200)]
    claude.store.replace(SessionScope("claude-code", claude.session), drafts, actor="agent")
    stdin = json.dumps(claude.payload("SessionStart", source="compact")).encode()
    peak, out = peak_kb(command("claude-code", "SessionStart"), stdin, environment(claude.data))
    assert b"Left out for size" in out
    assert peak < CAP_KB


@needs_wait4
def test_antigravity_stays_below_16_megabytes_too(antigravity: Antigravity) -> None:
    calls = [{"name": "write_to_file", "args": {"CodeContent": "y" * 200_000}}]
    antigravity.step("PLANNER_RESPONSE", "x" * 200_000, tool_calls=calls)
    grown(antigravity.transcript, antigravity.transcript.read_bytes(), 200)
    for _ in range(2):
        stdin = json.dumps(antigravity.payload("PreInvocation")).encode()
        peak, _ = peak_kb(command("antigravity", "PreInvocation"), stdin, environment(antigravity.data))
        assert peak < CAP_KB


def test_state_does_not_grow_with_the_length_of_a_session(claude: Claude, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_anchor.hooks import dispatch
    from context_anchor.hosts import claude_code

    monkeypatch.setenv("HOME", str(claude.folder))
    monkeypatch.setenv("CLAUDE_PID", "77")
    claude.user()

    def run(event: str, at: float, **fields: str) -> None:
        dispatch.run(claude_code, event, claude.payload(event, **fields), str(claude.data), at)

    def size() -> tuple[int, int]:
        files = [p for p in claude.data.rglob("*") if p.is_file()]
        return len(files), sum(p.stat().st_size for p in files)

    run("SessionStart", 0.0, source="startup")
    sizes = []
    for n in range(600):
        claude.answer(30_000 + 1000 * (n % 120))
        run("PostToolBatch", float(n))
        if n % 100 == 99:
            claude.boundary()
            run("UserPromptSubmit", float(n))
            sizes.append(size())
    assert sizes[-1][1] - sizes[2][1] < 3000
    assert sizes[-1][0] - sizes[2][0] <= 4  # the ids of boundaries, by which forks are found

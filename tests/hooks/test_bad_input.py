"""Whatever a host sends and wherever a hook runs: exit code 0 and one document."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_anchor.hooks import dispatch
from context_anchor.hosts import antigravity as antigravity_host
from context_anchor.hosts import claude_code as claude_code_host
from context_anchor.wire import marks, paths, registry
from hooks.driver import EVENTS, HOOK, ROOT, Claude, command, environment, run_hook
from hooks.driver import given as judged

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX only")
as_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root")


def payload(host: str, session: Any = "s1", **fields: Any) -> bytes:
    name = "session_id" if host == "claude-code" else "conversationId"
    where = {"cwd": "/nowhere"} if host == "claude-code" else {"workspacePaths": ["/nowhere"]}
    return json.dumps({name: session, **where, **fields}).encode()


def failures(data: Path) -> list[str]:
    path = data / "log" / "hooks.jsonl"
    return [json.loads(line)["what"] for line in path.read_bytes().splitlines()] if path.exists() else []


@pytest.mark.parametrize(("host", "event"), EVENTS)
def test_every_event_survives_no_input_garbage_and_a_payload_without_an_id(
    host: str, event: str, folder: Path
) -> None:
    data = folder / "data"
    env = environment(data)
    assert judged(host, event, run_hook(host, event, b"", env)) == ("", "")
    assert failures(data) == []
    for stdin in (b"\x00\xff garbage {", b'{"torn', b'{"a": 1}'):
        assert judged(host, event, run_hook(host, event, stdin, env)) == ("", "")
    assert len(failures(data)) == 3
    assert not list(data.glob("registry/*/s-*"))


@pytest.mark.parametrize(("host", "event"), EVENTS)
def test_every_event_survives_odd_fields(host: str, event: str, folder: Path) -> None:
    fields = {"transcript_path": "\x00", "transcriptPath": "\x00", "cwd": "\ud800", "workspacePaths": [5, "\x00"],
              "source": [], "tool_use_id": "x" * 600, "tool_name": "mcp__anchors__x", "agent_id": 5}  # fmt: skip
    judged(host, event, run_hook(host, event, payload(host, **fields), environment(folder / "data")))


def test_unknown_hosts_events_and_missing_arguments_are_silent_and_logged(folder: Path) -> None:
    env = environment(folder / "data")
    for words in (["claude-code", "Nonsense"], ["other", "Stop"], ["claude-code"], [], ["é" * 3, "\n"]):
        argv = [sys.executable, "-I", "-S", str(HOOK), *words]
        done = subprocess.run(argv, input=b"{}", capture_output=True, env=env, check=False, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")
    assert len(failures(folder / "data")) == 5


@pytest.mark.parametrize("size", [2, 50])
def test_megabytes_on_stdin_are_drained_and_the_leading_fields_used(folder: Path, size: int) -> None:
    big = payload("claude-code", "s1")[:-1] + b', "x": "' + b"y" * (size << 20) + b'"}'
    env = environment(folder / "data")
    _, text = judged("claude-code", "UserPromptSubmit", run_hook("claude-code", "UserPromptSubmit", big, env))
    assert "session s1" in text


@posix
@pytest.mark.parametrize(("host", "event"), [("claude-code", "UserPromptSubmit"), ("antigravity", "PreInvocation")])
def test_stdin_that_is_held_open_or_closed_costs_little_time(host: str, event: str, folder: Path) -> None:
    env = environment(folder / "data")
    source, sink = os.pipe()
    before = time.monotonic()
    done = subprocess.run(command(host, event), stdin=source, capture_output=True, env=env, check=False, timeout=60)
    assert time.monotonic() - before < 5
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")
    os.close(source)
    os.close(sink)
    closing = "import os,sys; os.close(0); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", closing, *command(host, event)], capture_output=True, env=env,
                          check=False, timeout=60)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


@posix
def test_a_closed_stdout_or_stderr_is_nobodys_loss(folder: Path) -> None:
    env = environment(folder / "data")
    for fd in (1, 2):
        closing = f"import os,sys; os.close({fd}); os.execv(sys.argv[1], sys.argv[1:])"
        done = subprocess.run(
            [sys.executable, "-c", closing, *command("claude-code", "SessionStart")], input=payload("claude-code"),
            capture_output=True, env=env, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0
        assert done.stderr == b""
        assert bool(done.stdout) is (fd == 2)


@pytest.mark.parametrize(
    "session",
    ["../../../escape", "/abs/olute", "a\x00b", "..", "C:\\x", "\ud800", "ü" * 500, "x\ny", "x" * 513, "", None, 7,
     [], {"a": 1}],
)  # fmt: skip
def test_tricks_in_ids_stay_inside_the_data_folder(session: Any, folder: Path) -> None:
    data = folder / "data"
    outside = set(folder.parent.rglob("*")) - {data}
    ran = run_hook("claude-code", "SessionStart", payload("claude-code", session), environment(data), cwd=folder)
    _, text = judged("claude-code", "SessionStart", ran)
    known = isinstance(session, str) and 0 < len(session) <= 512
    assert bool(text) is known
    new = {p for p in folder.parent.rglob("*") if data not in p.parents} - outside
    assert new <= {data, folder / "home"}
    assert (registry.load(str(data), "claude-code", session) is not None) if known else failures(data)


def test_a_transcript_that_cannot_be_read_costs_no_anchors(claude: Claude) -> None:
    claude.pin("Rule", "keep the API stable", shared=True)
    assert "| keep the API stable" in claude.event("SessionStart", transcript_path=str(claude.project))
    assert any("transcript" in what for what in claude.failures)
    claude.session = "s2"
    assert "| keep the API stable" in claude.event("SessionStart", transcript_path="/x\x00y")


def test_a_damaged_bundle_part_costs_its_scope_alone(claude: Claude) -> None:
    claude.pin("Rule", "of the workspace", shared=True)
    claude.pin("Mine", "of the session")
    path = paths.anchors_path(str(claude.data), "session", "claude-code", claude.session, ".bundle")
    Path(path).write_bytes(b"damaged\n")
    text = claude.event("SessionStart", source="startup")
    assert "| of the workspace" in text
    assert any("bundle part" in what for what in claude.failures)


def test_damaged_marks_are_set_aside_and_the_session_goes_on(claude: Claude) -> None:
    claude.open()
    path = Path(marks.path_of(str(claude.data), claude.host, claude.session))
    path.write_bytes(b'{"torn')
    text = claude.event("UserPromptSubmit", prompt="x")
    assert claude.session in text, "told anew, since nobody knows whether it was"
    assert any("set aside" in what for what in claude.failures)
    assert [p.read_bytes() for p in path.parent.glob("*.corrupt-*")] == [b'{"torn']
    assert claude.event("UserPromptSubmit", prompt="y") == ""


def test_marks_of_a_newer_version_are_left_alone_and_events_that_recur_are_silent(claude: Claude) -> None:
    claude.open()
    path = Path(marks.path_of(str(claude.data), claude.host, claude.session))
    path.write_bytes(b'{"format":"context-anchor-marks/9","new":[1]}')
    for event in ("UserPromptSubmit", "PostToolBatch"):
        assert claude.event(event) == ""
    assert claude.session in claude.event("SessionStart"), "told once by the host, so it may be answered"
    assert path.read_bytes() == b'{"format":"context-anchor-marks/9","new":[1]}'
    assert any("newer version" in what for what in claude.failures)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from([*marks.new(), "settings", "last_nudge", "fork_open", "absent", "traced"]), JSON, max_size=5
    ),
    st.dictionaries(st.sampled_from(["state", "receipt", "tries", "since", "shown", "signal", "traced"]), JSON),
)
def test_no_damage_to_a_field_of_the_marks_ends_the_hooks(
    tmp_path: Path, changes: dict[str, Any], recovery: dict[str, Any]
) -> None:
    changes.pop("format", None)
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", folder)
        transcript = Path(folder, "t.jsonl")
        message = {"id": "m", "model": "claude-opus-4-6", "usage": {"input_tokens": 110_000}}
        transcript.write_text(json.dumps({"type": "assistant", "message": message}) + "\n")
        value = {**marks.new(), "greeted": True, "recovery": recovery, **changes}
        Path(folder, "marks", "claude-code").mkdir(parents=True)
        marks.save(folder, "claude-code", "s", value)
        raw = {"session_id": "s", "transcript_path": str(transcript), "cwd": folder}
        for event in ("UserPromptSubmit", "SessionStart", "PreCompact", "PostToolBatch"):
            out = dispatch.run(claude_code_host, event, {**raw, "source": "compact"}, folder, 1000.0)
            assert out == "" or event == "PreCompact" or isinstance(json.loads(out), dict)
        saved = marks.load(folder, "claude-code", "s")
        assert saved is not None
        assert saved["tokens"] is None or saved["tokens"] == 110_000


@posix
def test_marks_that_another_process_holds_cost_half_a_second_and_nothing_is_lost(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    claude.boundary()
    lock = marks.path_of(str(claude.data), claude.host, claude.session) + ".lock"
    code = "import fcntl,os,sys; f=os.open(sys.argv[1],2); fcntl.flock(f,2); print(1,flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        before = time.monotonic()
        assert claude.event("UserPromptSubmit", prompt="x") == ""
        assert time.monotonic() - before < 5
    finally:
        holder.communicate(b"")
    assert any("no lock" in what for what in claude.failures)
    assert "| keep the API stable" in claude.event("UserPromptSubmit", prompt="y")
    assert claude.marks["compactions"] == 1


def test_two_hooks_at_once_give_a_recovery_once(claude: Claude) -> None:
    claude.open()
    claude.pin("Rule", "keep the API stable")
    claude.boundary()
    stdin = json.dumps(claude.payload("PostToolBatch")).encode()
    env = environment(claude.data, CLAUDE_PID="4242")
    words = command("claude-code", "PostToolBatch")
    running = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) for _ in range(6)
    ]
    for child in running:
        assert child.stdin is not None
        child.stdin.write(stdin)
        child.stdin.close()
        child.stdin = None
    outs = [child.communicate()[0] for child in running]
    assert sorted(b"keep the API stable" in out for out in outs) == [False] * 5 + [True]
    assert claude.marks["compactions"] == 1


def test_a_clock_that_goes_backwards_changes_no_verdict(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("CLAUDE_PID", "77")
    data = str(folder / "data")
    claude = Claude(folder)
    claude.user()

    def event(name: str, at: float, **fields: Any) -> str:
        out = dispatch.run(claude_code_host, name, claude.payload(name, **fields), data, at)
        return json.loads(out).get("hookSpecificOutput", {}).get("additionalContext", "")  # type: ignore[no-any-return]

    assert claude.session in event("SessionStart", 2_000_000_000.0, source="startup")
    claude.pin("Rule", "keep the API stable")
    assert event("UserPromptSubmit", 1_000.0) == ""
    assert registry.load(data, "claude-code", claude.session)["seen_at"] == 1_000.0  # type: ignore[index]
    assert "keep the API stable" in event("SessionStart", -5.0, source="compact")
    claude.boundary()
    assert event("UserPromptSubmit", 0.0) == ""
    claude.answer(101_000)
    assert "tokens" in event("PostToolBatch", 1.0)
    assert not failures(folder / "data")


# Places -------------------------------------------------------------------------------------------------------


def test_an_unwritable_data_folder_costs_the_state_and_not_the_turn(claude: Claude) -> None:
    blocked = claude.folder / "file"
    blocked.write_bytes(b"")
    claude.env["CONTEXT_ANCHOR_DATA_DIR"] = str(blocked / "data")
    text = claude.event("SessionStart", source="startup")
    assert claude.session in text
    claude.user()
    claude.answer(120_000)
    for event in ("UserPromptSubmit", "PostToolBatch", "PostToolBatch", "Stop", "SessionEnd", "PreCompact"):
        assert claude.event(event) == "", "what can't be remembered as given is not given at every call"


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 64 KB."""
    place = folder / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]
    mounted = subprocess.run(words, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@as_root
def test_a_full_disk_costs_the_state_and_keeps_every_file_whole(claude: Claude, small_disk: Path) -> None:
    claude.env["CONTEXT_ANCHOR_DATA_DIR"] = str(small_disk / "data")
    claude.event("SessionStart", source="startup")
    claude.user()
    before = {p: p.read_bytes() for p in small_disk.rglob("*.json")}
    assert before
    with (small_disk / "fill").open("wb", buffering=0) as out, pytest.raises(OSError, match="No space"):
        while True:
            out.write(b"x" * 4096)
    claude.answer(120_000)
    for event in ("UserPromptSubmit", "PostToolBatch", "Stop", "SessionEnd"):
        assert claude.event(event) == ""
    assert {p: p.read_bytes() for p in small_disk.rglob("*.json")} == before
    assert not list(small_disk.rglob("*.tmp"))
    (small_disk / "fill").unlink()
    assert "120,000 tokens" in claude.event("PostToolBatch"), "what the full disk held back comes now"


@pytest.mark.parametrize("where", ["/", "home", "gone"])
def test_any_working_folder_will_do(claude: Claude, where: str) -> None:
    env = environment(claude.data)
    stdin = json.dumps(claude.payload("SessionStart", source="startup")).encode()
    place = claude.folder / where
    place.mkdir(exist_ok=True)
    ran = run_hook("claude-code", "SessionStart", stdin, env, cwd=place)
    assert claude.session in judged("claude-code", "SessionStart", ran)[1]
    if where == "gone" and os.name != "nt":
        place.rmdir()
        place.mkdir()
        script = f"cd {where!r} && rmdir {str(place)!r} && exec \"$@\""
        done = subprocess.run(["sh", "-c", script, "sh", *command("claude-code", "Stop")], input=stdin,
                              capture_output=True, env=env, cwd=claude.folder, check=False)  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")


def copied(target: Path) -> Path:
    """Copy what a hook needs into a folder, without byte code; return the copy of hook.py."""
    for name in ("__init__.py", "wire", "hosts", "watch", "hooks"):
        source = ROOT / "context_anchor" / name
        goal = target / "context_anchor" / name
        goal.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, goal, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, goal)
    (target / "scripts").mkdir()
    return Path(shutil.copy(HOOK, target / "scripts" / "hook.py"))


def test_a_copy_in_a_path_with_a_space_and_other_letters_runs_and_caches_beside_itself(claude: Claude) -> None:
    hook = copied(claude.folder / "plugin ü 插件")
    stdin = json.dumps(claude.payload("SessionStart", source="startup")).encode()
    ran = run_hook("claude-code", "SessionStart", stdin, environment(claude.data), hook=hook)
    assert claude.session in judged("claude-code", "SessionStart", ran)[1]
    assert list((hook.parents[1] / "context_anchor" / "hooks" / "__pycache__").glob("dispatch.*.pyc"))
    assert not (claude.data / "pycache").exists()


@posix
def test_a_read_only_install_folder_gets_its_byte_code_cached_in_the_data_folder(claude: Claude) -> None:
    root = claude.folder / "plugin ü"
    hook = copied(root)
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:  # whom modes do not stop
        script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
        prefix = ("unshare", "-m", "sh", "-c", script, str(root))
        if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], check=False).returncode != 0:
            pytest.skip("no folder can be mounted read-only here")
    folders = [root, *(p for p in root.rglob("*") if p.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        stdin = json.dumps(claude.payload("SessionStart", source="startup")).encode()
        ran = run_hook("claude-code", "SessionStart", stdin, environment(claude.data), hook=hook, prefix=prefix)
        assert claude.session in judged("claude-code", "SessionStart", ran)[1]
        assert list((claude.data / "pycache").rglob("dispatch.*.pyc"))
        assert not list(root.rglob("__pycache__"))
    finally:
        for path in folders:
            path.chmod(0o755)


def test_a_broken_install_is_silent_and_ends_well(claude: Claude) -> None:
    hook = copied(claude.folder / "plugin")
    (hook.parents[1] / "context_anchor" / "hooks" / "dispatch.py").write_text("import nothing_like_this\n")
    stdin = json.dumps(claude.payload("SessionStart")).encode()
    for event, want in (("SessionStart", b"{}"), ("PreCompact", b""), ("PostCompact", b"")):
        ran = run_hook("claude-code", event, stdin, environment(claude.data), hook=hook)
        assert (ran.code, ran.out, ran.err) == (0, want, b"")


def test_neither_home_nor_user_variables_are_needed(folder: Path) -> None:
    env = {"CONTEXT_ANCHOR_DATA_DIR": str(folder / "data")}
    if os.name == "nt":
        env["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    for host, event in (("claude-code", "SessionStart"), ("antigravity", "PreInvocation")):
        assert "session s1" in judged(host, event, run_hook(host, event, payload(host), env))[1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    st.dictionaries(st.text(max_size=12), JSON, max_size=6),
    st.sampled_from(EVENTS),
    st.text(min_size=1, max_size=20),
)
def test_any_payload_gives_a_document(
    tmp_path: Path, fields: dict[str, Any], where: tuple[str, str], session: str
) -> None:
    host, event = where
    module = claude_code_host if host == "claude-code" else antigravity_host
    raw = {**fields, "session_id": session, "conversationId": session}
    out = dispatch.run(module, event, raw, str(tmp_path / "data"), 1000.0)
    assert out == "" if event in ("PreCompact", "PostCompact") else isinstance(json.loads(out), dict)

"""What came up when the hooks were attacked: pipes for files, damaged parts, full scopes, echoes, late input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from context_anchor.anchors.anchor import Draft
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.wire import bundle, marks, paths, registry, workspace
from hooks.driver import EVENTS, Antigravity, Claude, command, environment, given, run_hook

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


def part_of(host: Claude | Antigravity) -> Path:
    return Path(paths.anchors_path(str(host.data), "session", host.host, host.session, ".bundle"))


def scope_of(host: Claude | Antigravity) -> SessionScope:
    return SessionScope(host.host, host.session)


@pipes
@pytest.mark.parametrize(("host", "event"), EVENTS)
def test_a_pipe_in_the_transcripts_place_holds_nobody_up(tmp_path: Path, host: str, event: str) -> None:
    side = Claude(tmp_path) if host == "claude-code" else Antigravity(tmp_path)
    os.mkfifo(side.transcript)
    ran = run_hook(host, event, json.dumps(side.payload(event)).encode(), environment(side.data), timeout=20)
    given(host, event, ran)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no devices here")
def test_a_device_in_the_transcripts_place_is_no_transcript(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    assert claude.session in claude.event("SessionStart", source="startup", transcript_path="/dev/zero")
    assert any("not a regular file" in what for what in claude.failures)


@pipes
@pytest.mark.parametrize("kind", ["marks", "registry", "bundle", "log"])
def test_a_pipe_in_the_place_of_our_own_files_holds_nobody_up(tmp_path: Path, kind: str) -> None:
    claude = Claude(tmp_path)
    claude.pin("Rule")
    claude.open()
    path = {
        "marks": Path(marks.path_of(str(claude.data), claude.host, claude.session)),
        "registry": Path(paths.session_path(str(claude.data), "registry", claude.host, claude.session)),
        "bundle": part_of(claude),
        "log": claude.data / "log" / "hooks.jsonl",
    }[kind]
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for event in ("UserPromptSubmit", "SessionStart", "Stop"):
        claude.event(event, source="resume", prompt="x")
    assert registry.all_sessions(str(claude.data)) is not None


@pytest.mark.parametrize("damage", ["garbage", "empty", "gone", "cut"])
def test_notes_unreadable_at_a_compaction_are_given_once_they_can_be_read(tmp_path: Path, damage: str) -> None:
    claude = Claude(tmp_path)
    claude.open()
    claude.pin("Rule", "keep the API stable", priority="critical")
    claude.pin("Shared", "of the workspace", shared=True)
    part = part_of(claude)
    whole = part.read_bytes()
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes({"garbage": b"damaged\n", "empty": b"", "cut": whole[:-20]}[damage])
    first = claude.event("SessionStart", source="compact")
    assert "could not be read" in first
    assert "| of the workspace" in first
    assert "keep the API stable" not in first
    claude.boundary()
    claude.trace(first)
    assert claude.at(20_000) == "", "said once"
    claude.store.read(scope_of(claude))  # as list_pinned_context does
    again = claude.at(21_000)
    assert "| keep the API stable" in again
    claude.trace(again, "PostToolBatch")
    assert claude.at(22_000) == "", "given once"
    assert claude.marks["recovery"]["state"] == "done"


def test_a_damaged_part_is_moved_aside_and_rendered_anew_by_the_next_reader(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    claude.pin("Rule", "keep the API stable")
    part = part_of(claude)
    whole = part.read_bytes()
    part.write_bytes(b"damaged\n")
    claude.event("SessionStart", source="startup")
    assert [p.read_bytes() for p in part.parent.glob("*.bundle.corrupt-*")] == [b"damaged\n"]
    assert [a.title for a in claude.store.read(scope_of(claude)).anchors] == ["Rule"]
    assert part.read_bytes() == whole


@pytest.mark.parametrize("kind", ["folder", "ring"])
def test_a_folder_or_a_ring_of_links_in_the_marks_place_is_moved_aside(tmp_path: Path, kind: str) -> None:
    claude = Claude(tmp_path)
    claude.open()
    path = Path(marks.path_of(str(claude.data), claude.host, claude.session))
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path.name)
    assert claude.session in claude.event("UserPromptSubmit", prompt="x"), "a new first sight"
    assert claude.event("UserPromptSubmit", prompt="x") == ""
    assert path.is_file()
    assert not path.is_symlink()


def test_the_summarisers_note_stays_short_whatever_the_titles_are(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    wide = "\U0001f642" * 190
    drafts = [Draft.checked(title=f"{n} {wide}", content="x", priority="critical") for n in range(40)]
    claude.store.replace(scope_of(claude), drafts, actor="agent")
    text = claude.event("PreCompact", trigger="auto")
    assert 1000 < len(text) < 5000
    assert "and" in text.splitlines()[-1]
    assert "more" in text.splitlines()[-1]


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="peak memory is not told here")
def test_full_scopes_of_wide_characters_keep_a_hook_below_sixteen_megabytes(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    drafts = [Draft.checked(title=f"note {n}", content="\U0001f642" * 3990) for n in range(200)]
    claude.store.replace(scope_of(claude), drafts, actor="agent")
    shared = WorkspaceScope(*workspace.identify(str(claude.project)))
    claude.store.replace(shared, drafts, actor="agent")
    # A child is charged with what its parent held at the fork, so a bare interpreter starts it.
    starter = (
        "import os,sys\npid=os.fork()\nif pid==0: os.execv(sys.argv[1],sys.argv[1:])\n"
        "os.write(2,str(os.wait4(pid,0)[2].ru_maxrss).encode())"
    )
    words = [sys.executable, "-I", "-S", "-c", starter, *command("claude-code", "SessionStart")]
    stdin = json.dumps(claude.payload("SessionStart", source="compact")).encode()
    done = subprocess.run(words, input=stdin, capture_output=True, env=environment(claude.data), check=True)
    text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert len(text.encode("utf-16-le")) // 2 <= 9900
    assert "more: list_pinned_context shows them all" in text
    peak = int(done.stderr) // (1024 if sys.platform == "darwin" else 1)
    assert peak < 16 * 1024, f"{peak} KB"


def test_a_compaction_told_twice_is_answered_once(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    claude.open()
    claude.pin("Rule", "keep the API stable")
    claude.event("PreCompact", trigger="auto")
    assert "keep the API stable" in claude.event("SessionStart", source="compact")
    assert claude.event("SessionStart", source="compact") == ""
    claude.event("PreCompact", trigger="auto")
    assert "keep the API stable" in claude.event("SessionStart", source="compact"), "another compaction"


def test_a_payload_that_never_comes_is_logged(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    child = subprocess.Popen(
        command("claude-code", "Stop"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(claude.data)
    )
    assert child.stdout is not None
    assert child.stdout.read() == b"{}"
    assert child.wait(20) == 0
    child.communicate()
    assert any("no payload" in what for what in claude.failures)


def test_a_registry_file_that_speaks_of_another_session_mixes_nothing(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    claude.open()
    claude.pin("Mine", "of the first")
    other = replace(claude, session="99999999-2222-4333-8444-555555555555", pid=77)
    Path(paths.session_path(str(claude.data), "registry", claude.host, other.session)).write_text(
        Path(paths.session_path(str(claude.data), "registry", claude.host, claude.session)).read_text()
    )
    text = other.event("SessionStart", source="startup")
    assert other.session in text
    assert "of the first" not in text


def test_marks_that_cannot_be_written_back_are_set_aside(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    claude.open()
    path = Path(marks.path_of(str(claude.data), claude.host, claude.session))
    path.write_text(json.dumps({**json.loads(path.read_text()), "traced": float("nan")}))
    claude.event("UserPromptSubmit", prompt="x")
    assert claude.session in claude.event("UserPromptSubmit", prompt="x"), "a new first sight"
    assert claude.event("UserPromptSubmit", prompt="x") == ""


def test_a_registry_file_of_a_newer_version_is_left_alone_and_a_damaged_one_moved_aside(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    claude.open()
    path = Path(paths.session_path(str(claude.data), "registry", claude.host, claude.session))
    newer = path.read_text().replace("session/1", "session/2")
    path.write_text(newer)
    claude.event("UserPromptSubmit", prompt="x")
    assert path.read_text() == newer
    assert any("newer version" in what for what in claude.failures)
    path.write_text("{torn")
    claude.event("UserPromptSubmit", prompt="x")
    assert registry.load(str(claude.data), claude.host, claude.session) is not None
    assert [p.read_text() for p in path.parent.glob("*.corrupt-*")] == ["{torn"]


def test_marks_of_a_newer_version_cost_the_nudges_and_not_the_recovery(tmp_path: Path) -> None:
    claude = Claude(tmp_path)
    claude.open()
    claude.pin("Rule", "keep the API stable")
    path = Path(marks.path_of(str(claude.data), claude.host, claude.session))
    newer = path.read_text().replace("marks/1", "marks/2")
    path.write_text(newer)
    assert claude.event("UserPromptSubmit", prompt="x") == ""
    assert "| keep the API stable" in claude.event("SessionStart", source="compact")
    assert path.read_text() == newer


FIELDS = ("id", "title", "priority", "order", "units", "bytes", "at", "refs", "revision")


@pytest.mark.parametrize("field", FIELDS)
def test_an_index_entry_of_any_shape_is_a_damaged_part_and_no_crash(tmp_path: Path, field: str) -> None:
    store = AnchorStore(str(tmp_path))
    store.pin(SessionScope("claude-code", "s"), Draft.checked(title="Rule", content="x"), actor="agent")
    part = Path(paths.anchors_path(str(tmp_path), "session", "claude-code", "s", ".bundle"))
    line, _, body = part.read_bytes().partition(b"\n")
    _, [sound] = bundle.load_part(str(part))
    for value in (None, "x", -1, 10**30, [], {}, [["x"]]):
        if type(value) is type(sound[field]) and value in ("x", []):
            continue  # of the right type
        head = json.loads(line)
        head["anchors"][0][field] = value
        part.write_bytes(json.dumps(head).encode() + b"\n" + body)
        with pytest.raises(ValueError):
            bundle.load_index(str(part))


def test_without_any_home_folder_nothing_is_written_anywhere(tmp_path: Path) -> None:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    env = {"PATH": os.environ.get("PATH", ""), "CONTEXT_ANCHOR_DATA_DIR": "~nobody-of-that-name/x"}
    for host, event in (("claude-code", "SessionStart"), ("antigravity", "PreInvocation")):
        stdin = json.dumps({"session_id": "s", "conversationId": "s", "cwd": "/"}).encode()
        ran = run_hook(host, event, stdin, env, cwd=cwd)
        assert (ran.code, ran.out, ran.err) == (0, b"{}", b"")
    assert list(cwd.iterdir()) == []

"""Files that cannot be read in the middle of a session: pipes, devices, damaged or vanished bundle parts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from context_anchor.anchors.scope import SessionScope
from context_anchor.wire import marks, paths, registry
from hooks.driver import EVENTS, Antigravity, Claude, environment, given, run_hook

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

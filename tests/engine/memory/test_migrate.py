"""Taking over the memory of the earlier system: a copy, whole, and the source as it was."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from context_anchor.engine.memory import migrate as migrating
from context_anchor.engine.memory.migrate import migrate
from context_anchor.engine.memory.store import open_memory, read_memory
from context_anchor.errors import MigrationRefusedError, ProjectEscapeError

ARTIFACT = "read_file-20250101000000000-abc"


@pytest.fixture
def earlier(root: Path) -> Path:
    folder = root / ".qwen-agent"
    for name in ("episodes", "artifacts", "sessions"):
        (folder / name).mkdir(parents=True)
    (folder / "state.json").write_text('{"objective": "carried over", "notes": ["n"]}', encoding="utf-8")
    (folder / "project.md").write_text("# Mine\r\n", encoding="utf-8", newline="")
    (folder / "repo-map.json").write_text("{broken", encoding="utf-8")
    (folder / "episodes" / "episode-1.json").write_text('{"id": "episode-1"}', encoding="utf-8")
    (folder / "sessions" / "session-1.jsonl").write_text('{"type":"x"}\n', encoding="utf-8")
    record = {
        "tool": "read_file",
        "id": ARTIFACT,
        "createdAt": "2025-01-01T00:00:00.001Z",
        "file": f".qwen-agent/artifacts/{ARTIFACT}.txt",
        "sha256": hashlib.sha256("é\n".encode()).hexdigest(),
    }
    (folder / "artifacts" / f"{ARTIFACT}.txt").write_bytes("é\n".encode())
    (folder / "artifacts" / f"{ARTIFACT}.json").write_text(json.dumps(record), encoding="utf-8")
    (folder / "artifacts" / "broken.json").write_text("{", encoding="utf-8")
    (folder / "state.json.123.tmp").write_text("{", encoding="utf-8")
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_earlier_memory_can_be_read_where_it_is(root: Path, earlier: Path) -> None:
    store = read_memory(root)
    assert store.state.read()["objective"] == "carried over" and store.project.read() == "# Mine\r\n"
    assert store.artifacts.read(ARTIFACT).content == "é\n"
    assert [record["id"] for record in store.artifacts.newest(5)] == [ARTIFACT]
    assert not (root / ".context-anchor").exists()


def test_opening_for_writing_copies_it_and_leaves_the_source(root: Path, earlier: Path) -> None:
    before = everything(earlier)
    store = open_memory(root)
    assert store.migration is not None
    assert (store.migration.copied, store.migration.skipped) == (8, ("state.json.123.tmp",))
    store.state.update({"currentTask": "ours"})
    store.artifacts.save("new")
    assert everything(earlier) == before
    assert store.state.read()["objective"] == "carried over" and store.project.read() == "# Mine\r\n"
    found = store.artifacts.read(ARTIFACT)
    assert found.content == "é\n" and (root / found.metadata["file"]).is_file()
    assert found.metadata["file"] == f".context-anchor/artifacts/{ARTIFACT}.txt"
    assert store.episodes.newest(5) == [{"id": "episode-1"}]
    assert store.repo_map.read()["recoveredFromCorruption"] is True
    assert (store.layout.sessions / "session-1.jsonl").is_file()
    assert open_memory(root).migration is None


def test_where_both_are_there_ours_wins(root: Path, earlier: Path) -> None:
    (root / ".context-anchor").mkdir()
    assert read_memory(root).state.read()["objective"] == ""
    assert open_memory(root).state.read()["objective"] == ""
    with pytest.raises(MigrationRefusedError, match="there already"):
        migrate(root)


def test_without_a_source_nothing_is_copied(root: Path) -> None:
    with pytest.raises(MigrationRefusedError, match="no folder"):
        migrate(root)
    (root / ".qwen-agent").write_text("a file", encoding="utf-8")
    assert read_memory(root).state.read()["objective"] == ""
    assert open_memory(root).migration is None


def test_links_are_not_followed(root: Path, earlier: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"id": "secret"}', encoding="utf-8")
    (earlier / "episodes" / "z.json").symlink_to(tmp_path / "secret.json")
    (earlier / "more").symlink_to(tmp_path, target_is_directory=True)
    result = migrate(root)
    assert set(result.skipped) == {"episodes/z.json", "more", "state.json.123.tmp"}
    assert not (root / ".context-anchor" / "more").exists()


def test_a_source_that_is_a_link_out_of_the_project_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / ".qwen-agent").symlink_to(tmp_path / "outside", target_is_directory=True)
    for call in (migrate, open_memory, read_memory):
        with pytest.raises(ProjectEscapeError):
            call(root)
    assert not (root / ".context-anchor").exists()


def test_a_failed_copy_leaves_no_trace(root: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(root)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Exception, match="No space left"):
        open_memory(root)
    monkeypatch.undo()
    assert everything(root) == before and [path.name for path in root.iterdir()] == [".qwen-agent"]


def test_only_old_unfinished_copies_are_cleared_away(root: Path, earlier: Path) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    names = ("20260101100000000-abcdef", "20260101113000000-abcdef", "x")
    old, young, other = (root / f".context-anchor-incoming-{name}" for name in names)
    for folder in (old, young, other):
        folder.mkdir()
    migrate(root, lambda: now)
    assert [folder.exists() for folder in (old, young, other)] == [False, True, True]


def test_two_processes_that_open_at_once_share_one_copy(
    root: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = migrating._copy
    calls: list[Path] = []

    def copy(source: Path, target: Path) -> tuple[int, tuple[str, ...]]:
        calls.append(target)
        if len(calls) == 1:  # while the first copies, another opens the project and finishes first
            open_memory(root).state.update({"currentTask": "of the other"})
        return real(source, target)

    monkeypatch.setattr(migrating, "_copy", copy)
    store = open_memory(root)
    assert len(calls) == 2 and store.migration is None
    assert store.state.read()["currentTask"] == "of the other"
    assert sorted(path.name for path in root.iterdir()) == [".context-anchor", ".qwen-agent"]


def test_a_record_that_names_another_place_is_copied_as_it_is(root: Path, earlier: Path) -> None:
    for name, text in (("a", "[1]"), ("b", '{"id": "b", "file": "elsewhere.txt"}'), ("c", '{"id":"c"}')):
        (earlier / "artifacts" / f"{name}.json").write_text(text, encoding="utf-8")
    migrate(root)
    for name in ("a", "b", "c"):
        copied = root / ".context-anchor" / "artifacts" / f"{name}.json"
        assert copied.read_bytes() == (earlier / "artifacts" / f"{name}.json").read_bytes()

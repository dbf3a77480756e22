"""Where a memory lies, who may read it, and that no link leads out of the project."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from context_anchor.engine.memory import layout
from context_anchor.engine.memory.store import MemoryStore, open_memory, read_memory
from context_anchor.errors import MemoryUnavailableError, ProjectEscapeError


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("root", True), ("root/a", True), ("root/..name", True), ("root/a/../b", True), ("root/...", True),
        ("root/..", False), ("rootless", False), ("root/../other", False), (".", False), ("root/a/../../b", False),
    ],
)  # fmt: skip
def test_containment_goes_by_whole_names(tmp_path: Path, path: str, wanted: bool) -> None:
    assert layout.inside(tmp_path / "root", f"{tmp_path}{os.sep}{path}") is wanted


def test_the_folders_and_first_files_are_made(root: Path) -> None:
    store = open_memory(root / "new" / "project")
    folder = root / "new" / "project" / ".context-anchor"
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".lock") == [
        ".gitignore", "artifacts", "episodes", "project.md", "sessions", "state.json",
    ]  # fmt: skip
    assert store.project.read().startswith("# Project memory\n")


def test_opening_again_changes_nothing(store: MemoryStore, root: Path) -> None:
    store.layout.project.write_text("mine\r\n", encoding="utf-8", newline="")
    store.state.update({"objective": "a"})
    store.episodes.save({"summary": "b"})
    again = open_memory(root)
    assert again.project.read() == "mine\r\n"
    assert again.state.read()["objective"] == "a"
    assert again.episodes.newest(1)[0]["summary"] == "b"
    assert again.session.session_id != store.session.session_id and not again.session.path.exists()


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_everything_is_for_its_owner_alone(store: MemoryStore) -> None:
    store.state.update({"objective": "a"})
    store.artifacts.save("text")
    store.episodes.save({})
    store.repo_map.write({"files": []})
    store.session.append({"type": "x"})
    folder = store.layout.folder
    for path in [folder, *folder.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_git_sees_the_project_memory_alone(store: MemoryStore, root: Path) -> None:
    store.artifacts.save("text")
    store.session.append({"type": "x"})
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    status = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain", "-uall"], capture_output=True, text=True, check=True
    )
    assert [line[3:] for line in status.stdout.splitlines()] == [
        ".context-anchor/.gitignore", ".context-anchor/project.md",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", "episodes", "artifacts", "sessions", "artifacts/objects"])
def test_a_folder_that_is_a_link_out_of_the_project_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = root / ".context-anchor" / name if name else root / ".context-anchor"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside, target_is_directory=True)
    with pytest.raises(ProjectEscapeError, match="memory directory escapes the project root"):
        open_memory(root)
    assert list(outside.iterdir()) == []


def test_a_link_inside_the_project_is_followed(root: Path) -> None:
    (root / "kept").mkdir()
    (root / ".context-anchor").symlink_to(root / "kept", target_is_directory=True)
    open_memory(root).state.update({"objective": "a"})
    assert (root / "kept" / "state.json").is_file()


def test_a_project_memory_that_links_out_is_not_read(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    store.layout.project.unlink()
    store.layout.project.symlink_to(tmp_path / "secret")
    with pytest.raises(ProjectEscapeError):
        store.project.read()


def test_a_file_in_the_place_of_a_folder_is_named(root: Path) -> None:
    (root / ".context-anchor").write_text("x", encoding="utf-8")
    with pytest.raises(MemoryUnavailableError, match="context-anchor"):
        open_memory(root)


def test_reading_creates_nothing(root: Path) -> None:
    store = read_memory(root)
    assert store.state.read()["objective"] == "" and store.project.read() == ""
    assert store.episodes.newest(5) == [] and store.artifacts.newest(5) == []
    assert store.repo_map.read() == {"generatedAt": None, "files": []}
    assert list(root.iterdir()) == []


def test_a_memory_opened_for_reading_refuses_every_write(root: Path) -> None:
    open_memory(root)
    store = read_memory(root)
    for write in (
        lambda: store.state.update({"objective": "a"}), lambda: store.episodes.save({}), store.project.create,
        lambda: store.artifacts.save("a"), lambda: store.repo_map.write({}), lambda: store.session.append({}),
        store.state.create,
    ):  # fmt: skip
        with pytest.raises(MemoryUnavailableError, match="reading"):
            write()

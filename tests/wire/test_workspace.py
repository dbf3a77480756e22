"""The identity of a workspace, read from real git folders that git itself made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from context_anchor.wire import workspace

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def git(folder: Path, *words: str) -> None:
    env = {
        **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t",
    }  # fmt: skip
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        env.pop(name, None)
    subprocess.run(["git", "-c", "protocol.file.allow=always", *words], cwd=folder, env=env, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit, in a path with a space and letters beyond ASCII."""
    root = tmp_path.resolve() / "my prøject 项目"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def same(*folders: Path) -> bool:
    found = {workspace.identify(str(folder)) for folder in folders}
    return len(found) == 1


@needs_git
def test_subfolders_share_the_repositorys_identity(repo: Path) -> None:
    (repo / "src" / "deep").mkdir(parents=True)
    assert same(repo, repo / "src", repo / "src" / "deep", repo / "src" / ".." / "src")
    identity, root = workspace.identify(str(repo / "src"))
    assert root == str(repo)
    assert len(identity) == 34
    assert identity.startswith("w-")


@needs_git
def test_a_linked_worktree_has_the_main_worktrees_identity(repo: Path) -> None:
    linked = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", str(linked))
    (linked / "src").mkdir()
    assert same(repo, linked, linked / "src")


@needs_git
def test_a_submodule_is_a_workspace_of_its_own(repo: Path) -> None:
    other = repo.parent / "library"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    git(repo, "submodule", "add", "-q", str(other), "vendored")
    module = repo / "vendored"
    (module / "src").mkdir()
    assert (module / ".git").is_file()
    assert workspace.identify(str(module / "src"))[1] == str(module)
    assert not same(repo, module)
    linked = repo.parent / "linked-module"
    git(module, "worktree", "add", "-q", str(linked))
    assert same(module, linked)


@needs_git
def test_worktrees_of_a_bare_repository_share_its_identity(repo: Path) -> None:
    bare = repo.parent / "bare.git"
    git(repo, "clone", "-q", "--bare", str(repo), str(bare))
    one, two = repo.parent / "one", repo.parent / "two"
    git(bare, "worktree", "add", "-q", str(one))
    git(bare, "worktree", "add", "-q", "-b", "b2", str(two))
    assert same(one, two)
    assert workspace.identify(str(one))[1] == str(bare)


@needs_git
def test_a_separate_git_folder_belongs_to_the_folder_that_names_it(repo: Path) -> None:
    work = repo.parent / "work"
    work.mkdir()
    git(work, "init", "-q", "--separate-git-dir", str(repo.parent / "elsewhere"))
    (work / "a").mkdir()
    assert workspace.identify(str(work / "a"))[1] == str(work)


def test_a_folder_outside_git_is_its_own_workspace(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert workspace.identify(str(tmp_path / "a"))[1] == os.path.realpath(tmp_path / "a")
    assert not same(tmp_path / "a", tmp_path / "a" / "b")


def test_a_folder_that_is_not_there_still_has_an_identity(tmp_path: Path) -> None:
    identity, root = workspace.identify(str(tmp_path / "gone"))
    assert root == os.path.realpath(tmp_path / "gone")
    assert identity == workspace.identify(str(tmp_path / "gone"))[0]


def test_a_home_folder_in_git_is_no_project_for_the_folders_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path.resolve() / "home"
    (home / ".git").mkdir(parents=True)
    (home / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (home / "notes").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    assert workspace.identify(str(home / "notes"))[1] == str(home / "notes")
    assert workspace.identify(str(home))[1] == str(home)


@pytest.mark.parametrize(
    "content",
    [b"", b"gitdir:", b"gitdir: ", b"nonsense", b"\xff\xfe", b"gitdir: /none/such/.git\n", b"gitdir: \x00",
     b"gitdir:" + b"\n" * 10, b"x" * 100_000],
)  # fmt: skip
def test_a_damaged_git_file_makes_the_folder_its_own_workspace(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert workspace.identify(str(tmp_path))[1] == os.path.realpath(tmp_path)


def test_an_empty_git_folder_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").mkdir()
    assert workspace.identify(str(tmp_path / "a"))[1] == os.path.realpath(tmp_path / "a")


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_to_a_workspace_is_that_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert same(tmp_path / "real", tmp_path / "link")


def test_case_is_kept_apart_where_the_file_system_keeps_it_apart() -> None:
    if sys.platform in ("darwin", "win32"):
        assert workspace.identity_of("/A/b") == workspace.identity_of("/a/B")
    else:
        assert workspace.identity_of("/A/b") != workspace.identity_of("/a/B")


def record(data: Path, identity: str, attached: object) -> None:
    path = Path(workspace.record_path(str(data), identity))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"format": workspace.FORMAT, "workspace_id": identity, "root": "/r", "attached_to": attached})
    )


def test_a_moved_folder_answers_for_the_workspace_it_was_attached_to(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "moved"
    folder.mkdir()
    own = workspace.identify(str(folder))[0]
    assert workspace.resolve(str(data), str(folder)) == (own, os.path.realpath(folder))
    record(data, own, "w-older")
    record(data, "w-older", "w-oldest")
    assert workspace.resolve(str(data), str(folder)) == ("w-oldest", os.path.realpath(folder))


def test_attachments_in_a_circle_end(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    own = workspace.identify(str(folder))[0]
    record(tmp_path, own, "w-b")
    record(tmp_path, "w-b", own)
    assert workspace.resolve(str(tmp_path), str(folder))[0] in (own, "w-b")


@pytest.mark.parametrize("attached", [None, "", 5, [], "x" * 600])
def test_a_damaged_attachment_is_no_attachment(tmp_path: Path, attached: object) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    own = workspace.identify(str(folder))[0]
    record(tmp_path, own, attached)
    assert workspace.resolve(str(tmp_path), str(folder))[0] == own

"""Identity of a workspace: the main worktree's root, else the folder itself."""

from __future__ import annotations

import os
import sys

from context_anchor.wire import atomic, paths, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

FORMAT = "context-anchor-workspace/1"
_MAX_UP = 60


def _small(path: str) -> str:
    try:
        data = atomic.read_bytes(path, 65536)
    except (OSError, ValueError):
        return ""
    return data.decode("utf-8", "surrogateescape").strip() if data else ""


def _git_link(path: str) -> str:
    """Return the git folder that a `.git` file of a linked worktree or submodule points to, or ''."""
    text = _small(path)
    if not text.startswith("gitdir:"):
        return ""
    target = text[7:].lstrip().partition("\n")[0].strip()
    return os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else ""


def _main_root(folder: str, git_folder: str) -> str:
    """Return the root that stands for a worktree whose git folder is not inside it.

    A linked worktree's git folder names the shared one in `commondir`; the main worktree is the folder
    around that. A submodule has no `commondir` and is a workspace of its own.
    """
    common = _small(os.path.join(git_folder, "commondir"))
    if not common:
        return folder
    shared = os.path.normpath(os.path.join(git_folder, common))
    if os.path.basename(shared) == ".git":
        main = os.path.dirname(shared)
        return main if os.path.isdir(main) else folder
    # A bare repository, or a submodule's worktree: `core.worktree` of the shared folder names its root.
    worktree = _worktree_setting(os.path.join(shared, "config"))
    if worktree:
        main = os.path.normpath(os.path.join(shared, worktree))
        return main if os.path.isdir(main) else shared
    return shared


def _worktree_setting(config: str) -> str:
    for line in _small(config).splitlines():
        name, found, value = line.partition("=")
        if found and name.strip().lower() == "worktree":
            return value.strip().strip('"')
    return ""


def find_root(folder: str) -> str:
    """Return the workspace's root for a folder: an absolute path with links resolved."""
    folder = os.path.realpath(os.path.expanduser(folder))
    at = folder
    home = os.path.realpath(os.path.expanduser("~"))
    for _ in range(_MAX_UP):
        marker = os.path.join(at, ".git")
        # A home folder kept in git (dotfiles) is no project for the folders below it.
        if os.path.exists(marker) and (at != home or at == folder):
            if os.path.isdir(marker):
                return at if _is_git_folder(marker) else folder
            linked = _git_link(marker)
            if linked:
                return os.path.realpath(_main_root(at, linked))
            return folder
        above = os.path.dirname(at)
        if above == at:
            break
        at = above
    return folder


def _is_git_folder(marker: str) -> bool:
    return os.path.exists(os.path.join(marker, "HEAD"))


def identity_of(root: str) -> str:
    """Return the id for a root that is already resolved: `w-` and 32 hex digits."""
    text = os.path.normcase(root)
    if sys.platform == "darwin":
        text = text.lower()  # the usual macOS volume ignores case; getcwd may give either spelling
    # The name's own bytes: in a C locale they come undecoded, and the id must be the same there.
    try:
        raw = os.fsencode(text)
    except UnicodeError:  # no name that a file system could hold
        raw = text.encode("utf-8", "surrogatepass")
    return "w-" + paths.fnv1a_128(raw)


def identify(folder: str) -> tuple[str, str]:
    """Return `(workspace_id, root)` for any folder of a workspace; git is read, never run."""
    root = find_root(folder)
    return identity_of(root), root


def load(data: str, workspace_id: str) -> dict[str, Any] | None:
    """Return the workspace's record or None: {format, workspace_id, root, seen_at, attached_to}."""
    try:
        raw = atomic.read_bytes(record_path(data, workspace_id), 65536)
        value = quickjson.loads(raw) if raw else None
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) and value.get("format") == FORMAT else None


def record_path(data: str, workspace_id: str) -> str:
    """Return where a workspace's record lies."""
    return os.path.join(data, "workspaces", paths.file_key(workspace_id)[2:] + ".json")


def resolve(data: str, folder: str) -> tuple[str, str]:
    """Return `(workspace_id, root)`, following a re-attachment of a moved folder."""
    workspace_id, root = identify(folder)
    seen = workspace_id
    for _ in range(8):
        record = load(data, seen)
        target = record.get("attached_to") if record else None
        if not isinstance(target, str) or target == seen:
            break
        if not target.startswith("w-") or len(target) > paths.MAX_ID_CHARS:
            break  # a damaged record is no attachment
        seen = target
    return seen, root

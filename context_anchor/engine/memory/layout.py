"""Where a project's memory lies, and that it stays inside the project, also through links."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from context_anchor.engine.memory import files
from context_anchor.errors import MemoryUnavailableError, ProjectEscapeError

FOLDER = ".context-anchor"
EARLIER_FOLDER = ".qwen-agent"
"""The folder of the system whose formats these are: read where a project has no other, never written."""
MEMORY_FOLDERS = (FOLDER, EARLIER_FOLDER)
"""Names that a walk through a project passes over."""

OBJECTS = "objects"
_GITIGNORE = "# Private to this machine; project.md may be worth sharing.\n*\n!.gitignore\n!project.md\n"


def inside(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a root or lies below it, by its name alone; a sibling `..name` below does."""
    try:
        relative = os.path.relpath(path, root)
    except ValueError:  # another drive (Windows)
        return False
    above = relative == os.pardir or relative.startswith(os.pardir + os.sep)
    return not above and not Path(relative).is_absolute()


def contained(path: Path, root: Path, what: str) -> Path:
    """Return a path's real path, which must lie inside a real root.

    Raises ProjectEscapeError naming `what`, OSError where the path does not exist.
    """
    real = Path(os.path.realpath(path, strict=True))
    if not inside(root, real):
        raise ProjectEscapeError(
            f"{what} escapes the project root: {path} leads to {real}, outside {root}",
            hint="Remove the link, or put a folder of the project in its place.",
        )
    return real


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one project's memory. `root` is the project's real path."""

    root: Path
    name: str = FOLDER
    writable: bool = True

    @property
    def folder(self) -> Path:
        """The memory's folder."""
        return self.root / self.name

    @property
    def state(self) -> Path:
        """The working state."""
        return self.folder / "state.json"

    @property
    def project(self) -> Path:
        """The project memory that people edit."""
        return self.folder / "project.md"

    @property
    def repo_map(self) -> Path:
        """The generated map of the repository."""
        return self.folder / "repo-map.json"

    @property
    def episodes(self) -> Path:
        """One file an episode."""
        return self.folder / "episodes"

    @property
    def artifacts(self) -> Path:
        """Two files an artifact."""
        return self.folder / "artifacts"

    @property
    def objects(self) -> Path:
        """Each distinct artifact text once, named by its digest."""
        return self.artifacts / OBJECTS

    @property
    def sessions(self) -> Path:
        """One file a session."""
        return self.folder / "sessions"

    def to_read(self, path: Path) -> Path:
        """Return the real path of a file of the memory, or the path as it is where there is no file.

        Raises ProjectEscapeError where a link leads out of the project, MemoryUnavailableError.
        """
        try:
            return contained(path, self.root, "the memory directory")
        except FileNotFoundError:
            return path
        except OSError as problem:
            raise files.unavailable(problem, path) from problem

    def require_writable(self) -> None:
        """Raise MemoryUnavailableError where the memory was opened for reading alone."""
        if not self.writable:
            raise MemoryUnavailableError(
                f"the memory in {self.folder} was opened for reading; nothing was written",
                hint="Open it for writing.",
            )

    def real_artifacts(self) -> Path:
        """Return the real path of the artifact directory; raises ProjectEscapeError, OSError."""
        return contained(self.artifacts, self.root, "the artifact directory")


def _real_root(project_root: Path) -> Path:
    return Path(os.path.realpath(project_root, strict=True))


def find(project_root: Path) -> Layout:
    """Return the layout of a memory to read; nothing is created.

    Where a project has no folder of ours, that is the earlier system's; where it has neither, ours, which
    then reads as empty. Raises ProjectEscapeError, MemoryUnavailableError.
    """
    with files.reported(project_root):
        root = _real_root(project_root)
        earlier = not os.path.lexists(root / FOLDER) and (root / EARLIER_FOLDER).is_dir()
        layout = Layout(root, EARLIER_FOLDER if earlier else FOLDER, writable=False)
        if os.path.lexists(layout.folder):
            contained(layout.folder, root, "the memory directory")
    return layout


def create(project_root: Path) -> Layout:
    """Return the layout of a memory to write, its folders created, private where the platform has modes.

    Raises ProjectEscapeError before anything is written outside the project; MemoryUnavailableError.
    """
    with files.reported(project_root):
        Path(project_root).mkdir(parents=True, exist_ok=True)
        layout = Layout(_real_root(project_root))
        for folder in (layout.folder, layout.episodes, layout.artifacts, layout.sessions, layout.objects):
            if os.path.lexists(folder):  # a link that leads out must not be followed to create something
                contained(folder, layout.root, "the memory directory")
            files.make_folder(folder)
            contained(folder, layout.root, "the memory directory")
        ignore = layout.folder / ".gitignore"
        if not os.path.lexists(ignore):
            files.replace_bytes(ignore, _GITIGNORE.encode())
    return layout

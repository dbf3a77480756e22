"""A folder that holds exactly the files we put there: written file by file, removed without touching others'."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from context_anchor.errors import HostConfigError
from context_anchor.wire import atomic

RECORD: Final = ".context-anchor-files.json"
FORMAT: Final = "context-anchor-files/1"
# A host that starts in the middle must not see a manifest whose files are not there yet.
_LAST: Final = ("hooks.json", "mcp_config.json", "plugin.json", ".claude-plugin/plugin.json")


@dataclass(frozen=True, slots=True)
class Changes:
    """What writing did: paths below the folder, and files there that are not ours."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything on disk is different now."""
        return bool(self.written or self.removed)


def recorded(folder: Path) -> dict[str, str] | None:
    """Return the digests of the files we put in a folder, None where we did not (or the record is damaged)."""
    try:
        value = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    files = value.get("files") if isinstance(value, dict) and value.get("format") == FORMAT else None
    if not isinstance(files, dict) or not all(isinstance(text, str) for pair in files.items() for text in pair):
        return None
    # A record names files below its folder; anything else was not written by us.
    return {name: digest for name, digest in files.items() if _inside(name)}


def _inside(name: str) -> bool:
    return bool(name) and not name.startswith(("/", "\\")) and ":" not in name and ".." not in name.split("/")


def plan(folder: Path, files: Mapping[str, bytes]) -> Changes:
    """Return what `write` would do; reads only."""
    before = recorded(folder) or {}
    written = tuple(name for name in _order(files) if _content(folder / name) != files[name])
    removed = tuple(sorted(name for name in before if name not in files and (folder / name).is_file()))
    known = set(files) | set(before) | {RECORD}
    foreign = tuple(sorted(name for name in _files_below(folder) if name not in known))
    return Changes(written, removed, foreign)


def write(folder: Path, files: Mapping[str, bytes]) -> Changes:
    """Make the folder hold these files; those of an earlier write that are not among them go.

    Each file is replaced in one step and only when it differs. Raises OSError and HostConfigError (the folder is
    a link or a file).
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise HostConfigError(
            f"{folder} is not a plain folder", hint="Remove it (it may be a link you made) and install again."
        )
    changes = plan(folder, files)
    folder.mkdir(parents=True, exist_ok=True)
    if changes.any or recorded(folder) is None:
        # The record comes first: were this cut off, the next run still knows which files are ours.
        names = {**dict.fromkeys(recorded(folder) or {}, ""), **{n: _digest(files[n]) for n in files}}
        _write_record(folder, names)
    for name in changes.written:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.replace_bytes(str(path), files[name])
        path.chmod(0o644)
    for name in changes.removed:
        (folder / name).unlink(missing_ok=True)
    if changes.any:
        _write_record(folder, {name: _digest(files[name]) for name in files})
        _tidy(folder)
    return changes


def remove(folder: Path) -> Changes:
    """Take out the files we put in a folder, and the folder when nothing else is in it."""
    before = recorded(folder)
    if before is None:
        return Changes(foreign=tuple(_files_below(folder)))
    gone = []
    for name in sorted(before, key=lambda n: (n not in _LAST, n)):  # the manifest first: no half plugin is loaded
        if (folder / name).is_file():
            (folder / name).unlink()
            gone.append(name)
    (folder / RECORD).unlink(missing_ok=True)
    _tidy(folder)
    left = tuple(_files_below(folder))
    if not left and folder.is_dir():
        folder.rmdir()
    return Changes(removed=tuple(gone), foreign=left)


def _order(files: Mapping[str, bytes]) -> list[str]:
    return sorted(files, key=lambda name: (_LAST.index(name) + 1 if name in _LAST else 0, name))


def _write_record(folder: Path, digests: Mapping[str, str]) -> None:
    text = json.dumps({"format": FORMAT, "files": dict(sorted(digests.items()))}, indent=0)
    atomic.replace_bytes(str(folder / RECORD), text.encode("ascii"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _files_below(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    found = (p for p in folder.rglob("*") if not p.is_dir() and "__pycache__" not in p.relative_to(folder).parts)
    return sorted(p.relative_to(folder).as_posix() for p in found)


def _tidy(folder: Path) -> None:
    """Remove byte code of modules that are gone, and folders that are empty."""
    for top, _, _ in os.walk(folder, topdown=False):
        here = Path(top)
        if here.name == "__pycache__":
            if not any(here.parent.glob("*.py")):
                shutil.rmtree(here)
        elif here != folder and not any(here.iterdir()):
            here.rmdir()

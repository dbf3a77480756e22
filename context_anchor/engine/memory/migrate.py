"""Copying the memory of the earlier system into ours; the source is never changed."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from context_anchor.engine.ids import Clock, generated_id, random_suffix, stamp_digits, utc_now
from context_anchor.engine.memory import files
from context_anchor.engine.memory.layout import EARLIER_FOLDER, FOLDER, contained
from context_anchor.errors import MigrationRefusedError

_INCOMING = f"{FOLDER}-incoming"
_LEFT_OVER_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Migration:
    """What was copied, and what was not: links, special files and left-over temporary files."""

    source: Path
    target: Path
    copied: int
    skipped: tuple[str, ...]


def is_due(project_root: Path) -> bool:
    """Return whether a project has a memory of the earlier system and none of ours."""
    return not os.path.lexists(project_root / FOLDER) and (project_root / EARLIER_FOLDER).is_dir()


def migrate(project_root: Path, now: Clock = utc_now) -> Migration:
    """Copy `.qwen-agent` of a project to `.context-anchor`, which appears whole or not at all.

    Raises MigrationRefusedError where there is no source or a target already, ProjectEscapeError where the
    source leads out of the project, MemoryUnavailableError.
    """
    root = Path(os.path.realpath(project_root))
    source, target = root / EARLIER_FOLDER, root / FOLDER
    if os.path.lexists(target):
        raise MigrationRefusedError(
            f"{target} is there already; nothing was copied",
            hint=f"Move it away to take over {source} instead.",
        )
    if not source.is_dir():
        raise MigrationRefusedError(f"there is no folder {source} to copy")
    with files.reported(source):
        real = contained(source, root, "the memory directory")
        _clear_left_over(root, now)
        incoming = root / generated_id(_INCOMING, now(), random_suffix)
        try:
            files.make_folder(incoming)
            copied, skipped = _copy(real, incoming)
            try:
                incoming.rename(target)
            except OSError as problem:
                if not os.path.lexists(target):
                    raise
                raise MigrationRefusedError(
                    f"{target} appeared while {source} was copied; it was left as it is"
                ) from problem
            files.sync_folder(root)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
    return Migration(source, target, copied, skipped)


def _clear_left_over(root: Path, now: Clock) -> None:
    """Remove copies that a killed process left unfinished; they are ours by their name and an hour old."""
    oldest = stamp_digits(generated_id("x", now() - _LEFT_OVER_AFTER))
    for path in root.glob(f"{_INCOMING}-*"):
        stamp = stamp_digits(path.name)
        if stamp is not None and oldest is not None and stamp < oldest and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


def _copy(source: Path, target: Path) -> tuple[int, tuple[str, ...]]:
    copied = 0
    skipped: list[str] = []
    for folder, folders, names in os.walk(source):
        here = Path(folder)
        place = target / here.relative_to(source)
        for name in sorted(folders):
            if (here / name).is_symlink():
                skipped.append((here / name).relative_to(source).as_posix())
            else:
                files.make_folder(place / name)
        for name in sorted(names):
            path = here / name
            if name.endswith(files.TEMPORARY) or path.is_symlink() or not path.is_file():
                skipped.append(path.relative_to(source).as_posix())
                continue
            _copy_file(path, place / name)
            copied += 1
    return copied, tuple(skipped)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes; an artifact's metadata names its new place."""
    with files.Staged(target.parent, target.name) as staged:
        if target.parent.name == "artifacts" and target.suffix == ".json":
            staged.write(_moved_metadata(b"".join(files.read_chunks(source))))
        else:
            for data in files.read_chunks(source):
                staged.write(data)
        staged.replace(target)
    stamp = source.stat()
    os.utime(target, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def _moved_metadata(data: bytes) -> bytes:
    try:
        record = json.loads(data)
    except ValueError:
        return data  # damaged there, damaged here
    if not isinstance(record, dict) or not isinstance(record.get("file"), str):
        return data
    if not record["file"].startswith(f"{EARLIER_FOLDER}/"):
        return data
    return files.json_bytes({**record, "file": FOLDER + record["file"][len(EARLIER_FOLDER) :]})

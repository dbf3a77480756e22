"""A host's own JSON settings: read with care, changed in one place, everything else kept."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from context_anchor.errors import HostConfigError
from context_anchor.wire import atomic, paths

_MOST_BYTES: Final = 16 * 1024 * 1024


def read_object(path: Path) -> dict[str, Any] | None:
    """Return a settings file's object, None where there is no file or it is empty.

    Raises HostConfigError for what we could not write back as it was: broken JSON, comments, a name twice, no
    object at the top.
    """
    return _parse(path)[0]


def _parse(path: Path) -> tuple[dict[str, Any] | None, str]:
    try:
        raw = atomic.read_bytes(str(path), _MOST_BYTES)
        text = (raw or b"").decode("utf-8")
    except (OSError, ValueError) as problem:
        raise HostConfigError(
            f"{path} can't be read: {problem}", hint="Repair the file, then try again."
        ) from problem
    if not text.strip("\ufeff \t\r\n"):
        return None, text
    try:
        value = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_no_name_twice)
    except (ValueError, RecursionError) as problem:
        raise HostConfigError(
            f"{path} is not plain JSON: {problem}", hint="It was left as it is. Repair it, then try again."
        ) from problem
    if not isinstance(value, dict):
        raise HostConfigError(
            f"{path} holds no JSON object", hint="It was left as it is. Repair it, then try again."
        )
    return value, text


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} stands twice in an object")
    return found


def allowed(path: Path) -> tuple[str, ...]:
    """Return the entries of `permissions.allow`; raises HostConfigError as `read_object` does."""
    return tuple(entry for entry in _allow_list(path, read_object(path) or {}) if isinstance(entry, str))


def _allow_list(path: Path, settings: dict[str, Any]) -> list[Any]:
    permissions = settings.get("permissions", {})
    allow = permissions.get("allow", []) if isinstance(permissions, dict) else None
    if not isinstance(allow, list):
        raise HostConfigError(
            f"{path}: permissions.allow is not a list", hint="It was left as it is. Repair it, then try again."
        )
    return allow


def allow(path: Path, entries: Sequence[str], backups: Path) -> tuple[str, ...]:
    """Add entries to `permissions.allow` and return those that were not there.

    A copy of the file as it was goes into `backups` first. Raises HostConfigError, OSError.
    """
    settings, text = _parse(path)
    settings = {} if settings is None else settings
    present = _allow_list(path, settings)
    new = [entry for entry in entries if entry not in present]
    if new:
        settings.setdefault("permissions", {})["allow"] = [*present, *new]
        _write(path, settings, text, backups)
    return tuple(new)


def disallow(path: Path, entries: Sequence[str], backups: Path) -> tuple[str, ...]:
    """Take entries out of `permissions.allow` and return those that were there; raises as `allow` does."""
    settings, text = _parse(path)
    if settings is None:
        return ()
    present = _allow_list(path, settings)
    gone = [entry for entry in entries if entry in present]
    if gone:
        kept = [entry for entry in present if entry not in gone]
        if kept:
            settings["permissions"]["allow"] = kept
        else:
            del settings["permissions"]["allow"]
            if not settings["permissions"]:
                del settings["permissions"]
        _write(path, settings, text, backups)
    return tuple(gone)


def _write(path: Path, settings: dict[str, Any], before: str, backups: Path) -> None:
    """Replace the file in one step, in the form it had: indentation, line ends, byte order mark, mode."""
    target = Path(os.path.realpath(path))  # people keep such files as links into a folder of their own
    indent = re.search(r"\n([ \t]+)\S", before)
    step: int | str = 2 if indent is None else indent.group(1)
    text = json.dumps(settings, indent=step, ensure_ascii=False) + "\n"
    if "\r\n" in before:
        text = text.replace("\n", "\r\n")
    if before.startswith("\ufeff"):
        text = "\ufeff" + text
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can hold
        content = json.dumps(settings, indent=step).encode("ascii") + b"\n"
    mode = None
    if target.exists():
        mode = target.stat().st_mode & 0o777
        paths.ensure_folder(str(backups))
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
        copy = backups / f"{target.parent.name}-{target.name}-{stamp}"
        atomic.replace_bytes(str(copy), target.read_bytes(), durable=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace_bytes(str(target), content, durable=True)
    if mode is not None:
        target.chmod(mode)

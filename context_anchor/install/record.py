"""The installer's own record: what it changed in files that are not ours, so that only that is taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from context_anchor.wire import atomic, paths

FORMAT: Final = "context-anchor-install/1"
NAME: Final = "install.json"


def permissions(data: Path) -> dict[str, list[str]]:
    """Return the permission entries we added, by the settings file they stand in."""
    try:
        value = json.loads((data / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = value.get("permissions") if isinstance(value, dict) and value.get("format") == FORMAT else None
    if not isinstance(found, dict):
        return {}
    return {str(path): [str(entry) for entry in names] for path, names in found.items() if isinstance(names, list)}


def note_permissions(data: Path, path: Path, entries: tuple[str, ...]) -> None:
    """Add entries to those we answer for in a settings file."""
    have = permissions(data)
    have[str(path)] = sorted({*have.get(str(path), []), *entries})
    _write(data, have)


def forget_permissions(data: Path, path: Path) -> None:
    """Drop a settings file from the record."""
    have = permissions(data)
    if have.pop(str(path), None) is not None:
        _write(data, have)


def _write(data: Path, have: dict[str, list[str]]) -> None:
    if not have:
        (data / NAME).unlink(missing_ok=True)
        return
    paths.ensure_folder(str(data))
    text = json.dumps({"format": FORMAT, "permissions": have}, indent=1) + "\n"
    atomic.replace_bytes(str(data / NAME), text.encode("ascii"), durable=True)

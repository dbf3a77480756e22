"""The scopes that have files below a data folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from context_anchor.anchors import journal
from context_anchor.anchors.scope import AnyScope, ScopeFiles, from_identity
from context_anchor.errors import UsageError
from context_anchor.wire import quickjson

_JOURNAL = ".journal.jsonl"


def stems(data: str) -> Iterator[str]:
    """Yield the path of every scope's files without their suffix, sessions first, in sorted order."""
    top = Path(data, "anchors")
    folders = [top / "session" / name for name in _names(top / "session")]
    for folder in (*folders, top / "workspace"):
        found: set[str] = set()
        for name in _names(folder):
            for suffix in (_JOURNAL, ".json"):
                if name.endswith(suffix):
                    found.add(name[: -len(suffix)])
                    break
        for stem in sorted(found):
            yield str(folder / stem)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone, no path objects
    except OSError:
        return []


def scope_at(stem: str) -> AnyScope | None:
    """Return the scope whose files begin with a path, by its file's first line or its journal."""
    try:
        with open(stem + ".json", "rb") as file:  # noqa: PTH123
            head = quickjson.loads(file.readline(1 << 20).rstrip().removesuffix(b"]}") + b"]}")
        if isinstance(head, dict):
            return from_identity(head)
    except (OSError, ValueError, UsageError):
        return journal.scope_of(stem + _JOURNAL)
    return journal.scope_of(stem + _JOURNAL)


def list_scopes(data: str) -> tuple[AnyScope, ...]:
    """Return every scope that names itself and whose files lie where they should."""
    found = []
    for stem in stems(data):
        scope = scope_at(stem)
        if scope is not None and ScopeFiles.of(data, scope).anchors == stem + ".json":
            found.append(scope)
    return tuple(found)

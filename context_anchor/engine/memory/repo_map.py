"""The stored map of a repository: a cache that may be lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_anchor.engine.memory import files
from context_anchor.engine.memory.layout import Layout
from context_anchor.errors import MemoryDamagedError, MemoryUnavailableError, ProjectEscapeError


class RepoMap:
    """The file `repo-map.json`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def read(self) -> dict[str, Any]:
        """Return the map; an empty one where there is none.

        A file that can't be read or holds no object gives the empty map with `recoveredFromCorruption`.
        """
        empty: dict[str, Any] = {"generatedAt": None, "files": []}
        try:
            stored = files.read_object(self._layout.to_read(self._layout.repo_map))
        except (MemoryDamagedError, MemoryUnavailableError, ProjectEscapeError):
            return {**empty, "recoveredFromCorruption": True}
        return empty if stored is None else stored

    def write(self, value: Mapping[str, Any]) -> None:
        """Replace the map; raises NotJsonError (nothing is written), MemoryUnavailableError."""
        self._layout.require_writable()
        files.replace_json(self._layout.repo_map, dict(value))

"""The project memory: plain text that people edit and the agent reads."""

from __future__ import annotations

from context_anchor.engine.memory import files
from context_anchor.engine.memory.layout import Layout

_FIRST_TEXT = (
    "# Project memory\n\n"
    "Write here what an agent should know in every session: decisions, conventions, commands.\n"
)


class ProjectMemory:
    """The file `project.md`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def create(self) -> None:
        """Write a heading and a hint where there is no file; raises MemoryUnavailableError."""
        self._layout.require_writable()
        path = self._layout.project
        with files.reported(path):
            try:
                with files.Staged(path.parent, path.name) as staged:
                    staged.write(_FIRST_TEXT.encode())
                    staged.create(path)
            except FileExistsError:
                return

    def read(self) -> str:
        """Return the text, empty where there is no file; raises ProjectEscapeError, MemoryUnavailableError."""
        return files.read_text(self._layout.to_read(self._layout.project)) or ""

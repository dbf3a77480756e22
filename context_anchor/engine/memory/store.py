"""All of one project's memory, opened together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from context_anchor.engine.config import DURABILITY_DEFAULTS
from context_anchor.engine.ids import Clock, generated_id, random_suffix, utc_now
from context_anchor.engine.memory import layout as layouts
from context_anchor.engine.memory import migrate
from context_anchor.engine.memory.artifacts import Artifacts
from context_anchor.engine.memory.episodes import Episodes
from context_anchor.engine.memory.layout import Layout
from context_anchor.engine.memory.project import ProjectMemory
from context_anchor.engine.memory.repo_map import RepoMap
from context_anchor.engine.memory.sessions import SessionLog
from context_anchor.engine.memory.state import WorkingState
from context_anchor.errors import MigrationRefusedError


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """The parts of a project's memory; `migration` tells what was copied from the earlier system just now."""

    layout: Layout
    state: WorkingState
    project: ProjectMemory
    episodes: Episodes
    repo_map: RepoMap
    artifacts: Artifacts
    session: SessionLog
    migration: migrate.Migration | None = None


def _assemble(
    layout: Layout,
    now: Clock,
    suffix: Callable[[], str],
    max_tool_output_chars: int,
    migration: migrate.Migration | None = None,
) -> MemoryStore:
    session_id = generated_id("session", now(), suffix)
    return MemoryStore(
        layout=layout,
        state=WorkingState(layout, now),
        project=ProjectMemory(layout),
        episodes=Episodes(layout, now, suffix),
        repo_map=RepoMap(layout),
        artifacts=Artifacts(layout, now, suffix),
        session=SessionLog(layout, session_id, now, max_tool_output_chars),
        migration=migration,
    )


def open_memory(
    project_root: Path,
    *,
    now: Clock = utc_now,
    suffix: Callable[[], str] = random_suffix,
    max_tool_output_chars: int = DURABILITY_DEFAULTS["maxToolOutputChars"],
) -> MemoryStore:
    """Open a project's memory for reading and writing; what is missing is created.

    Where the project has only a memory of the earlier system, that is copied first and stays as it is. The
    file of the session is created by its first event. Raises ProjectEscapeError, MigrationRefusedError,
    MemoryUnavailableError.
    """
    migration = None
    if migrate.is_due(project_root):
        try:
            migration = migrate.migrate(project_root, now)
        except MigrationRefusedError:
            if migrate.is_due(project_root):
                raise  # it is not that another process copied it meanwhile
    layout = layouts.create(project_root)
    store = _assemble(layout, now, suffix, max_tool_output_chars, migration)
    store.state.create()
    store.project.create()
    return store


def read_memory(project_root: Path, *, now: Clock = utc_now) -> MemoryStore:
    """Open a project's memory for reading alone, ours or else the earlier system's; nothing is created.

    Raises ProjectEscapeError, MemoryUnavailableError.
    """
    return _assemble(layouts.find(project_root), now, random_suffix, DURABILITY_DEFAULTS["maxToolOutputChars"])

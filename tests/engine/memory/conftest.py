"""A project with a memory, a clock that goes on, and the project's files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from context_anchor.engine.memory.store import MemoryStore, open_memory


class TickingClock:
    """A clock that is a second later at each look."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=timezone.utc)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "pro ject é"
    folder.mkdir()
    return folder


@pytest.fixture
def store(root: Path, clock: Callable[[], datetime]) -> MemoryStore:
    return open_memory(root, now=clock)

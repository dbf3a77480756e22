"""A store below a temporary folder, with a clock and ids that a test can foresee."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from context_anchor.anchors.anchor import Draft
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore

START = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=timezone.utc)
SESSION = SessionScope("claude-code", "11111111-2222-4333-8444-555555555555")
OTHER = SessionScope("antigravity", "conv-Ünïcode/../7")


class Clock:
    """A clock that goes one second further at each look, unless it is set."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data folder ü")


@pytest.fixture
def make_store(data: str, clock: Clock) -> Callable[[], AnchorStore]:
    numbers = iter(range(1, 100_000))

    def make() -> AnchorStore:
        return AnchorStore(data, now=clock, new_id=lambda: f"a-{next(numbers):010x}", lock_wait_s=5)

    return make


@pytest.fixture
def store(make_store: Callable[[], AnchorStore]) -> AnchorStore:
    return make_store()


@pytest.fixture
def workspace(tmp_path: Path) -> WorkspaceScope:
    return WorkspaceScope("w-" + "0" * 32, str(tmp_path / "project"))


def draft(title: str, content: str = "The parser lives in src/parse.py:40.", **more: object) -> Draft:
    return Draft.checked(title=title, content=content, **more)

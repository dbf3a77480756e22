"""Hosts with a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from hooks.driver import Antigravity, Claude

settings.register_profile("no deadline", deadline=None, max_examples=40)
settings.load_profile("no deadline")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose path has a space and letters beyond ASCII."""
    path = tmp_path / "a folder ü 项目"
    path.mkdir()
    return path


@pytest.fixture
def claude(folder: Path) -> Claude:
    return Claude(folder)


@pytest.fixture
def antigravity(folder: Path) -> Antigravity:
    return Antigravity(folder)

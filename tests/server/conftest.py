"""A desk over a real store in a temporary folder, and sessions as hooks register them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from context_anchor.anchors.store import AnchorStore
from context_anchor.server.caller import Call, Desk
from context_anchor.wire import registry, workspace


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def register(data: Path) -> Callable[..., None]:
    """Registers a session as its hook does at first sight; with a pid also as that process's newest."""

    def make(host: str, session_id: str, folder: Path | None, *, pid: int = 0, at: float | None = None) -> None:
        now = time.time() if at is None else at
        record = registry.new(host, session_id, now)
        if folder is not None:
            record["cwd"] = str(folder)
            record["workspace_id"], record["workspace_root"] = workspace.identify(str(folder))
        record["host_pid"] = pid
        registry.save(str(data), record)
        if pid:
            registry.note_process(str(data), host, pid, session_id, now)

    return make


@pytest.fixture
def make_desk(data: Path, project: Path) -> Callable[..., Desk]:
    def make(folder: Path | None = None, pid: int = 0) -> Desk:
        return Desk(str(data), AnchorStore(data), str(folder or project), pid, time.time(), env={})

    return make


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()


@pytest.fixture
def session(register: Callable[..., None], project: Path) -> Call:
    """A call of an Antigravity conversation that hooks registered for the project."""
    register("antigravity", "conv-1", project)
    return Call(conversation_id="conv-1")

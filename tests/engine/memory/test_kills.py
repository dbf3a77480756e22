"""A process may be killed at any step of a write: what was stored before stays, what is new is whole or absent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from context_anchor.engine.memory.migrate import migrate
from context_anchor.engine.memory.state import empty_state
from context_anchor.engine.memory.store import MemoryStore, open_memory, read_memory

from .dying import killed_at_each_step

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def test_a_state_is_the_old_or_the_new_one_whole(store: MemoryStore) -> None:
    store.state.update({"objective": "old", "notes": ["kept"]})
    seen = set()
    for _ in killed_at_each_step(lambda: store.state.update({"objective": "new" * 500})):
        state = store.state.read()
        assert state["notes"] == ["kept"]
        seen.add(state["objective"])
        store.state.update({"objective": "old"})  # a killed writer holds no lock and blocks nobody
    assert seen == {"old", "new" * 500}
    assert store.state.read()["objective"] == "new" * 500


@pytest.mark.parametrize("equal", [False, True], ids=["a new text", "a text that is stored already"])
def test_every_artifact_that_is_listed_is_whole(store: MemoryStore, equal: bool) -> None:
    before = store.artifacts.save("before\n" * 50, "tool")
    content = "before\n" * 50 if equal else "other\n" * 50
    for _ in killed_at_each_step(lambda: store.artifacts.save(content, "tool")):
        for record in store.artifacts.newest(1000):
            text = store.artifacts.read(record["id"]).content
            assert text == ("before\n" * 50 if record["id"] == before["id"] else content)
    assert store.artifacts.read(before["id"]).content == "before\n" * 50
    assert store.artifacts.read(store.artifacts.save(content)["id"]).content == content


def test_every_episode_that_is_listed_is_whole(store: MemoryStore) -> None:
    store.episodes.save({"summary": "before"})
    for _ in killed_at_each_step(lambda: store.episodes.save({"summary": "x" * 999})):
        for episode in store.episodes.newest(1000):
            assert episode["summary"] in ("before", "x" * 999)
    assert store.episodes.newest(1000)[-1]["summary"] == "before"


def test_a_session_log_has_whole_lines_but_for_one_torn(store: MemoryStore) -> None:
    store.session.append({"type": "before"})
    for _ in killed_at_each_step(lambda: store.session.append({"type": "x" * 99})):
        first = store.session.path.read_text(encoding="utf-8").split("\n")[0]
        assert json.loads(first)["type"] == "before"


def test_a_copied_memory_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    source = tmp_path / ".qwen-agent"
    (source / "episodes").mkdir(parents=True)
    (source / "state.json").write_text('{"objective": "carried over"}', encoding="utf-8")
    (source / "episodes" / "episode-1.json").write_text('{"id": "episode-1"}', encoding="utf-8")
    target = tmp_path / ".context-anchor"
    for _ in killed_at_each_step(lambda: migrate(tmp_path)):
        assert read_memory(tmp_path).state.read()["objective"] == "carried over"
        if target.exists():
            assert (target / "episodes" / "episode-1.json").is_file()
            target.rename(tmp_path / f"done-{os.urandom(4).hex()}")
    assert (source / "state.json").read_text(encoding="utf-8") == '{"objective": "carried over"}'


@pytest.mark.parametrize("links", [True, False], ids=["with hard links", "without hard links"])
def test_a_memory_whose_making_was_cut_off_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no hard links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    projects = [tmp_path / "0"]
    for step in killed_at_each_step(lambda: open_memory(projects[-1])):
        store = open_memory(projects[-1])
        assert store.state.read() == empty_state()
        store.state.update({"objective": "a"})
        assert store.artifacts.read(store.artifacts.save("text")["id"]).content == "text"
        projects.append(tmp_path / str(step))


def test_without_hard_links_too_every_artifact_that_is_listed_is_whole(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    for _ in killed_at_each_step(lambda: store.artifacts.save("text\n" * 50)):
        for record in store.artifacts.newest(1000):
            assert store.artifacts.read(record["id"]).content == "text\n" * 50
    assert len(store.artifacts.newest(1000)) >= 1

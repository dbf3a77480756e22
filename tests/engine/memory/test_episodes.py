"""Episodes and the repository map."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path

import pytest

from context_anchor.engine.memory.episodes import Episodes
from context_anchor.engine.memory.store import MemoryStore
from context_anchor.errors import MemoryUnavailableError, NotJsonError


def test_an_episode_comes_back_with_the_engines_id_and_time(store: MemoryStore) -> None:
    saved = store.episodes.save({"summary": "a", "id": "forged", "createdAt": "1999", "files": ["x"]})
    assert list(saved) == ["id", "createdAt", "summary", "files"]
    assert saved["id"].startswith("episode-2026") and saved["createdAt"].startswith("2026-")
    text = (store.layout.episodes / f"{saved['id']}.json").read_text(encoding="utf-8")
    assert json.loads(text) == saved and text.endswith("}\n")
    assert store.episodes.newest(1) == [saved]


def test_the_newest_come_first(store: MemoryStore) -> None:
    made = [store.episodes.save({"n": n})["id"] for n in range(5)]
    assert [episode["id"] for episode in store.episodes.newest(3)] == made[:1:-1]
    assert len(store.episodes.newest(99)) == 5
    assert store.episodes.newest(0) == store.episodes.newest(-1) == []


@pytest.mark.parametrize("text", ["{", "", "null", "0", "[]", '"x"', "{}", '{"id": 5}', "\x00"])
def test_a_damaged_newer_file_does_not_hide_a_good_one(store: MemoryStore, text: str) -> None:
    good = store.episodes.save({"summary": "good"})
    (store.layout.episodes / "episode-99999999999999999-zzzzzz.json").write_text(text, encoding="utf-8")
    (store.layout.episodes / "zz-a-folder.json").mkdir()
    assert store.episodes.newest(1) == [good]


def test_an_episode_that_is_a_link_out_of_the_project_is_passed_over(store: MemoryStore, tmp_path: Path) -> None:
    outside = tmp_path / "x.json"
    outside.write_text('{"id": "secret"}', encoding="utf-8")
    (store.layout.episodes / "zz.json").symlink_to(outside)
    assert store.episodes.newest(5) == []


def test_what_is_not_json_is_not_stored(store: MemoryStore) -> None:
    with pytest.raises(NotJsonError):
        store.episodes.save({"a": (1,)})
    assert list(store.layout.episodes.iterdir()) == []


@pytest.mark.parametrize("links", [True, False], ids=["with hard links", "without hard links"])
def test_a_taken_id_is_drawn_again(store: MemoryStore, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no hard links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    suffixes = iter(["aaaaaa", "aaaaaa", "bbbbbb"])
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    episodes = Episodes(store.layout, lambda: moment, lambda: next(suffixes))
    first, second = episodes.save({"n": 1}), episodes.save({"n": 2})
    assert episodes.newest(5) == [second, first]
    stuck = Episodes(store.layout, lambda: moment, lambda: "aaaaaa")
    with pytest.raises(MemoryUnavailableError, match="free name"):
        stuck.save({})
    assert len(list(store.layout.episodes.iterdir())) == 2


def test_a_map_comes_back_as_it_was_stored(store: MemoryStore) -> None:
    assert store.repo_map.read() == {"generatedAt": None, "files": []}
    value = {"generatedAt": "2026-01-01T00:00:00.000Z", "files": [{"path": "a"}]}
    store.repo_map.write(value)
    assert store.repo_map.read() == value


@pytest.mark.parametrize("text", ["{", "", "[]", "null"])
def test_a_damaged_map_is_an_empty_one_that_says_so(store: MemoryStore, text: str) -> None:
    store.layout.repo_map.write_text(text, encoding="utf-8")
    assert store.repo_map.read() == {"generatedAt": None, "files": [], "recoveredFromCorruption": True}
    store.repo_map.write({"generatedAt": "x", "files": []})
    assert "recoveredFromCorruption" not in store.repo_map.read()

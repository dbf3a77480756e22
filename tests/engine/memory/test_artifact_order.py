"""Lists of artifacts: by time, and read no further than asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from context_anchor.engine.memory import files
from context_anchor.engine.memory.artifacts import Artifacts
from context_anchor.engine.memory.layout import create
from context_anchor.engine.memory.store import MemoryStore

from .stored import put


def test_lists_go_by_time_and_not_by_name(store: MemoryStore) -> None:
    kinds = ["write_file", "a_tool", "read_file", "z", "b"]
    made = [store.artifacts.save(kind, kind)["id"] for kind in kinds]
    assert [record["id"] for record in store.artifacts.newest(10)] == made[::-1]
    assert [record["id"] for record in store.artifacts.newest(2)] == made[:2:-1]
    for count in (0, -1):
        assert store.artifacts.newest(count) == []


def test_ids_order_what_was_made_at_one_time(store: MemoryStore) -> None:
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    artifacts = Artifacts(store.layout, lambda: moment)
    made = sorted((artifacts.save(str(n))["id"] for n in range(6)), reverse=True)
    assert [record["id"] for record in artifacts.newest(10)] == made


def test_records_of_other_programs_take_their_place_by_their_time(store: MemoryStore) -> None:
    own = [store.artifacts.save(str(n))["id"] for n in range(3)]  # at 03:04:08, 03:04:10, 03:04:12 or so
    put(store, "hand-made", "x", {"id": "hand-made", "createdAt": "2027-01-01T00:00:00.000Z"})
    put(store, "undated", "x", {"id": "undated"})
    late = "tool-20260101000000000-abc"
    put(store, late, "x", {"id": late, "createdAt": "2026-01-01T00:00:30.000Z"})
    early = "tool-20260101000010000-abc"
    put(store, early, "x", {"id": early, "createdAt": "2026-01-01T00:00:10.000Z"})
    wanted = ["hand-made", *own[::-1], late, early, "undated"]
    assert [record["id"] for record in store.artifacts.newest(10)] == wanted


def test_a_long_list_reads_only_what_it_needs(
    root: Path, monkeypatch: pytest.MonkeyPatch, clock: Callable[[], datetime]
) -> None:
    layout = create(root)
    for number in range(400):
        artifact_id = f"tool-20260101{number // 60:02d}{number % 60:02d}00000-abcdef"
        stamp = f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00.000Z"
        (layout.artifacts / f"{artifact_id}.txt").write_text("x", encoding="utf-8")
        (layout.artifacts / f"{artifact_id}.json").write_text(
            json.dumps({"id": artifact_id, "createdAt": stamp}), encoding="utf-8"
        )
    read: list[Path] = []
    real = files.read_object

    def counted(path: Path) -> dict[str, Any] | None:
        read.append(path)
        return real(path)

    monkeypatch.setattr(files, "read_object", counted)
    found = list(islice(Artifacts(layout, clock).walk(), 10))
    assert found[0]["createdAt"] == "2026-01-01T06:39:00.000Z" and len(found) == 10
    assert len(read) <= 13

"""The log of a session: lines, times, long results, disks that fill."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from context_anchor.engine.memory.sessions import SessionLog
from context_anchor.engine.memory.store import MemoryStore
from context_anchor.errors import MemoryUnavailableError, NotJsonError


def lines(log: SessionLog) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.path.read_text(encoding="utf-8").splitlines()]


def test_each_event_is_a_line_under_the_engines_time(store: MemoryStore) -> None:
    assert not store.session.path.exists()
    store.session.append({"type": "a", "timestamp": "1999", "text": "é\n\U0001f600"})
    store.session.append({"type": "b"})
    first, second = store.session.path.read_text(encoding="utf-8").split("\n")[:2]
    assert first.startswith('{"timestamp":"2026-') and '"text":"é\\n\U0001f600"' in first
    assert json.loads(second)["type"] == "b" and "1999" not in first
    assert store.session.path.name == f"{store.session.session_id}.jsonl"


def test_a_long_result_is_noted_as_its_artifact(store: MemoryStore, clock: Callable[[], datetime]) -> None:
    log = SessionLog(store.layout, "session-1", clock, max_tool_output_chars=256)
    evidence = {"artifactId": "a-1", "originalChars": 300, "sha256": "ff", "durable": True}
    event = {"type": "tool_result", "name": "f", "arguments": {}, "result": "x" * 300, "evidence": evidence}
    log.append(event)
    log.append({**event, "result": "x" * 254})
    log.append({**event, "evidence": {"artifactId": None}})
    log.append({**event, "type": "message"})
    noted = [line["result"] for line in lines(log)]
    assert noted[0] == {"artifactId": "a-1", "originalChars": 300, "sha256": "ff"}
    assert noted[1:] == ["x" * 254, "x" * 300, "x" * 300]
    assert event["result"] == "x" * 300


def test_what_is_not_json_is_not_noted(store: MemoryStore) -> None:
    with pytest.raises(NotJsonError):
        store.session.append({"a": object()})
    assert not store.session.path.exists()


def test_threads_do_not_mix_their_lines(store: MemoryStore) -> None:
    def work(name: int) -> None:
        for _ in range(40):
            store.session.append({"type": "x", "text": str(name) * 3000})

    threads = [threading.Thread(target=work, args=(name,)) for name in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = lines(store.session)
    assert len(found) == 200 and all(len(set(line["text"])) == 1 for line in found)


def test_a_line_cut_by_a_full_disk_spoils_no_other(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    calls = 0

    def filling(handle: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(28, "No space left on device")
        return real(handle, data[:10])

    store.session.append({"type": "before"})
    monkeypatch.setattr(os, "write", filling)
    with pytest.raises(MemoryUnavailableError, match="No space left"):
        store.session.append({"type": "cut"})
    monkeypatch.undo()
    store.session.append({"type": "after"})
    found = store.session.path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(found[0])["type"], json.loads(found[2])["type"]] == ["before", "after"]
    assert len(found) == 3

"""Artifacts written the way another program might."""

from __future__ import annotations

import json

from context_anchor.engine.memory.store import MemoryStore


def put(store: MemoryStore, artifact_id: str, text: str, record: object) -> None:
    """Write an artifact's two files as another program might."""
    (store.layout.artifacts / f"{artifact_id}.txt").write_text(text, encoding="utf-8")
    stored = record if isinstance(record, str) else json.dumps(record)
    (store.layout.artifacts / f"{artifact_id}.json").write_text(stored, encoding="utf-8")

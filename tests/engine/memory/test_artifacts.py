"""Artifacts: exact, verified, stored once, read by lines, listed by time."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from context_anchor.engine.memory.artifacts import Artifacts, is_artifact_id
from context_anchor.engine.memory.store import MemoryStore
from context_anchor.errors import (
    ArtifactIntegrityError,
    ArtifactNotFoundError,
    InvalidArtifactIdError,
    MemoryDamagedError,
    MemoryUnavailableError,
    NotJsonError,
    ProjectEscapeError,
)

from .stored import put


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, count + 1))


def texts(store: MemoryStore) -> set[int]:
    """Return the file numbers of all stored texts."""
    return {path.stat().st_ino for path in store.layout.artifacts.rglob("*.txt")}


# Storing


def test_an_artifact_is_its_text_and_a_record_of_it(store: MemoryStore) -> None:
    text = 'naïve \U0001f600 "q"\r\n'
    record = store.artifacts.save(text, "read_file", {"tool": "read_file", "arguments": {"path": "a"}})
    assert re.fullmatch(r"read_file-[0-9]{17}-[0-9a-z]{6}", record["id"])
    assert list(record) == ["tool", "arguments", "id", "createdAt", "file", "chars", "bytes", "sha256"]
    path = store.layout.root / record["file"]
    assert path.read_bytes() == text.encode() and path.name == f"{record['id']}.txt"
    assert record["file"] == f".context-anchor/artifacts/{record['id']}.txt"
    assert (record["chars"], record["bytes"]) == (14, len(text.encode()))
    assert record["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    stored = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert stored == record == store.artifacts.metadata(record["id"])


def test_the_engines_keys_win_over_given_ones(store: MemoryStore) -> None:
    record = store.artifacts.save("a", metadata={"id": "x", "sha256": "y", "chars": 9, "bytes": 9, "file": "/etc"})
    assert record["id"].startswith("tool-") and record["chars"] == 1
    assert store.artifacts.read(record["id"]).content == "a"


def test_the_record_is_frozen(store: MemoryStore) -> None:
    record = store.artifacts.save("a")
    with pytest.raises(TypeError):
        record["id"] = "x"


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [("mcp:server/tool", "mcp_server_tool-"), ("../../x", "t.._.._x-"), ("", "tool-"), ("é", "t_-"), ("-", "t--"),
     ("n" * 500, "n" * 120 + "-")],
)  # fmt: skip
def test_any_tool_name_gives_an_id_that_is_no_path(store: MemoryStore, kind: str, prefix: str) -> None:
    record = store.artifacts.save("a", kind)
    assert record["id"].startswith(prefix) and is_artifact_id(record["id"])
    assert store.artifacts.read(record["id"]).content == "a"


def test_equal_texts_are_stored_once_under_their_own_ids(store: MemoryStore) -> None:
    records = [store.artifacts.save("same" * 100, kind) for kind in ("a", "b", "a")]
    other = store.artifacts.save("other")
    assert len({record["id"] for record in records}) == 3
    assert len(texts(store)) == 2
    for record in records:
        assert store.artifacts.read(record["id"]).content == "same" * 100
    assert store.artifacts.read(other["id"]).content == "other"


def test_removing_one_of_equal_artifacts_leaves_the_others(store: MemoryStore) -> None:
    one, two = store.artifacts.save("same"), store.artifacts.save("same")
    (store.layout.root / one["file"]).unlink()
    (store.layout.objects / f"{two['sha256']}.txt").unlink()
    assert store.artifacts.read(two["id"]).content == "same"
    assert store.artifacts.read(store.artifacts.save("same")["id"]).content == "same"


def test_a_damaged_shared_text_is_not_given_to_a_new_artifact(store: MemoryStore) -> None:
    first = store.artifacts.save("same")
    (store.layout.root / first["file"]).write_text("evil", encoding="utf-8")  # the shared text too, by its link
    second = store.artifacts.save("same")
    assert store.artifacts.read(second["id"]).content == "same"
    assert store.artifacts.read(store.artifacts.save("same")["id"]).content == "same"
    with pytest.raises(ArtifactIntegrityError):
        store.artifacts.read(first["id"])


def test_a_shared_text_that_is_a_link_is_not_followed(store: MemoryStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("same", encoding="utf-8")
    shared = store.layout.objects / f"{hashlib.sha256(b'same').hexdigest()}.txt"
    shared.symlink_to(outside)
    record = store.artifacts.save("same")
    assert not shared.is_symlink() and not (store.layout.root / record["file"]).is_symlink()
    assert outside.read_text(encoding="utf-8") == "same"


def test_without_hard_links_each_artifact_has_its_own_text(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    records = [store.artifacts.save("same") for _ in range(2)]
    assert len(texts(store)) == 2
    assert [store.artifacts.read(record["id"]).content for record in records] == ["same", "same"]
    assert [path.name for path in store.layout.artifacts.rglob("*.tmp")] == []


def test_a_taken_id_is_drawn_again_and_never_overwritten(store: MemoryStore) -> None:
    suffixes = iter(["aaaaaa", "aaaaaa", "aaaaaa", "bbbbbb"])
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    artifacts = Artifacts(store.layout, lambda: moment, lambda: next(suffixes))
    first, second = artifacts.save("one"), artifacts.save("two")
    assert (first["id"][-6:], second["id"][-6:]) == ("aaaaaa", "bbbbbb")
    assert artifacts.read(first["id"]).content == "one"


def test_ids_that_stay_taken_are_reported(store: MemoryStore) -> None:
    artifacts = Artifacts(store.layout, lambda: datetime(2026, 1, 1, tzinfo=timezone.utc), lambda: "aaaaaa")
    artifacts.save("one")
    with pytest.raises(MemoryUnavailableError, match="free name"):
        artifacts.save("two")
    assert [record["chars"] for record in artifacts.newest(9)] == [3]


@pytest.mark.parametrize("failing", ["write", "fsync", "replace", "open"])
def test_a_failed_write_leaves_nothing_behind(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    before = sorted(path.name for path in store.layout.folder.rglob("*"))
    real = getattr(os, failing)

    def full(*arguments: Any, **more: Any) -> Any:
        if failing == "open" and not arguments[1] & os.O_CREAT:
            return real(*arguments, **more)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(MemoryUnavailableError, match="No space left"):
        store.artifacts.save("text")
    monkeypatch.undo()
    assert sorted(path.name for path in store.layout.folder.rglob("*")) == before


def test_metadata_that_is_not_json_stores_nothing(store: MemoryStore) -> None:
    with pytest.raises(NotJsonError):
        store.artifacts.save("a", metadata={"x": object()})
    assert store.artifacts.newest(5) == [] and texts(store) == set()


def test_a_source_that_fails_leaves_nothing_behind(store: MemoryStore) -> None:
    def source() -> Iterator[str]:
        yield "a"
        raise RuntimeError("the tool died")

    with pytest.raises(RuntimeError):
        store.artifacts.save(source())
    assert list(store.layout.objects.iterdir()) == [] and texts(store) == set()


# Reading


@pytest.mark.parametrize(
    ("asked", "start", "end", "count"),
    [
        ((), 1, 300, 300), ((2, 700), 2, 501, 500), ((600,), 600, 700, 101), ((1, 1), 1, 1, 1),
        ((10, 5), 10, 10, 1), ((-5, 3), 1, 3, 3), ((0, 0), 1, 1, 1), ((5.0, 6.0), 5, 6, 2),
        ((700, 900), 700, 700, 1),
        (("2", "3"), 1, 300, 300), ((True, 2.5), 1, 300, 300), ((None, None), 1, 300, 300), ((701,), 701, 700, 0),
    ],
)  # fmt: skip
def test_lines_are_counted_from_one_and_bounded(
    store: MemoryStore, asked: tuple[Any, ...], start: int, end: int, count: int
) -> None:
    record = store.artifacts.save(numbered(700))
    found = store.artifacts.read(record["id"], *asked)
    assert (found.start_line, found.end_line, found.total_lines) == (start, end, 700)
    assert found.content == "\n".join(f"line {n}" for n in range(start, start + count))
    assert list(found.to_json()) == ["artifactId", "metadata", "startLine", "endLine", "totalLines", "content"]


def test_the_whole_text_comes_in_pieces(store: MemoryStore) -> None:
    text = "é\U0001f600\r\n" * 700_000
    record = store.artifacts.save(text)
    parts = list(store.artifacts.text(record["id"]))
    assert len(parts) > 3 and "".join(parts) == text


@pytest.mark.parametrize(
    "artifact_id",
    ["../state", "", "a/b", "a\\b", ".x", "-x", "a\n", "é", "x" * 161, "a b", "a:b", None, 5],
)
def test_what_is_no_id_is_never_a_path(store: MemoryStore, artifact_id: Any) -> None:
    with pytest.raises(InvalidArtifactIdError, match="Invalid artifact ID"):
        store.artifacts.read(artifact_id)


def test_an_unknown_id_is_the_systems_not_found_error(store: MemoryStore) -> None:
    for artifact_id in ("unknown", "x" * 160):
        with pytest.raises(FileNotFoundError):
            store.artifacts.read(artifact_id)
        with pytest.raises(ArtifactNotFoundError):
            store.artifacts.metadata(artifact_id)


@pytest.mark.parametrize("part", [".txt", ".json"])
def test_an_artifact_with_one_file_missing_is_not_found(store: MemoryStore, part: str) -> None:
    record = store.artifacts.save("a")
    (store.layout.artifacts / (record["id"] + part)).unlink()
    with pytest.raises(ArtifactNotFoundError):
        store.artifacts.read(record["id"])
    assert store.artifacts.newest(5) == []


def test_a_tampered_text_is_refused_also_beyond_the_lines_asked_for(store: MemoryStore) -> None:
    record = store.artifacts.save(numbered(900))
    path = store.layout.root / record["file"]
    path.write_text(numbered(900).replace("line 899", "line 8x9"), encoding="utf-8")
    for call in (
        lambda: store.artifacts.read(record["id"], 1, 1),
        lambda: next(store.artifacts.text(record["id"])),
    ):
        with pytest.raises(ArtifactIntegrityError, match="integrity check failed"):
            call()


def test_bytes_that_are_no_text_fail_the_check_even_with_their_own_hash(store: MemoryStore) -> None:
    record = store.artifacts.save("a")
    data = b"a\xff\xfeb"
    (store.layout.root / record["file"]).write_bytes(data)
    changed = {**record, "sha256": hashlib.sha256(data).hexdigest()}
    (store.layout.artifacts / f"{record['id']}.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(ArtifactIntegrityError):
        store.artifacts.read(record["id"])


def test_a_hash_counts_with_its_prefix_too_and_one_may_be_missing(store: MemoryStore) -> None:
    put(store, "a-1", "x\n", {"id": "a-1", "sha256": "sha256:" + hashlib.sha256(b"x\n").hexdigest()})
    put(store, "a-2", "x\n", {"id": "a-2"})
    assert store.artifacts.read("a-1").content == store.artifacts.read("a-2").content == "x\n"
    put(store, "a-3", "x\n", {"id": "a-3", "sha256": 5})
    with pytest.raises(ArtifactIntegrityError):
        store.artifacts.read("a-3")


@pytest.mark.parametrize("record", ["{", "[]", "null", {"id": "other"}, {"sha256": "x"}, {"id": 5}])
def test_damaged_metadata_is_refused_aloud_and_hidden_from_lists(store: MemoryStore, record: object) -> None:
    good = store.artifacts.save("good")
    put(store, "zz-1", "x", record)
    with pytest.raises(MemoryDamagedError):
        store.artifacts.read("zz-1")
    assert [found["id"] for found in store.artifacts.newest(5)] == [good["id"]]


def test_a_replaced_directory_is_named(store: MemoryStore, tmp_path: Path) -> None:
    record = store.artifacts.save("a")
    outside = tmp_path / "outside"
    store.layout.artifacts.rename(outside)
    store.layout.artifacts.symlink_to(outside, target_is_directory=True)
    for call in (
        lambda: store.artifacts.read(record["id"]),
        lambda: store.artifacts.save("b"),
        lambda: store.artifacts.newest(1),
    ):
        with pytest.raises(ProjectEscapeError, match="artifact directory escapes the project root"):
            call()


@pytest.mark.parametrize("part", [".txt", ".json"])
def test_a_file_that_is_a_link_out_of_the_directory_is_refused(
    store: MemoryStore, tmp_path: Path, part: str
) -> None:
    record = store.artifacts.save("a")
    path = store.layout.artifacts / (record["id"] + part)
    moved = tmp_path / "moved"
    path.rename(moved)
    path.symlink_to(moved)
    with pytest.raises(ProjectEscapeError):
        store.artifacts.read(record["id"])
    assert store.artifacts.newest(5) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_a_text_does_not_make_the_reader_wait(store: MemoryStore) -> None:
    record = store.artifacts.save("a")
    path = store.layout.root / record["file"]
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(MemoryUnavailableError, match="ordinary file"):
        store.artifacts.read(record["id"])

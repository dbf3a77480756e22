"""The working state: fields, types, damage, and many writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from context_anchor.engine.memory import files
from context_anchor.engine.memory.state import WorkingState, empty_state
from context_anchor.engine.memory.store import MemoryStore, open_memory
from context_anchor.errors import InvalidStateError, LockTimeoutError, MemoryDamagedError, ProjectEscapeError

WORKER = Path(__file__).with_name("updating_worker.py")
REPOSITORY = Path(__file__).resolve().parents[3]


def test_a_new_state_is_empty_and_has_ten_fields_in_order(store: MemoryStore) -> None:
    assert store.state.read() == empty_state()
    assert list(store.state.read()) == [
        "objective", "currentTask", "constraints", "activeFiles", "knownFailures", "decisions", "nextActions",
        "notes", "stateTransfer", "updatedAt",
    ]  # fmt: skip
    text = store.layout.state.read_text(encoding="utf-8")
    assert text.startswith('{\n  "objective": "",\n') and text.endswith('"updatedAt": null\n}\n')


def test_an_update_replaces_its_fields_and_returns_the_whole_state(store: MemoryStore, root: Path) -> None:
    store.state.update({"objective": "a", "notes": ["x", "y"]})
    state = store.state.update({"notes": ["z"], "updatedAt": "1999"})
    assert (state["objective"], state["notes"]) == ("a", ["z"])
    assert state["updatedAt"].startswith("2026-01-02T03:") and state["updatedAt"].endswith(".006Z")
    assert open_memory(root).state.read() == state


def test_keys_that_are_no_field_are_passed_over(store: MemoryStore) -> None:
    state = store.state.update({"toString": "x", "__class__": "y", "objective": "a"})
    assert set(state) == set(empty_state())


def test_an_agents_own_update_sets_no_field_of_the_engine(store: MemoryStore) -> None:
    store.state.update({"stateTransfer": "summary"})
    state = store.state.update({"stateTransfer": "forged", "notes": ["n"]}, by_agent=True)
    assert (state["stateTransfer"], state["notes"]) == ("summary", ["n"])


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        ({"objective": ["a"]}, "objective"), ({"objective": None}, "objective"), ({"notes": "a"}, "notes"),
        ({"notes": [1]}, r"notes\[0\]"), ({"decisions": [["a"]]}, r"decisions\[0\]"),
        ({"stateTransfer": 5}, "stateTransfer"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_changes_nothing(store: MemoryStore, patch: dict[str, Any], name: str) -> None:
    before = store.layout.state.read_bytes()
    with pytest.raises(InvalidStateError, match=name):
        store.state.update({"currentTask": "t", **patch})
    assert store.layout.state.read_bytes() == before


@pytest.mark.parametrize("text", ["{", "", "[]", "null", '"x"', "\x00"])
def test_a_damaged_state_is_refused_aloud_and_left_as_it_is(store: MemoryStore, text: str) -> None:
    store.layout.state.write_text(text, encoding="utf-8")
    for call in (store.state.read, lambda: store.state.update({"objective": "a"})):
        with pytest.raises(MemoryDamagedError, match="JSON") as raised:
            call()
        assert str(store.layout.state) in str(raised.value)
    assert store.layout.state.read_text(encoding="utf-8") == text


def test_a_missing_state_reads_as_empty(store: MemoryStore) -> None:
    store.layout.state.unlink()
    assert store.state.read() == empty_state()


def test_a_left_over_temporary_file_does_not_matter(store: MemoryStore) -> None:
    store.state.update({"objective": "good"})
    store.layout.state.with_name("state.json.4711.tmp").write_text("{broken", encoding="utf-8")
    assert store.state.read()["objective"] == "good"


def test_what_earlier_and_later_versions_stored_is_kept(store: MemoryStore) -> None:
    stored = {"objective": None, "notes": "one", "decisions": [{"why": 1}, "x"], "updatedAt": 5, "future": {"a": 1}}
    store.layout.state.write_text(json.dumps(stored), encoding="utf-8")
    state = store.state.update({"currentTask": "t"})
    assert (state["objective"], state["notes"]) == ("", ["one"])
    assert state["decisions"] == ['{"why":1}', "x"] and state["constraints"] == []
    assert json.loads(store.layout.state.read_text(encoding="utf-8"))["future"] == {"a": 1}


def test_surrogates_and_astral_characters_come_back(store: MemoryStore) -> None:
    value = "a\ud83d \U0001f600 \u2028"
    store.state.update({"objective": value})
    assert store.state.read()["objective"] == value


def test_ten_processes_that_update_lose_no_field(root: Path) -> None:
    open_memory(root)
    owned = [field for field in empty_state() if field != "updatedAt"]
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(root), field, "6"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        for field in [*owned, ""]
    ]  # fmt: skip
    assert len(workers) == 10
    for worker in workers:  # all begin together
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert out == "kept\n", err
    state = open_memory(root).state.read()
    assert {field: state[field] for field in owned} == {
        field: ["5"] if isinstance(empty, list) else "5" for field, empty in empty_state().items() if field in owned
    }


def test_a_writer_that_waits_too_long_says_who_it_waits_for(store: MemoryStore) -> None:
    lock = store.layout.state.with_name("state.json.lock")
    with files.locked(lock, 1), pytest.raises(LockTimeoutError, match=r"state\.json\.lock"):
        WorkingState(store.layout, lock_wait_s=0.05).update({"objective": "a"})
    assert store.state.update({"objective": "b"})["objective"] == "b"


def test_a_state_that_is_a_link_out_of_the_project_is_not_followed(store: MemoryStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('{"objective": "secret"}', encoding="utf-8")
    store.layout.state.unlink()
    store.layout.state.symlink_to(outside)
    with pytest.raises(ProjectEscapeError):
        store.state.read()
    with pytest.raises(ProjectEscapeError):
        store.state.update({"objective": "x"})
    assert outside.read_text(encoding="utf-8") == '{"objective": "secret"}'

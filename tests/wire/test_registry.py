"""Session records, and the ways back to a session."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.wire import paths, registry

HOST = "claude-code"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_a_record_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    record = registry.new(HOST, "sess/Ü", 12.5)
    record["cwd"] = "/a b/ü\udc80"
    registry.save(str(tmp_path), record)
    assert registry.load(str(tmp_path), HOST, "sess/Ü") == record
    assert registry.load(str(tmp_path), "antigravity", "sess/Ü") is None


@given(st.dictionaries(st.sampled_from([name for name, _ in registry._FIELDS]), JSON, max_size=6))
def test_a_damaged_field_becomes_its_default_and_costs_no_other(changes: dict[str, object]) -> None:
    record = registry.new(HOST, "s", 1.0)
    have = registry._checked({**record, **changes})
    assert have is not None
    for name, default in registry._FIELDS:
        assert isinstance(have[name], (int, float) if isinstance(default, float) else type(default))
        if name not in changes:
            assert have[name] == record[name]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff", b'{"format":"other/1"}', b"x" * 100_000,
                b'{"format":"context-anchor-session/1","host":5,"session_id":"s"}'],
)  # fmt: skip
def test_what_is_no_record_counts_as_none(tmp_path: Path, content: bytes) -> None:
    path = Path(paths.session_path(str(tmp_path), "registry", HOST, "s"))
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    registry.save(str(tmp_path), registry.new(HOST, "other", 1.0))
    assert registry.load(str(tmp_path), HOST, "s") is None
    assert [r["session_id"] for r in registry.all_sessions(str(tmp_path))] == ["other"]


def test_all_sessions_are_listed_oldest_seen_first_over_all_hosts(tmp_path: Path) -> None:
    data = str(tmp_path)
    for host, name, at in ((HOST, "b", 2.0), ("antigravity", "a", 1.0), (HOST, "c", 3.0)):
        registry.save(data, registry.new(host, name, at))
    registry.note_process(data, HOST, 7, "b", 9.0)
    registry.note_first_line(data, HOST, "line", "b")
    assert [r["session_id"] for r in registry.all_sessions(data)] == ["a", "b", "c"]
    assert [r["session_id"] for r in registry.all_sessions(data, HOST)] == ["b", "c"]
    assert registry.all_sessions(str(tmp_path / "none")) == []


def test_a_process_is_in_its_newest_session(tmp_path: Path) -> None:
    data = str(tmp_path)
    assert registry.by_process(data, 7) is None
    registry.note_process(data, HOST, 7, "old", 1.0)
    registry.note_process(data, HOST, 7, "new", 2.0)
    registry.note_process(data, "antigravity", 7, "other", 1.5)
    assert registry.by_process(data, 7) == (HOST, "new", 2.0)
    assert registry.by_process(data, 7, "antigravity") == ("antigravity", "other", 1.5)
    assert registry.by_process(data, 8) is None


def test_sessions_with_the_same_first_line_are_kept_oldest_first_and_bounded(tmp_path: Path) -> None:
    data = str(tmp_path)
    for n in range(40):
        registry.note_first_line(data, HOST, "line", f"s{n}")
        registry.note_first_line(data, HOST, "line", f"s{n}")
    kin = registry.by_first_line(data, HOST, "line")
    assert kin[-1] == "s39"
    assert kin == [f"s{n}" for n in range(40 - len(kin), 40)]
    assert 2 <= len(kin) <= 64
    assert registry.by_first_line(data, HOST, "other") == []


@pytest.mark.parametrize("content", [b"", b"nonsense", b"{}", b"[1, null]", b"\xff"])
def test_a_damaged_index_of_first_lines_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    data = str(tmp_path)
    registry.note_first_line(data, HOST, "line", "s")
    [path] = [p for p in Path(data, "registry", HOST).iterdir() if p.name.startswith("first-")]
    path.write_bytes(content)
    assert registry.by_first_line(data, HOST, "line") == []
    registry.note_first_line(data, HOST, "line", "t")
    assert registry.by_first_line(data, HOST, "line") == ["t"]


def test_a_tool_call_leads_to_its_session(tmp_path: Path) -> None:
    data = str(tmp_path)
    registry.note_call(data, HOST, "toolu_01/../X", "s", 5.0)
    assert registry.find_call(data, "toolu_01/../X") == (HOST, "s", 5.0)
    assert registry.find_call(data, "toolu_02") is None
    [path] = os.listdir(tmp_path / "calls")
    (tmp_path / "calls" / path).write_text(json.dumps({"session_id": 5, "host": HOST}))
    assert registry.find_call(data, "toolu_01/../X") is None

"""The hooks' state of a session: what is damaged is replaced, what is newer is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.wire import marks

HOST, SESSION = "claude-code", "s"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def put(data: Path, content: bytes) -> Path:
    path = Path(marks.path_of(str(data), HOST, SESSION))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_marks_come_back_as_they_were_saved(tmp_path: Path) -> None:
    value = marks.new()
    value["shown"] = ["a-1:1"]
    value["events"] = {"Stop": 5}
    assert marks.load(str(tmp_path), HOST, SESSION) is None
    marks.save(str(tmp_path), HOST, SESSION, value)
    assert marks.load(str(tmp_path), HOST, SESSION) == value
    assert marks.exists(str(tmp_path), HOST, SESSION)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format":5}', b'{"format":"x/1"}', b"999"])
def test_what_cannot_be_read_is_none_and_can_be_set_aside(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, content)
    assert marks.load(str(tmp_path), HOST, SESSION) is None
    aside = marks.set_aside(str(tmp_path), HOST, SESSION)
    assert Path(aside).read_bytes() == content
    assert not path.exists()
    assert marks.set_aside(str(tmp_path), HOST, SESSION) == ""


@pytest.mark.parametrize("number", [b"2", b"10", b"9" * 6000])
def test_a_newer_file_is_refused_and_stays(tmp_path: Path, number: bytes) -> None:
    path = put(tmp_path, b'{"format":"context-anchor-marks/%s","secret":1}' % number)
    with pytest.raises(marks.NewerMarksError):
        marks.load(str(tmp_path), HOST, SESSION)
    assert path.read_bytes().endswith(b'"secret":1}')


@given(st.dictionaries(st.sampled_from([*marks.new(), "settings", "last_nudge", "since"]), JSON, max_size=6))
def test_fields_of_the_wrong_type_become_their_defaults(changes: dict[str, Any]) -> None:
    changes.pop("format", None)
    have = marks._checked(json.loads(json.dumps({**marks.new(), **changes})))
    assert have is not None
    fresh = marks.new()
    for key, default in fresh.items():
        if default is not None:
            assert type(have[key]) is type(default)
        if key not in changes:
            assert have[key] == default
    for key in ("tokens", "window_threshold"):
        assert have[key] is None or type(have[key]) is int
    assert have["cursor"] is None or isinstance(have["cursor"], dict)
    for key in ("last_receipt", "last_nudge"):
        assert have.get(key) is None or isinstance(have[key]["id"], str)

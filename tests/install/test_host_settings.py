"""Editing a host's settings: one list changes, everything else stays, a broken file is not touched."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.errors import HostConfigError
from context_anchor.install import host_settings

SCALAR = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(SCALAR | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.text(max_size=5), inner, max_size=3), max_leaves=8)  # fmt: skip
ENTRIES = ("mcp(one/*)", "mcp(two/*)")


@given(
    st.dictionaries(st.text(max_size=6), VALUE, max_size=4), st.lists(st.text(max_size=6), max_size=3, unique=True)
)
@settings(max_examples=60, deadline=None)
def test_adding_and_taking_back_leaves_what_was_there(base: dict[str, Any], allow: list[str]) -> None:
    allow = [entry for entry in allow if entry not in ENTRIES]
    before = {**base, "permissions": {"deny": ["x"], "allow": allow}}
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "settings.json"
        path.write_text(json.dumps(before), encoding="utf-8")
        assert host_settings.allow(path, ENTRIES, Path(made) / "backups") == ENTRIES
        between = json.loads(path.read_text(encoding="utf-8"))
        assert between == {**before, "permissions": {"deny": ["x"], "allow": [*allow, *ENTRIES]}}
        assert host_settings.allow(path, ENTRIES, Path(made) / "backups") == ()
        assert host_settings.disallow(path, ENTRIES, Path(made) / "backups") == ENTRIES
        after = json.loads(path.read_text(encoding="utf-8"))
        after["permissions"].setdefault("allow", [])
        assert after == before


def test_the_files_form_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes('\ufeff{\r\n\t"name": "Zoë"\r\n}\r\n'.encode())
    path.chmod(0o640)
    host_settings.allow(path, ["mcp(one/*)"], tmp_path / "b")
    raw = path.read_bytes()
    assert raw.startswith(b'\xef\xbb\xbf{\r\n\t"name": "Zo\xc3\xab",\r\n\t"permissions"')
    assert raw.count(b"\n") == raw.count(b"\r\n")
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o640


def test_a_copy_of_the_file_as_it_was_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"a": 1}', encoding="utf-8")
    host_settings.allow(path, ["mcp(one/*)"], tmp_path / "backups")
    copies = list((tmp_path / "backups").iterdir())
    assert [copy.read_text() for copy in copies] == ['{"a": 1}']


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_settings_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "settings.json"
    real.write_text("{}")
    (tmp_path / "settings.json").symlink_to(real)
    host_settings.allow(tmp_path / "settings.json", ["mcp(one/*)"], tmp_path / "b")
    assert (tmp_path / "settings.json").is_symlink()
    assert json.loads(real.read_text()) == {"permissions": {"allow": ["mcp(one/*)"]}}


@pytest.mark.parametrize(
    "text",
    ["{", '{"a": 1, // note\n}', "[]", '"x"', '{"a": 1, "a": 2}', '{"permissions": []}',
     '{"permissions": {"allow": "all"}}', "{}\x00", "[" * 100_000],
)  # fmt: skip
def test_a_file_that_cannot_be_written_back_as_it_was_is_left_untouched(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text, encoding="utf-8")
    for change in (host_settings.allow, host_settings.disallow):
        with pytest.raises(HostConfigError) as caught:
            change(path, ["mcp(one/*)"], tmp_path / "b")
        assert str(path) in caught.value.message and caught.value.hint
    assert path.read_text(encoding="utf-8") == text
    assert not (tmp_path / "b").exists()


def test_bytes_that_are_no_utf8_are_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(HostConfigError, match="can't be read"):
        host_settings.allow(path, ["mcp(one/*)"], tmp_path / "b")
    assert path.read_bytes() == b'{"a": "\xff"}'


@pytest.mark.parametrize("text", [None, "", "\ufeff", " \r\n"])
def test_a_missing_or_empty_file_becomes_a_new_one(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "folder" / "settings.json"
    if text is not None:
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    assert host_settings.allow(path, ["mcp(one/*)"], tmp_path / "b") == ("mcp(one/*)",)
    assert host_settings.allowed(path) == ("mcp(one/*)",)


def test_half_a_surrogate_pair_survives(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"a": "\\ud800"}')
    host_settings.allow(path, ["mcp(one/*)"], tmp_path / "b")
    assert json.loads(path.read_text())["a"] == "\ud800"


def test_taking_back_from_a_missing_file_makes_none(tmp_path: Path) -> None:
    assert host_settings.disallow(tmp_path / "settings.json", ["x"], tmp_path / "b") == ()
    assert list(tmp_path.iterdir()) == []

"""A folder of ours: written whole, only when needed, and removed without other people's files."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.errors import HostConfigError
from context_anchor.install import mirror

from .conftest import tree_digest

NAME = st.from_regex(r"[a-c](/[d-f]x?){0,2}\.(py|md)", fullmatch=True)
FILES = st.dictionaries(NAME, st.binary(max_size=8), max_size=6)


@given(FILES, FILES)
@settings(max_examples=60, deadline=None)
def test_a_second_write_leaves_exactly_the_second_files(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "f"
        mirror.write(folder, first)
        planned = mirror.plan(folder, second)
        done = mirror.write(folder, second)
        assert (planned.written, planned.removed) == (done.written, done.removed)
        left = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        left.pop(mirror.RECORD)
        assert left == second
        assert not [p for p in folder.rglob("*") if p.is_dir() and not any(p.iterdir())]
        assert not mirror.write(folder, second).any
        assert mirror.remove(folder).foreign == ()
        assert not folder.exists()


def test_files_of_others_survive_a_write_and_a_removal(tmp_path: Path) -> None:
    mirror.write(tmp_path / "f", {"a/one.py": b"1", "plugin.json": b"{}"})
    (tmp_path / "f" / "a" / "mine.txt").write_text("the user's")
    assert mirror.write(tmp_path / "f", {"plugin.json": b"{}"}).foreign == ("a/mine.txt",)
    assert mirror.remove(tmp_path / "f").foreign == ("a/mine.txt",)
    assert [p.name for p in (tmp_path / "f").rglob("*") if p.is_file()] == ["mine.txt"]


def test_a_folder_without_our_record_is_never_emptied(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "plugin.json").write_text("{}")
    before = tree_digest(tmp_path)
    assert mirror.remove(tmp_path / "f").removed == ()
    assert tree_digest(tmp_path) == before


def test_a_record_that_names_paths_outside_removes_nothing_there(tmp_path: Path) -> None:
    mirror.write(tmp_path / "f", {"a.py": b"1"})
    (tmp_path / "victim").write_text("keep")
    record = {"format": mirror.FORMAT, "files": {"../victim": "", str(tmp_path / "victim"): "", "a.py": ""}}
    (tmp_path / "f" / mirror.RECORD).write_text(json.dumps(record))
    mirror.remove(tmp_path / "f")
    assert (tmp_path / "victim").read_text() == "keep"


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_link_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "f").symlink_to(tmp_path / "real")
    with pytest.raises(HostConfigError, match="not a plain folder"):
        mirror.write(tmp_path / "f", {"a.py": b"1"})
    assert list((tmp_path / "real").iterdir()) == []


def test_manifests_are_written_last(tmp_path: Path) -> None:
    files = {"plugin.json": b"{}", "zzz.py": b"", "hooks.json": b"{}", "mcp_config.json": b"{}", "a.py": b""}
    assert mirror.write(tmp_path / "f", files).written == (
        "a.py", "zzz.py", "hooks.json", "mcp_config.json", "plugin.json",
    )  # fmt: skip


def test_byte_code_of_modules_that_are_gone_goes_with_them(tmp_path: Path) -> None:
    mirror.write(tmp_path / "f", {"p/one.py": b"", "q/two.py": b""})
    for name in ("p", "q"):
        (tmp_path / "f" / name / "__pycache__").mkdir()
        (tmp_path / "f" / name / "__pycache__" / "x.pyc").write_bytes(b"")
    mirror.write(tmp_path / "f", {"q/two.py": b""})
    assert not (tmp_path / "f" / "p").exists()
    assert (tmp_path / "f" / "q" / "__pycache__").exists()

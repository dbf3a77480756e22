"""What `doctor` learns about the store, each with its cure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from context_anchor.anchors.scope import ScopeFiles
from context_anchor.anchors.store import AnchorStore

from .conftest import SESSION, draft


@pytest.fixture
def files(store: AnchorStore, data: str) -> ScopeFiles:
    store.pin(SESSION, draft("T"), actor="a")
    store.pin(SESSION, draft("U"), actor="a")
    return ScopeFiles.of(data, SESSION)


def test_a_sound_store_has_nothing_to_say(store: AnchorStore, files: ScopeFiles) -> None:
    assert store.check() == ()


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX systems")
def test_a_folder_open_to_others_is_told_with_the_command_to_close_it(
    store: AnchorStore, files: ScopeFiles, data: str
) -> None:
    Path(data).chmod(0o755)
    (finding,) = store.check()
    assert (finding.level, finding.where, finding.cure) == ("warning", data, f"chmod 700 {data}")


def test_files_set_aside_are_mentioned(store: AnchorStore, files: ScopeFiles) -> None:
    Path(files.anchors).write_bytes(b"bad")
    store.read(SESSION)
    (finding,) = store.check()
    assert finding.level == "info" and ".corrupt-" in finding.where


def test_a_write_cut_short_is_told_as_harmless(store: AnchorStore, files: ScopeFiles) -> None:
    old = Path(files.anchors).read_bytes()
    store.pin(SESSION, draft("V"), actor="a")
    Path(files.anchors).write_bytes(old)
    (finding,) = store.check()
    assert "revision 2, its journal at 3" in finding.what and "Nothing is lost" in finding.cure
    assert len(store.read(SESSION).anchors) == 3
    assert store.check() == ()


def test_unreadable_places_are_errors_and_end_nothing(store: AnchorStore, files: ScopeFiles) -> None:
    Path(files.journal).unlink()
    Path(files.journal).mkdir()
    levels = {finding.where: finding.level for finding in store.check()}
    assert levels[files.journal] == "error"
    Path(files.anchors).unlink()
    Path(files.anchors).mkdir()
    levels = {finding.where: finding.level for finding in store.check()}
    assert levels[files.anchors] == "error"


def test_a_file_that_names_no_scope_is_told(store: AnchorStore, files: ScopeFiles) -> None:
    path = Path(files.anchors)
    path.write_bytes(path.read_bytes().replace(b'"scope":"session","host"', b'"scope":"moon","host"', 1))
    Path(files.journal).unlink()
    assert any("whose anchors" in finding.what for finding in store.check())


def test_every_finding_has_a_cure_and_checking_changes_no_byte(store: AnchorStore, files: ScopeFiles) -> None:
    Path(files.bundle).write_bytes(b"x")
    Path(files.journal).write_bytes(b"junk\n" + Path(files.journal).read_bytes() + b"torn")
    before = {path: path.read_bytes() for path in Path(files.anchors).parent.iterdir()}
    found = store.check()
    assert len(found) >= 3 and all(finding.cure and finding.what for finding in found)
    assert {path: path.read_bytes() for path in Path(files.anchors).parent.iterdir()} == before

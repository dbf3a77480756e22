"""Crashes, damaged files, newer versions and full disks: nothing acknowledged is lost."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.anchors import document, journal
from context_anchor.anchors.scope import ScopeFiles, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.errors import StoreCorruptError, StoreNewerError, StoreUnavailableError
from context_anchor.wire import bundle

from .conftest import SESSION, draft

CALLS = ("open", "write", "fsync", "ftruncate", "replace", "rename")


class Killed(BaseException):
    """Stands for the process ending there and then."""


@contextmanager
def failing(at: int, raising: BaseException) -> Iterator[list[str]]:
    """Let the `at`-th call that changes the disk fail, a write after half of its bytes; notes the calls."""
    calls: list[str] = []
    real = {name: getattr(os, name) for name in CALLS}

    locks: set[object] = set()  # the lock's own descriptors: a real end of the process would free them

    def wrap(name: str) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            if name == "open":
                if ".lock" in str(args[0]) or not int(args[1]) & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):  # type: ignore[call-overload]
                    found = real[name](*args, **more)
                    (locks.add if ".lock" in str(args[0]) else locks.discard)(found)
                    return found
            elif args[0] in locks:
                return real[name](*args, **more)
            calls.append(name)
            if len(calls) == at:
                if name == "write":
                    real[name](args[0], bytes(args[1])[: len(bytes(args[1])) // 2])  # type: ignore[call-overload]
                raise raising
            result = real[name](*args, **more)
            if name == "open":
                locks.discard(result)
            return result

        return call

    with ExitStack() as patches:
        for name in CALLS:
            patches.enter_context(mock.patch.object(os, name, wrap(name)))
        yield calls


def files(data: str) -> ScopeFiles:
    return ScopeFiles.of(data, SESSION)


def sound(make_store: Callable[[], AnchorStore], data: str) -> None:
    """Everything on disk agrees after the next use."""
    store = make_store()
    snapshot = store.read(SESSION)
    assert [f for f in store.check() if f.level != "info"] == []
    if snapshot.revision:
        revision, entries = bundle.load_part(files(data).bundle)
        assert revision == snapshot.revision
        assert [entry["id"] for entry in entries] == [a.id for a in snapshot.anchors]


def changing_calls(make_store: Callable[[], AnchorStore]) -> int:
    with failing(0, Killed()) as calls:
        make_store().pin(SESSION, draft("second", "x" * 50), actor="a")
    return len(calls)


def test_a_kill_at_any_step_of_a_first_and_a_later_pin_loses_nothing_acknowledged(
    make_store: Callable[[], AnchorStore], data: str
) -> None:
    steps = 0
    for start in ("", "first"):
        number = 0
        while True:
            number += 1
            for path in Path(data).rglob("*"):
                if path.is_file():
                    path.unlink()
            acknowledged = []
            if start:
                acknowledged.append(make_store().pin(SESSION, draft(start), actor="a").anchor)
            try:
                with failing(number, Killed()) as calls:
                    make_store().pin(SESSION, draft("second", "x" * 50), actor="a")
                assert len(calls) < number
                break
            except Killed:
                steps += 1
            after = make_store().read(SESSION)
            titles = {a.title for a in after.anchors}
            assert titles - {"second"} == {a.title for a in acknowledged}, number
            assert after.notices == ()
            sound(make_store, data)
            again = make_store().pin(SESSION, draft("third"), actor="a")
            assert again.revision == after.revision + 1
            assert {a.title for a in make_store().read(SESSION).anchors} == titles | {"third"}
            sound(make_store, data)
    assert steps > 12


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_refused_write_changes_nothing_or_is_told_as_done(
    make_store: Callable[[], AnchorStore], data: str, code: int
) -> None:
    make_store().pin(SESSION, draft("first"), actor="a")
    before = make_store().read(SESSION)
    refused = 0
    number = 0
    while True:
        number += 1
        stored = {path: path.read_bytes() for path in map(Path, (files(data).anchors, files(data).journal))}
        with failing(number, OSError(code, os.strerror(code))) as calls:
            try:
                result = make_store().pin(SESSION, draft("second"), actor="a")
            except StoreUnavailableError as problem:
                refused += 1
                assert os.strerror(code) in str(problem) and problem.hint
                assert make_store().read(SESSION).anchors == before.anchors
                assert all(path.read_bytes() == raw for path, raw in stored.items())
                continue
        # From the journal's line on the change has happened, whatever becomes of the other files.
        assert result.anchor in make_store().read(SESSION).anchors
        if len(calls) < number:
            break
        assert result.notices
        sound(make_store, data)
        make_store().undo(SESSION, actor="a")
        before = make_store().read(SESSION)
    assert refused >= 6


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX systems")
def test_a_write_that_the_system_refuses_for_size_is_an_error_and_changes_nothing(
    store: AnchorStore, data: str
) -> None:
    store.replace(SESSION, [draft(f"T{n}", "x" * 1000) for n in range(20)], actor="a")
    before = {path: path.read_bytes() for path in Path(data).rglob("*") if path.is_file()}
    code = (
        "import resource, sys\n"
        "from context_anchor.anchors.store import AnchorStore, SessionScope\n"
        "from context_anchor.anchors.anchor import Draft\n"
        "from context_anchor.errors import StoreUnavailableError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
        "try:\n"
        "    AnchorStore(sys.argv[1]).pin(SessionScope(*sys.argv[2:]), Draft('t', 'c'), actor='a')\n"
        "except StoreUnavailableError as problem:\n"
        "    print(problem.code)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, data, SESSION.host, SESSION.session_id],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert out.stdout == "store_unavailable\n", out.stderr
    assert {path: path.read_bytes() for path in Path(data).rglob("*") if path.is_file()} == before


def test_a_data_folder_below_a_file_is_an_error_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    store = AnchorStore(tmp_path / "file" / "data")
    assert store.read(SESSION).anchors == ()
    with pytest.raises(StoreUnavailableError, match="CONTEXT_ANCHOR_DATA_DIR"):
        store.pin(SESSION, draft("T"), actor="a")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_read_only_folder_can_be_read_and_refuses_writes(store: AnchorStore, data: str) -> None:
    store.pin(SESSION, draft("T"), actor="a")
    folder = Path(files(data).anchors).parent
    folder.chmod(0o500)
    try:
        assert len(AnchorStore(data).read(SESSION).anchors) == 1
        with pytest.raises(StoreUnavailableError):
            store.pin(SESSION, draft("U"), actor="a")
    finally:
        folder.chmod(0o700)
    assert store.read(SESSION).revision == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"",
        lambda raw: b"\x00" * len(raw),
        lambda raw: raw.replace(b'"anchors"', b'"anchor\xff"'),
        lambda raw: b"[1, 2]",
        lambda raw: raw.replace(b"context-anchor-anchors/1", b"something-else/1"),
        lambda raw: raw.replace(b'"revision":3,"anchors"', b'"revision":"x","anchors"'),
        lambda raw: b"{" * 100_000,
    ],
    ids=["cut", "empty", "zeros", "bad-utf8", "list", "foreign", "no-revision", "deep"],
)
def test_a_damaged_file_is_set_aside_restored_from_the_journal_and_reported(
    make_store: Callable[[], AnchorStore], data: str, damage: Callable[[bytes], bytes]
) -> None:
    store = make_store()
    store.pin(SESSION, draft("T", "one"), actor="a")
    store.pin(SESSION, draft("T", "two"), actor="a")
    store.pin(SESSION, draft("U"), actor="a")
    before = store.read(SESSION)
    path = Path(files(data).anchors)
    bad = damage(path.read_bytes())
    path.write_bytes(bad)
    (finding,) = [f for f in make_store().check() if f.level == "error"]
    assert finding.where == str(path) and "damaged" in finding.what
    assert path.read_bytes() == bad

    after = make_store().read(SESSION)
    assert (after.anchors, after.revision) == (before.anchors, before.revision)
    (notice,) = after.notices
    (kept,) = path.parent.glob("*.corrupt-*")
    assert str(kept) in notice and "2 anchors were restored from the journal" in notice
    assert kept.read_bytes() == bad
    assert make_store().read(SESSION).notices == ()
    sound(make_store, data)


def test_a_pin_into_a_damaged_scope_restores_it_first(make_store: Callable[[], AnchorStore], data: str) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    Path(files(data).anchors).write_bytes(b"garbage")
    result = make_store().pin(SESSION, draft("U"), actor="a")
    assert "set aside" in result.notices[0]
    assert {a.title for a in make_store().read(SESSION).anchors} == {"T", "U"}


def test_two_damaged_files_in_one_second_are_both_kept(make_store: Callable[[], AnchorStore], data: str) -> None:
    fixed = make_store().pin(SESSION, draft("T"), actor="a").anchor.created_at
    for text in (b"bad one", b"bad two"):
        Path(files(data).anchors).write_bytes(text)
        AnchorStore(data, now=lambda: fixed).read(SESSION)
    kept = sorted(path.read_bytes() for path in Path(data).rglob("*.corrupt-*"))
    assert kept == [b"bad one", b"bad two"]


def test_a_healthy_file_is_never_set_aside(make_store: Callable[[], AnchorStore], data: str) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    real, looks = document.parse, []

    def once(raw: bytes, path: str) -> document.Document:
        looks.append(path)
        if len(looks) == 1:
            raise StoreCorruptError("a disk that stammers")
        return real(raw, path)

    with mock.patch.object(document, "parse", once):
        snapshot = make_store().read(SESSION)
    assert len(looks) == 2 and len(snapshot.anchors) == 1 and snapshot.notices == ()
    assert list(Path(data).rglob("*.corrupt-*")) == []


def test_without_a_journal_the_readable_lines_of_a_damaged_file_are_saved(
    make_store: Callable[[], AnchorStore], data: str
) -> None:
    make_store().replace(SESSION, [draft(f"T{n}") for n in range(5)], actor="a")
    path = Path(files(data).anchors)
    path.write_bytes(path.read_bytes()[:-60])
    Path(files(data).journal).unlink()
    snapshot = make_store().read(SESSION)
    assert len(snapshot.anchors) == 4
    assert "from what could still be read" in snapshot.notices[0]
    assert make_store().pin(SESSION, draft("new"), actor="a").revision > 1
    path.write_bytes(b"worse")
    assert len(make_store().read(SESSION).anchors) == 5


def test_a_deleted_file_comes_back_from_the_journal(make_store: Callable[[], AnchorStore], data: str) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    Path(files(data).anchors).unlink()
    assert [a.title for a in make_store().read(SESSION).anchors] == ["T"]
    sound(make_store, data)


def test_a_deleted_bundle_comes_back_at_the_next_read(make_store: Callable[[], AnchorStore], data: str) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    Path(files(data).bundle).unlink()
    make_store().read(SESSION)
    sound(make_store, data)
    Path(files(data).bundle).write_bytes(Path(files(data).bundle).read_bytes()[:-3])
    assert [f.where for f in make_store().check()] == [files(data).bundle]
    assert make_store().rebuild_bundles() == 1
    sound(make_store, data)


def test_after_a_lost_journal_the_next_change_records_the_whole_state(
    make_store: Callable[[], AnchorStore], data: str
) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    make_store().pin(SESSION, draft("U"), actor="a")
    Path(files(data).journal).unlink()
    assert ["ends at entry 0, the file is at 2" in f.what for f in make_store().check()] == [True]
    assert make_store().pin(SESSION, draft("V"), actor="a").revision == 4
    assert make_store().check() == ()
    assert [e.op for e in make_store().history(SESSION)] == ["pin"]
    Path(files(data).anchors).write_bytes(b"bad")
    assert {a.title for a in make_store().read(SESSION).anchors} == {"T", "U", "V"}
    with pytest.raises(Exception, match="records a state"):
        make_store().undo(SESSION, actor="a", entry=3)


def test_a_torn_journal_line_is_cut_off_and_reported(make_store: Callable[[], AnchorStore], data: str) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    path = Path(files(data).journal)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"format":"context-anchor-journal/1","entry":2,"sco')
    assert ["unfinished (51 bytes)" in f.what for f in make_store().check()] == [True]
    assert make_store().read(SESSION).revision == 1
    result = make_store().pin(SESSION, draft("U"), actor="a")
    assert "51 bytes" in result.notices[0]
    assert path.read_bytes().startswith(whole) and path.read_bytes().count(b"\n") == 2
    assert make_store().check() == ()


def test_a_last_line_that_lacks_only_its_end_counts(make_store: Callable[[], AnchorStore], data: str) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    path = Path(files(data).journal)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert make_store().pin(SESSION, draft("U"), actor="a").notices == ()
    assert [e.entry for e in make_store().history(SESSION)] == [2, 1]


def test_damage_in_the_middle_of_the_journal_is_passed_over_and_reported(
    make_store: Callable[[], AnchorStore], data: str
) -> None:
    for number in range(4):
        make_store().pin(SESSION, draft(f"T{number}"), actor="a")
    path = Path(files(data).journal)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"T1", b"TX")
    path.write_bytes(b"\n".join(lines))
    assert [e.entry for e in make_store().history(SESSION)] == [4, 3, 1]
    assert ["1 damaged lines" in f.what for f in make_store().check()] == [True]
    assert len(make_store().read(SESSION).anchors) == 4
    make_store().pin(SESSION, draft("T4"), actor="a")
    assert len(make_store().read(SESSION).anchors) == 5
    # With the file lost as well, its salvageable lines fill what the journal can't tell.
    anchors = Path(files(data).anchors)
    anchors.write_bytes(anchors.read_bytes()[:-3])
    snapshot = make_store().read(SESSION)
    assert len(snapshot.anchors) == 5
    assert any("is damaged: changes before entry" in notice for notice in snapshot.notices)


def test_a_file_of_a_newer_version_is_read_and_never_written(
    make_store: Callable[[], AnchorStore], data: str
) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    path = Path(files(data).anchors)
    newer = path.read_bytes().replace(b"anchors/1", b"anchors/2", 1).replace(b'"title"', b'"name":"n","title"')
    path.write_bytes(newer)
    stored = {p: p.read_bytes() for p in path.parent.iterdir()}
    snapshot = make_store().read(SESSION)
    assert not snapshot.writable and "newer version" in snapshot.notices[0]
    assert [a.title for a in snapshot.anchors] == ["T"]
    changes: tuple[Callable[[AnchorStore], object], ...] = (
        lambda s: s.pin(SESSION, draft("U"), actor="a"),
        lambda s: s.unpin(SESSION, actor="a", clear_all=True),
        lambda s: s.replace(SESSION, [], actor="a"),
        lambda s: s.undo(SESSION, actor="a"),
    )
    for change in changes:
        with pytest.raises(StoreNewerError):
            change(make_store())
    assert make_store().rebuild_bundles() == 0
    assert [f.level for f in make_store().check()] == ["warning"]
    assert {p: p.read_bytes() for p in path.parent.iterdir()} == stored
    path.write_bytes(newer.replace(b'"anchors":[', b'"pins":['))
    assert make_store().read(SESSION).anchors == ()
    assert not make_store().read(SESSION).writable


def test_a_journal_continued_by_a_newer_version_is_not_written(
    make_store: Callable[[], AnchorStore], data: str
) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    path = Path(files(data).journal)
    body = b'{"format":"context-anchor-journal/2","entry":2,"shape":"unknown"'
    import zlib

    path.write_bytes(path.read_bytes() + body + b',"sum":"%08x"}\n' % zlib.crc32(body))
    assert not make_store().read(SESSION).writable
    with pytest.raises(StoreNewerError):
        make_store().pin(SESSION, draft("U"), actor="a")


def test_unknown_fields_and_unreadable_entries_are_kept(make_store: Callable[[], AnchorStore], data: str) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    path = Path(files(data).anchors)
    value = json.loads(path.read_bytes())
    value["theme"] = {"dark": [1, None]}
    value["anchors"][0]["colour"] = "red"
    odd = {"id": "a-odd", "title": "x", "priority": "urgent"}
    value["anchors"] += [odd, dict(value["anchors"][0], title="same id again")]
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    snapshot = make_store().read(SESSION)
    assert len(snapshot.anchors) == 1 and "2 entries" in snapshot.notices[0]
    make_store().pin(SESSION, draft("T", "changed"), actor="a")
    make_store().pin(SESSION, draft("U"), actor="a")
    after = json.loads(path.read_bytes())
    assert after["theme"] == value["theme"]
    assert {a["title"]: a.get("colour") for a in after["anchors"]} == {
        "T": "red", "U": None, "x": None, "same id again": "red",
    }  # fmt: skip
    assert odd in after["anchors"]


def test_a_file_in_the_wrong_place_and_a_foreign_change_are_reported(
    make_store: Callable[[], AnchorStore], data: str, workspace: WorkspaceScope
) -> None:
    make_store().pin(SESSION, draft("T"), actor="a")
    make_store().pin(workspace, draft("T"), actor="a")
    path = Path(files(data).anchors)
    path.write_bytes(path.read_bytes().replace(b'"title":"T"', b'"title":"hand"'))
    assert ["changed by another program" in f.what for f in make_store().check()] == [True]
    path.with_name("s-elsewhere.json").write_bytes(path.read_bytes())
    assert any("wrong place" in f.what for f in make_store().check())
    assert set(make_store().scopes()) == {SESSION, workspace}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_single_damage_to_file_or_journal_loses_no_anchor(data: st.DataObject) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        store = AnchorStore(folder)
        for number in range(3):
            store.pin(SESSION, draft(f"T{number}"), actor="a")
        path = Path(data.draw(st.sampled_from([files(folder).anchors, files(folder).journal])))
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from(b"\x00\xff\n{}\"x"))
        path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
        reader = AnchorStore(folder)
        anchors = reader.read(SESSION).anchors
        if path.name.endswith("jsonl"):
            assert [a.title for a in anchors] == ["T2", "T1", "T0"]
        else:
            # A change that leaves sound JSON can't be told from a hand edit; anything else is restored.
            assert len(anchors) + len(document_unread(path)) >= 3 or anchors == store_of_journal(folder)
        reader.pin(SESSION, draft("next"), actor="a")
        assert "next" in [a.title for a in AnchorStore(folder).read(SESSION).anchors]


def document_unread(path: Path) -> tuple[object, ...]:
    return document.parse(path.read_bytes(), "x").unread


def store_of_journal(folder: str) -> object:
    tail = journal.read_tail(files(folder).journal, 0, want_all=True)
    return journal.apply({}, tail.entries)


FULL_DISK = """
import sys
from context_anchor.anchors.store import AnchorStore, SessionScope
from context_anchor.anchors.anchor import Draft
from context_anchor.errors import StoreUnavailableError

store, scope = AnchorStore(sys.argv[1] + "/data"), SessionScope("claude-code", "full")
kept = []
for number in range(1000):
    try:
        kept.append(store.pin(scope, Draft(f"T{number}", "x" * 2000), actor="a").anchor)
    except StoreUnavailableError as problem:
        assert "No space left" in problem.message and "Free some space" in problem.hint, str(problem)
        break
again = AnchorStore(sys.argv[1] + "/data")
snapshot = again.read(scope)
assert {a.id for a in snapshot.anchors} == {a.id for a in kept} and snapshot.notices == (), snapshot.notices
assert [f for f in again.check() if f.level == "error"] == []
print(len(kept))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a small disk is mounted in a name space of Linux")
def test_a_full_disk_refuses_pins_and_keeps_those_before(tmp_path: Path) -> None:
    def mounted(*command: str) -> subprocess.CompletedProcess[str]:
        script = 'mount -t tmpfs -o size=256k t "$0" && exec "$@"'
        return subprocess.run(
            ["unshare", "-r", "-m", "sh", "-c", script, str(tmp_path), *command],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    try:
        if mounted("true").returncode:
            pytest.skip("mounting is not permitted here")
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    out = mounted(sys.executable, "-c", FULL_DISK, str(tmp_path))
    assert out.returncode == 0, out.stderr
    assert int(out.stdout) > 10

"""Replacement in one step, appends that never mix, the lock between hooks."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from context_anchor.wire import atomic
from context_anchor.wire.atomic import Lock

ROOT = Path(__file__).resolve().parents[2]


def test_a_reader_sees_the_old_or_the_new_bytes_and_never_a_mixture(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    versions = {bytes([n]) * 70_000 for n in range(8)}
    atomic.replace_bytes(path, bytes(70_000))
    seen: list[bytes | None] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(atomic.read_bytes(path, 1_000_000))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        for data in versions:
            atomic.replace_bytes(path, data)
    stop.set()
    reader.join()
    assert set(seen) <= versions
    assert len(seen) > 3
    assert os.listdir(tmp_path) == ["file"]


def test_a_durable_replacement_holds_the_same_bytes(tmp_path: Path) -> None:
    atomic.replace_bytes(str(tmp_path / "file"), b"data", durable=True)
    assert (tmp_path / "file").read_bytes() == b"data"


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_files_are_readable_by_the_owner_alone(tmp_path: Path) -> None:
    atomic.replace_bytes(str(tmp_path / "a"), b"x")
    atomic.append_line(str(tmp_path / "b"), b"x")
    lock = Lock(str(tmp_path / "c"))
    assert lock.acquire()
    lock.release()
    assert {stat.S_IMODE((tmp_path / n).stat().st_mode) for n in "abc"} == {0o600}


def test_a_refused_write_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "file")
    atomic.replace_bytes(path, b"old")

    def full(fd: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        atomic.replace_bytes(path, b"new")
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_short_writes_are_carried_on_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    atomic.replace_bytes(str(tmp_path / "file"), b"0123456789")
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "log"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from context_anchor.wire.atomic import append_line;"
        "[append_line(sys.argv[2], (sys.argv[3] * (500 + n)).encode()) for n in range(200)]"
    )
    children = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", code, str(ROOT), str(path), name]) for name in "abcd"
    ]
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    lines = path.read_bytes().splitlines()
    assert len(lines) == 800
    for line in lines:
        assert len(set(line)) == 1
    assert sorted(len(line) for line in lines) == sorted([500 + n for n in range(200)] * 4)


def test_reading_answers_none_for_no_file_and_refuses_what_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 200_000)
    assert atomic.read_bytes(str(tmp_path / "none"), 10) is None
    assert atomic.read_bytes(str(tmp_path / "file" / "below"), 10) is None
    assert atomic.read_bytes(str(tmp_path / "file"), 200_000) == b"x" * 200_000
    with pytest.raises(ValueError, match="larger than"):
        atomic.read_bytes(str(tmp_path / "file"), 199_999)


def test_a_lock_is_held_by_one_at_a_time_and_waiting_is_bounded(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first, second = Lock(path), Lock(path, wait_s=0.1)
    assert first.acquire()
    before = time.monotonic()
    assert not second.acquire()
    assert 0.05 < time.monotonic() - before < 5
    first.release()
    assert second.acquire()
    second.release()
    second.release()  # twice does no harm


def test_the_system_frees_the_lock_of_a_process_that_died(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]);"
        "from context_anchor.wire.atomic import Lock;"
        "print(Lock(sys.argv[2]).acquire(), flush=True); time.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT), path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "True"
        assert not Lock(path, wait_s=0.02).acquire()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]
    lock = Lock(path, wait_s=5)
    assert lock.acquire()
    lock.release()


def test_a_lock_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        Lock(str(tmp_path / "none" / "lock")).acquire()

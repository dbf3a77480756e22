"""Files of the memory: replaced as a whole, created once, appended to, and read; each step durable."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from context_anchor.engine.canonical import pjson
from context_anchor.errors import LockTimeoutError, MemoryDamagedError, MemoryUnavailableError

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
TEMPORARY = ".tmp"
"""How the name of a file ends that is not in its place yet; readers pass over such files."""

READ_BYTES = 1 << 20
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0) | getattr(os, "O_BINARY", 0)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EACCES)
_RENAME_ATTEMPTS = 20


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turn the system's errors into MemoryUnavailableError naming the file."""
    try:
        yield
    except OSError as problem:
        raise unavailable(problem, path) from problem


def unavailable(problem: OSError, path: Path) -> MemoryUnavailableError:
    """Return what a person should be told of a file that can't be used."""
    reason = problem.strerror or str(problem)
    where = problem.filename if isinstance(problem.filename, str) else path
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "Free some space on that disk and try again; nothing was changed."
    elif problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        hint = "Make the file and its folder readable and writable for you; nothing was changed."
    else:
        hint = "Look at that path; nothing was changed."
    return MemoryUnavailableError(f"the project's memory can't use {where}: {reason}", hint=hint)


def make_folder(path: Path) -> None:
    """Create one private folder unless it is there; raises OSError."""
    try:
        os.mkdir(path, PRIVATE_FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; a no-op where folders can't be opened (Windows)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY | _FLAGS)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Staged:
    """A file's next bytes under a temporary name beside its place, gone when the block ends unless placed."""

    def __init__(self, folder: Path, name: str) -> None:
        # Process ids alone collide between threads.
        self.path = folder / f".{name}.{os.getpid()}-{secrets.token_hex(6)}{TEMPORARY}"
        self._handle: int | None = None

    def __enter__(self) -> Staged:
        self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, PRIVATE_FILE)
        return self

    def write(self, data: bytes) -> None:
        """Add bytes; raises OSError."""
        assert self._handle is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]

    def finish(self) -> None:
        """Make the bytes durable and close the file; raises OSError."""
        if self._handle is not None:
            os.fsync(self._handle)
            handle, self._handle = self._handle, None
            os.close(handle)

    def replace(self, target: Path) -> None:
        """Put the file in the place of another; readers see the old or the new one whole."""
        self.finish()
        _rename(self.path, target)
        sync_folder(target.parent)

    def create(self, target: Path) -> bool:
        """Put the file in a place where there is none; raises FileExistsError.

        Returns whether it has its temporary name too, and so can be placed once more.
        """
        self.finish()
        linked = link(self.path, target)
        if not linked:
            # Claim the name first where the file system has no hard links.
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, PRIVATE_FILE))
            _rename(self.path, target)
        sync_folder(target.parent)
        return linked

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            with suppress(OSError):  # what was written counts only after finish()
                os.close(handle)
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def link(source: Path, target: Path) -> bool:
    """Give a file a second name; return False where the system can't. Raises FileExistsError, OSError."""
    try:
        os.link(source, target)
    except OSError as problem:
        if problem.errno in _NO_LINKS:
            return False
        raise
    return True


def _rename(source: Path, target: Path) -> None:
    # Windows refuses while another process has the target open; such opens are short here.
    for attempt in range(_RENAME_ATTEMPTS):
        try:
            os.replace(source, target)
        except PermissionError:
            if os.name != "nt" or attempt == _RENAME_ATTEMPTS - 1:
                raise
            time.sleep(0.005 * (attempt + 1))
        else:
            return


def replace_bytes(path: Path, data: bytes) -> None:
    """Put bytes in the place of a file, whole and durable; raises MemoryUnavailableError."""
    with reported(path):
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with Staged(path.parent, path.name) as staged:
            staged.write(data)
            staged.replace(path)


def json_bytes(value: object) -> bytes:
    """Return a value as a file of the memory holds it: indented by two, one final newline."""
    return (pjson(value) + "\n").encode("utf-8")


def replace_json(path: Path, value: object) -> None:
    """Put a value in the place of a file; raises NotJsonError (nothing written), MemoryUnavailableError."""
    replace_bytes(path, json_bytes(value))


def create_json(path: Path, value: object) -> None:
    """Write a value to a new file, whole and durable; raises FileExistsError, MemoryUnavailableError."""
    data = json_bytes(value)
    try:
        with Staged(path.parent, path.name) as staged:
            staged.write(data)
            staged.create(path)
    except FileExistsError:
        raise
    except OSError as problem:
        raise unavailable(problem, path) from problem


def append(path: Path, data: bytes) -> int:
    """Add bytes at a file's end and return how many got there; less than all where the disk is full.

    One write of the system, so that lines of several writers never mix. Raises OSError where none did.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _FLAGS, PRIVATE_FILE)
    try:
        return os.write(handle, data)
    finally:
        os.close(handle)


def open_regular(path: Path) -> int:
    """Open an ordinary file for reading; a pipe or device raises OSError instead of waiting for it."""
    handle = os.open(path, os.O_RDONLY | _FLAGS | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    return handle


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes, at most one MiB at a time; raises OSError."""
    handle = open_regular(path)
    try:
        while data := os.read(handle, READ_BYTES):
            yield data
    finally:
        os.close(handle)


def read_text(path: Path) -> str | None:
    """Return a file's text, bytes that are no UTF-8 replaced; None where there is no file.

    Raises MemoryUnavailableError.
    """
    try:
        return b"".join(read_chunks(path)).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise unavailable(problem, path) from problem


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file, None where there is no file.

    Raises MemoryDamagedError where it holds anything else, MemoryUnavailableError.
    """
    text = read_text(path)
    if text is None:
        return None
    hint = "Correct the file or restore it from a copy; it was left as it is."
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise MemoryDamagedError(f"{path} is not valid JSON: {problem}", hint=hint) from problem
    if not isinstance(value, dict):
        raise MemoryDamagedError(f"{path} must hold a JSON object; it holds another JSON value", hint=hint)
    return value


@contextmanager
def locked(path: Path, wait_s: float) -> Iterator[None]:
    """Hold a lock file between processes and threads, waiting at most `wait_s` seconds.

    The system frees it when a process dies. Raises LockTimeoutError, MemoryUnavailableError.
    """
    # filelock takes some 60 ms to import, which reading need not pay.
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(path, mode=PRIVATE_FILE)
        lock.acquire(timeout=wait_s, poll_interval=0.01)
    except Timeout:
        raise LockTimeoutError(
            f"another process has held {path} for more than {wait_s:g} seconds",
            hint="Try again; if it stays, end the process that hangs (the system frees its lock).",
        ) from None
    except OSError as problem:
        raise unavailable(problem, path) from problem
    try:
        yield
    finally:
        lock.release()

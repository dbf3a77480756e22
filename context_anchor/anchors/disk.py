"""Locking, staging and committing of the store's files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from context_anchor.errors import LockTimeoutError, StoreUnavailableError
from context_anchor.wire import atomic, paths

OPEN_FLAGS = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)
MAX_FILE_BYTES = 64 << 20
_POLL_S = 0.01


def unavailable(problem: OSError, path: str) -> StoreUnavailableError:
    """Return the error to raise for a file that can't be read or written."""
    reason = problem.strerror or str(problem)
    if problem.errno in (errno.ENOSPC, errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC):
        hint = "Free some space on that disk and try again; nothing was changed."
    elif problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        hint = "Make the folder writable, or name another with CONTEXT_ANCHOR_DATA_DIR; nothing was changed."
    else:
        hint = "Check that disk, or name another folder with CONTEXT_ANCHOR_DATA_DIR; nothing was changed."
    return StoreUnavailableError(f"the anchors can't be used at {path}: {reason}", hint=hint)


@contextmanager
def locked(path: str, wait_s: float) -> Iterator[None]:
    """Hold the lock file of a scope; waits at most `wait_s` seconds.

    Raises LockTimeoutError, StoreUnavailableError. A killed holder frees the lock with its process.
    """
    # filelock takes some 60 ms to import, which reading commands need not pay.
    from filelock import FileLock, Timeout

    try:
        paths.ensure_folder(str(Path(path).parent))
        lock = FileLock(path, mode=0o600)
        lock.acquire(timeout=wait_s, poll_interval=_POLL_S)
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


def read(path: str) -> bytes | None:
    """Return a file's bytes, None if it is not there; raises StoreUnavailableError."""
    try:
        return atomic.read_bytes(path, MAX_FILE_BYTES)
    except OSError as problem:
        raise unavailable(problem, path) from problem
    except ValueError as problem:
        raise StoreUnavailableError(str(problem), hint="Move that file away; it is none of ours.") from problem


class Staged:
    """A file's next bytes, durable beside it and not yet in its place.

    One writer at a time holds the scope's lock, so the name of the staged file is fixed and what a
    killed writer left is overwritten by the next.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self._next = path + ".next"
        fd = os.open(self._next, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OPEN_FLAGS, 0o600)
        try:
            atomic.write_all(fd, data)
            os.fsync(fd)
        except OSError:
            os.close(fd)
            self.discard()
            raise
        os.close(fd)

    def commit(self) -> None:
        """Put the bytes in place; raises OSError."""
        Path(self._next).replace(self.path)

    def discard(self) -> None:
        """Take the staged file away."""
        with suppress(OSError):  # the next writer overwrites it
            Path(self._next).unlink()


def set_aside(path: str, at: datetime) -> str:
    """Rename a damaged file to `<name>.corrupt-<UTC stamp>` and return the new path; raises OSError."""
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    for number in range(1000):
        target = f"{path}.corrupt-{stamp}" + (f"-{number}" if number else "")
        if not Path(target).exists():
            Path(path).rename(target)
            return target
    raise OSError(errno.EEXIST, "too many files set aside in one second", path)

"""A test body in a process of its own, with no network but loopback where the kernel permits.

A network namespace belongs to a process, and the stub model and the host must share one. So the
test is run in a forked child that leaves the machine's network before any thread starts; its
outcome comes back through a pipe. Where there is no fork or no namespace (other systems, locked
down containers) the body runs as it is: the host is still only told of a loopback address.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import sys
import traceback
from collections.abc import Callable

import pytest

_NEW_USER, _NEW_NETWORK = 0x1000_0000, 0x4000_0000  # clone(2) flags
_SET_INTERFACE_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41  # netdevice(7)


CONTAINED = "CONTEXT_ANCHOR_E2E_CONTAINED"
"""Variable that is set, to "1", in a test process that has left the machine's network."""


def leave_network() -> bool:
    """Move this single-threaded process into a namespace with loopback alone; False if not allowed."""
    if sys.platform != "linux":
        return False
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK if uid == 0 else _NEW_NETWORK | _NEW_USER) != 0:
        return False
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as handle:
                handle.write(text)
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, _SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
    return True


def run_contained(body: Callable[[], None]) -> None:
    """Run ``body`` in the child and raise here what it raised there (with its traceback as text)."""
    if not hasattr(os, "fork"):
        body()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        outcome = _outcome_of(body)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(outcome, pipe)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        raw = pipe.read()
    _, status = os.waitpid(child, 0)
    if not raw:
        pytest.fail(f"the contained test process died, wait status {status}", pytrace=False)
    outcome = json.loads(raw)
    if outcome["kind"] == "skipped":
        pytest.skip(outcome["text"])
    if outcome["kind"] == "failed":
        pytest.fail(outcome["text"], pytrace=False)


def _outcome_of(body: Callable[[], None]) -> dict[str, str]:
    try:
        if leave_network():
            os.environ[CONTAINED] = "1"
        body()
    except pytest.skip.Exception as skipped:
        return {"kind": "skipped", "text": str(skipped)}
    except BaseException:
        return {"kind": "failed", "text": traceback.format_exc()}
    return {"kind": "passed", "text": ""}

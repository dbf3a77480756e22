"""Whether a process runs, and since when, to tell a number that was used again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path


def is_running(pid: int) -> bool:
    """Tell whether a process of this number runs; False on Windows, where asking might end it."""
    if os.name == "nt" or pid <= 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True


def started_at(pid: int) -> float | None:
    """Return when a process started in epoch seconds, or None where the system does not tell.

    Sources: proc(5), field 22 of /proc/<pid>/stat in clock ticks after `btime`; elsewhere `etime` of ps(1).
    """
    if os.name == "nt" or pid <= 1:
        return None
    try:
        return _from_proc(pid) if sys.platform == "linux" else _from_ps(pid)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def _from_proc(pid: int) -> float:
    # The name in parentheses may hold spaces; the fields after it do not.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    ticks = int(fields[19])
    for line in Path("/proc/stat").read_bytes().splitlines():
        if line.startswith(b"btime "):
            return int(line.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
    raise ValueError("no btime")


def _from_ps(pid: int) -> float:
    shown = subprocess.run(
        ["/bin/ps", "-o", "etime=", "-p", str(pid)], capture_output=True, timeout=2, check=True
    ).stdout
    return time.time() - parse_elapsed(shown.decode("ascii"))


def parse_elapsed(text: str) -> float:
    """Return the seconds of `[[dd-]hh:]mm:ss`, as ps(1) writes `etime`; raises ValueError."""
    days, _, clock = text.strip().rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds + (int(days) if days else 0) * 86400

"""A process that stores 300 MB of text as it comes and reads lines of it, and prints its peak of memory in KiB.

Argument: project root.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from context_anchor.engine.memory.store import open_memory

BLOCK_LINES = 10_000
BLOCKS = 300


def content() -> Iterator[str]:
    for block in range(BLOCKS):
        first = block * BLOCK_LINES + 1
        yield "".join(f"{number:08d} {'é' * 45}\n" for number in range(first, first + BLOCK_LINES))


artifacts = open_memory(Path(sys.argv[1])).artifacts
record = artifacts.save(content(), "run_command")
assert record["bytes"] == BLOCKS * BLOCK_LINES * 100, record
for start in (1, 1_500_000, BLOCKS * BLOCK_LINES - 5):
    found = artifacts.read(record["id"], start, start + 2)
    assert found.content.splitlines()[0].startswith(f"{start:08d} é"), found
    assert found.total_lines == BLOCKS * BLOCK_LINES + 1
status = Path("/proc/self/status").read_text(encoding="ascii")
peak = re.search(r"VmHWM:\s+(\d+) kB", status)
assert peak is not None
print(peak[1])

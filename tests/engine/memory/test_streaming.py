"""A huge text passes through without being held."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("streaming_worker.py")
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of memory from /proc")
def test_300_megabytes_are_stored_and_read_by_lines_in_less_than_60_megabytes_of_memory() -> None:
    with tempfile.TemporaryDirectory() as folder:  # removed at once, unlike pytest's own
        done = subprocess.run(
            [sys.executable, str(WORKER), folder],
            capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 60 * 1024

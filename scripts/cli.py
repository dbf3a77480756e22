#!/usr/bin/env python3
"""The command line from a clone or bundle, without installing: `python scripts/cli.py list`.

Runs on whatever Python there is (Python 3.9 syntax, stdlib only) and goes on with the private environment's
Python when this one is too old or lacks a library that the command needs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SELF = Path(__file__).resolve()
ROOT = SELF.parent.parent
OLDEST = (3, 10)
UNAVAILABLE = 6  # context_anchor.cli.exit_codes needs a newer Python


def main() -> int:
    """Run the command of this process and return its exit code."""
    sys.path[:] = [str(ROOT), *(p for p in sys.path if Path(p or os.curdir).resolve() not in (SELF.parent, ROOT))]
    if sys.version_info < OLDEST:
        return go_on_with_newer()
    from context_anchor.cli.main import main as run

    return run()


def go_on_with_newer() -> int:
    """Go on with the private environment's Python, or say what to do."""
    from context_anchor.wire import paths

    folder = Path(paths.data_dir(), "env", "py")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        version = ".".join(map(str, sys.version_info[:2]))
        install = ROOT / "scripts" / "install.py"
        sys.stderr.write(
            f"context-anchor: Python {version} is too old. Install Python 3.10 or newer and run its: {install}\n"
        )
        return UNAVAILABLE
    command = [str(python), "-I", str(SELF), *sys.argv[1:]]
    if os.name != "nt":
        os.execv(command[0], command)
    import subprocess

    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The launcher of the MCP server `anchors`: finds or makes a Python that can run it.

This file runs on whatever Python the host found, so it is Python 3.9 syntax and stdlib only. If this interpreter
can run the server it does so in this process. Otherwise it starts itself again with a newer Python from PATH, or
with the private environment in the data folder, which is made once. Standard output belongs to the protocol: all
that is said while getting ready goes to standard error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SELF = Path(__file__).resolve()
ROOT = SELF.parent.parent
STAGE = "CONTEXT_ANCHOR_SERVE_STAGE"  # set for the next process of this file: what was tried, so that it ends
HOST_PID = "CONTEXT_ANCHOR_HOST_PID"
OLDEST = (3, 10)
SHOWN = 240  # characters of a long cause in the last line; pip's own words stand above it
MCP_FROM, MCP_BELOW = (2, 3), (3,)
NAMES = ("python3.13", "python3.12", "python3.11", "python3.10", "python3.14", "python3", "python")


def main() -> int:
    """Run the server, here or in a better interpreter; returns the exit code."""
    stage = os.environ.get(STAGE, "")
    if not stage:
        # The host is the parent of the first process; behind a spawned one it could not be told.
        os.environ[HOST_PID] = str(os.getppid())
    sys.path[:] = [str(ROOT), *(p for p in sys.path if Path(p or os.curdir).resolve() not in (SELF.parent, ROOT))]
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST:
        python = "" if stage else newer_python()
        if python:
            return run(python, "newer")
        problem = f"{sys.executable} is Python {version} and no newer one is on PATH"
        return fail(problem, f"Install Python 3.10 or newer, then run: {install_command('python3')}")
    missing = what_is_missing()
    if not missing:
        from context_anchor.server import app

        note_ready()
        return app.main()
    if stage == "environment":
        return fail(f"the private environment is not usable: {missing}", f"Run: {install_command()}")
    python = private_python(missing)
    return run(python, "environment") if python else 1


def what_is_missing() -> str:
    """Return why this interpreter cannot run the server, or ''. Loads the server when it can."""
    from importlib import metadata

    try:
        have = metadata.version("mcp")
        parts = tuple(int(part) for part in have.split(".")[:2] if part.isdecimal())
        if not MCP_FROM <= parts < MCP_BELOW:
            return f"mcp is version {have}"
        for name in ("filelock", "platformdirs"):
            metadata.version(name)
        from context_anchor.server import app  # noqa: F401  # the import is the test
    except ImportError as error:
        return str(error) or type(error).__name__
    return ""


def note_ready() -> None:
    """Leave a mark that the server starts here at once, so that hooks stop saying that it may be slow."""
    from context_anchor.wire import paths

    mark = Path(paths.data_dir(), "env", "served")
    try:
        if not mark.exists():
            paths.ensure_folder(str(mark.parent))
            mark.touch(mode=0o600)
    except OSError as error:
        print(f"context-anchor: {mark} was not written: {error}", file=sys.stderr)


def private_python(missing: str) -> str:
    """Return the interpreter of the private environment, made if need be; '' after saying why there is none."""
    from context_anchor.errors import ContextAnchorError
    from context_anchor.install import environment
    from context_anchor.wire import paths

    with ProtocolSetAside():
        try:
            return str(environment.ensure(paths.data_dir(), str(ROOT), log=sys.stderr))
        except ContextAnchorError as error:
            problem, cure = error.message, error.hint
        except OSError as error:
            problem, cure = str(error), ""
    if "run: " not in cure.lower():
        cure = f"{cure} Run: {install_command()}".strip()
    if len(problem) > SHOWN:
        problem = problem[:SHOWN] + " ... (more above)"
    fail(f"{sys.executable} lacks a package ({missing}), and {problem[0].lower()}{problem[1:]}", cure)
    return ""


class ProtocolSetAside:
    """Keeps what runs inside it from reading the host's requests or writing into the host's stream."""

    def __enter__(self) -> ProtocolSetAside:
        self.kept = [os.dup(0), os.dup(1)]
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return self

    def __exit__(self, *error: object) -> None:
        sys.stdout.flush()
        for target, kept in enumerate(self.kept):
            os.dup2(kept, target)
            os.close(kept)


def newer_python() -> str:
    """Return a Python from PATH that is new enough, or ''; one that does not answer is passed over."""
    import shutil
    import subprocess

    probe = f"import sys; sys.exit(0 if sys.version_info >= {OLDEST} else 3)"
    for name in NAMES:
        found = shutil.which(name)
        if not found:
            continue
        command = [found, "-I", "-S", "-c", probe]
        quiet = subprocess.DEVNULL
        try:
            done = subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=20)
        except (OSError, subprocess.SubprocessError):
            continue  # a shim without a version behind it, or a store's stand-in
        if done.returncode == 0:
            return found
    return ""


def run(python: str, stage: str) -> int:
    """Go on as `python` with this same file; on Windows as a child that inherits the streams."""
    env = {**os.environ, STAGE: stage}
    command = [python, "-I", str(SELF)]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execve(python, command, env)
    import subprocess

    return subprocess.call(command, env=env)


def install_command(python: str = "") -> str:
    """Return the command line that sets everything up, quoted for this platform's shell."""
    words = [python or sys.executable or "python3", str(ROOT / "scripts" / "install.py")]
    if os.name == "nt":
        import subprocess

        return subprocess.list2cmdline(words)
    import shlex

    return shlex.join(words)


def fail(problem: str, cure: str) -> int:
    """Say in one line on standard error why the server does not start; returns the exit code."""
    line = f"context-anchor: the MCP server cannot start: {problem.strip().rstrip('.')}. {cure}"
    print(" ".join(line.splitlines()), file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())

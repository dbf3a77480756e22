"""The private environment's Python, for a command that needs a library this one lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from context_anchor.errors import EnvironmentSetupError
from context_anchor.wire import paths

STAGE = "CONTEXT_ANCHOR_CLI_STAGE"
"""Set for the process that goes on in the private environment, so that it does not look for another."""

# `-I` keeps the caller's PYTHON* variables and folder out, so the package's root is handed over.
_GO_ON = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from context_anchor.cli.main import main; sys.exit(main())"
)


def lacks(library: str) -> bool:
    """Tell whether this Python has not got a library."""
    return find_spec(library) is None


def go_on_in_environment(argv: Sequence[str], library: str) -> int:
    """Run the same command with the private environment's Python; returns its exit code.

    Raises EnvironmentSetupError with the command to run when there is no such environment.
    """
    from context_anchor.install import environment

    folder = environment.folder_of(paths.data_dir())
    python = environment.python_of(folder)
    if os.environ.get(STAGE) or environment.read_ready(folder) is None or not python.exists():
        raise EnvironmentSetupError(f"{sys.executable} has no {library}", hint=f"Run: {_install_line()}")
    command = [str(python), "-I", "-c", _GO_ON, paths.plugin_root(), *argv]
    env = {**os.environ, STAGE: "environment"}
    try:
        if os.name != "nt":
            os.execve(command[0], command, env)
        return subprocess.call(command, env=env)
    except OSError as problem:
        raise EnvironmentSetupError(
            f"the private environment's Python {python} does not start: {problem.strerror or problem}",
            hint=f"Run: {_install_line()}",
        ) from problem


def _install_line() -> str:
    script = Path(paths.plugin_root(), "scripts", "install.py")
    if not script.is_file():
        script_words = [sys.executable, "-m", "pip", "install", "--upgrade", "context-anchor"]
    else:
        script_words = [sys.executable, str(script)]
    if os.name == "nt":
        return subprocess.list2cmdline(script_words)
    import shlex

    return shlex.join(script_words)

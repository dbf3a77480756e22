#!/usr/bin/env python3
"""Installs context-anchor for every host found and proves it: `python3 scripts/install.py`.

The standard library alone. This file is plain enough for any Python to read, so that one that is too old can say
so, or hand over to a newer one on PATH. See `--help` for the options; `doctor` and `demo` are first words.
"""
# Old Pythons must be able to read this file, so it keeps to old forms.
# ruff: noqa: PTH100, PTH113, PTH118, PTH120, PTH123, UP031, UP036, RUF005

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAMES = ("python3.13", "python3.12", "python3.11", "python3.10", "python3.14", "python3", "python")
STAGE = "CONTEXT_ANCHOR_INSTALL_STAGE"  # set for the Python handed over to, so that it ends


def newer_python():
    # type: () -> str | None
    """Return a Python of at least 3.10 from PATH, or None."""
    import subprocess

    probe = "import sys; sys.exit(0 if sys.version_info >= (3, 10) else 3)"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for name in NAMES:
            path = os.path.join(folder, name + (".exe" if os.name == "nt" else ""))
            if not folder or not os.path.isfile(path):
                continue
            try:
                with open(os.devnull, "r+") as nothing:
                    command = [path, "-S", "-c", probe]
                    if subprocess.call(command, stdin=nothing, stdout=nothing, stderr=nothing) == 0:
                        return path
            except OSError:
                continue  # a stand-in that does not start
    return None


def main():
    # type: () -> int
    """Run the installer, here or in a newer Python; returns the exit code."""
    if sys.version_info < (3, 10):
        found = None if os.environ.get(STAGE) else newer_python()
        have = ".".join(str(part) for part in sys.version_info[:3])
        if found is None:
            sys.stderr.write(
                "context-anchor needs Python 3.10 or newer; this is %s and PATH holds no newer one.\n"
                "Install one (python.org, your system's packages, or uv) and run: python3 %s\n"
                % (have, os.path.join(ROOT, "scripts", "install.py"))
            )
            return 1
        import subprocess

        env = dict(os.environ)
        env[STAGE] = "handed-over"
        return subprocess.call([found, os.path.abspath(__file__)] + sys.argv[1:], env=env)
    sys.path.insert(0, ROOT)
    from context_anchor.install import cli_entry

    return cli_entry.main()


if __name__ == "__main__":
    sys.exit(main())

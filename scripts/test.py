"""Run the tests in an environment of their own: `python3 scripts/test.py [pytest arguments]`.

The environment is made in `build/test-env` from pyproject.toml (extra `dev`) and made anew when that file or
the interpreter changes. `--setup-only` makes it and prints the path of its Python; `--coverage` adds branch
coverage.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "build" / "test-env"
OLDEST = (3, 10)


def environment_python() -> Path:
    """Return the path that the environment's Python has."""
    folder, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return ENVIRONMENT / folder / name


def fingerprint() -> str:
    """Return what the environment depends on: the project's file and this interpreter."""
    text = (ROOT / "pyproject.toml").read_bytes() + sys.version.encode() + sys.prefix.encode()
    return hashlib.sha256(text).hexdigest()


def set_up() -> Path:
    """Make the environment where it is missing or out of date; return its Python."""
    python = environment_python()
    stamp = ENVIRONMENT / "made-from.txt"
    wanted = fingerprint()
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making {ENVIRONMENT.relative_to(ROOT)} ...", file=sys.stderr, flush=True)
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[dev]"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def main(words: list[str]) -> int:
    """Set up, then run pytest with the words given."""
    if sys.version_info < OLDEST:
        print(f"Python 3.10 or newer is needed; this is {sys.version.split()[0]}", file=sys.stderr)
        return 2
    try:
        python = set_up()
    except subprocess.CalledProcessError as problem:
        print(f"setting up the test environment failed: {problem}", file=sys.stderr)
        return 2
    if "--setup-only" in words:
        print(python)
        return 0
    if "--coverage" in words:
        words = [w for w in words if w != "--coverage"] + ["--cov", "--cov-branch", "--cov-report=term"]
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # hooks are tried with their byte code cached
    return subprocess.run([str(python), "-m", "pytest", *words], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The Python that commands name: found, resolved past shims, written so that every shell takes it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from context_anchor.errors import EnvironmentSetupError

OLDEST: Final = (3, 10)
NAMES: Final = ("python3.13", "python3.12", "python3.11", "python3.10", "python3.14", "python3", "python")
_ASK = (
    "import sys, json; sys.stdout.write(json.dumps(["
    "getattr(sys, '_base_executable', None) or sys.executable, sys.executable, list(sys.version_info[:3])]))"
)
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python as it will be started: an absolute path past every shim and environment, and its version."""

    path: str
    version: tuple[int, int, int]


def is_shim(path: str) -> bool:
    """Tell whether a path is a version manager's stand-in (pyenv, asdf, mise, rtx), which may point elsewhere
    tomorrow, costs time at each start, and answers only where its manager is set up."""
    parts = [part.lower() for part in re.split(r"[\\/]+", path)]
    return "shims" in parts[:-1]


def is_store_alias(path: str) -> bool:
    """Tell whether a path is Windows' app alias, which may only open the store (and exit with 9009 or 49)."""
    parts = [part.lower() for part in re.split(r"[\\/]+", path)]
    return "windowsapps" in parts[:-1] and parts[-1].startswith("python")


def resolve(command: str) -> Interpreter:
    """Start an interpreter and return where it really lies.

    Raises EnvironmentSetupError when it does not answer as a Python 3 does.
    """
    try:
        done = subprocess.run(
            [command, "-I", "-S", "-c", _ASK], stdin=subprocess.DEVNULL, capture_output=True, timeout=30
        )
        base, own, version = json.loads(done.stdout.decode("utf-8")) if done.returncode == 0 else (None, None, None)
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        raise EnvironmentSetupError(f"{command} does not start as a Python: {problem}") from problem
    if not isinstance(base, str) or not isinstance(version, list):
        raise EnvironmentSetupError(f"{command} does not answer as a Python (exit code {done.returncode})")
    return Interpreter(durable_path(str(base or own)), (version[0], version[1], version[2]))


def running() -> Interpreter:
    """Return the interpreter that runs this code, past its virtual environment if it is in one."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    version = sys.version_info
    return Interpreter(durable_path(base), (version.major, version.minor, version.micro))


def find() -> Interpreter:
    """Return a Python of at least 3.10: the running one, else the first on PATH.

    Raises EnvironmentSetupError where there is none.
    """
    if sys.version_info >= OLDEST:
        return running()
    for name in NAMES:
        found = shutil.which(name)
        if found:
            try:
                candidate = resolve(found)
            except EnvironmentSetupError:
                continue  # a shim without a version behind it, or a store's stand-in
            if candidate.version >= OLDEST:
                return candidate
    raise EnvironmentSetupError(
        f"Python {sys.version.split()[0]} is too old, and PATH holds no newer one",
        hint="Install Python 3.10 or newer and run this again.",
    )


def durable_path(executable: str) -> str:
    """Return the path of an executable that lives longest.

    It is past environments and links, but neither below a folder that the next patch release of its package
    manager removes, nor named by a minor version where the plain name is the same file: that one outlives an
    upgrade of the system (hooks run on any Python, and the server makes its environment anew).
    """
    real = _past_environment(Path(executable).absolute())
    kept = re.match(r"(.*)/Cellar/([^/]+)/[^/]+/", real.as_posix())
    if kept:
        for folder in ("bin", "libexec/bin"):
            candidate = Path(kept.group(1), "opt", kept.group(2), folder, real.name)
            if _same(candidate, real):
                return str(candidate)
    plain = real.with_name("python3")
    return str(plain if re.fullmatch(r"python3\.\d+", real.name) and _same(plain, real) else real)


def _past_environment(path: Path) -> Path:
    for _ in range(4):
        real = Path(os.path.realpath(path))
        settings = real.parent.parent / "pyvenv.cfg"
        if not settings.is_file():  # also an environment whose python is a copy has this file
            return real
        home = re.search(r"^home\s*=\s*(.+?)\s*$", settings.read_text(encoding="utf-8", errors="replace"), re.M)
        if not home:
            return real
        base = Path(home.group(1))
        names = (real.name, f"python{sys.version_info.major}.{sys.version_info.minor}", "python3", "python.exe")
        path = next((base / name for name in names if (base / name).exists()), real)
        if path == real:
            return real
    return Path(os.path.realpath(path))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def for_shell(path: str, windows: bool | None = None) -> str | None:
    """Return a path as a word of a host's command line, which may hold no quotes; None where that can't be.

    POSIX: characters that a shell reads are escaped by a backslash. Windows: such a path needs its short
    8.3 name, which a drive may not keep.
    """
    windows = os.name == "nt" if windows is None else windows
    if not windows:
        if any(c in path for c in "\"'\n"):
            return None
        return "".join(c if _PLAIN.match(c) or ord(c) > 127 else "\\" + c for c in path)
    if not _awkward(path):
        return path
    short = short_name(path)
    return short if short and not _awkward(short) else None


def _awkward(path: str) -> bool:
    return any(c in " \t&()[]{}^=;!'\"+,`%" for c in path)  # cmd.exe splits at these or reads them


def short_name(path: str) -> str:
    """Return Windows' 8.3 form of a path, '' where there is none."""
    if sys.platform != "win32":
        return ""
    import ctypes

    buffer = ctypes.create_unicode_buffer(1024)
    length = ctypes.windll.kernel32.GetShortPathNameW(path, buffer, 1024)
    return buffer.value if 0 < length < 1024 else ""


def shown(*words: object) -> str:
    """Return a command line to be read and typed by a person, quoted for this platform's shell."""
    line = [str(word) for word in words]
    return subprocess.list2cmdline(line) if os.name == "nt" else shlex.join(line)

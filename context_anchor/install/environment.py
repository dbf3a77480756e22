"""The private Python environment in the data folder: made once, under a lock, brought up to date in place.

Standard library alone: the launcher of the MCP server imports this before any package is there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from context_anchor.errors import EnvironmentSetupError
from context_anchor.install import interpreter
from context_anchor.install.source import Source, find
from context_anchor.wire import atomic, paths

FORMAT: Final = "context-anchor-env/1"
MARKER: Final = "ready.json"
WAIT_S: Final = 900.0  # for another process that makes the environment; a slow registry takes minutes
PIP_S: Final = 900.0
_TAIL_LINES: Final = 6
# What would send pip or the new interpreter elsewhere than into the environment.
_MISLEADING: Final = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "__PYVENV_LAUNCHER__",
    "VIRTUAL_ENV",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_EDITABLE",
)


@dataclass(frozen=True, slots=True)
class Ready:
    """What a finished environment says of itself.

    `package` is the fingerprint of the package installed in it, "" where only the requirements are.
    """

    version: str
    requirements: tuple[str, ...]
    python: str
    package: str


def folder_of(data_dir: str | Path) -> Path:
    """Return the environment's folder; it need not exist."""
    return Path(data_dir) / "env" / "py"


def python_of(folder: Path) -> Path:
    """Return the path that an environment's Python has."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def command_of(folder: Path) -> Path:
    """Return the path that the installed `context-anchor` command has in an environment."""
    return folder / ("Scripts/context-anchor.exe" if os.name == "nt" else "bin/context-anchor")


def read_ready(folder: Path) -> Ready | None:
    """Return what a finished environment says of itself, None for a missing, half-made or unknown one."""
    try:
        value = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if (
        not isinstance(value, dict)
        or value.get("format") != FORMAT
        or not isinstance(value.get("requirements"), list)
    ):
        return None
    texts = {name: value.get(name) for name in ("version", "python", "package")}
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    return Ready(
        str(texts["version"]), tuple(map(str, value["requirements"])), str(texts["python"]), str(texts["package"])
    )


def ensure(
    data_dir: str | Path,
    source_root: str | Path,
    log: TextIO | None = None,
    *,
    package: bool = False,
    base: interpreter.Interpreter | None = None,
    wait_s: float = WAIT_S,
) -> Path:
    """Return the environment's Python, made or brought up to date if need be.

    `source_root` is the folder that holds the package `context_anchor`. With `package` the package itself is
    installed too (and its command); `has_command` tells whether that worked, since the server does not need it: it
    runs from its own folder. Two callers
    at once: one works, the other waits. A half-made environment is made anew; one that can't be brought up to
    date stays in use if it works.

    Raises:
        EnvironmentSetupError: pip or venv failed, or another process did not finish within `wait_s` seconds.
        InstallError: `source_root` is no whole copy of the product.
    """
    source = find(Path(source_root) / "context_anchor")
    folder = folder_of(data_dir)
    want_package = package and source.kind == "clone"
    if _fits(folder, source, want_package):
        return python_of(folder)
    paths.ensure_folder(str(folder.parent))
    with _alone(folder.parent / "lock", log, wait_s):
        if _fits(folder, source, want_package):
            return python_of(folder)
        ready = read_ready(folder)
        if ready is not None and _answers(python_of(folder), ready.requirements):
            return _bring_up_to_date(folder, source, want_package, ready, log)
        return _make(folder, source, want_package, base or interpreter.find(), log)


def _fits(folder: Path, source: Source, want_package: bool) -> bool:
    ready = read_ready(folder)
    if ready is None or ready.requirements != source.requirements():
        return False
    if want_package and (ready.version, ready.package) != (source.version, source.fingerprint()):
        return False
    return _answers(python_of(folder), ready.requirements)


def has_command(folder: Path, source: Source) -> bool:
    """Tell whether the command `context-anchor` in an environment is of this very copy of the product."""
    ready = read_ready(folder)
    return ready is not None and ready.package == source.fingerprint() and command_of(folder).is_file()


def answers(folder: Path, ready: Ready) -> bool:
    """Tell whether a finished environment still works."""
    return _answers(python_of(folder), ready.requirements)


def _answers(python: Path, requirements: tuple[str, ...]) -> bool:
    """Tell whether an environment's Python starts and finds what was installed: a system upgrade takes the
    interpreter away under its environments."""
    names = [re.split(r"[\s<>=!~;\[(]", text, maxsplit=1)[0] for text in requirements if ";" not in text]
    code = "import sys; from importlib import metadata; [metadata.version(n) for n in sys.argv[1:]]"
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", code, *names], stdin=subprocess.DEVNULL, capture_output=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _make(
    folder: Path, source: Source, want_package: bool, base: interpreter.Interpreter, log: TextIO | None
) -> Path:
    _say(log, f"making the private environment {folder} (Python {'.'.join(map(str, base.version))}) ...")
    old = _out_of_the_way(folder)
    try:
        _create_and_fill(folder, source, want_package, base, log)
    except EnvironmentSetupError:
        _remove(folder)
        raise
    if old is not None:
        _remove(old)
    return python_of(folder)


def _create_and_fill(
    folder: Path, source: Source, want_package: bool, base: interpreter.Interpreter, log: TextIO | None
) -> None:
    """Make the environment by the first way this Python offers.

    The base's own pip can install into an environment without one (pip 22.3), which saves seconds; Debian's
    Python has `venv` but no `ensurepip` until python3-venv is installed.
    """
    python = str(python_of(folder))
    told: list[str] = []
    uv = shutil.which("uv")
    plans: list[tuple[list[str], list[str]]] = [
        (
            [base.path, "-I", "-m", "venv", "--without-pip", str(folder)],
            [base.path, "-I", "-m", "pip", "--python", python, "install"],
        ),
        ([base.path, "-I", "-m", "venv", str(folder)], [python, "-I", "-m", "pip", "install"]),
    ]
    if not _knows_python_option(base.path):
        plans.pop(0)
    if uv:
        plans.append(([uv, "venv", "--python", base.path, str(folder)], [uv, "pip", "install", "--python", python]))
    for create, install in plans:
        done = _run(create, log)
        if done.returncode != 0:
            told.append(_shorten(create, done))
            _remove(folder)
            continue
        options = ["--compile-bytecode"] if install[0] == uv else ["--no-input", "--disable-pip-version-check"]
        done = _run([*install, *options, *source.requirements()], log)
        if done.returncode == 0:
            made = want_package and _install_package([*install, *options], source, log)
            _finish(folder, source, made, base.path)
            return
        told.append(_shorten(install, done))
        _remove(folder)
        if "No module named pip" not in told[-1]:
            break  # the registry, the network or the disk: another way would fail alike
    raise EnvironmentSetupError(
        f"The private environment {folder} could not be made. " + " | ".join(told), hint=_advice(told, source)
    )


def _advice(told: list[str], source: Source) -> str:
    again = f"Then run: {_install_line(source)}"
    if any("ensurepip" in text for text in told):
        return f"Install your system's package for venv (Debian, Ubuntu: apt install python3-venv). {again}"
    if any("No space left" in text for text in told):
        return f"Make room on the disk. {again}"
    return f"See that pip reaches its index (network, proxy, `pip config list`). {again}"


def _install_line(source: Source) -> str:
    script = source.assets / "scripts" / "install.py"
    words = [sys.executable or "python3", str(script)] if script.is_file() else ["context-anchor", "install"]
    return interpreter.shown(*words)


def _bring_up_to_date(folder: Path, source: Source, want_package: bool, ready: Ready, log: TextIO | None) -> Path:
    _say(log, f"bringing the private environment {folder} up to date ...")
    python = str(python_of(folder))
    install = _installer_for(python, ready.python)
    if install is None:
        return _make(folder, source, want_package, interpreter.find(), log)
    done = _run([*install, "--upgrade", *source.requirements()], log)
    if done.returncode == 0:
        made = want_package and _install_package(install, source, log)
        _finish(folder, source, made, ready.python, None if made else ready)
    else:
        _say(log, f"that failed; the earlier environment stays in use. {_shorten(install, done)}")
    return Path(python)


def _install_package(install: list[str], source: Source, log: TextIO | None) -> bool:
    """Install the package and its command from a clone. The server and the hooks do not need it, so a build that
    fails (its backend can't be fetched, say) is told in the log and is no reason to stop."""
    done = _run([*install, "--no-deps", "--force-reinstall", str(source.assets)], log)
    if done.returncode != 0:
        _say(log, f"the command `context-anchor` could not be installed. {_shorten(install, done)}")
    return done.returncode == 0


def _installer_for(python: str, base: str) -> list[str] | None:
    options = ["install", "--no-input", "--disable-pip-version-check"]
    if _knows_python_option(base):
        return [base, "-I", "-m", "pip", "--python", python, *options]
    if _run([python, "-I", "-m", "pip", "--version"], None).returncode == 0:
        return [python, "-I", "-m", "pip", *options]
    return None


def _knows_python_option(python: str) -> bool:
    done = _run([python, "-I", "-m", "pip", "--version"], None)
    found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
    return bool(found) and (int(found.group(1)), int(found.group(2))) >= (22, 3) if found else False


def _finish(folder: Path, source: Source, want_package: bool, base: str, kept: Ready | None = None) -> None:
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": kept.version if kept else source.version if want_package else "",
        "requirements": list(source.requirements()),
        "python": base,
        "package": kept.package if kept else source.fingerprint() if want_package else "",
    }
    text = json.dumps(record, indent=1) + "\n"
    atomic.replace_bytes(str(folder / MARKER), text.encode("ascii"), durable=True)


@contextlib.contextmanager
def _alone(lock_path: Path, log: TextIO | None, wait_s: float) -> Iterator[None]:
    """Hold the environment's lock, which the system frees when its holder dies."""
    deadline = time.monotonic() + wait_s
    lock = atomic.Lock(str(lock_path), 0.0)
    told = False
    while not lock.acquire():
        if time.monotonic() > deadline:
            raise EnvironmentSetupError(
                f"Another process has been making {lock_path.parent / 'py'} for over {wait_s:.0f} seconds",
                hint="End that process, or wait for it, and try again.",
            )
        if not told:
            _say(log, "another process is making the private environment; waiting for it ...")
            told = True
        time.sleep(0.1)
    try:
        yield
    finally:
        lock.release()


def _run(command: list[str], log: TextIO | None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and hand its output to the log; not starting at all counts as a failure."""
    env = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    env.update(PIP_USER="0", PYTHONUTF8="1", PYTHONIOENCODING="utf-8")
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            encoding="utf-8",
            errors="replace",
            timeout=PIP_S,
        )
    except subprocess.TimeoutExpired as problem:
        kept = problem.stdout.decode("utf-8", "replace") if isinstance(problem.stdout, bytes) else ""
        done = subprocess.CompletedProcess(command, 124, f"{kept}\nnot finished after {PIP_S:.0f} seconds")
    except OSError as problem:
        done = subprocess.CompletedProcess(command, 127, str(problem))
    if log is not None and done.returncode != 0 and done.stdout:
        log.write(done.stdout if done.stdout.endswith("\n") else done.stdout + "\n")
        log.flush()
    return done


def _shorten(command: list[str], done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()][-_TAIL_LINES:]
    told = " / ".join(lines)[-500:]
    return f"`{' '.join(command[:6])}` ended with code {done.returncode}: {told or 'no output'}"


def _out_of_the_way(folder: Path) -> Path | None:
    """Move an unusable environment aside, so that a process that runs from it is not cut off half way."""
    if not folder.exists() and not folder.is_symlink():
        return None
    aside = folder.with_name(f"py.old-{os.getpid()}-{time.time_ns():x}")
    try:
        folder.replace(aside)
    except OSError as problem:
        raise EnvironmentSetupError(
            f"The unusable environment {folder} can't be moved: {problem}",
            hint="Close the programs that use it and try again.",
        ) from problem
    return aside


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _say(log: TextIO | None, text: str) -> None:
    if log is not None:
        log.write(f"context-anchor: {text}\n")
        log.flush()

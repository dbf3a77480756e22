"""Doctor: every check on this machine in one list of findings, each with its cure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from context_anchor.errors import ContextAnchorError
from context_anchor.install import (
    antigravity,
    claude_code,
    environment,
    hook_check,
    interpreter,
    server_check,
    state_check,
)
from context_anchor.install.findings import Finding, from_error
from context_anchor.install.source import find

_OURS: Final = re.compile(r"(?<![\w/.-])context-anchor(?= (?:install|uninstall|doctor|demo|undo|history)\b)")
HOSTS: Final = ("claude-code", "antigravity")


def examine(
    data: Path, env: Mapping[str, str], home: Path, hosts: tuple[str, ...] = HOSTS, folder: Path | None = None
) -> tuple[Finding, ...]:
    """Return every finding on the named hosts and the data folder.

    `folder` is the project to look for workspace plugins in. Hooks run in a data folder of their own, so that
    nothing real is changed.
    """
    found: list[Finding] = list(_python())
    found += _environment(data)
    seen: list[str] = []
    for host in hosts:
        roots, of_host = _host(host, data, env, home, folder)
        found += of_host
        if of_host:
            seen.append(host)
        for root in roots:
            found += hook_check.check(host, root)
            found += server_check.check(host, root, data)
            found += _pointer(host, root, data)
    if not seen:
        found.append(
            Finding(
                "info",
                "hosts",
                "neither Claude Code nor Antigravity was found",
                "Install one of them, then run: context-anchor install",
            )
        )
    found += state_check.check(data, tuple(seen))
    return tuple(_runnable(finding, data, env) for finding in found)


def _runnable(finding: Finding, data: Path, env: Mapping[str, str]) -> Finding:
    """Return a finding whose cure names our command so that it can be typed as it stands, PATH or not."""
    if not _OURS.search(finding.cure) or shutil.which("context-anchor", path=env.get("PATH", "")):
        return finding
    installed = environment.python_of(environment.folder_of(data)).with_name(
        "context-anchor.exe" if os.name == "nt" else "context-anchor"
    )
    script = find().assets / "scripts" / "cli.py"
    if installed.is_file():
        command = interpreter.shown(installed)
    elif script.is_file():
        command = interpreter.shown(sys.executable or "python3", script)
    else:
        return finding
    return replace(finding, cure=_OURS.sub(lambda _: command, finding.cure))


def _host(
    host: str, data: Path, env: Mapping[str, str], home: Path, folder: Path | None
) -> tuple[list[Path], tuple[Finding, ...]]:
    """Return the folders that a host runs the plugin from, and the findings on the host itself."""
    if host == claude_code.HOST:
        claude = claude_code.detect(env, home)
        if claude is None:
            return [], ()
        copies = claude_code.plugins(claude)
        roots = [copy.root for copy in copies if copy.enabled]
        findings = claude_code.look_over(claude, copies, data)
    else:
        agy = antigravity.detect(env, home)
        if agy is None:
            return [], ()
        plugins = antigravity.plugins(agy, folder)
        roots = [plugin.root for plugin in plugins if plugin.enabled]
        findings = antigravity.look_over(agy, plugins)
    return roots[:2], findings


def _python() -> list[Finding]:
    """Return findings on the `python3` of PATH, which plain clones start."""
    found = []
    for name in ("python3", "python"):
        path = shutil.which(name)
        if path is None:
            continue
        if interpreter.is_shim(path):
            found.append(
                Finding(
                    "info",
                    "python",
                    f"`{name}` is a version manager's shim",
                    "Nothing to do for what the installer wrote; a plain clone starts the shim.",
                    path,
                )
            )
        elif os.name == "nt" and interpreter.is_store_alias(path) and not _starts(path):
            found.append(
                Finding(
                    "warning",
                    "python",
                    f"`{name}` only opens the store",
                    "Install Python from python.org or switch the app alias off, then install again.",
                    path,
                )
            )
        break
    version = ".".join(map(str, sys.version_info[:3]))
    return [Finding("ok", "python", f"this is Python {version}", where=sys.executable), *found]


def _starts(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _environment(data: Path) -> list[Finding]:
    folder = environment.folder_of(data)
    ready = environment.read_ready(folder)
    if ready is None:
        if folder.exists():
            return [
                Finding("warning", "environment", "it is half made", "Run: context-anchor install", str(folder))
            ]
        return [
            Finding(
                "info", "environment", "there is none yet", "It is made by: context-anchor install", str(folder)
            )
        ]
    try:
        wanted = find().requirements()
    except ContextAnchorError as problem:
        return [from_error("environment", problem, "warning")]
    if not environment.answers(folder, ready):
        return [
            Finding(
                "error",
                "environment",
                f"its Python no longer works (made from {ready.python})",
                "Run: python3 scripts/install.py of a clone; it is made anew.",
                str(folder),
            )
        ]
    if ready.requirements != wanted:
        return [
            Finding(
                "warning",
                "environment",
                "it was made for other requirements",
                "Run: context-anchor install",
                str(folder),
            )
        ]
    return [Finding("ok", "environment", "complete", where=str(folder))]


def _pointer(host: str, root: Path, data: Path) -> list[Finding]:
    """Return a finding where hooks write to another data folder than this doctor looks at."""
    try:
        text = (root / "data-dir.txt").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return []
    if not text or os.path.realpath(text) == os.path.realpath(data):
        return []
    return [
        Finding(
            "warning",
            f"{host}.data",
            f"hooks keep their state in {text}, not in {data}",
            "Install again with the data folder you mean (CONTEXT_ANCHOR_DATA_DIR).",
            str(root),
        )
    ]

"""The pinned hosts of the end-to-end tests: where they lie, how they are fetched.

Run ``python tests/e2e/hosts.py fetch`` once; ``where`` prints what is there. Each host is
fetched by name and version with its registry's ordinary client (npm, pip) into the folder named
by CONTEXT_ANCHOR_E2E_CACHE, else ``build/e2e-hosts`` of the repository. Nothing is vendored.
The standard library alone is used, so that the script runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE_VARIABLE = "CONTEXT_ANCHOR_E2E_CACHE"
REPOSITORY = Path(__file__).resolve().parents[2]

CLAUDE_CODE_NEWEST = "2.1.332"
CLAUDE_CODE_OLDEST = "2.1.197"
CLAUDE_CODE_VERSIONS = (CLAUDE_CODE_NEWEST, CLAUDE_CODE_OLDEST)
ANTIGRAVITY_VERSION = "0.1.22"
# The runtime's harness speaks zstd over HTTP; the stub model that answers it needs the codec.
ANTIGRAVITY_REQUIREMENTS = (f"google-antigravity=={ANTIGRAVITY_VERSION}", "zstandard")

FETCH_HINT = "run: python tests/e2e/hosts.py fetch"


def cache_folder() -> Path:
    """The folder that holds the fetched hosts; it may not exist yet."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).absolute() if named else REPOSITORY / "build" / "e2e-hosts"


def claude_code_package() -> str:
    """The npm package that carries Claude Code's native binary for this machine."""
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(
        platform.machine().lower()
    )
    system = {"linux": "linux", "darwin": "darwin", "win32": "win32"}.get(sys.platform)
    if machine is None or system is None:
        raise SystemExit(f"no Claude Code package is known for {sys.platform} on {platform.machine()}")
    musl = "-musl" if system == "linux" and any(Path("/lib").glob("ld-musl-*")) else ""
    return f"@anthropic-ai/claude-code-{system}-{machine}{musl}"


def _claude_code_folder(version: str) -> Path:
    return cache_folder() / f"claude-code-{version}"


def claude_code(version: str) -> Path | None:
    """Path of the client's binary, or None while that version has not been fetched."""
    name = "claude.exe" if sys.platform == "win32" else "claude"
    binary = _claude_code_folder(version) / "node_modules" / claude_code_package() / name
    return binary if binary.is_file() else None


def antigravity_python() -> Path | None:
    """The interpreter that has the Antigravity runtime and zstandard, or None if not fetched."""
    folder = cache_folder() / f"antigravity-{ANTIGRAVITY_VERSION}"
    record = f"google_antigravity-{ANTIGRAVITY_VERSION}.dist-info"
    installed = [*folder.glob(f"lib/*/site-packages/{record}"), *folder.glob(f"Lib/site-packages/{record}")]
    python = _venv_python(folder)
    return python if installed and python.is_file() else None


def _venv_python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _run(command: list[str]) -> None:
    print("$", " ".join(command), flush=True)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def fetch_claude_code(version: str) -> None:
    """Install one version with npm; a half-made folder never takes the final name."""
    if claude_code(version):
        return
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed to fetch Claude Code and is not on PATH")
    target = _claude_code_folder(version)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=target.parent) as made:
        staging = Path(made) / "host"
        staging.mkdir()
        _run([
            npm, "install", "--prefix", str(staging), "--ignore-scripts", "--no-audit", "--no-fund",
            f"{claude_code_package()}@{version}",
        ])  # fmt: skip
        shutil.rmtree(target, ignore_errors=True)
        staging.replace(target)
    if claude_code(version) is None:
        raise SystemExit(f"npm reported success, but no client binary lies under {target}")


def fetch_antigravity() -> None:
    """Make a virtual environment with the runtime. It can't be made elsewhere and moved, so one that
    was broken off is told by the missing distribution record and made anew."""
    if antigravity_python():
        return
    target = cache_folder() / f"antigravity-{ANTIGRAVITY_VERSION}"
    target.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", "--clear", str(target)])
    _run([str(_venv_python(target)), "-m", "pip", "install", "--quiet", *ANTIGRAVITY_REQUIREMENTS])
    if antigravity_python() is None:
        raise SystemExit(f"pip reported success, but the runtime does not lie under {target}")


def located() -> dict[str, Path | None]:
    """Every pinned host by name and version."""
    found: dict[str, Path | None] = {f"claude-code {v}": claude_code(v) for v in CLAUDE_CODE_VERSIONS}
    found[f"google-antigravity {ANTIGRAVITY_VERSION}"] = antigravity_python()
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fetch or find the hosts that the end-to-end tests drive.")
    parser.add_argument("command", choices=("fetch", "where"))
    parser.add_argument("--only", choices=("claude-code", "antigravity"), help="one host instead of all")
    options = parser.parse_args(arguments)
    if options.command == "fetch":
        if options.only != "antigravity":
            for version in CLAUDE_CODE_VERSIONS:
                fetch_claude_code(version)
        if options.only != "claude-code":
            fetch_antigravity()
    for name, path in located().items():
        print(f"{name}: {path or 'absent'}")
    wanted = [path for name, path in located().items() if options.only is None or options.only in name]
    return 0 if all(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())

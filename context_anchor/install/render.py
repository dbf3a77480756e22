"""Each host's bundle as files in memory: the committed files with this machine's paths in the commands."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from context_anchor.errors import InstallError
from context_anchor.install import interpreter
from context_anchor.install.source import REQUIREMENTS_FILE, Source, package_files
from context_anchor.wire import atomic

HostName = Literal["claude-code", "antigravity"]
PLUGIN: Final = "context-anchor"
SERVER: Final = "anchors"
POINTER: Final = "data-dir.txt"
_SCRIPTS: Final = ("hook.py", "serve.py", "cli.py", "install.py")
_HOOK: Final = "-I -S scripts/hook.py antigravity"


@dataclass(frozen=True, slots=True)
class Place:
    """What a bundle's commands name.

    `hook_python` is a bare interpreter, `server_python` one that has the server's packages; `data` is the
    data folder.
    """

    hook_python: str
    server_python: str
    data: Path


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files by their path below the bundle's folder, and sentences about what could not be done fully."""

    files: dict[str, bytes]
    notes: tuple[str, ...] = ()


def claude_code(source: Source, place: Place) -> Bundle:
    """Return the Claude Code bundle, which is also a marketplace of its own."""
    files = _common(source, place)
    files[".claude-plugin/marketplace.json"] = _asset(source, ".claude-plugin/marketplace.json")
    manifest = _json_asset(source, ".claude-plugin/plugin.json")
    files[".claude-plugin/plugin.json"] = _dump(claude_manifest(manifest, place.server_python))
    hooks = _json_asset(source, "hooks/claude-code.json")
    files["hooks/claude-code.json"] = _dump(claude_hooks(hooks, place.hook_python))
    files.update(_tree(source, "skills"))
    return Bundle(files)


def antigravity(source: Source, place: Place, root: Path) -> Bundle:
    """Return the Antigravity bundle for a folder `root`, which its MCP command names.

    This host starts servers in a folder of its own choice and expands no variable, so the path is absolute.
    """
    files = _common(source, place)
    files["plugin.json"] = _asset(source, "plugin.json")
    hooks, notes = antigravity_hooks(_json_asset(source, "hooks.json"), place.hook_python)
    files["hooks.json"] = _dump(hooks)
    files["mcp_config.json"] = _dump(antigravity_servers({}, place.server_python, root))
    files.update(_tree(source, "rules"))
    files.update(_tree(source, "skills"))
    return Bundle(files, notes)


def render(host: HostName, source: Source, place: Place, root: Path) -> Bundle:
    """Return a host's bundle; `root` is where it will lie."""
    return claude_code(source, place) if host == "claude-code" else antigravity(source, place, root)


def claude_manifest(manifest: dict[str, Any], server_python: str) -> dict[str, Any]:
    """Return a copy of the manifest whose server is started by this interpreter."""
    changed = copy.deepcopy(manifest)
    server = changed["mcpServers"][SERVER]
    server["command"] = server_python
    server["args"] = ["-I", "${CLAUDE_PLUGIN_ROOT}/scripts/serve.py"]
    return changed


def claude_hooks(document: dict[str, Any], hook_python: str) -> dict[str, Any]:
    """Return a copy of the hooks file whose handlers start this interpreter, without any shell (`args`)."""
    changed = copy.deepcopy(document)
    for groups in changed["hooks"].values():
        for group in groups:
            for handler in group["hooks"]:
                handler["command"] = hook_python
    return changed


def antigravity_hooks(document: dict[str, Any], hook_python: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a copy of hooks.json whose commands start this interpreter, and notes."""
    changed = copy.deepcopy(document)
    note = ""
    for events in changed.values():
        for event, handlers in events.items():
            if isinstance(handlers, list):
                for handler in handlers:
                    handler["command"], note = hook_command(hook_python, event)
    return changed, (note,) if note else ()


def hook_command(hook_python: str, event: str, windows: bool | None = None) -> tuple[str, str]:
    """Return an Antigravity hook's command line and a note, '' where all is well.

    The host hands the line to `sh -c` or `cmd /c` with the plugin's folder as cwd, and on Windows any double
    quote breaks it. The hook exits with 0 whatever happens, so what follows `||` runs only when the interpreter
    before it is gone; `echo {}` then keeps the answer a document.
    """
    windows = os.name == "nt" if windows is None else windows
    spare = "python" if windows else "python3"
    word = interpreter.for_shell(hook_python, windows)
    if word is None or word == spare:
        note = (
            f"{hook_python} can't be written without quotes, so hooks start `{spare}` from PATH"
            if word is None
            else ""
        )
        word, spare = spare, "python3" if windows else "python"
        return f"{word} {_HOOK} {event} || {spare} {_HOOK} {event} || echo {{}}", note
    return f"{word} {_HOOK} {event} || {spare} {_HOOK} {event} || echo {{}}", ""


def antigravity_servers(document: dict[str, Any], server_python: str, root: Path) -> dict[str, Any]:
    """Return a copy of an mcp_config.json with our server's entry for a plugin folder `root`."""
    changed = copy.deepcopy(document)
    script = str(root / "scripts" / "serve.py")
    changed.setdefault("mcpServers", {})[SERVER] = {"command": server_python, "args": ["-I", script]}
    return changed


def in_place(source: Source, place: Place) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write this machine's paths into a clone that lies in a host's plugins folder.

    Returns the files changed and notes. Raises InstallError for another kind of copy, OSError.
    """
    if source.kind != "clone":
        raise InstallError(f"{source.assets} is not a clone", hint="--in-place is for a clone in a plugins folder.")
    root = source.assets
    hooks, notes = antigravity_hooks(_json_asset(source, "hooks.json"), place.hook_python)
    files = {
        "hooks.json": _dump(hooks),
        "mcp_config.json": _dump(
            antigravity_servers(_json_asset(source, "mcp_config.json"), place.server_python, root)
        ),
        "hooks/claude-code.json": _dump(
            claude_hooks(_json_asset(source, "hooks/claude-code.json"), place.hook_python)
        ),
        ".claude-plugin/plugin.json": _dump(
            claude_manifest(_json_asset(source, ".claude-plugin/plugin.json"), place.server_python)
        ),
        POINTER: _pointer(place),
    }
    changed = tuple(name for name, content in files.items() if _read(root / name) != content)
    for name in changed:
        atomic.replace_bytes(str(root / name), files[name])
        (root / name).chmod(0o644)
    return changed, notes


def compile_byte_code(folder: Path, python: str) -> str:
    """Compile a bundle for the interpreter that will run it; returns what went wrong, '' for nothing."""
    command = [python, "-I", "-m", "compileall", "-q", str(folder / "context_anchor")]
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, env=env)
    except (OSError, subprocess.SubprocessError) as problem:
        return str(problem)
    return "" if done.returncode == 0 else done.stdout.decode("utf-8", "replace").strip()[-300:]


def _common(source: Source, place: Place) -> dict[str, bytes]:
    if source.kind == "bundle":
        raise InstallError(
            f"{source.assets} is an installed bundle and holds one host's files alone",
            hint="Run scripts/install.py of a clone, or `context-anchor install` of the package.",
        )
    files = {f"context_anchor/{name}": content for name, content in package_files(source.package).items()}
    for name in _SCRIPTS:
        path = source.assets / "scripts" / name
        if path.is_file():
            files[f"scripts/{name}"] = path.read_bytes()
    for name in ("LICENSE", "README.md"):
        if (source.assets / name).is_file():
            files[name] = _asset(source, name)
    files[REQUIREMENTS_FILE] = ("\n".join(source.requirements()) + "\n").encode("utf-8")
    files[POINTER] = _pointer(place)
    return files


def _pointer(place: Place) -> bytes:
    return f"{place.data}\n".encode("utf-8", "surrogateescape")


def _tree(source: Source, name: str) -> dict[str, bytes]:
    top = source.assets / name
    found = (path for path in sorted(top.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source.assets).as_posix(): path.read_bytes() for path in found}


def _asset(source: Source, name: str) -> bytes:
    content = _read(source.assets / name)
    if content is None:
        raise InstallError(f"{source.assets / name} is missing", hint="Get a full copy.")
    return content


def _json_asset(source: Source, name: str) -> dict[str, Any]:
    try:
        value = json.loads(_asset(source, name).decode("utf-8"))
    except ValueError as problem:
        raise InstallError(f"{source.assets / name} is not JSON: {problem}", hint="Get a full copy.") from problem
    if not isinstance(value, dict):
        raise InstallError(f"{source.assets / name} holds no JSON object", hint="Get a full copy.")
    return value


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _dump(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode("ascii")

"""The MCP server as the host is configured to start it: found, started, asked for its tools."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from context_anchor.errors import ContextAnchorError, HostConfigError
from context_anchor.install import host_settings, interpreter, render
from context_anchor.install.findings import Finding, from_error
from context_anchor.install.server_process import ServerProcess

TOOLS: Final = frozenset(
    ("pin_context", "unpin_context", "list_pinned_context", "get_pinned_context", "replace_session_anchors")
)
WAIT_S: Final = 60.0  # hosts wait about as long; the very first start may make the private environment


def check(host: str, root: Path, data: Path) -> tuple[Finding, ...]:
    """Return the findings on a plugin folder's server: its command, a handshake, its tools."""
    name = f"{host}.server"
    try:
        command = read_command(host, root)
    except HostConfigError as problem:
        return (from_error(name, problem),)
    found: list[Finding] = []
    program = command[0]
    if interpreter.is_shim(program):
        found.append(
            Finding(
                "warning",
                name,
                f"the server is started by a version manager's shim: {program}",
                "Install again; it writes the real interpreter in.",
                str(root),
            )
        )
    if Path(program).is_absolute() and not Path(program).exists():
        return (*found, Finding("error", name, f"{program} is gone", "Install again.", str(root)))
    missing = [word for word in command[1:] if word.endswith("serve.py") and not Path(word).is_file()]
    if missing:
        return (*found, Finding("error", name, f"{missing[0]} is not there", "Install again.", str(root)))
    # Shaking hands and listing tools touch no anchors, so the real data folder (and its environment) is used.
    env = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(root), "CONTEXT_ANCHOR_DATA_DIR": str(data)}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="context-anchor-doctor-") as cwd:
        try:
            with ServerProcess(command, env, cwd) as server:
                server.initialize(WAIT_S)
                listed = server.request("tools/list", {}, WAIT_S).get("tools")
        except ContextAnchorError as problem:
            cure = f"Install again. {problem.hint}".strip()
            return (*found, Finding("error", name, problem.message, cure, str(root), problem.code))
    tools = {tool.get("name") for tool in listed if isinstance(tool, dict)} if isinstance(listed, list) else set()
    if not tools >= TOOLS:
        lacking = ", ".join(sorted(TOOLS - tools))
        return (*found, Finding("error", name, f"the server lacks {lacking}", "Install again.", str(root)))
    what = f"the server answered with {len(tools)} tools after {time.perf_counter() - started:.1f} s"
    return (*found, Finding("ok", name, what, where=str(root)))


def read_command(host: str, root: Path) -> list[str]:
    """Return the command that a host starts the server by; raises HostConfigError where it is not given."""
    path = root / (".claude-plugin/plugin.json" if host == "claude-code" else "mcp_config.json")
    servers: Any = (host_settings.read_object(path) or {}).get("mcpServers")
    entry = servers.get(render.SERVER) if isinstance(servers, dict) else None
    if not isinstance(entry, dict):
        hint = (
            f"Run: python3 {root / 'scripts' / 'install.py'} --in-place"
            if (root / ".git").exists()
            else "Install again."
        )
        raise HostConfigError(f"{path} names no server `{render.SERVER}`, so there are no tools", hint=hint)
    words = [entry.get("command"), *(entry["args"] if isinstance(entry.get("args"), list) else [])]
    if not all(isinstance(word, str) and word for word in words):
        raise HostConfigError(f"{path}: the command of `{render.SERVER}` is not text", hint="Install again.")
    if host == "antigravity" and entry.get("disabled") is True:
        raise HostConfigError(
            f"{path}: `{render.SERVER}` is switched off", hint="Remove `disabled` from its entry."
        )
    return [word.replace("${CLAUDE_PLUGIN_ROOT}", str(root)) for word in words]

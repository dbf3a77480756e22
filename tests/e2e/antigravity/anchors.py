"""The plugin as Antigravity shows it: tool names, calls, and what a request's view holds of it."""

from __future__ import annotations

import json
import re
import tempfile
from typing import Any

from .hook_calls import HookCall
from .host import SERVER, Antigravity
from .model import Call, Request

TOOLS = (
    "pin_context",
    "unpin_context",
    "list_pinned_context",
    "get_pinned_context",
    "replace_session_anchors",
)
RESULT_BYTES = 4_096
"""A tool result above this is put into a file that the model would have to read."""

_RECEIPT = re.compile(r"^context-anchor receipt (r-[0-9a-f]{10}) \| session (\S+)$", re.MULTILINE)
_NUDGE = re.compile(r"context-anchor receipt r-[0-9a-f]{10}: the context holds (.+?) tokens")


def tool(name: str, server: str = SERVER, lazy: bool = False, **arguments: Any) -> Call:
    """A call of one of our tools: native by its long name, or through the lazy loader's tool."""
    if not lazy:
        return Call(f"mcp_{server}_{name}", arguments)
    told = {"ServerName": server, "ToolName": name, "Arguments": arguments}
    return Call("call_mcp_tool", {**told, "toolSummary": "pinning", "toolAction": "Pinning"})


def pin(title: str, content: str, priority: str = "normal", *, server: str = SERVER, **more: Any) -> Call:
    return tool("pin_context", server, title=title, content=content, priority=priority, **more)


def shell(command: str = "echo step") -> Call:
    return Call("run_command", {"CommandLine": command, "Cwd": tempfile.gettempdir(), "WaitMsBeforeAsync": 5000})


def receipts(request: Request) -> list[str]:
    """Receipts of the first-sight texts and restored bundles that a request's view holds, in order."""
    return [receipt for receipt, _ in _RECEIPT.findall(request.text)]


def nudges(request: Request) -> list[str]:
    """The sizes named by the reminders to pin that a request's view holds."""
    return _NUDGE.findall(request.text)


def blocks(request: Request, needle: str) -> int:
    """How often a line of a pinned anchor stands in the frame of a bundle, not elsewhere."""
    return sum(1 for line in request.text.splitlines() if line.startswith("| ") and needle in line)


def injecting(host: Antigravity, conversation: str, kind: str | None = None) -> list[HookCall]:
    """The hook calls of a conversation that injected something (of one kind)."""
    return [c for c in host.hooks.of(conversation) if any(kind in (None, k) for k, _ in c.steps)]


def stored(host: Antigravity, conversation: str) -> list[dict[str, Any]]:
    """What the store holds for a conversation: the file its pins end up in."""
    path = host.data / "anchors" / "session" / "antigravity" / f"s-{conversation}.json"
    return json.loads(path.read_text(encoding="utf-8"))["anchors"] if path.is_file() else []


def titles(host: Antigravity, conversation: str) -> set[str]:
    return {anchor["title"] for anchor in stored(host, conversation)}


def shared_titles(host: Antigravity) -> set[str]:
    """Titles of the anchors of every workspace in this home."""
    files = (host.data / "anchors" / "workspace").glob("w-*.json")
    return {a["title"] for path in files for a in json.loads(path.read_text(encoding="utf-8"))["anchors"]}


def marks(host: Antigravity, conversation: str) -> dict[str, Any]:
    """The hooks' own state of a session, which `doctor` and `list` report from."""
    path = host.data / "marks" / "antigravity" / f"s-{conversation}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def registered(host: Antigravity, conversation: str) -> dict[str, Any]:
    path = host.data / "registry" / "antigravity" / f"s-{conversation}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def results(request: Request) -> list[str]:
    """The texts of our tools' results in a request; an error's text too."""
    ours = ("call_mcp_tool", *(f"mcp_{SERVER}_{name}" for name in TOOLS), *(f"mcp_anchors_{n}" for n in TOOLS))
    return [json.dumps(response, ensure_ascii=False) for name, response in request.results if name in ours]


def assert_sound(host: Antigravity) -> None:
    """Every hook answered one document that the host takes, nothing failed, each result was shown whole."""
    assert host.hooks.faults == []
    assert host.model.problems == []
    assert host.model.unplayed == 0
    log = host.data / "log" / "hooks.jsonl"
    assert not log.exists(), log.read_text(encoding="utf-8")
    for request in host.model.requests:
        for text in results(request):
            assert "saved to: file://" not in text
            assert len(text.encode("utf-8")) < RESULT_BYTES

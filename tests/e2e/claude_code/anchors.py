"""The plugin as Claude Code shows it: tool names, calls, and what a request holds of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .client import Chat, ClaudeCode, Turn
from .model import Call, Reply, Request

PLUGIN = "context-anchor"
SERVER = "plugin:context-anchor:anchors"
PREFIX = "mcp__plugin_context-anchor_anchors__"
TOOLS = tuple(
    PREFIX + name
    for name in (
        "pin_context",
        "unpin_context",
        "list_pinned_context",
        "get_pinned_context",
        "replace_session_anchors",
    )
)
ALLOWED = ("--allowedTools", *TOOLS)

_BUNDLE = re.compile(
    r"context-anchor receipt (r-[0-9a-f]{10}) \| session .*?(?=\n</system-reminder>|\Z)", re.DOTALL
)
_NUDGE = re.compile(r"context-anchor receipt r-[0-9a-f]{10}: the context holds .*")


def pin(title: str, content: str, priority: str = "normal", **more: Any) -> Call:
    return Call(PREFIX + "pin_context", {"title": title, "content": content, "priority": priority, **more})


def receipts(request: Request) -> list[str]:
    """Receipts of what a request holds of first-sight texts and restored bundles, in order."""
    return _BUNDLE.findall(request.text)


def restored(request: Request) -> str:
    """The one text in a request that holds restored notes; fails on none or several."""
    found = [match[0] for text in request.texts() for match in _BUNDLE.finditer(text) if "\n| " in match[0]]
    assert len(found) == 1, found
    return found[0]


def nudges(request: Request) -> list[str]:
    """The reminders to pin that a request holds, each one line."""
    return _NUDGE.findall(request.text)


def blocks(request: Request, needle: str) -> int:
    """How often a line of a pinned anchor stands in the frame of a bundle, not elsewhere."""
    return sum(1 for line in request.text.splitlines() if line.startswith("| ") and needle in line)


def handed_over(host: ClaudeCode, session_id: str) -> list[str]:
    """The texts that hooks added to a conversation, as its transcript records them."""
    return [
        text
        for line in host.lines(session_id)
        if line.get("attachment", {}).get("type") == "hook_additional_context"
        for text in line["attachment"]["content"]
    ]


def _failed_calls(request: Request) -> Iterator[str]:
    for message in request.body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result" and block.get("is_error"):
                yield json.dumps(block["content"])


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def session_anchors(host: ClaudeCode, session_id: str) -> list[dict[str, Any]]:
    """What the store holds for a session: the file an agent's pins end up in."""
    path = host.data / "anchors" / "session" / "claude-code" / f"s-{session_id}.json"
    return json.loads(path.read_text(encoding="utf-8"))["anchors"] if path.is_file() else []


def marks(host: ClaudeCode, session_id: str) -> dict[str, Any]:
    """The hooks' own state of a session, which `doctor` and `list` report from."""
    path = host.data / "marks" / "claude-code" / f"s-{session_id}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def titles(host: ClaudeCode, session_id: str) -> set[str]:
    return {anchor["title"] for anchor in session_anchors(host, session_id)}


def hook_failures(host: ClaudeCode) -> str:
    """The hooks' own failure log: empty while all is well."""
    path: Path = host.data / "log" / "hooks.jsonl"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def assert_sound(host: ClaudeCode, *turns: Turn) -> None:
    """No load error, no failed hook, no lost server, in any of the turns."""
    for turn in turns:
        for init in turn.of("system", "init"):
            assert not init.get("plugin_errors"), init["plugin_errors"]
            status = {server["name"]: server["status"] for server in init["mcp_servers"]}
            assert status[SERVER] == "connected", status
        for response in turn.of("system", "hook_response"):
            assert response["outcome"] == "success", response
            assert not response["stderr"], response
    assert hook_failures(host) == ""


def pinning_chat(
    host: ClaudeCode, *calls: Call, arguments: tuple[str, ...] = (), tokens: int = 30_000
) -> tuple[Chat, Turn]:
    """A conversation whose first turn made these calls, with enough history to compact."""
    chat = host.chat(*ALLOWED, *arguments)
    host.model.plan(Reply("I pin.", calls, tokens=tokens), Reply("Pinned.", tokens=tokens + 500))
    turn = chat.say("Pin what matters.")
    refused = list(_failed_calls(host.model.main[-1]))
    assert not refused, refused
    host.model.plan(Reply("Read.", tokens=tokens + 1000))
    chat.say("Go on.")
    return chat, turn

"""A recording plugin made at run time: what the client gives to hooks and to an MCP server.

Each hook call writes one line: the event, its payload, process ids, the client's variables and an
outline of the transcript as it lay on disk at that moment. What a hook answers is read from
``answers.json``, keyed by the event or by ``Event:source``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .client import read_lines

NAME = "probe"
TOOL = "mcp__plugin_probe_notes__note"
EVENTS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch",
    "PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "Stop", "SessionEnd",
)  # fmt: skip

_HOOK = r"""
import json, os, sys, time

folder, event = os.environ["PROBE_FOLDER"], sys.argv[1]
payload = json.loads(sys.stdin.buffer.read())


def outline(path):
    if not os.path.isfile(path):
        return None
    rows = []
    with open(path, "rb") as handle:
        for raw in handle:
            if not raw.endswith(b"\n"):
                rows.append("torn")
                continue
            line = json.loads(raw)
            kind = line.get("attachment", {}).get("type") or line.get("subtype") or ""
            if kind.startswith("hook"):
                kind += ":" + str(line["attachment"].get("hookName"))
            if line.get("isCompactSummary"):
                kind = "summary"
            rows.append(line.get("type", "?") + ("/" + kind if kind else ""))
    return rows


def parent_of(pid):
    try:
        with open("/proc/%d/stat" % pid) as handle:
            return int(handle.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


row = {
    "event": event, "payload": payload, "at": time.time(), "pid": os.getpid(),
    "parents": [os.getppid(), parent_of(os.getppid())], "arguments": sys.argv[1:], "cwd": os.getcwd(),
    "env": {k: v for k, v in os.environ.items() if k.startswith("CLAUDE")},
    "disk": outline(payload.get("transcript_path", "")),
}
line = json.dumps(row) + "\n"
handle = os.open(os.path.join(folder, "hooks.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(handle, line.encode())
try:
    with open(os.path.join(folder, "answers.json")) as source:
        answers = json.load(source)
except FileNotFoundError:
    answers = {}
detail = payload.get("source") or payload.get("trigger") or payload.get("tool_name")
answer = answers.get("%s:%s" % (event, detail), answers.get(event))
if isinstance(answer, dict):
    body = {"hookEventName": event, "additionalContext": answer["context"]}
    sys.stdout.write(json.dumps({"hookSpecificOutput": body}))
elif answer:
    sys.stdout.write(answer)
"""

_SERVER = r"""
import json, os, sys

folder = os.environ["PROBE_FOLDER"]
log = open(os.path.join(folder, "server.jsonl"), "a", buffering=1)
log.write(json.dumps({"pid": os.getpid(), "parent": os.getppid(), "cwd": os.getcwd(), "env": {
    k: v for k, v in os.environ.items() if k.startswith("CLAUDE")}}) + "\n")
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
for raw in sys.stdin:
    message = json.loads(raw)
    log.write(json.dumps(message) + "\n")
    if "id" not in message or "method" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    method = message["method"]
    if method == "initialize":
        answer["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                            "serverInfo": {"name": "notes", "version": "1"}, "instructions": "PROBE-INSTRUCTIONS"}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "note", "description": "PROBE-TOOL", "inputSchema": schema}]}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "PROBE-NOTED"}]}
    elif method == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "unknown method"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
"""


class Probe:
    """The plugin's folder and what it has recorded. Pass ``environment`` to the client."""

    def __init__(self, folder: Path, *, always_load: bool = True, events: tuple[str, ...] = EVENTS) -> None:
        self.plugin, self.records = folder / "probe plugin", folder / "records"
        self.environment = {"PROBE_FOLDER": str(self.records)}
        self.records.mkdir(parents=True)
        hooks = {e: [{"hooks": [self._handler(e)]}] for e in events}
        server = {"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"], "alwaysLoad": always_load}
        self._write("hook.py", _HOOK)
        self._write("server.py", _SERVER)
        self._write("hooks/probe.json", json.dumps({"hooks": hooks}))
        manifest = {
            "name": NAME,
            "version": "1.0.0",
            "description": "Records what a client gives to its plugins.",
            "hooks": "./hooks/probe.json",
            "mcpServers": {"notes": server},
        }
        self._write(".claude-plugin/plugin.json", json.dumps(manifest))

    @staticmethod
    def _handler(event: str) -> dict[str, Any]:
        arguments = ["${CLAUDE_PLUGIN_ROOT}/hook.py", event]
        return {"type": "command", "command": "python3", "args": arguments, "timeout": 20}

    def _write(self, name: str, text: str) -> None:
        path = self.plugin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def answer(self, **by_event: str | dict[str, str]) -> None:
        """What hooks say from now on; ``SessionStart__compact`` stands for ``SessionStart:compact``."""
        named = {event.replace("__", ":"): answer for event, answer in by_event.items()}
        (self.records / "answers.json").write_text(json.dumps(named), encoding="utf-8")

    def calls(self, event: str | None = None) -> list[dict[str, Any]]:
        """Hook calls so far, oldest first."""
        rows = read_lines(self.records / "hooks.jsonl")
        return [row for row in rows if event is None or row["event"] == event]

    def server_lines(self) -> list[dict[str, Any]]:
        """The server's start line(s), each followed by the messages it got."""
        return list(read_lines(self.records / "server.jsonl"))

"""Time the MCP server over stdio against an echo tool on the same library in the same run.

    python benchmarks/server.py [--calls 300] [--starts 5] [--check]

Prints the p50 of `list_pinned_context` with 200 anchors, of the echo tool, and their ratio (target: under 5); the
time from spawn to the answered `initialize`, and the share of it that importing the library takes. `--check` exits
with 1 above the target.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ECHO = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])

async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])

server = Server("echo", version="1", on_list_tools=list_tools, on_call_tool=call_tool)

async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""
SESSION = "bench-session"


class Peer:
    """A server process spoken to in raw JSON lines, so that no client library is timed."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, env=env
        )
        self.number = 0
        self.request(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
        )
        self.ready_s = time.perf_counter() - self.started
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        assert self.process.stdout
        while True:
            answer: dict[str, Any] = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return answer

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = answer["result"]
        assert not result.get("isError"), result
        return result

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def seed(data: str, project: str) -> None:
    sys.path.insert(0, str(ROOT))
    from context_anchor.anchors.anchor import Draft
    from context_anchor.anchors.store import AnchorStore, SessionScope
    from context_anchor.wire import registry, workspace

    record = registry.new("claude-code", SESSION, time.time())
    record["workspace_id"], record["workspace_root"] = workspace.identify(project)
    registry.save(data, record)
    content = "A conclusion of some eighty characters, with a pointer to src/a.py. " * 3
    drafts = [Draft.checked(title=f"Note {n}", content=content) for n in range(200)]
    AnchorStore(data).replace(SessionScope("claude-code", SESSION), drafts, actor="agent")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, project = str(Path(folder, "data")), str(Path(folder, "project"))
        Path(project).mkdir()
        seed(data, project)
        env = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "CONTEXT_ANCHOR_DATA_DIR": data,
               "CLAUDE_PROJECT_DIR": project, "PYTHONPATH": str(ROOT)}
        ours = [sys.executable, "-m", "context_anchor.server.app"]
        echo = Peer([sys.executable, "-c", ECHO], env)
        peer = Peer(ours, env)
        text = peer.call("list_pinned_context", {"session_id": SESSION})["content"][0]["text"]
        times: dict[str, list[float]] = {"echo": [], "list": []}
        for _ in range(options.calls):
            for name, target, tool, arguments in (
                ("echo", echo, "echo", {"text": text}),
                ("list", peer, "list_pinned_context", {"session_id": SESSION}),
            ):
                before = time.perf_counter()
                target.call(tool, arguments)
                times[name].append((time.perf_counter() - before) * 1000)
        echo.close()
        peer.close()
        p50 = {name: statistics.median(row) for name, row in times.items()}
        ratio = p50["list"] / p50["echo"]
        print(
            f"list_pinned_context, 200 anchors: p50 {p50['list']:.2f} ms; echo of the same text"
            f" {p50['echo']:.2f} ms; ratio {ratio:.2f} (target under 5)"
        )
        starts, imports = [], []
        for _ in range(options.starts):
            peer = Peer(ours, env)
            starts.append(peer.ready_s * 1000)
            peer.close()
            before = time.perf_counter()
            subprocess.run([sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio"], check=True)
            imports.append((time.perf_counter() - before) * 1000)
        start, library = statistics.median(starts), statistics.median(imports)
        print(f"spawn to initialize: {start:.0f} ms, of which importing the library {library / start:.0%}")
    return 1 if options.check and ratio >= 5 else 0


if __name__ == "__main__":
    sys.exit(main())

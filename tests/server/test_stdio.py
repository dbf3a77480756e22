"""The server as a process over stdio, through the launcher: what only a real process shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from context_anchor.anchors.scope import SessionScope
from context_anchor.anchors.store import AnchorStore

ROOT = Path(__file__).resolve().parents[2]
SERVE = [sys.executable, str(ROOT / "scripts" / "serve.py")]
META = {"antigravity.google/conversation_id": "conv-1"}
Register = Callable[..., None]


def environment(data: Path, **more: str) -> dict[str, str]:
    """Return what a host started from a desktop gives a server: little."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    return {
        **kept,
        "HOME": str(data.parent),
        "USERPROFILE": str(data.parent),
        "CONTEXT_ANCHOR_DATA_DIR": str(data),
        **more,
    }


class Peer:
    """A server process spoken to in lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.number = 0

    def say(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        value: dict[str, Any] = json.loads(line)
        return value

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.say(json.dumps(message).encode())
        answer = self.hear()
        assert answer["id"] == self.number
        return answer

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("tools/call", name=name, arguments=arguments, _meta=META)["result"]
        return result

    def end(self) -> tuple[int, bytes, bytes]:
        """Close the server's input; returns exit code and the rest of both outputs."""
        assert self.process.stdin
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextmanager
def peer(cwd: Path, env: dict[str, str], command: list[str] = SERVE, *, greet: bool = True) -> Iterator[Peer]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=env
    )
    # A server that does not answer fails the test instead of holding it.
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        one = Peer(process)
        if greet:
            client = {"name": "test", "version": "1"}
            said = one.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
            assert said["result"]["serverInfo"]["name"] == "anchors"
        yield one
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_pins_and_reads_back_over_stdio(
    data: Path, project: Path, register: Register, mode: str
) -> None:
    register("antigravity", "conv-1", project)
    server = StdioServerParameters(command=SERVE[0], args=SERVE[1:], env=environment(data), cwd=str(project))

    async def main() -> None:
        async with Client(server, mode=mode) as client:
            assert len((await client.list_tools()).tools) == 5
            arguments = {"title": "结论 😀", "content": "zeile\n漢字", "priority": "critical"}
            pinned = await client.call_tool("pin_context", arguments, meta=dict(META))
            assert not pinned.is_error, pinned
            got = await client.call_tool("get_pinned_context", {"title": "结论 😀"}, meta=dict(META))
            assert got.structured_content["anchors"][0]["content"] == "zeile\n漢字"  # type: ignore[index]

    anyio.run(main)
    (anchor,) = AnchorStore(data).read(SessionScope("antigravity", "conv-1")).anchors
    assert (anchor.title, anchor.priority) == ("结论 😀", "critical")


def test_no_frame_stays_without_an_answer_and_the_end_of_input_ends_the_process(data: Path, project: Path) -> None:
    with peer(project, environment(data)) as one:
        for line, number, code in (
            (b"{broken", None, -32700),
            (b"[" * 100_000, None, -32700),
            (b'"text"', None, -32600),
            (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600),
            (b'{"jsonrpc":"2.0","id":8,"method":7}', 8, -32600),
            (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None, -32600),
            (b'{"jsonrpc":"2.0","id":12,"method":"\\ud800"}', 12, -32600),
            (b'{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"\\udfff"}}', 13, -32600),
            (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[1]}', 9, -32600),
            (b'{"jsonrpc":"2.0","id":10,"method":"no/such"}', 10, -32601),
        ):
            one.say(line)
            answer = one.hear()
            assert (answer["id"], answer["error"]["code"]) == (number, code), line[:60]
        arguments = rb'{"title":"T","content":"half \ud83d"}'
        one.say(
            rb'{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"pin_context","arguments":%s}}'
            % arguments
        )
        result = one.hear()["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("[invalid_anchor] content holds half of a surrogate pair")
        assert one.ask("ping")["result"] == {}
        assert one.end()[:2] == (0, b"")
    assert not list(data.rglob("*.json"))


def test_initialize_is_answered_where_the_data_folder_cannot_be_used(project: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_bytes(b"not a folder")
    with peer(project, environment(in_the_way / "data")) as one:
        assert len(one.ask("tools/list")["result"]["tools"]) == 5
        result = one.call("pin_context", title="T", content="c")
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("[store_unavailable] ")
    assert in_the_way.read_bytes() == b"not a folder"


def test_what_handlers_print_cannot_break_the_stream(data: Path, project: Path) -> None:
    noisy = """
import os, subprocess, sys
from context_anchor.server import anchor_tools, app
real = anchor_tools.FUNCTIONS["list_pinned_context"]
def loud(*args, **arguments):
    print("printed"); sys.stdout.flush(); os.write(1, b"written"); subprocess.run(["echo", "child"])
    return real(*args, **arguments)
anchor_tools.FUNCTIONS["list_pinned_context"] = loud
sys.exit(app.main())
"""
    env = environment(data, PYTHONPATH=str(ROOT))
    with peer(project, env, [sys.executable, "-c", noisy]) as one:
        assert one.call("list_pinned_context")["structuredContent"]["count"] == 0
        code, out, err = one.end()
    assert (code, out) == (0, b"")
    for words in (b"printed", b"written", b"child"):
        assert words in err


def test_two_servers_at_once_lose_nothing(data: Path, project: Path, register: Register) -> None:
    register("antigravity", "conv-1", project)
    each = 6

    def pin(one: Peer, name: str) -> None:
        for number in range(each):
            result = one.call("pin_context", title=f"{name} {number}", content="c")
            assert "isError" not in result or not result["isError"], result

    with peer(project, environment(data)) as red, peer(project, environment(data)) as blue:
        threads = [threading.Thread(target=pin, args=pair) for pair in ((red, "red"), (blue, "blue"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert red.call("list_pinned_context")["structuredContent"]["count"] == 2 * each
        assert blue.end()[0] == 0
    anchors = AnchorStore(data).read(SessionScope("antigravity", "conv-1")).anchors
    assert {anchor.title for anchor in anchors} == {f"{n} {i}" for n in ("red", "blue") for i in range(each)}

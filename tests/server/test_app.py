"""The server as a protocol peer: eras, listing, results, errors, threads. In memory, with the official client."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from context_anchor import __version__
from context_anchor.errors import StoreUnavailableError
from context_anchor.server import anchor_tools, app, tool_listing
from context_anchor.server.caller import Desk
from context_anchor.server.pages import RESULT_LIMIT, Reply

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
META = {"antigravity.google/conversation_id": "conv-1"}


def with_client(desk: Desk, run: Callable[[Client], Awaitable[None]], mode: str = "auto") -> None:
    async def main() -> None:
        async with Client(app.create_server(lambda: desk), mode=mode) as client:
            await run(client)

    anyio.run(main)


async def call(client: Client, name: str, **arguments: Any) -> types.CallToolResult:
    result = await client.call_tool(name, arguments, meta=dict(META))
    assert isinstance(result, types.CallToolResult)
    return result


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


class Wire:
    """A server spoken to in plain JSON, as a host's own client does."""

    def __init__(self, send: Any, receive: Any) -> None:
        self._send, self._receive = send, receive

    async def say(self, message: Mapping[str, Any]) -> None:
        await self._send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False)))

    async def ask(self, method: str, params: Mapping[str, Any] | None = None, number: int = 1) -> dict[str, Any]:
        await self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        answer = await self._receive()
        value: dict[str, Any] = json.loads(answer.message.model_dump_json(by_alias=True, exclude_unset=True))
        return value


@asynccontextmanager
async def wire(desk: Desk) -> Any:
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](9)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](9)
    server = app.create_server(lambda: desk)
    async with anyio.create_task_group() as group:
        group.start_soon(server.run, from_client, to_client, server.create_initialization_options())
        yield Wire(to_server.send, from_server.receive)
        await to_server.aclose()  # the end of input ends the server, or this never returns
    await from_server.aclose()


def hello(version: str) -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def modern(**params: Any) -> dict[str, Any]:
    envelope = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {**params, "_meta": {**envelope, **META}}


@pytest.mark.parametrize(
    ("asked", "answered"),
    [*((v, v) for v in HANDSHAKES), ("2024-10-07", HANDSHAKES[-1]), ("2099-01-01", HANDSHAKES[-1])],
)
def test_every_handshake_era_negotiates_lists_and_calls(
    desk: Desk, session: object, asked: str, answered: str
) -> None:
    async def main() -> None:
        async with wire(desk) as peer:
            said = (await peer.ask("initialize", hello(asked)))["result"]
            assert said["protocolVersion"] == answered
            assert said["serverInfo"] == {"name": "anchors", "version": __version__}
            assert said["instructions"] == tool_listing.INSTRUCTIONS
            assert list(said["capabilities"]) == ["tools"]
            await peer.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            listed = (await peer.ask("tools/list"))["result"]["tools"]
            assert [tool["name"] for tool in listed] == list(tool_listing.BY_NAME)
            arguments = {"title": "T", "content": "c"}
            params = {"name": "pin_context", "arguments": arguments, "_meta": META}
            result = (await peer.ask("tools/call", params))["result"]
            assert result["structuredContent"]["created"] is True
            assert (await peer.ask("ping"))["result"] == {}
            assert (await peer.ask("no/such"))["error"]["code"] == -32601

    anyio.run(main)


def test_the_stateless_era_is_discovered_lists_and_calls(desk: Desk, session: object) -> None:
    async def main() -> None:
        async with wire(desk) as peer:
            said = (await peer.ask("server/discover", modern()))["result"]
            assert MODERN in said["supportedVersions"]
            assert said["instructions"] == tool_listing.INSTRUCTIONS
            listed = (await peer.ask("tools/list", modern()))["result"]["tools"]
            assert len(listed) == 5
            params = modern(name="pin_context", arguments={"title": "T", "content": "c"})
            result = (await peer.ask("tools/call", params))["result"]
            assert result["structuredContent"]["created"] is True
            assert (await peer.ask("no/such", modern()))["error"]["code"] == -32601

    anyio.run(main)


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
def test_the_fullest_result_stays_under_the_limit_on_the_wire(desk: Desk, session: object, era: str) -> None:
    for char in ("漢", '"', "😀", "x"):
        title = char * 200
        anchor_tools.pin_context(
            desk, _call(), title=title, content=char * 4_000, refs=["r" * 1_000] * 3, tags=["t"]
        )

    async def main() -> None:
        sizes = []
        async with wire(desk) as peer:
            if era != MODERN:
                await peer.ask("initialize", hello(era))
            for name, arguments in (
                ("list_pinned_context", {}),
                ("get_pinned_context", {}),
                ("get_pinned_context", {"title": "x" * 200}),
                ("unpin_context", {"title": "gone" * 50}),
            ):
                params = modern(name=name, arguments=arguments)
                if era != MODERN:
                    params["_meta"] = META
                result = (await peer.ask("tools/call", params))["result"]
                sizes.append(len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()))
        assert max(sizes) <= RESULT_LIMIT
        assert max(sizes) > RESULT_LIMIT - 800  # the page is used, not wasted

    anyio.run(main)


def _call() -> Any:
    from context_anchor.server.caller import read_meta

    return read_meta(META)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_sees_the_listing_as_written(desk: Desk, mode: str) -> None:
    async def run(client: Client) -> None:
        listed = await client.list_tools()
        got = [json.loads(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in listed.tools]
        assert got == tool_listing.as_json()

    with_client(desk, run, mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_all_five_tools_work_through_the_official_client(desk: Desk, session: object, mode: str) -> None:
    async def run(client: Client) -> None:
        pinned = await call(client, "pin_context", title="T", content="c", priority="high")
        assert not pinned.is_error
        listed = await call(client, "list_pinned_context")
        assert listed.structured_content["anchors"][0]["title"] == "T"  # type: ignore[index]
        got = await call(client, "get_pinned_context", title="T")
        assert got.structured_content["anchors"][0]["content"] == "c"  # type: ignore[index]
        replaced = await call(client, "replace_session_anchors", anchors=[{"title": "U", "content": "d"}])
        assert replaced.structured_content["removed"] == 1  # type: ignore[index]
        unpinned = await call(client, "unpin_context", clear_all=True)
        assert unpinned.structured_content["count"] == 1  # type: ignore[index]

    with_client(desk, run, mode)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("pin_context", {"title": "T", "content": "x" * 4_001}, "content_too_long"),
        ("pin_context", {"title": "T", "content": "x" * 10_000_000}, "content_too_long"),
        ("pin_context", {"title": "T" * 10_000_000, "content": "x"}, "invalid_anchor"),
        ("pin_context", {"title": "T", "content": "a\0b"}, "invalid_anchor"),
        ("pin_context", {"title": "T", "content": 3}, "invalid_anchor"),
        ("pin_context", {"title": "T", "content": "c", "priority": "top"}, "invalid_anchor"),
        ("pin_context", {"title": "T"}, "usage"),
        ("pin_context", {"title": "T", "content": "c", "extra": {"deep": [1]}}, "usage"),
        ("pin_context", {"title": "T", "content": "c", "session_id": "../../x"}, "session_unknown"),
        ("unpin_context", {}, "usage"),
        ("unpin_context", {"title": "no such"}, "anchor_not_found"),
        ("list_pinned_context", {"cursor": "zzz"}, "usage"),
        ("list_pinned_context", {"scope": "world"}, "usage"),
        ("get_pinned_context", {"anchor_id": "a-0000000000"}, "anchor_not_found"),
        ("replace_session_anchors", {"anchors": [], "expected_revision": 99}, "stale_revision"),
        ("replace_session_anchors", {"anchors": "none"}, "usage"),
    ],
)
def test_bad_input_is_an_error_result_with_its_code_and_nothing_is_written(
    desk: Desk, session: object, data: Path, tool: str, arguments: dict[str, Any], code: str
) -> None:
    async def run(client: Client) -> None:
        result = await call(client, tool, **arguments)
        assert result.is_error
        assert text_of(result).startswith(f"[{code}] ")
        assert result.structured_content["error"]["code"] == code  # type: ignore[index]
        assert len(text_of(result).encode()) < RESULT_LIMIT

    with_client(desk, run)
    assert not list(data.rglob("anchors/**/*.json"))


def test_an_unknown_tool_is_a_protocol_error_that_lists_the_tools(desk: Desk) -> None:
    async def main() -> None:
        async with wire(desk) as peer:
            await peer.ask("initialize", hello("2025-11-25"))
            error = (await peer.ask("tools/call", {"name": "pin", "arguments": {}}))["error"]
            assert error["code"] == -32602
            assert "pin_context" in error["message"]

    anyio.run(main)


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        ("{broken", None, -32700),
        ('"text"', None, -32600),
        ("[" * 100_000, None, -32700),
        ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600),
        ('{"jsonrpc":"2.0","id":8,"method":7}', 8, -32600),
        ('{"jsonrpc":"2.0","id":true,"method":7}', None, -32600),
        ('{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None, -32600),
        ('{"jsonrpc":"2.0","id":5,"method":"\\ud800"}', 5, -32600),
        ('{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"\\udfff"}}', 6, -32600),
        ('{"jsonrpc":"2.0","id":7,"method":9,"params":{"arguments":{"a":"\\udfff"}}}', 7, -32600),
    ],
)
def test_a_frame_that_is_no_message_is_answered_with_an_error(line: str, number: int | None, code: int) -> None:
    with pytest.raises(ValidationError) as caught:
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)

    async def main() -> None:
        to_us, incoming = anyio.create_memory_object_stream[Any](1)
        outgoing, answers = anyio.create_memory_object_stream[SessionMessage](1)
        async with app._Frames(incoming, outgoing) as frames, outgoing, answers:
            await to_us.send(caught.value)
            await to_us.aclose()
            assert [frame async for frame in frames] == []
            answer = (await answers.receive()).message
            assert isinstance(answer, types.JSONRPCError)
            assert (answer.id, answer.error.code) == (number, code)
            answer.model_dump_json()

    anyio.run(main)


def test_half_a_surrogate_pair_in_an_argument_is_let_through_to_be_refused_by_its_check() -> None:
    line = r'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":"\ud800"}}}'
    with pytest.raises(ValidationError) as caught:
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    found = app._judge(caught.value)
    assert isinstance(found, SessionMessage)
    assert isinstance(found.message, types.JSONRPCRequest)
    assert found.message.params == {"name": "x", "arguments": {"a": "\ud800"}}


def test_nothing_is_opened_before_the_first_call_and_then_once(desk: Desk, session: object) -> None:
    opened: list[int] = []

    def open_desk() -> Desk:
        opened.append(1)
        return desk

    async def main() -> None:
        async with Client(app.create_server(open_desk)) as client:
            await client.list_tools()
            assert opened == []
            for _ in range(2):
                await call(client, "list_pinned_context")
            assert opened == [1]

    anyio.run(main)


def test_a_data_folder_that_cannot_be_opened_is_an_error_result_and_tried_again(
    desk: Desk, session: object
) -> None:
    answers: list[Any] = [PermissionError(13, "Permission denied", "/data"), StoreUnavailableError("full"), desk]

    def open_desk() -> Desk:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Desk)
        return answer

    async def main() -> None:
        async with Client(app.create_server(open_desk)) as client:
            for words in ("Permission denied", "full"):
                result = await call(client, "list_pinned_context")
                assert result.is_error
                assert text_of(result).startswith("[store_unavailable] ")
                assert words in text_of(result)
            assert not (await call(client, "list_pinned_context")).is_error

    anyio.run(main)


def test_a_fault_of_ours_tells_the_model_its_code_and_the_log_its_cause(
    desk: Desk, session: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object, **arguments: object) -> Reply:
        raise ZeroDivisionError("hidden detail")

    monkeypatch.setitem(anchor_tools.FUNCTIONS, "list_pinned_context", broken)  # type: ignore[arg-type]

    async def run(client: Client) -> None:
        result = await call(client, "list_pinned_context")
        assert result.is_error
        assert text_of(result).startswith("[internal] ")
        assert "hidden detail" not in text_of(result)

    with caplog.at_level(logging.ERROR, "context_anchor.server"):
        with_client(desk, run)
    assert "hidden detail" in caplog.text


def test_a_slow_write_blocks_other_writes_but_no_reading(
    desk: Desk, session: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun = threading.Event(), threading.Event()
    at_once = most_at_once = 0
    lock = threading.Lock()
    real = anchor_tools.pin_context

    def slow(*args: Any, **arguments: Any) -> Reply:
        nonlocal at_once, most_at_once
        with lock:
            at_once += 1
            most_at_once = max(most_at_once, at_once)
        begun.set()
        assert go_on.wait(20)
        with lock:
            at_once -= 1
        return real(*args, **arguments)

    monkeypatch.setitem(anchor_tools.FUNCTIONS, "pin_context", slow)  # type: ignore[arg-type]

    async def run(client: Client) -> None:
        async with anyio.create_task_group() as group:
            for title in ("A", "B", "C"):
                group.start_soon(lambda t=title: call(client, "pin_context", title=t, content="c"))
            assert await anyio.to_thread.run_sync(begun.wait, 20)
            with anyio.fail_after(20):
                listed = await call(client, "list_pinned_context")
            assert listed.structured_content["count"] == 0  # type: ignore[index]
            go_on.set()
        listed = await call(client, "list_pinned_context")
        assert listed.structured_content["count"] == 3  # type: ignore[index]

    with_client(desk, run)
    assert most_at_once == 1

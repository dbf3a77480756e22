"""The MCP server over stdio: the one file that imports mcp.

`initialize` and `server/discover` are answered before anything of the store is imported or opened; the first tool
call opens it. Store work runs in worker threads, writers one at a time. The library checks no arguments, so
`arguments.check` does. Frames that the library drops without an answer are answered here (`_Frames`).
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from context_anchor import __version__
from context_anchor.errors import ContextAnchorError, StoreUnavailableError
from context_anchor.server import arguments, pages, tool_listing

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from context_anchor.server.caller import Desk

_READERS: Final = 4
_log = logging.getLogger("context_anchor.server")


class Counter:
    """Hands tool calls to their functions: opens the desk at the first call, turns errors into replies."""

    def __init__(self, open_desk: Callable[[], Desk]) -> None:
        self._open_desk = open_desk
        self._desk: Desk | None = None
        self._opening = threading.Lock()

    def serve(
        self, tool: tool_listing.Tool, given: Mapping[str, Any] | None, meta: Mapping[str, Any] | None
    ) -> pages.Reply:
        """Return the reply to one call; whatever goes wrong is a reply too. Blocks; run it in a thread."""
        try:
            from context_anchor.server import anchor_tools, caller

            checked = arguments.check(tool.input_schema, given)
            return anchor_tools.FUNCTIONS[tool.name](self._opened(), caller.read_meta(meta), **checked)
        except ContextAnchorError as error:
            return pages.error_reply(error)
        except OSError as error:
            problem = StoreUnavailableError(
                f"The data folder can't be used: {error}",
                hint="Nothing was changed. `context-anchor doctor` helps.",
            )
            return pages.error_reply(problem)
        except Exception:  # noqa: BLE001  # the model must get an answer, and the log the cause
            _log.error("%s failed\n%s", tool.name, traceback.format_exc())
            return pages.error_reply(_InternalError("The call failed inside context-anchor", hint=_REPORT))

    def _opened(self) -> Desk:
        with self._opening:
            if self._desk is None:
                self._desk = self._open_desk()
            return self._desk


class _InternalError(ContextAnchorError):
    """A fault of ours; the cause stands in the log alone."""

    code = "internal"


_REPORT: Final = "The cause stands in the server's log (standard error); `context-anchor doctor` may know the cure."


def create_server(open_desk: Callable[[], Desk] | None = None) -> Server[dict[str, Any]]:
    """Return the server `anchors`, ready to be run over any pair of streams.

    Args:
        open_desk: Opens what the tools work with, at the first call; the process's own by default.
    """
    counter = Counter(open_desk or partial(_open_own_desk, time.time()))
    writers, readers = anyio.CapacityLimiter(1), anyio.CapacityLimiter(_READERS)
    listing = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tool_listing.as_json()])

    async def list_tools(
        ctx: ServerRequestContext[dict[str, Any]], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listing

    async def call_tool(
        ctx: ServerRequestContext[dict[str, Any]], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = tool_listing.BY_NAME.get(params.name)
        if tool is None:
            known = ", ".join(tool_listing.BY_NAME)
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool {arguments.shown(params.name)}. Tools: {known}.")
        limiter = readers if tool.annotations["readOnlyHint"] else writers
        meta = dict(params.meta) if params.meta else None
        reply = await anyio.to_thread.run_sync(counter.serve, tool, params.arguments, meta, limiter=limiter)
        return types.CallToolResult(
            content=[types.TextContent(text=reply.text)],
            structured_content=dict(reply.structured),
            is_error=reply.is_error,
        )

    return Server(
        tool_listing.SERVER_NAME,
        version=__version__,
        instructions=tool_listing.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _open_own_desk(started_at: float) -> Desk:
    from context_anchor.server import caller

    return caller.open_desk(started_at)


class _Frames:
    """The stream of incoming messages, in which no frame stays without an answer.

    The library drops a line that it can't parse, and the sender waits for ever. Here a request with half a
    surrogate pair (JSON allows the escape, the library's parser does not) is let through, to be refused by the
    check of its arguments, and anything else gets a JSON-RPC error.
    """

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def last_context(self) -> Any:
        """The context in which the last message was received."""
        return getattr(self._incoming, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        while True:
            item: SessionMessage | Exception = await self._incoming.receive()
            if not isinstance(item, ValidationError):
                return item
            verdict = _judge(item)
            if isinstance(verdict, SessionMessage):
                return verdict
            await self._outgoing.send(SessionMessage(verdict))

    async def aclose(self) -> None:
        """Close the stream."""
        await self._incoming.aclose()

    def __aiter__(self) -> _Frames:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Frames:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _judge(problem: ValidationError) -> SessionMessage | types.JSONRPCError:
    """Return the message that a refused line holds after all, or the error to answer with."""
    found = problem.errors(include_url=False)
    if found[0]["type"] != "json_invalid":
        objects = (one["input"] for one in found if isinstance(one["input"], dict))
        return _refusal(next((value["id"] for value in objects if "id" in value), None))
    try:
        value = json.loads(found[0]["input"])
    except (ValueError, RecursionError):
        return _refusal(None, types.PARSE_ERROR, "The line is not JSON")
    given_id = value.get("id") if isinstance(value, dict) else None
    if not _only_arguments_are_broken(value):
        return _refusal(given_id, message="The message holds half of a surrogate pair")
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValidationError:
        return _refusal(given_id)


def _only_arguments_are_broken(value: Any) -> bool:
    """Tell whether all but a tool's arguments can be encoded: the rest may be sent back, which would end us."""
    rest = value
    if isinstance(value, dict) and isinstance(value.get("params"), dict):
        rest = {**value, "params": {key: part for key, part in value["params"].items() if key != "arguments"}}
    try:
        json.dumps(rest, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _refusal(
    given_id: object,
    code: int = types.INVALID_REQUEST,
    message: str = "Not a JSON-RPC message (batches are not taken)",
) -> types.JSONRPCError:
    known = isinstance(given_id, (int, str)) and not isinstance(given_id, bool) and str(given_id).isprintable()
    error = types.ErrorData(code=code, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=given_id if known else None, error=error)  # type: ignore[arg-type]


async def _serve() -> None:
    server = create_server()
    async with stdio_server() as (incoming, outgoing):
        await server.run(_Frames(incoming, outgoing), outgoing, server.create_initialization_options())


def main() -> int:
    """Serve on standard input and output until the host closes them; returns the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="context-anchor: %(message)s")
    # A reader blocked on a terminal would keep an interrupted process alive; every write is atomic anyway.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(_serve)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A stub of the Messages API on loopback that answers what a test plans and keeps every request.

Nothing here thinks. A test says what the model answers and how large it claims the context is;
the client then compacts, calls tools and goes on as it would with a real model, and the test
looks at what the client sent.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SUMMARY = "STUB-SUMMARY of what was said"
# Two phrases of the summariser's instructions, either of which marks the request.
_SUMMARY_MARKS = ("create a detailed summary", "Respond with TEXT ONLY")


@dataclass(frozen=True)
class Call:
    """A tool call the model makes; ``id`` is given when the reply is sent."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """One answer: text, then tool calls. ``tokens`` is the context size that usage reports."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens: int = 20_000
    output_tokens: int = 5
    too_long: bool = False
    """Answer 400 "prompt is too long" instead, as the API does past its limit."""


@dataclass
class Request:
    """One request of the client: ``kind`` is "main", "subagent", "summary" or "side" (no tools)."""

    number: int
    kind: str
    body: dict[str, Any]
    at: float
    seen: Any = None

    def texts(self) -> Iterator[str]:
        """Every text the model is given in it, system prompt first, tool results included."""
        yield from _texts(self.body.get("system") or [])
        for message in self.body.get("messages") or []:
            yield from _texts(message.get("content") or [])

    @property
    def text(self) -> str:
        return "\n".join(self.texts())

    def count(self, needle: str) -> int:
        return self.text.count(needle)

    @property
    def last_user(self) -> str:
        """The texts of the last user message."""
        for message in reversed(self.body.get("messages") or []):
            if message.get("role") == "user":
                return "\n".join(_texts(message.get("content") or []))
        return ""

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        return {tool["name"]: tool for tool in self.body.get("tools") or []}


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block.get("type") == "text":
            yield block.get("text", "")
        elif block.get("type") == "tool_result":
            yield from _texts(block.get("content") or [])


def _kind(body: dict[str, Any]) -> str:
    if not body.get("tools"):
        return "side"
    users = [m for m in body.get("messages") or [] if m.get("role") == "user"]
    last_text = list(_texts(users[-1].get("content") or []))[-1:] if users else []
    if last_text and any(mark in last_text[0][:3000] for mark in _SUMMARY_MARKS):
        return "summary"
    # The client marks requests of a subagent in the first block of the system prompt.
    system = list(_texts(body.get("system") or []))[:1]
    return "subagent" if system and "cc_is_subagent=" in system[0] else "main"


class Model:
    """The stub. Replies come from the first fitting rule, else the plan in order, else ``default``."""

    def __init__(self, log: Path) -> None:
        self.requests: list[Request] = []
        self.default = Reply("ok")
        self.observe: Callable[[], Any] | None = None
        """Called when a request arrives; its result is kept as ``Request.seen``."""
        self._log = log
        self._plan: deque[Reply] = deque()
        self._rules: list[tuple[Callable[[Request], bool], deque[Reply]]] = []
        self._turn = threading.Lock()
        self._ids = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def plan(self, *replies: Reply) -> None:
        """Answer the next main requests with these, in order."""
        with self._turn:
            self._plan.extend(replies)

    def when(self, fits: Callable[[Request], bool], *replies: Reply) -> None:
        """Answer requests that fit with these, once each; rules go before the plan."""
        with self._turn:
            self._rules.append((fits, deque(replies)))

    def of_kind(self, kind: str) -> list[Request]:
        return [request for request in self.requests if request.kind == kind]

    @property
    def main(self) -> list[Request]:
        return self.of_kind("main")

    @property
    def unplayed(self) -> int:
        """Planned replies that no request has asked for yet."""
        return len(self._plan) + sum(len(replies) for _, replies in self._rules)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, body: dict[str, Any]) -> Reply:
        with self._turn:
            request = Request(len(self.requests), _kind(body), body, time.time())
            if self.observe is not None:
                request.seen = self.observe()
            self.requests.append(request)
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps({"number": request.number, "kind": request.kind, "body": body}) + "\n")
            for fits, replies in self._rules:
                if replies and fits(request):
                    return replies.popleft()
            if request.kind == "summary":
                return Reply(f"<analysis>thought</analysis>\n<summary>{SUMMARY}</summary>")
            if request.kind in ("side", "subagent"):
                return Reply("noted")
            return self._plan.popleft() if self._plan else self.default

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Keep the test's output to the test."""

            def do_HEAD(self) -> None:
                self._document(404, {})

            do_GET = do_HEAD

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                route = self.path.partition("?")[0]
                if route == "/v1/messages/count_tokens":
                    self._document(200, {"input_tokens": len(raw) // 4})
                elif route == "/v1/messages":
                    body = json.loads(raw)
                    self._answer(body, model._take(body))
                else:
                    self._document(404, {"type": "error", "error": {"type": "not_found_error", "message": route}})

            def _document(self, status: int, document: dict[str, Any]) -> None:
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command == "POST":
                    self.wfile.write(data)

            def _answer(self, body: dict[str, Any], reply: Reply) -> None:
                if reply.too_long:
                    message = "prompt is too long: 210000 tokens > 200000 maximum"
                    error = {"type": "invalid_request_error", "message": message}
                    self._document(400, {"type": "error", "error": error})
                    return
                message = model._message(body, reply)
                if not body.get("stream"):
                    self._document(200, message)
                    return
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                for name, data in _events(message):
                    line = f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"
                    self.wfile.write(line.encode())

        return Handler

    def _message(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if reply.text or not reply.calls:
            content.append({"type": "text", "text": reply.text or "."})
        for call in reply.calls:
            content.append({
                "type": "tool_use",
                "id": f"toolu_stub{next(self._ids):06d}",
                "name": call.name,
                "input": call.arguments,
            })  # fmt: skip
        return {
            "id": f"msg_stub{next(self._ids):06d}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": content,
            "stop_reason": "tool_use" if reply.calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": reply.output_tokens,
            },
        }


def _events(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server-sent events that stream one whole message."""
    head = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield "message_start", {"message": head}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"index": index, "content_block": empty}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    yield (
        "message_delta",
        {"delta": {"stop_reason": message["stop_reason"], "stop_sequence": None}, "usage": message["usage"]},
    )
    yield "message_stop", {}

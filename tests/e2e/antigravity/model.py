"""A stub of the Gemini API on loopback that answers what a test plans and keeps every request.

It does not think. A test says which tools the model calls, what it says and how large it claims
the prompt is; the runtime then runs tools, compacts and goes on as it would with a real model.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Union

SUMMARY = "STUB-SUMMARY of what was said"
OUTPUT_TOKENS = 7

Planned = Union["Reply", Callable[["Request"], "Reply"]]
_CONVERSATION = re.compile(r"^Conversation ID: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Call:
    """A tool call that the model makes."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """One answer: text, then tool calls. ``tokens`` is the whole prompt's size, ``cached`` its cached part."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens: int = 20_000
    cached: int = 0


@dataclass(frozen=True)
class Splice:
    """A step that a hook injected: it stands before ``contents[at]`` of a request."""

    at: int
    kind: Literal["ephemeral", "system", "user"]
    text: str


@dataclass
class Request:
    """One request of the runtime: ``kind`` is "agent", "summary" or "side" (no tools, no conversation)."""

    number: int
    kind: str
    conversation: str
    body: dict[str, Any]
    at: float
    spliced: tuple[Splice, ...] = ()
    """What hooks injected into the view of this request. Emulated: the runtime does not call hooks."""

    @property
    def contents(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body.get("contents") or []
        return found

    @property
    def system(self) -> str:
        return "\n".join(_texts(self.body.get("systemInstruction") or {}))

    @property
    def sent(self) -> list[tuple[str, str]]:
        """What the runtime sent, as (role, text) in order; tool results are JSON text."""
        return [(str(c.get("role", "")), "\n".join(_texts(c))) for c in self.contents]

    @property
    def view(self) -> list[tuple[str, str]]:
        """What the model would see with the injected steps at their places."""
        seen: list[tuple[str, str]] = []
        sent = self.sent
        for index in range(len(sent) + 1):
            seen += [("user", step.text) for step in self.spliced if step.at == index]
            seen += sent[index : index + 1]
        return seen

    @property
    def text(self) -> str:
        """The view as one text, without the system prompt."""
        return "\n".join(text for _, text in self.view)

    @property
    def tools(self) -> dict[str, dict[str, Any]]:
        return {
            function["name"]: function
            for tool in self.body.get("tools") or []
            for function in tool.get("functionDeclarations") or []
        }

    @property
    def results(self) -> list[tuple[str, dict[str, Any]]]:
        """The tool results in it, as (tool, response), oldest first."""
        return [
            (part["functionResponse"]["name"], part["functionResponse"]["response"])
            for content in self.contents
            for part in content.get("parts") or []
            if "functionResponse" in part
        ]


def _texts(content: dict[str, Any]) -> Iterator[str]:
    for part in content.get("parts") or []:
        if "text" in part:
            yield part["text"]
        for key in ("functionCall", "functionResponse"):
            if key in part:
                yield from _strings(part[key])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _kind(body: dict[str, Any]) -> str:
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    if calling.get("mode") == "NONE":
        return "summary"
    return "agent" if body.get("tools") else "side"


class Model:
    """The stub. Replies come from the conversation's plan in order, else ``default``.

    A planned reply may be a function of the request, for a model that goes by what it was told.
    """

    def __init__(self, log: Path) -> None:
        self.requests: list[Request] = []
        self.default = Reply("ok")
        self.boundary: Callable[[Request], None] | None = None
        """Called when a request arrives, before its answer: the place of the host's PreInvocation."""
        self._log = log
        self._plans: dict[str, deque[Planned]] = {}
        self._others: deque[Planned] = deque()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def plan(self, conversation: str, *replies: Planned) -> None:
        """Answer the next requests of a conversation with these, in order."""
        with self._lock:
            self._plans.setdefault(conversation, deque()).extend(replies)

    def plan_others(self, *replies: Planned) -> None:
        """Answer conversations that have no plan, such as a subagent's, with these."""
        with self._lock:
            self._others.extend(replies)

    @property
    def unplayed(self) -> int:
        """Planned replies that no request has asked for yet."""
        return len(self._others) + sum(map(len, self._plans.values()))

    def of(self, conversation: str, kind: str = "agent") -> list[Request]:
        return [r for r in self.requests if r.kind == kind and r.conversation == conversation]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _note(self, body: dict[str, Any]) -> Request:
        with self._lock:
            instruction = "\n".join(_texts(body.get("systemInstruction") or {}))
            named = _CONVERSATION.search(instruction)
            request = Request(next(self._numbers), _kind(body), named[1] if named else "", body, time.time())
            self.requests.append(request)
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps({"number": request.number, "kind": request.kind, "body": body}) + "\n")
        return request

    def _answer(self, request: Request) -> Reply:
        if request.kind == "summary":
            return Reply(f"<summary>{SUMMARY} {request.number}</summary>", tokens=1_000)
        with self._lock:
            plan = self._plans.get(request.conversation)
            if plan is None and request.kind == "agent":
                plan = self._others
            planned: Planned = plan.popleft() if plan else self.default
        return planned if isinstance(planned, Reply) else planned(request)

    def _answer_or_note(self, request: Request) -> Reply:
        try:
            return self._answer(request)
        except Exception as problem:  # a test's function; a lost connection would hide what it said
            self.problems.append(f"{type(problem).__name__}: {problem}")
            return self.default

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *arguments: object) -> None:
                """Requests are kept by the model; nothing is printed."""

            def do_POST(self) -> None:
                body = json.loads(_body(self))
                if ":countTokens" in self.path:
                    return self._send({"totalTokens": 1_000}, stream=False)
                request = model._note(body)
                if model.boundary is not None:
                    try:
                        model.boundary(request)
                    except Exception as problem:  # shown by the test that looks; the runtime must go on
                        model.problems.append(f"{type(problem).__name__}: {problem}")
                answer = _document(model._answer_or_note(request), request.number)
                return self._send(answer, stream=":streamGenerateContent" in self.path)

            def do_GET(self) -> None:
                self._send({}, stream=False)

            def _send(self, document: dict[str, Any], stream: bool) -> None:
                text = json.dumps(document).encode("ascii")
                body = b"data: " + text + b"\r\n\r\n" if stream else text
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
                self.send_header("Content-Length", str(len(body)))
                try:
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True  # the runtime was ended while it waited

        return Handler


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    length = handler.headers.get("Content-Length")
    if length is not None:
        return handler.rfile.read(int(length))
    chunks = []
    while size := int(handler.rfile.readline().split(b";")[0], 16):
        chunks.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(chunks)


def _document(reply: Reply, number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"name": call.name, "args": call.arguments}, "thoughtSignature": "c3R1Yg=="}
        for call in reply.calls
    ]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": reply.tokens,
            "cachedContentTokenCount": reply.cached,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": reply.tokens + OUTPUT_TOKENS,
        },
        "modelVersion": "stub-model",
        "responseId": f"stub-{number}",
    }

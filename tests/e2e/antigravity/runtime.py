"""One conversation of the Antigravity runtime, told what to do over standard input.

Run with the interpreter that has google-antigravity, and nothing else on its path is needed:
``runtime.py SETTINGS``, where SETTINGS is a JSON file. Requests are JSON lines on standard input,
``{"say": text}``, ``{"go": true}`` (the answer to a stop) and ``{"close": true}``; events are JSON
lines on standard output: ``ready``, ``compaction``, ``stop``, ``answer``, ``failure``, ``closed``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import sys
import threading
import time
from typing import Any

from google.antigravity import Agent, LocalAgentConfig, hooks, types
from google.antigravity.connections.local import local_connection
from google.antigravity.hooks import policy
from google.protobuf import json_format

MODEL = "stub-model"


class Strategy(local_connection.LocalConnectionStrategy):
    """The local connection with fields of the wire message that the Python classes do not show."""

    extra: dict[str, Any] = {}  # noqa: RUF012  # set once, before the only instance is made

    def _build_harness_config(self) -> Any:
        config = super()._build_harness_config()
        json_format.ParseDict(self.extra, config)
        return config


class Config(LocalAgentConfig):
    """A configuration that connects with ``Strategy``."""

    def create_strategy(self, **runners: Any) -> Any:
        strategy = super().create_strategy(**runners)
        strategy.__class__ = Strategy
        return strategy


class Channel:
    """The lines to and from the test process."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)  # whatever prints does not end up between the events
        self._go: asyncio.Queue[None] = asyncio.Queue()
        self.orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def tell(self, event: str, **values: Any) -> None:
        line = json.dumps({"event": event, "at": time.time(), **values}) + "\n"
        self._out.write(line.encode("ascii"))

    def listen(self) -> None:
        """Take orders from now on; the end of input is the order to close."""
        loop = asyncio.get_running_loop()

        def take(order: dict[str, Any]) -> None:
            if "go" in order:
                self._go.put_nowait(None)
            else:
                self.orders.put_nowait(order)

        def read() -> None:
            for line in sys.stdin:
                loop.call_soon_threadsafe(take, json.loads(line))
            loop.call_soon_threadsafe(take, {"close": True})

        threading.Thread(target=read, daemon=True).start()

    async def allowed(self) -> None:
        await self._go.get()


def watchers(channel: Channel) -> list[Any]:
    @hooks.stop
    async def stop(data: Any) -> Any:
        channel.tell(
            "stop",
            conversation=data.trajectory_id,
            text=data.response_text,
            count=data.continuation_count,
            error=data.error_message,
        )
        await channel.allowed()
        return types.StopHookResult()

    @hooks.on_compaction
    async def compaction(data: Any) -> None:
        channel.tell("compaction", conversation=data.trajectory_id, step=data.step_index)

    return [stop, compaction]


def servers(entries: dict[str, Any]) -> list[Any]:
    """The servers of an mcp_config.json as the SDK takes them."""
    return [
        types.McpStdioServer(
            name=name,
            command=entry["command"],
            args=entry.get("args", []),
            env=entry.get("env"),
            force_all_tools_eager=bool(entry.get("eager")),
        )
        for name, entry in entries.items()
    ]


def configure(settings: dict[str, Any], channel: Channel) -> Config:
    extra: dict[str, Any] = {"session_continuation_mode": "CREATE_OR_RESUME", **settings["extra"]}
    if settings["seed"]:
        extra["initial_trajectory"] = base64.b64encode(
            seeded_trajectory(settings["seed"], settings["conversation"])
        ).decode("ascii")
        extra["cascade_id"] = settings["conversation"]
        del extra["session_continuation_mode"]
    Strategy.extra = extra
    endpoint = types.GeminiAPIEndpoint(base_url=settings["model_url"], api_key="stub-not-a-key")
    both = [types.ModelType.TEXT, types.ModelType.IMAGE]
    return Config(
        models=[types.ModelTarget(name=MODEL, types=both, endpoint=endpoint)],
        capabilities=types.CapabilitiesConfig(),
        policies=[policy.allow_all()],
        workspaces=[settings["workspace"]],
        save_dir=settings["save"],
        hooks=watchers(channel),
        mcp_servers=servers(settings["servers"]),
        skills_paths=settings["skills"],
        conversation_id=None if settings["seed"] else settings["conversation"],
    )


def seeded_trajectory(steps: list[list[str]], conversation: str) -> bytes:
    """A history to start from, as the runtime takes one: a zstd frame of a trajectory message.

    Field numbers and step types are those of the descriptors that version 0.1.22 carries.
    """
    import zstandard

    def number(value: int) -> bytes:
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    def integer(field: int, value: int) -> bytes:
        return number(field << 3) + number(value)

    def message(field: int, body: bytes) -> bytes:
        return number(field << 3 | 2) + number(len(body)) + body

    kinds = {  # step type, field of the step's body, source, fields of the text in that body
        "user": (14, 19, 4, (2, 3)),
        "model": (15, 20, 2, (1,)),
        "ephemeral": (90, 103, 6, (1,)),
        "system": (101, 114, 6, (1,)),
    }
    name = conversation.encode("ascii")
    trajectory = message(1, name) + message(6, name) + integer(4, 4) + integer(8, 1)
    for kind, text in steps:
        type_, field, source, places = kinds[kind]
        words = text.encode("utf-8")
        body = message(places[0], words)
        if len(places) > 1:
            body += message(places[1], message(1, words))
        facts = message(1, integer(1, int(time.time()))) + integer(3, source)
        trajectory += message(2, integer(1, type_) + integer(4, 3) + message(5, facts) + message(field, body))
    return zstandard.ZstdCompressor().compress(trajectory)


async def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    with open(sys.argv[1], encoding="utf-8") as handle:
        settings = json.load(handle)
    channel = Channel()
    channel.listen()
    async with Agent(configure(settings, channel)) as agent:
        channel.tell("ready", conversation=agent.conversation.conversation_id, pid=os.getpid())
        while "say" in (order := await channel.orders.get()):
            try:
                response = await agent.chat(order["say"])
                channel.tell("answer", text=await response.text())
            except Exception as problem:
                channel.tell("failure", text=f"{type(problem).__name__}: {problem}")
    channel.tell("closed")


if __name__ == "__main__":
    asyncio.run(main())

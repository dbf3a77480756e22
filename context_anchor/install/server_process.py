"""The MCP server as a child process, spoken to in raw lines of JSON within bounded time."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from context_anchor.errors import InstallError

PROTOCOL: Final = "2025-11-25"
_TAIL_BYTES: Final = 4000


class ServerProcess:
    """A started server; use it in a `with` statement, which ends it.

    Standard library alone: doctor must be able to look at a server whose packages are broken.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self._next_id = 0
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._said = bytearray()
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
            )
        except OSError as problem:
            raise InstallError(f"{command[0]} does not start: {problem}", hint="Install again.") from problem
        for reader in (self._read_answers, self._read_errors):
            threading.Thread(target=reader, daemon=True).start()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def initialize(self, wait_s: float) -> dict[str, Any]:
        """Shake hands and return the server's answer; raises InstallError."""
        answer = self.request(
            "initialize",
            {
                "protocolVersion": PROTOCOL,
                "capabilities": {},
                "clientInfo": {"name": "context-anchor", "version": "1"},
            },
            wait_s,
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def request(self, method: str, params: Mapping[str, Any], wait_s: float) -> dict[str, Any]:
        """Return the result of a request.

        Raises InstallError for an error answer, a line that is no JSON, the server's end, or no answer in time.
        """
        self._next_id += 1
        self._send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": dict(params)})
        deadline = time.monotonic() + wait_s
        while True:
            try:
                line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                raise self._trouble(f"no answer to {method} within {wait_s:.0f} s") from None
            if not line:
                self._process.wait(timeout=5)
                raise self._trouble(
                    f"the server ended with code {self._process.returncode} before answering {method}"
                )
            try:
                value = json.loads(line)
            except ValueError:
                raise self._trouble(f"the server wrote a line that is not JSON: {line[:120]!r}") from None
            if isinstance(value, dict) and value.get("id") == self._next_id:
                if "error" in value:
                    raise self._trouble(f"{method} was answered with an error: {value['error']}")
                result = value.get("result")
                return result if isinstance(result, dict) else {}

    def call(
        self, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any], wait_s: float
    ) -> dict[str, Any]:
        """Return the result of a tool call; raises InstallError, also when the tool reports an error."""
        result = self.request(
            "tools/call", {"name": tool, "arguments": dict(arguments), "_meta": dict(meta)}, wait_s
        )
        if result.get("isError"):
            raise self._trouble(f"{tool} failed: {text_of(result)}")
        return result

    def close(self) -> None:
        """End the server as hosts do, by the end of its input; kill it when it stays."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            try:
                process.stdin.close()
            except OSError:
                process.kill()  # it is gone or does not read
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except OSError as problem:
            raise self._trouble(f"the server does not read: {problem}") from problem

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while block := os.read(self._process.stderr.fileno(), 4096):
            self._said += block
            del self._said[:-_TAIL_BYTES]

    def _trouble(self, what: str) -> InstallError:
        time.sleep(0.05)  # let the last words on standard error come in
        said = " ".join(self._said.decode("utf-8", "replace").split())[-400:]
        return InstallError(what, hint=f"It said: {said}" if said else "")


def text_of(result: Mapping[str, Any]) -> str:
    """Return the text parts of a tool's result."""
    parts = result.get("content")
    texts = [part.get("text", "") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))

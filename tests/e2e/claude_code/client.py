"""A Claude Code client with a home of its own: single commands and stream-json conversations."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from .model import Model, Request

# A 200,000-token window in which the client compacts by itself at 167,000.
WINDOW_MODEL = "claude-opus-4-6"
COMPACTS_AT = 167_000

_SWITCHES = {
    "ANTHROPIC_API_KEY": "sk-stub-not-a-key",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_BUG_COMMAND": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_INSTALLATION_CHECKS": "1",
    "DISABLE_TELEMETRY": "1",
    "IS_SANDBOX": "1",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}


class Turn:
    """What the client printed for one prompt, up to its result event."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events

    def of(self, type_: str, subtype: str | None = None) -> list[dict[str, Any]]:
        return [
            e for e in self.events if e.get("type") == type_ and (subtype is None or e.get("subtype") == subtype)
        ]

    @property
    def result(self) -> dict[str, Any]:
        return self.of("result")[-1]

    @property
    def init(self) -> dict[str, Any]:
        return self.of("system", "init")[-1]

    @property
    def session_id(self) -> str:
        return str(self.init["session_id"])

    @property
    def compacted(self) -> bool:
        return bool(self.of("system", "compact_boundary"))


class ClaudeCode:
    """One home, one project folder, one stub model; ``with`` ends all that it started."""

    def __init__(self, client: Path, folder: Path, *plugins: Path, env: dict[str, str] | None = None) -> None:
        self.client, self.folder, self.plugins = client, folder, plugins
        self.home, self.project = folder / "home", folder / "project"
        self.data = self.home / ".local" / "share" / "context-anchor"
        """Where the plugin keeps its data in this home, on Linux and unless told otherwise."""
        scratch = folder / "tmp"
        for made in (self.home, self.project, scratch):
            made.mkdir(parents=True, exist_ok=True)
        self.model = Model(folder / "requests.jsonl")
        # The plugin's manifest names python3; here that is the interpreter the tests run with.
        interpreter = Path(sys.executable).parent
        self.environment = {
            **_SWITCHES,
            "ANTHROPIC_BASE_URL": self.model.url,
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "TMPDIR": str(scratch),
            "CLAUDE_CODE_TMPDIR": str(scratch),
            "PATH": os.pathsep.join([str(interpreter), "/usr/local/bin", "/usr/bin", "/bin"]),
            **(env or {}),
        }
        self._started: list[Chat] = []

    def __enter__(self) -> ClaudeCode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for chat in self._started:
            chat.kill()
        self.model.close()

    def chat(self, *arguments: str, model: str = WINDOW_MODEL, cwd: Path | None = None) -> Chat:
        """Start a client process that takes prompts one after the other."""
        command = [
            str(self.client), "-p", "--verbose", "--input-format", "stream-json",
            "--output-format", "stream-json", "--include-hook-events", "--model", model,
        ]  # fmt: skip
        for plugin in self.plugins:
            command += ["--plugin-dir", str(plugin)]
        chat = Chat([*command, *arguments], cwd or self.project, self, len(self._started))
        self._started.append(chat)
        return chat

    def command(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        """Run one client command, such as ``plugin validate``, to its end."""
        return self.run(str(self.client), *arguments, seconds=seconds)

    def run(
        self, *command: str, seconds: float = 60, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run any program in this home, with the client's environment and what ``env`` adds."""
        return subprocess.run(
            command,
            cwd=self.project,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )

    def transcripts(self, session_id: str) -> list[Path]:
        """The session's transcript, if it is on disk by now."""
        return list((self.home / ".claude" / "projects").glob(f"*/{session_id}.jsonl"))

    def transcript(self, session_id: str) -> Path:
        (found,) = self.transcripts(session_id)
        return found

    def lines(self, session_id: str) -> list[dict[str, Any]]:
        return list(read_lines(self.transcript(session_id)))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file, none if it is absent; a torn last line is left out."""
    if not path.is_file():
        return
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n") and line.strip():
            yield json.loads(line)


class Chat:
    """A running client that takes prompts over stream-json, in a process group of its own."""

    def __init__(self, command: list[str], cwd: Path, host: ClaudeCode, number: int) -> None:
        self._host = host
        self._errors = host.folder / f"stderr-{number}.txt"
        self._record = host.folder / f"events-{number}.jsonl"
        self._last: list[dict[str, Any]] = []
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env=host.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self._record.open("wb") as record:
            for line in self.process.stdout:
                record.write(line)
                record.flush()
                if line.strip():
                    self._queue.put(json.loads(line))
        self._queue.put(None)

    def _settle(self, seconds: float = 1.0) -> None:
        """Wait as long as a person would need, at most, for the last turn to be on disk.

        The older client writes its transcript up to some 100 ms late; prompts follow each other that
        fast in tests alone.
        """
        needles = [e["uuid"] for e in self._last if e.get("subtype") == "compact_boundary" and "uuid" in e]
        needles += [e["message"]["id"] for e in self._last if e.get("type") == "assistant"][-1:]
        end = time.monotonic() + seconds
        while needles and time.monotonic() < end:
            written = b"".join(path.read_bytes() for path in self._host.transcripts(self._last[-1]["session_id"]))
            needles = [needle for needle in needles if needle.encode() not in written]
            if needles:
                time.sleep(0.02)

    def send(self, text: str) -> None:
        """Send one prompt and don't wait for an answer."""
        assert self.process.stdin is not None
        self._settle()
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self.process.stdin.write((json.dumps({"type": "user", "message": message}) + "\n").encode())
        self.process.stdin.flush()

    def say(self, text: str, seconds: float = 60) -> Turn:
        """Send one prompt and wait for its result."""
        self.send(text)
        return self.wait(seconds)

    def wait(self, seconds: float = 60) -> Turn:
        """The events up to the next result, or an error that says what the client was at."""
        events: list[dict[str, Any]] = []
        end = time.monotonic() + seconds
        while True:
            try:
                event = self._queue.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no result within {seconds} s; {self._state(events)}") from None
            if event is None:
                raise AssertionError(f"the client ended before a result; {self._state(events)}")
            events.append(event)
            if event.get("type") == "result":
                self._last = events
                return Turn(events)

    def _state(self, events: list[dict[str, Any]]) -> str:
        last = json.dumps(events[-1])[:500] if events else "no event"
        errors = self._errors.read_text(encoding="utf-8", errors="replace")[-2000:]
        return f"exit code {self.process.poll()}, last event {last}, stderr {errors!r}, see {self._record}"

    def close(self, seconds: float = 20) -> int:
        """End the conversation as a user's shell would, by end of input; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(seconds)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the group this chat started, which may outlive the client itself."""
        if hasattr(os, "killpg"):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
        elif self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)


__all__ = ["COMPACTS_AT", "WINDOW_MODEL", "Chat", "ClaudeCode", "Request", "Turn", "read_lines"]

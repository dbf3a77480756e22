"""The Antigravity runtime with a home of its own: conversations, MCP, skills and rules for real.

Hooks are the one part that is emulated (`hook_calls`): the runtime of the SDK does not call them.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

from context_anchor.install import interpreter, mirror, render, source

from .hook_calls import HookCalls
from .model import Model, Planned

SERVER = "context-anchor_anchors"
"""The server's name on current builds; older ones show it without the plugin's name."""
BARE_SERVER = "anchors"

_RUNTIME = Path(__file__).with_name("runtime.py")


class Antigravity:
    """One home, one workspace, one stub model, the plugin installed; ``with`` ends all it started."""

    def __init__(
        self,
        python: Path,
        folder: Path,
        *,
        with_session_start: bool = True,
        transcript_name: str = "transcript.jsonl",
        install: bool = True,
    ) -> None:
        self.python, self.folder = python, folder
        self.home, self.workspace = folder / "my home \u00fc", folder / "my work \u00e9"
        self.data = self.home / ".local" / "share" / "context-anchor"
        """Where the plugin keeps its data in this home, on Linux and unless told otherwise."""
        self.brain = self.home / ".gemini" / "antigravity" / "brain"
        self.plugin = self.home / ".gemini" / "config" / "plugins" / "context-anchor"
        scratch = folder / "tmp"
        for made in (self.home, self.workspace, scratch):
            made.mkdir(parents=True, exist_ok=True)
        tests_python = Path(sys.executable).parent
        self.environment = {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "TMPDIR": str(scratch),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([str(tests_python), "/usr/local/bin", "/usr/bin", "/bin"]),
        }
        if install:
            place_plugin(self.plugin, self.data)
        self.model = Model(folder / "requests.jsonl")
        self.workspaces: dict[str, list[str]] = {}
        """Folders that hooks are told of, for conversations where it is not the one workspace."""
        self.hooks = HookCalls(
            self.plugin,
            lambda conversation: self.workspaces.get(conversation, [str(self.workspace)]),
            self.brain,
            self.environment,
            with_session_start=with_session_start,
            transcript_name=transcript_name,
        )
        self.model.boundary = self.hooks.at_request
        self._started: list[Conversation] = []

    def __enter__(self) -> Antigravity:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for conversation in self._started:
            conversation.kill()
        self.model.close()

    def open(
        self,
        conversation: str = "",
        *,
        server: str = SERVER,
        eager: bool = True,
        compact_at: int = 0,
        seed: list[tuple[str, str]] | None = None,
        extra: dict[str, Any] | None = None,
        cwd: Path | None = None,
    ) -> Conversation:
        """Start a runtime for a new conversation, or for the one named; it is awaited at the first prompt.

        ``compact_at`` is the size in reported tokens from which the runtime compacts; 0 leaves its own.
        """
        entries = json.loads((self.plugin / "mcp_config.json").read_text(encoding="utf-8"))["mcpServers"]
        (entry,) = entries.values()
        more: dict[str, Any] = {"rules_config": {"filenames": ["AGENTS.md", "GEMINI.md"]}, **(extra or {})}
        if compact_at:
            more["compaction_config"] = {
                "token_threshold": compact_at,
                "use_model_reported_token_count": True,
            }
        # The runtime reads rules of the workspace; those of a plugin are the host's to hand over.
        for rule in (self.plugin / "rules").glob("*.md"):
            target = self.workspace / ".agents" / "rules" / rule.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(rule, target)
        settings = {
            "conversation": conversation or str(uuid.uuid4()),
            "workspace": str(self.workspace),
            "save": str(self.folder / "save"),
            "model_url": self.model.url,
            "servers": {server: {**entry, "eager": eager}},
            "skills": [str(self.plugin / "skills")],
            "seed": seed or [],
            "extra": more,
        }
        opened = Conversation(self, settings, cwd or self.workspace, len(self._started))
        self._started.append(opened)
        return opened

    def transcript(self, conversation: str, name: str = "transcript.jsonl") -> list[dict[str, Any]]:
        """The whole lines of a conversation's transcript."""
        path = self.brain / conversation / ".system_generated" / "logs" / name
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def cli(self, *words: str) -> tuple[str, ...]:
        """The command line of the plugin's own program in this home."""
        return (sys.executable, str(self.plugin / "scripts" / "cli.py"), *words)

    def run(
        self, *command: str, seconds: float = 60, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run any program in this home."""
        return subprocess.run(
            command,
            cwd=self.workspace,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )


def place_plugin(folder: Path, data: Path) -> None:
    """Write the bundle where Antigravity finds plugins, as the installer does.

    The installer would make the server a private environment; here the tests' own Python has its packages.
    """
    place = render.Place(interpreter.find().path, sys.executable, data)
    bundle = render.antigravity(source.find(), place, folder)
    assert not bundle.notes, bundle.notes
    mirror.write(folder, bundle.files)


class Conversation:
    """A running runtime that takes prompts, in a process group of its own."""

    def __init__(self, host: Antigravity, settings: dict[str, Any], cwd: Path, number: int) -> None:
        self.id = str(settings["conversation"])
        self._host = host
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.compactions = 0
        self._errors = host.folder / f"stderr-{number}.txt"
        written = host.folder / f"settings-{number}.json"
        written.write_text(json.dumps(settings), encoding="utf-8")
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [str(host.python), str(_RUNTIME), str(written)],
                cwd=cwd,
                env=host.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._ready = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "compaction":
                self.compactions += 1
            if event["event"] == "stop":
                self._host.hooks.at_stop(event["conversation"], event["error"])
                self._order({"go": True})
            self._events.put(event)
        self._events.put(None)

    def _order(self, order: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((json.dumps(order) + "\n").encode("ascii"))
        self.process.stdin.flush()

    def plan(self, *replies: Planned) -> None:
        """Answer this conversation's next model requests with these."""
        self._host.model.plan(self.id, *replies)

    def say(self, text: str, *replies: Planned, seconds: float = 60) -> str:
        """Send a prompt, answered with these replies, and wait for the turn's end; its text."""
        self.send(text, *replies)
        return self.wait(seconds)

    def send(self, text: str, *replies: Planned) -> None:
        """Send a prompt and don't wait for its turn."""
        if not self._ready:
            self._wait_for("ready", 60)
            self._ready = True
        self.plan(*replies)
        self._host.hooks.new_turn(self.id)
        self._order({"say": text})

    def wait(self, seconds: float = 60) -> str:
        """Wait for the end of the turn that was sent; its text."""
        return str(self._wait_for("answer", seconds)["text"])

    def _wait_for(self, name: str, seconds: float) -> dict[str, Any]:
        seen: list[str] = []
        end = time.monotonic() + seconds
        while True:
            try:
                event = self._events.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {name} within {seconds} s after {seen}; {self._state()}") from None
            if event is None:
                raise AssertionError(f"the runtime ended before {name}, after {seen}; {self._state()}")
            if event["event"] == name:
                return event
            if event["event"] == "failure":
                raise AssertionError(f"the turn failed: {event['text']}; {self._state()}")
            seen.append(event["event"])

    def _state(self) -> str:
        errors = self._errors.read_text(encoding="utf-8", errors="replace")[-3000:]
        return f"exit code {self.process.poll()}, stderr {errors!r}"

    def close(self, seconds: float = 30) -> int:
        """End the conversation in order; the exit code."""
        try:
            self._order({"close": True})
            self._wait_for("closed", seconds)
            return self.process.wait(seconds)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the group this conversation started."""
        if hasattr(os, "killpg"):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
        elif self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)

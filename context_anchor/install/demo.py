"""A recorded session played through the real hook processes and the real MCP server; needs no host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from context_anchor.errors import InstallError
from context_anchor.install import environment, hook_check, interpreter, mirror, render
from context_anchor.install.server_process import ServerProcess, text_of
from context_anchor.install.source import Source, find
from context_anchor.wire import marks

RECORDINGS: Final = {"claude-code": "demo_claude_code.jsonl", "antigravity": "demo_antigravity.jsonl"}
_WAIT_S: Final = 60.0
_RULE: Final = "-" * 72

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Result:
    """What a recording proved: how many hooks ran, what was pinned, and the text that recovered it."""

    host: str
    hooks: int
    pinned: tuple[str, ...]
    recovery: str

    def to_json(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        return {"host": self.host, "hooks": self.hooks, "pinned": list(self.pinned), "recovery": self.recovery}


def play(host: str, data: Path, say: Say) -> Result:
    """Play a host's recording in a temporary data folder and return what it proved.

    `data` is the real data folder: its private environment runs the server where this Python can't.

    Raises:
        InstallError: a hook said something else than it must, the recovery lacks an anchor, or the server or
            its environment could not be started.
    """
    source = find()
    server = server_python(source, data)
    with tempfile.TemporaryDirectory(prefix="context-anchor-demo-") as made:
        top = Path(os.path.realpath(made))
        root = source.assets if source.kind != "wheel" else _rendered(source, top, server)
        player = _Player(host, root, top, server, say)
        with player.open_server():
            for step in read_recording(host):
                player.take(step)
        return player.result()


def read_recording(host: str) -> Iterator[dict[str, Any]]:
    """Yield the steps of a host's recording."""
    path = Path(__file__).with_name(RECORDINGS[host])
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def server_python(source: Source, data: Path) -> str:
    """Return a Python that can run the server: this one, else that of the private environment."""
    try:
        for name in ("mcp", "filelock", "platformdirs"):
            metadata.version(name)
        return sys.executable
    except metadata.PackageNotFoundError:
        return str(environment.ensure(data, source.package.parent, sys.stderr))


def _rendered(source: Source, top: Path, server: str) -> Path:
    root = top / "plugin"
    place = render.Place(interpreter.running().path, server, top / "data")
    mirror.write(root, render.claude_code(source, place).files)
    return root


@dataclass(slots=True)
class _Player:
    host: str
    root: Path
    top: Path
    server_python: str
    say: Say
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    given: str = ""
    recovery: str = ""
    hooks: int = 0
    pins: list[dict[str, Any]] = field(default_factory=list)
    server: ServerProcess | None = None

    @property
    def data(self) -> Path:
        return self.top / "data"

    @property
    def project(self) -> Path:
        return self.top / "project"

    @property
    def transcript(self) -> Path:
        return self.top / ("session.jsonl" if self.host == "claude-code" else "transcript_full.jsonl")

    def open_server(self) -> ServerProcess:
        (self.project / "billing").mkdir(parents=True)
        (self.project / "billing" / "importer.py").write_text("# demo\n", encoding="utf-8")
        command = [self.server_python, "-I", str(self.root / "scripts" / "serve.py")]
        self.server = ServerProcess(command, self._env(), str(self.project))
        self.server.initialize(_WAIT_S)
        return self.server

    def _env(self) -> dict[str, str]:
        """Return the environment of hooks and server: this one's, but none of the product's own settings."""
        env = {
            k: v for k, v in os.environ.items() if not k.startswith(("CONTEXT_ANCHOR_", "CLAUDE", "ANTIGRAVITY_"))
        }
        for name in ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT", "ANTHROPIC_MODEL"):
            env.pop(name, None)
        env["CONTEXT_ANCHOR_DATA_DIR"] = str(self.data)
        env.update(HOME=str(self.top), USERPROFILE=str(self.top))  # no settings file of the user takes part
        if self.host == "claude-code":
            env.update(
                CLAUDE_PLUGIN_ROOT=str(self.root), CLAUDE_PROJECT_DIR=str(self.project), CLAUDE_PID=str(os.getpid())
            )
        return env

    def take(self, step: Mapping[str, Any]) -> None:
        """Do one step of the recording."""
        if "say" in step:
            self.say(f"\n* {step['say']}")
        elif "lines" in step:
            with self.transcript.open("a", encoding="utf-8", newline="\n") as file:
                for line in step["lines"]:
                    file.write(json.dumps(self._filled(line)) + "\n")
        elif "event" in step:
            self._hook(str(step["event"]), step["payload"], str(step["expect"]))
        elif "pin" in step:
            self._pin(step["pin"], str(step.get("tool_use_id", "")))
        elif "before" in step:
            self._show("What the model had before the compaction", str(step["before"]))
        elif "after" in step:
            self._show("What the host itself kept", str(step["after"]))
        elif "delivered" in step:
            self._delivered(str(step["delivered"]))

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner) for inner in value]
        if not isinstance(value, str):
            return value
        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for name, text in (
            ("$SESSION", self.session),
            ("$TRANSCRIPT", str(self.transcript)),
            ("$PROJECT", str(self.project)),
            ("$TIME", moment),
            ("$GIVEN", self.given),
        ):
            value = value.replace(name, text)
        return value

    def _hook(self, event: str, payload: Mapping[str, Any], expect: str) -> None:
        """Start a hook as the host does and hold its answer against what must come."""
        command = [interpreter.running().path, "-I", "-S", str(self.root / "scripts" / "hook.py"), self.host, event]
        sent = json.dumps(self._filled(payload)).encode("ascii")
        try:
            done = subprocess.run(
                command, input=sent, capture_output=True, env=self._env(), cwd=self.top, timeout=_WAIT_S
            )
        except subprocess.TimeoutExpired as problem:
            raise InstallError(f"the hook {event} did not end within {_WAIT_S:.0f} s") from problem
        self.hooks += 1
        wrong = hook_check.judge(self.host, event, done.stdout)
        if done.returncode != 0 or done.stderr or wrong:
            raise InstallError(f"the hook {event} failed: code {done.returncode} {done.stderr!r} {wrong}")
        text = injected(self.host, event, done.stdout)
        if (text == "") != (expect == "silence"):
            raise InstallError(f"the hook {event} was to bring {expect} and wrote {text[:300]!r}")
        if not text:
            self.say(f"  {event}: nothing to say")
            return
        check = {
            "nudge": self._is_nudge,
            "recovery": self._is_recovery,
            "precompact": self._is_precompact,
            "first-sight": self._is_first_sight,
        }[expect]
        check(text)
        if expect != "precompact":
            self.given = text
        titles = {
            "recovery": "What the model gets back in its first request after the compaction",
            "precompact": f"{event}: what the summariser is asked",
        }
        self._show(titles.get(expect, f"{event}: what the model is told"), text)

    def _is_first_sight(self, text: str) -> None:
        if self.session not in text or "pin_context" not in text:
            raise InstallError(f"the first text does not name the session and the pin tool: {text[:300]!r}")

    def _is_nudge(self, text: str) -> None:
        absent = [pin["title"] for pin in self.pins if pin["title"] not in text]
        if "tokens" not in text or "pin_context" not in text or absent:
            raise InstallError(f"the nudge lacks the tokens, the pin tool or {absent}: {text[:300]!r}")

    def _is_precompact(self, text: str) -> None:
        absent = [p["title"] for p in self.pins if p.get("priority") == "critical" and p["title"] not in text]
        if absent:
            raise InstallError(f"the summariser is not asked to keep {absent}")

    def _is_recovery(self, text: str) -> None:
        order = [text.find(pin["content"]) for pin in self.pins]  # pinned critical first, as it must come back
        if not self.pins or -1 in order or order != sorted(order):
            absent = [pin["title"] for pin, at in zip(self.pins, order, strict=True) if at < 0]
            raise InstallError(f"the recovery lacks {absent or 'the order of priorities'}")
        if any(text.count(pin["content"]) != 1 for pin in self.pins):
            raise InstallError("the recovery holds an anchor twice")
        self.recovery = text

    def _pin(self, arguments: Mapping[str, Any], tool_use_id: str) -> None:
        assert self.server is not None
        meta = (
            {"claudecode/toolUseId": tool_use_id}
            if tool_use_id
            else {"antigravity.google/conversation_id": self.session}
        )
        result = self.server.call("pin_context", arguments, meta, _WAIT_S)
        self.pins.append(dict(arguments))
        self.say(f"  pin_context: {text_of(result).splitlines()[0]}")

    def _delivered(self, expected: str) -> None:
        state = marks.load(str(self.data), self.host, self.session) or {}
        receipt = state.get("last_receipt") or {}
        if receipt.get("delivered") != expected:
            raise InstallError(
                f"delivery is {receipt.get('delivered')!r}, not {expected!r}, in the session's state"
            )
        self.say(
            f"  delivery proven by the transcript: receipt {receipt['id']}, {receipt.get('tokens', '?')} tokens"
        )

    def _show(self, title: str, text: str) -> None:
        self.say(f"\n{title}\n{_RULE}\n{text.rstrip()}\n{_RULE}")

    def result(self) -> Result:
        if not self.recovery:
            raise InstallError("nothing was recovered")
        return Result(self.host, self.hooks, tuple(str(pin["title"]) for pin in self.pins), self.recovery)


def injected(host: str, event: str, out: bytes) -> str:
    """Return the text that a host would hand to the model from a hook's document, "" for none."""
    text = out.decode("ascii", "replace")
    if host == "claude-code" and event in ("PreCompact", "PostCompact"):
        return text
    value = json.loads(text)
    if host == "claude-code":
        return str(value.get("hookSpecificOutput", {}).get("additionalContext", ""))
    parts = []
    for step in value.get("injectSteps", []):
        (content,) = step.values()
        parts.append(content if isinstance(content, str) else str(content["systemMessage"]))
    return "\n".join(parts)


def run(hosts: tuple[str, ...], data: Path, say: Say) -> tuple[Result, ...]:
    """Play the recordings of hosts one after another; raises as `play` does."""
    results = []
    for host in hosts:
        say(f"\n=== {host} ===")
        results.append(play(host, data, say))
        say(f"\npassed: {results[-1].hooks} hooks, {len(results[-1].pinned)} anchors pinned and recovered")
    return tuple(results)

"""A host's side of the hooks: payloads, a transcript that grows, and the hook as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from context_anchor.anchors.anchor import Anchor, Draft
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.wire import marks, registry, workspace

ROOT = Path(__file__).resolve().parents[2]
HOOK = ROOT / "scripts" / "hook.py"
CLAUDE_EVENTS = (
    "SessionStart", "UserPromptSubmit", "PostToolBatch", "PostToolUse", "PreToolUse", "PreCompact", "PostCompact",
    "Stop", "SessionEnd",
)  # fmt: skip
ANTIGRAVITY_EVENTS = ("SessionStart", "PreInvocation", "Stop")
EVENTS = [("claude-code", e) for e in CLAUDE_EVENTS] + [("antigravity", e) for e in ANTIGRAVITY_EVENTS]


@dataclass
class Ran:
    """What a hook's process left."""

    code: int
    out: bytes
    err: bytes
    seconds: float


def environment(data: Path, **more: str) -> dict[str, str]:
    """Return the environment of a host that has nothing of the tester's."""
    home = data.parent / "home"
    home.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "USERPROFILE": str(home),
           "CONTEXT_ANCHOR_DATA_DIR": str(data)}  # fmt: skip
    if os.name == "nt":
        env["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return {**env, **more}


def command(host: str, event: str, hook: Path = HOOK) -> list[str]:
    return [sys.executable, "-I", "-S", str(hook), host, event]


def run_hook(
    host: str, event: str, stdin: bytes, env: dict[str, str], *, cwd: Path | str = os.sep, hook: Path = HOOK,
    prefix: tuple[str, ...] = (), timeout: float = 60, **more: Any,
) -> Ran:  # fmt: skip
    began = time.monotonic()
    words = [*prefix, *command(host, event, hook)]
    done = subprocess.run(
        words, input=stdin, capture_output=True, env=env, cwd=cwd, timeout=timeout, check=False, **more
    )
    return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def given(host: str, event: str, ran: Ran) -> tuple[str, str]:
    """Judge a hook's output by all that holds of every one; return `(kind, text)`, ("", "") for silence.

    kind is the field that carries the text: additionalContext, plain, systemMessage, ephemeralMessage or
    userMessage.
    """
    assert ran.code == 0, ran
    assert ran.err == b"", ran.err
    assert ran.out.isascii(), ran.out
    out = ran.out.decode("ascii")
    if host == "claude-code" and event == "PostCompact":
        assert out == ""
        return "", ""
    if host == "claude-code" and event == "PreCompact":
        assert not out.lstrip().startswith("{")
        return ("plain", out) if out else ("", "")
    document = json.loads(out)
    assert isinstance(document, dict)
    if not document:
        assert out == "{}"
        return "", ""
    if host == "claude-code":
        assert event in ("SessionStart", "UserPromptSubmit", "PostToolBatch", "PostToolUse")
        assert list(document) == ["hookSpecificOutput"]
        inner = document["hookSpecificOutput"]
        assert set(inner) == {"hookEventName", "additionalContext"}
        assert inner["hookEventName"] == event
        text = inner["additionalContext"]
        assert 0 < len(text.encode("utf-16-le", "surrogatepass")) // 2 <= 10_000
        return "additionalContext", text
    assert event != "Stop"
    assert list(document) == ["injectSteps"]
    [step] = document["injectSteps"]
    [(kind, value)] = step.items()
    if kind == "systemMessage":
        assert set(value) == {"systemMessage"}
        value = value["systemMessage"]
    assert isinstance(value, str) and value
    return kind, value


@dataclass
class Host:
    """A running host with one conversation; its state on disk lives below `folder`."""

    folder: Path
    session: str = "11111111-2222-4333-8444-555555555555"
    host: str = ""
    pid: int = 4242
    env: dict[str, str] = field(default_factory=dict)
    last: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        self.data = self.folder / "data"
        self.project = self.folder / "my prøject"
        self.project.mkdir(parents=True, exist_ok=True)
        self.store = AnchorStore(str(self.data))

    @property
    def transcript(self) -> Path:
        return self.folder / f"{self.session}.jsonl"

    def payload(self, event: str, **fields: Any) -> dict[str, Any]:
        raise NotImplementedError

    def event(self, name: str, **fields: Any) -> str:
        """Run the hook of one event and return the text that it gives, "" for none."""
        stdin = json.dumps(self.payload(name, **fields)).encode()
        env = environment(self.data, CLAUDE_PID=str(self.pid), **self.env)
        ran = run_hook(self.host, name, stdin, env)
        self.kind, self.last = given(self.host, name, ran)
        return self.last

    def write(self, *lines: dict[str, Any]) -> None:
        """Append lines to the transcript, as the host does."""
        with self.transcript.open("ab") as out:
            out.writelines(json.dumps(line).encode() + b"\n" for line in lines)

    def pin(self, title: str, content: str = "content", *, shared: bool = False, **fields: Any) -> Anchor:
        scope: SessionScope | WorkspaceScope = SessionScope(self.host, self.session)
        if shared:
            scope = WorkspaceScope(*workspace.identify(str(self.project)))
        return self.store.pin(scope, Draft.checked(title=title, content=content, **fields), actor="agent").anchor

    @property
    def marks(self) -> dict[str, Any]:
        value = marks.load(str(self.data), self.host, self.session)
        assert value is not None
        return value

    @property
    def record(self) -> dict[str, Any]:
        value = registry.load(str(self.data), self.host, self.session)
        assert value is not None
        return value

    @property
    def failures(self) -> list[str]:
        path = self.data / "log" / "hooks.jsonl"
        return [json.loads(line)["what"] for line in path.read_text().splitlines()] if path.exists() else []


@dataclass
class Claude(Host):
    """Claude Code, as measured on 2.1.332."""

    host: str = "claude-code"
    model: str = "claude-opus-4-6"
    version: str = "2.1.332"

    def payload(self, event: str, **fields: Any) -> dict[str, Any]:
        return {
            "session_id": self.session, "transcript_path": str(self.transcript), "cwd": str(self.project),
            "hook_event_name": event, **fields,
        }  # fmt: skip

    def common(self) -> dict[str, Any]:
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"isSidechain": False, "uuid": str(uuid.uuid4()), "timestamp": now, "sessionId": self.session,
                "version": self.version, "cwd": str(self.project)}  # fmt: skip

    def answer(self, tokens: int, **fields: Any) -> None:
        usage = {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": tokens - 10,
                 "output_tokens": 7}  # fmt: skip
        message = {"id": f"msg_{uuid.uuid4().hex[:24]}", "model": self.model, "role": "assistant", "usage": usage}
        self.write({**self.common(), "type": "assistant", "message": message, **fields})

    def user(self, text: str = "go on") -> None:
        self.write({**self.common(), "type": "user", "message": {"role": "user", "content": text}})

    def boundary(self, summary: bool = True) -> None:
        line = {**self.common(), "type": "system", "subtype": "compact_boundary",
                "compactMetadata": {"trigger": "auto", "preTokens": 167_023, "postTokens": 2850}}  # fmt: skip
        self.write(line)
        if summary:
            self.write({**self.common(), "type": "user", "isCompactSummary": True, "parentUuid": line["uuid"],
                        "message": {"role": "user", "content": "This session is being continued"}})  # fmt: skip

    def trace(self, text: str, event: str = "SessionStart") -> None:
        """Record an injection as the client does: that the hook ran, then what was added."""
        ran = {"type": "hook_success", "hookName": event, "hookEvent": event, "content": "", "stdout": text}
        added = {"type": "hook_additional_context", "content": [text], "hookName": event, "hookEvent": event}
        for attachment in (ran, added):
            self.write({**self.common(), "type": "attachment", "attachment": attachment})

    def open(self, source: str = "startup") -> str:
        """Start a session whose first answer is on disk."""
        text = self.event("SessionStart", source=source)
        if text:
            self.trace(text)
        self.user()
        self.event("UserPromptSubmit", prompt="go")
        self.answer(30_000)
        return text

    def at(self, tokens: int) -> str:
        """Answer with a context of a size, then finish a batch of tools."""
        self.answer(tokens)
        return self.event("PostToolBatch", tool_calls=[])


@dataclass
class Antigravity(Host):
    """Antigravity: transcripts by step index; no token counts unless given."""

    host: str = "antigravity"
    session: str = "conv-1"
    index: int = -1

    @property
    def transcript(self) -> Path:
        folder = self.folder / "brain" / self.session
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "transcript.jsonl"

    def payload(self, event: str, **fields: Any) -> dict[str, Any]:
        return {
            "conversationId": self.session, "workspacePaths": [str(self.project)],
            "transcriptPath": str(self.transcript), "artifactDirectoryPath": str(self.folder),
            "modelName": "gemini", **fields,
        }  # fmt: skip

    def step(self, kind: str, content: str = "", **fields: Any) -> None:
        self.index += 1
        self.write({"step_index": self.index, "source": "MODEL", "type": kind, "status": "DONE",
                    "created_at": "2026-11-30T10:00:00Z", "content": content, **fields})  # fmt: skip

    def turn(self, text: int = 400, tokens: int = 0) -> str:
        """Write one answer and call the hook as before the next model call."""
        counts = {"input_tokens": tokens - 1000, "cache_read_tokens": 1000, "output_tokens": 9} if tokens else {}
        self.step("PLANNER_RESPONSE", "x" * text, **counts)
        return self.event("PreInvocation", invocationNum=1)

    def open(self) -> str:
        text = self.event("PreInvocation", invocationNum=0)
        self.step("USER_INPUT", "<USER_REQUEST>do it</USER_REQUEST>")
        return text

"""Calls of the plugin's hook commands as the host documents them, and what becomes of their output.

The SDK's runtime does not read hooks.json, so this stands in for the host's caller: `sh -c` (on
Windows `cmd /c`) in the plugin's folder, the payload as one JSON object in camelCase on standard
input, one document of known fields expected on standard output. A document that the host would
drop is dropped here too and counts as a fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .model import Request, Splice

# What the model is shown of a system step; asserted against the runtime in test_antigravity_facts.
SYSTEM_STEP_HEAD = "The following is a <SYSTEM_MESSAGE> not actually sent by the user."

_FIELDS = {"SessionStart": {"injectSteps"}, "PreInvocation": {"injectSteps"}, "Stop": {"decision", "reason"}}


@dataclass
class HookCall:
    """One hook process: what it was given, what it answered, what stood in the transcript then."""

    event: str
    conversation: str
    payload: dict[str, Any]
    request: int
    stdout: bytes
    stderr: bytes
    exit_code: int | None
    seconds: float
    transcript: list[tuple[int, str]]
    """(step index, type) of each whole line of the transcript at the moment of the call."""
    steps: list[tuple[str, str]] = field(default_factory=list)
    """(kind, text) of each injected step; kind is "ephemeral", "system" or "user"."""
    fault: str = ""


@dataclass
class _Conversation:
    """What the host knows of a conversation between its model requests."""

    started: bool = False
    invocation: int = 0
    steps_before: int = 0
    executions: int = 0
    kept: list[tuple[Splice, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def _documented_steps(event: str, document: Any) -> list[tuple[str, str]]:
    """The injected steps of a hook's document; ValueError for what a strict reader drops."""
    if not isinstance(document, dict):
        raise ValueError("not an object")
    unknown = set(document) - _FIELDS[event]
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    if event == "Stop" and document.get("decision") not in (None, ""):
        raise ValueError(f"a Stop hook that says {document['decision']!r}")
    found: list[tuple[str, str]] = []
    for step in document.get("injectSteps", []):
        if not isinstance(step, dict) or len(step) != 1:
            raise ValueError(f"a step with other than one key: {step!r:.200}")
        ((key, value),) = step.items()
        if key == "systemMessage":
            if not isinstance(value, dict) or set(value) != {"systemMessage"}:
                raise ValueError(f"a system step that is not exactly {{systemMessage: text}}: {value!r:.200}")
            value = value["systemMessage"]
        kind = {"ephemeralMessage": "ephemeral", "systemMessage": "system", "userMessage": "user"}.get(key)
        if kind is None or not isinstance(value, str):
            raise ValueError(f"an unknown step: {step!r:.200}")
        found.append((kind, value))
    return found


class HookCalls:
    """The host's side of hooks.json for all conversations of one driver."""

    def __init__(
        self,
        plugin: Path,
        workspaces: Callable[[str], list[str]],
        brain: Path,
        environment: dict[str, str],
        *,
        with_session_start: bool = True,
        transcript_name: str = "transcript.jsonl",
    ) -> None:
        self.calls: list[HookCall] = []
        self.known: set[str] = set()
        """Conversations that exist already, for which a resume fires no SessionStart."""
        self.transcript_of: Callable[[str], Path] = self._own_transcript
        """Path of the transcript that hooks are told of; another than the runtime's for what some builds do."""
        self._plugin, self._workspaces, self._brain = plugin, workspaces, brain
        self._environment = environment
        self._with_session_start = with_session_start
        self._transcript_name = transcript_name
        self._states: dict[str, _Conversation] = {}
        self._lock = threading.Lock()

    def _state(self, conversation: str) -> _Conversation:
        with self._lock:
            return self._states.setdefault(conversation, _Conversation())

    def new_turn(self, conversation: str) -> None:
        """A prompt of the user begins: invocation numbers count from 0 again."""
        state = self._state(conversation)
        state.invocation = 0

    def at_request(self, request: Request) -> None:
        """Run what a host runs before a model request; put the injected steps into the request's view."""
        if not request.conversation:
            return
        state = self._state(request.conversation)
        if request.kind == "summary":
            state.kept.clear()  # what stood before the compaction goes with it
            return
        if request.kind != "agent":
            return
        with state.lock:
            new = self._before_invocation(request, state)
            at = len(request.contents)
            fresh = tuple(Splice(at, kind, text) for kind, text in new)  # type: ignore[arg-type]
            for splice, before in state.kept:
                if _fingerprint(request, splice.at) != before:
                    raise AssertionError(
                        f"the history before content {splice.at} of {request.conversation} changed, so an"
                        " injected step has no place in it any more"
                    )
            request.spliced = (*(splice for splice, _ in state.kept), *fresh)
            state.kept += [(s, _fingerprint(request, s.at)) for s in fresh if s.kind != "ephemeral"]

    def _before_invocation(self, request: Request, state: _Conversation) -> list[tuple[str, str]]:
        conversation = request.conversation
        found: list[tuple[str, str]] = []
        if not state.started:
            state.started = True
            if self._with_session_start and conversation not in self.known:
                found += self.call("SessionStart", conversation, {}, request.number)
        self.known.add(conversation)
        if state.invocation == 0:
            state.steps_before = max((index for index, _ in self.transcript(conversation)), default=-1) + 1
        numbers = {"invocationNum": state.invocation, "initialNumSteps": state.steps_before}
        found += self.call("PreInvocation", conversation, numbers, request.number)
        state.invocation += 1
        return found

    def at_stop(self, conversation: str, error: str = "") -> None:
        """Run what a host runs at the end of an execution."""
        state = self._state(conversation)
        state.executions += 1
        more = {
            "executionNum": state.executions,
            "terminationReason": "ERROR" if error else "NO_TOOL_CALL",
            "error": error,
            "fullyIdle": True,
        }
        self.call("Stop", conversation, more, 0)

    def call(self, event: str, conversation: str, more: dict[str, Any], request: int) -> list[tuple[str, str]]:
        """Run each handler of an event, one after another; their injected steps in order."""
        folder = self._brain / conversation
        payload = {
            "conversationId": conversation,
            "workspacePaths": self._workspaces(conversation),
            "transcriptPath": str(self.transcript_of(conversation)),
            "artifactDirectoryPath": str(folder),
            "modelName": "stub-model",
            **more,
        }
        found: list[tuple[str, str]] = []
        hooks = json.loads((self._plugin / "hooks.json").read_text(encoding="utf-8"))
        for hook in hooks.values():
            for handler in hook.get(event, []) if hook.get("enabled", True) else ():
                call = self._run(event, handler, conversation, payload, request)
                with self._lock:
                    self.calls.append(call)
                found += call.steps
        return found

    def _run(
        self, event: str, handler: dict[str, Any], conversation: str, payload: dict[str, Any], request: int
    ) -> HookCall:
        shell = ["cmd", "/c"] if os.name == "nt" else ["sh", "-c"]
        lines = self.transcript(conversation)
        began = time.monotonic()
        stdout, stderr, code = b"", b"", None
        try:
            done = subprocess.run(
                [*shell, handler["command"]],
                input=json.dumps(payload).encode("utf-8"),
                cwd=self._plugin,
                env={**self._environment, "ANTIGRAVITY_CONVERSATION_ID": conversation},
                capture_output=True,
                timeout=handler.get("timeout", 30),
                check=False,
            )
            stdout, stderr, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            stderr = b"killed at its timeout"
        call = HookCall(
            event, conversation, payload, request, stdout, stderr, code, time.monotonic() - began, lines
        )
        try:
            if code != 0 or stderr:
                raise ValueError(f"exit code {code}, stderr {stderr[:300]!r}")
            call.steps = _documented_steps(event, json.loads(stdout.decode("ascii")))
        except ValueError as problem:
            call.fault = f"{event} of {conversation}: {problem}; stdout {stdout[:300]!r}"
        return call

    def _own_transcript(self, conversation: str) -> Path:
        return self._brain / conversation / ".system_generated" / "logs" / self._transcript_name

    def transcript(self, conversation: str) -> list[tuple[int, str]]:
        path = self._brain / conversation / ".system_generated" / "logs" / "transcript.jsonl"
        if not path.is_file():
            return []
        whole = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        return [(row["step_index"], row["type"]) for row in map(json.loads, whole)]

    @property
    def faults(self) -> list[str]:
        return [call.fault for call in self.calls if call.fault]

    def of(self, conversation: str, event: str | None = None) -> list[HookCall]:
        return [c for c in self.calls if c.conversation == conversation and event in (None, c.event)]


def _fingerprint(request: Request, at: int) -> str:
    return json.dumps(request.contents[:at], sort_keys=True)

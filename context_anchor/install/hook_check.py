"""Hook commands as a host would run them: the file's form, each command run once, its document judged."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from context_anchor.errors import HostConfigError
from context_anchor.hosts import antigravity as antigravity_host
from context_anchor.hosts import claude_code as claude_host
from context_anchor.install import host_settings, interpreter
from context_anchor.install.findings import Finding, Level

SESSION: Final = "context-anchor-doctor"
SLOW_S: Final = 0.5  # a hook stands in the way of every model call
_LIMIT_S: Final = 20.0
_CLAUDE_UNITS: Final = 10000  # above, the client replaces the text by a preview
_FLAT: Final = ("SessionStart", "PreInvocation", "PostInvocation", "Stop")
_HOST_EVENTS: Final = {"claude-code": claude_host.EVENTS, "antigravity": antigravity_host.EVENTS}
_NEEDED: Final = {
    "claude-code": ("SessionStart", "UserPromptSubmit", "PreToolUse", "PreCompact", "Stop", "SessionEnd"),
    "antigravity": ("PreInvocation", "Stop"),
}


@dataclass(frozen=True, slots=True)
class Handler:
    """One registered command: `words` without a shell (Claude Code), or one `line` for a shell (Antigravity)."""

    event: str
    words: tuple[str, ...] = ()
    line: str = ""

    @property
    def program(self) -> str:
        """The program that is started."""
        if self.words:
            return self.words[0]
        return self.line.split(" ", 1)[0] if os.name == "nt" else shlex.split(self.line)[0]


def check(host: str, root: Path) -> tuple[Finding, ...]:
    """Return the findings on a plugin folder's hooks: their form, then one run of each."""
    try:
        handlers, findings = read_handlers(host, root)
    except HostConfigError as problem:
        return (Finding("error", f"{host}.hooks", problem.message, "Install again.", code=problem.code),)
    missing = [event for event in _NEEDED[host] if event not in {handler.event for handler in handlers}]
    if missing:
        findings.append(
            Finding("error", f"{host}.hooks", f"no hook for {', '.join(missing)}", "Install again.", str(root))
        )
    findings += _programs(host, root, handlers)
    if any(finding.level == "error" for finding in findings):
        return tuple(findings)
    with tempfile.TemporaryDirectory(prefix="context-anchor-doctor-") as made:
        slowest = 0.0
        for handler in handlers:
            wrong, seconds = _try(host, root, handler, Path(made))
            slowest = max(slowest, seconds)
            if wrong:
                findings.append(
                    Finding(
                        "error",
                        f"{host}.hooks",
                        f"{handler.event}: {wrong}",
                        "Install again; if it stays, report it.",
                        str(root),
                    )
                )
    if all(finding.level != "error" for finding in findings):
        level, cure = ("ok", "") if slowest < SLOW_S else ("warning", _slow_cure(handlers))
        what = f"{len(handlers)} hooks ran and answered, the slowest in {slowest * 1000:.0f} ms"
        findings.append(Finding("ok" if level == "ok" else "warning", f"{host}.hooks", what, cure, str(root)))
    return tuple(findings)


def _slow_cure(handlers: list[Handler]) -> str:
    if any(interpreter.is_shim(handler.program) for handler in handlers):
        return "Install again: the commands start a version manager's shim."
    return "Run doctor again; if it stays, install again (byte code may not be cached)."


def read_handlers(host: str, root: Path) -> tuple[list[Handler], list[Finding]]:
    """Return the registered commands and what is wrong with the file's form.

    Raises HostConfigError where the host would drop the whole file.
    """
    return _claude_handlers(root) if host == "claude-code" else _antigravity_handlers(root)


def _claude_handlers(root: Path) -> tuple[list[Handler], list[Finding]]:
    manifest = _object(root / ".claude-plugin" / "plugin.json")
    named = manifest.get("hooks")
    if not isinstance(named, str) or not named.startswith("./"):
        raise HostConfigError(f"{root / '.claude-plugin' / 'plugin.json'} does not name its hooks file")
    path = root / named[2:]
    events = _object(path).get("hooks")
    if not isinstance(events, dict):
        raise HostConfigError(f"{path} holds no `hooks` object")
    findings = []
    if (root / "hooks" / "hooks.json").exists():
        findings.append(
            Finding(
                "error",
                "claude-code.hooks",
                "hooks/hooks.json is loaded besides the named file",
                "Remove it.",
                str(root),
            )
        )
    handlers: list[Handler] = []
    for event, groups in events.items():
        if event not in claude_host.EVENTS:
            findings.append(
                Finding(
                    "error",
                    "claude-code.hooks",
                    f"{event} is none of our events: older clients drop the whole file at a name they do not know",
                    "Install again.",
                    str(path),
                )
            )
            continue
        for group in groups if isinstance(groups, list) else [None]:
            for entry in group.get("hooks", [None]) if isinstance(group, dict) else [None]:
                words = _claude_words(entry, root)
                if words is None:
                    raise HostConfigError(f"{path}: {event} is not a list of groups of commands with `args`")
                handlers.append(Handler(event, words))
    return handlers, findings


def _claude_words(entry: Any, root: Path) -> tuple[str, ...] | None:
    if not isinstance(entry, dict) or entry.get("type") != "command":
        return None
    arguments = entry.get("args")
    words = [entry.get("command"), *(arguments if isinstance(arguments, list) else [None])]
    if not all(isinstance(word, str) for word in words):
        return None
    return tuple(str(word).replace("${CLAUDE_PLUGIN_ROOT}", str(root)) for word in words)


def _antigravity_handlers(root: Path) -> tuple[list[Handler], list[Finding]]:
    path = root / "hooks.json"
    document = _object(path)
    handlers: list[Handler] = []
    findings: list[Finding] = []
    for name, events in document.items():
        if not isinstance(events, dict) or "hooks" in document:
            raise HostConfigError(f"{path}: the top level must map a hook's name to its events, {name!r} does not")
        if not isinstance(events.get("enabled", True), bool):
            raise HostConfigError(f"{path}: `enabled` of {name!r} is neither true nor false")
        for event, entries in events.items():
            if event == "enabled":
                continue
            if event not in antigravity_host.EVENTS:
                findings.append(
                    Finding(
                        "warning",
                        "antigravity.hooks",
                        f"{event} is none of our events",
                        "Install again.",
                        str(path),
                    )
                )
                continue
            for entry in entries if isinstance(entries, list) else [None]:
                handlers.append(Handler(event, line=_antigravity_line(path, event, entry)))
        if events.get("enabled") is False:
            findings.append(
                Finding(
                    "warning",
                    "antigravity.hooks",
                    f"{name} is switched off in hooks.json",
                    "Remove `enabled`, or set it to true.",
                    str(path),
                )
            )
    return handlers, findings


def _antigravity_line(path: Path, event: str, entry: Any) -> str:
    line = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(line, str) or entry.get("type", "command") != "command" or "hooks" in entry:
        raise HostConfigError(
            f"{path}: {event} must be a flat list of commands ({', '.join(_FLAT)} take no matcher)"
        )
    timeout = entry.get("timeout", 30)
    if not isinstance(timeout, int) or isinstance(timeout, bool) or timeout <= 0:
        raise HostConfigError(
            f"{path}: {event}: timeout must be a whole number of seconds above 0, not {timeout!r}"
        )
    if '"' in line:
        raise HostConfigError(f"{path}: {event}: the command holds a double quote, which breaks it on Windows")
    return line


def _object(path: Path) -> dict[str, Any]:
    value = host_settings.read_object(path)
    if value is None:
        raise HostConfigError(f"{path} is missing or empty")
    return value


def _programs(host: str, root: Path, handlers: list[Handler]) -> list[Finding]:
    """Return findings on what the commands start; a command that is not ours is never run."""
    found = []
    for handler in handlers:
        text = handler.line or " ".join(handler.words)
        if "hook.py" not in text or host not in text or handler.event not in text:
            found.append(
                Finding(
                    "error",
                    f"{host}.hooks",
                    f"{handler.event} starts something else: {text[:200]}",
                    "Install again.",
                    str(root),
                )
            )
    for program in sorted({handler.program for handler in handlers}):
        level, what = _judge_program(host, program)
        if what:
            cure = "Install again; it writes the real interpreter into the commands."
            found.append(Finding(level, f"{host}.python", what, cure, str(root)))
    return found


def _judge_program(host: str, program: str) -> tuple[Level, str]:
    lies = program if Path(program).is_absolute() else shutil.which(program)
    if lies is None or not Path(lies).exists():
        # Antigravity's line goes on with a second program, Claude Code's hook has none.
        return ("error" if host == "claude-code" else "warning"), f"hooks start {program}, which is gone"
    if interpreter.is_shim(lies):
        return "warning", f"hooks start a version manager's shim: {lies}"
    if interpreter.is_store_alias(lies):
        return "warning", f"hooks start `{program}`, which is Windows' app alias and may only open the store"
    return "ok", ""


def _try(host: str, root: Path, handler: Handler, made: Path) -> tuple[str, float]:
    """Run one hook as its host would, on a sample payload and in a data folder of its own.

    Returns what is wrong ("" for nothing) and the seconds it took.
    """
    payload = json.dumps(sample_payload(host, handler.event, made)).encode("utf-8")
    env = {**os.environ, "CONTEXT_ANCHOR_DATA_DIR": str(made / "data")}
    cwd = made
    if host == "claude-code":
        env.update(CLAUDE_PLUGIN_ROOT=str(root), CLAUDE_PROJECT_DIR=str(made), CLAUDE_PID=str(os.getpid()))
    else:
        cwd = root
    command: str | list[str] = handler.line if handler.line else list(handler.words)
    started = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            shell=bool(handler.line),
            input=payload,
            capture_output=True,
            timeout=_LIMIT_S,
            env=env,
            cwd=cwd,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {_LIMIT_S:.0f} s", _LIMIT_S
    except OSError as problem:
        return f"does not start: {problem}", 0.0
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[-200:]}", seconds
    if not done.stderr.isascii():
        return "text that is not ASCII on standard error, which has crashed a host", seconds
    return judge(host, handler.event, done.stdout), seconds


def sample_payload(host: str, event: str, folder: Path) -> Mapping[str, Any]:
    """Return what a host sends for an event, on a session that does not exist."""
    if host == "claude-code":
        return {
            "session_id": SESSION,
            "transcript_path": str(folder / "none.jsonl"),
            "cwd": str(folder),
            "hook_event_name": event,
            "source": "startup",
            "trigger": "auto",
            "custom_instructions": None,
            "reason": "other",
            "prompt": "doctor",
            "tool_name": "none",
            "tool_input": {},
            "tool_use_id": "none",
            "tool_calls": [],
            "compact_summary": "",
            "stop_hook_active": False,
        }
    return {
        "conversationId": SESSION,
        "workspacePaths": [str(folder)],
        "transcriptPath": str(folder / "none.jsonl"),
        "artifactDirectoryPath": str(folder),
        "invocationNum": 0,
        "initialNumSteps": 1,
        "executionNum": 0,
        "terminationReason": "NO_TOOL_CALL",
        "error": "",
        "fullyIdle": True,
    }


def judge(host: str, event: str, out: bytes) -> str:
    """Return what is wrong with the document that a hook wrote, "" for nothing."""
    if not out.isascii():
        return "the document is not ASCII"
    text = out.decode("ascii")
    if host == "claude-code" and event in ("PreCompact", "PostCompact"):
        if (event == "PostCompact" and text) or text.lstrip().startswith("{"):
            return f"wrote {text[:80]!r}, which the client would show to the model as it is"
        return ""
    try:
        value = json.loads(text)
    except ValueError:
        return f"not one JSON document: {text[:120]!r}"
    if not isinstance(value, dict):
        return f"not a JSON object: {text[:120]!r}"
    return _judge_claude(event, value) if host == "claude-code" else _judge_antigravity(value)


def _judge_claude(event: str, value: dict[str, Any]) -> str:
    if not value:
        return "a new session was told nothing" if event == "SessionStart" else ""
    inner = value.get("hookSpecificOutput")
    if set(value) != {"hookSpecificOutput"} or not isinstance(inner, dict):
        return f"unknown fields: {sorted(value)}"
    if inner.get("hookEventName") != event or set(inner) != {"hookEventName", "additionalContext"}:
        return f"hookSpecificOutput is not of {event}: {sorted(inner)}"
    text = inner["additionalContext"]
    if not isinstance(text, str) or len(text.encode("utf-16-le")) // 2 > _CLAUDE_UNITS:
        return f"additionalContext is no text of at most {_CLAUDE_UNITS} UTF-16 units"
    return ""


def _judge_antigravity(value: dict[str, Any]) -> str:
    if not value:
        return ""
    steps = value.get("injectSteps")
    if set(value) != {"injectSteps"} or not isinstance(steps, list):
        return f"unknown fields, which drop the whole output: {sorted(value)}"
    for step in steps:
        if not isinstance(step, dict) or len(step) != 1:
            return "a step must have exactly one key"
        ((kind, content),) = step.items()
        if kind in ("ephemeralMessage", "userMessage"):
            if not isinstance(content, str):
                return f"{kind} is no text"
        elif kind != "systemMessage" or not isinstance(content, dict) or set(content) != {"systemMessage"}:
            return f"step {kind!r} is not of a form that every build takes"
    return ""

"""Claude Code: payload fields, transcript lines to signals, windows and thresholds, outputs.

Sources: measured on the client 2.1.332 and 2.1.197 against a stub model, and 749 public session logs of
2.0.64 to 2.1.235 (`docs/hosts.md` has the table).
"""

from __future__ import annotations

import os

from context_anchor.wire import atomic, bundle, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

HOST = "claude-code"
TOOL = "mcp__plugin_context-anchor_anchors__pin_context"
CAP_UNITS = 9900  # the host takes 10,000 UTF-16 units per hook; above, the model sees a 2 KB preview
RECORDS_INJECTIONS = True  # `attachment` lines of type hook_additional_context
DROPS_ARE_COMPACTIONS = False  # resumes, clears and microcompacts lower the usage as well

# event -> what the dispatcher does; the names are the host's.
EVENTS = {
    "SessionStart": "start",
    "UserPromptSubmit": "turn",
    "PostToolBatch": "turn",
    "PostToolUse": "turn",
    "PreToolUse": "call",
    "PreCompact": "precompact",
    "PostCompact": "note",
    "Stop": "stop",
    "SessionEnd": "end",
}
_INJECTING = ("SessionStart", "UserPromptSubmit", "PostToolBatch", "PostToolUse")

_MARKERS = (b'"usage"', b"compact_boundary", b"isCompactSummary", b"context-anchor receipt r-")
_MILLION = (
    "claude-opus-5", "claude-opus-4-8", "claude-sonnet-5", "claude-fable-5", "claude-haiku-5",
)
_TWO_HUNDRED = (
    "claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5",
    "claude-opus-4-1", "claude-opus-4-0", "claude-opus-4-2", "claude-sonnet-4-0", "claude-sonnet-4-2",
    "claude-3-7", "claude-3-5",
)
# These do not compact by themselves on the measured clients (2.1.197, 2.1.332).
_NOT_BY_ITSELF = ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5")
_OUTPUT_TOKENS = 20000
_MARGIN_TOKENS = 13000
_ABSURD = 10**10  # no count of tokens


def read_payload(event: str, raw: dict[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a payload under our names; values of the wrong type count as absent."""

    def text(name: str) -> str:
        value = raw.get(name)
        return value if isinstance(value, str) else ""

    pid = env.get("CLAUDE_PID", "")
    folder = env.get("CLAUDE_PROJECT_DIR", "") or text("cwd")
    return {
        "event": event,
        "session_id": text("session_id"),
        "transcript": text("transcript_path"),
        "cwd": text("cwd"),
        "folders": [folder] if folder else [],
        "source": text("source"),
        "reason": text("reason"),
        "trigger": text("trigger"),
        "model": text("model"),
        "agent": bool(text("agent_id")),
        "parent": "",
        "tool_use_id": text("tool_use_id"),
        "tool_name": text("tool_name"),
        "host_pid": int(pid) if pid.isdecimal() and len(pid) < 12 else os.getppid(),
    }


def transcript_files(payload_path: str) -> str:
    """Return the transcript to read: the one the payload names."""
    return os.path.expanduser(payload_path)


def owns_tool(name: str) -> bool:
    """Tell whether a tool of this host is one of ours."""
    return name.startswith(("mcp__plugin_context-anchor_anchors__", "mcp__anchors__"))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _ABSURD else 0


def read_line(line: bytes, at_start: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yield the signals of one transcript line; lines that can't matter are not parsed.

    Besides the signals of `watch.compaction`: ("model", id), ("version", text), ("trace", receipt id).
    """
    if not any(marker in line for marker in _MARKERS):
        return
    at = 0
    text = quickjson.frugal_text(line)
    # Two records on one line were seen where a file without a last newline was appended to.
    for _ in range(4):
        try:
            value, at = quickjson.decode_prefix(text, at)
        except ValueError:
            return
        if isinstance(value, dict):
            yield from _record(value)
        if not text[at:].strip():
            return


def _record(value: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    kind = value.get("type")
    if value.get("isSidechain") is True:
        return
    if kind == "assistant":
        yield from _assistant(value)
    elif kind == "system":
        if value.get("subtype") == "compact_boundary":
            yield ("boundary", str(value.get("uuid") or ""), _preserved(value))
    elif kind == "user":
        if value.get("isCompactSummary") is True:
            yield ("summary", str(value.get("parentUuid") or ""), str(value.get("uuid") or ""))
    elif kind == "attachment":
        # `hook_success` only says that a hook ran; this type says that its text was added.
        attachment = value.get("attachment")
        if isinstance(attachment, dict) and attachment.get("type") == "hook_additional_context":
            content = attachment.get("content")
            for text in content if isinstance(content, list) else [content]:
                if isinstance(text, str):
                    yield from traces(text)


def _preserved(value: dict[str, Any]) -> list[str]:
    """Return the ids of the lines that a compaction kept: a fork's file repeats them behind the boundary."""
    found = value.get("compactMetadata")
    found = found.get("preservedMessages") if isinstance(found, dict) else None
    found = found.get("allUuids") if isinstance(found, dict) else None
    return [v for v in found if isinstance(v, str)][-40:] if isinstance(found, list) else []


def _assistant(value: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    message = value.get("message")
    if not isinstance(message, dict) or value.get("isApiErrorMessage") is True:
        return
    model = message.get("model")
    if model == "<synthetic>":
        return
    identity = str(value.get("uuid") or "")
    yield ("assistant", str(value.get("timestamp") or ""), identity)
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return
    context = sum(
        _whole(usage.get(name))
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    )
    if context == 0:
        return
    yield ("sample", str(message.get("id") or ""), context + _whole(usage.get("output_tokens")), identity)
    if isinstance(model, str):
        yield ("model", model)
    if isinstance(value.get("version"), str):
        yield ("version", value["version"])


def traces(text: str) -> Iterator[tuple[str, str]]:
    """Yield ("trace", receipt id) for each receipt that a text cites."""
    for receipt in bundle.find_receipts(text):
        yield ("trace", receipt)


def first_line_id(head: bytes) -> str:
    """Return the id of the first line that has one in a transcript's first bytes, or ''.

    A fork copies its parent's lines with their ids, from the parent's last boundary on (measured).
    """
    for line in head.split(b"\n")[:60]:
        identity = line_id(line)
        if identity:
            return identity
    return ""


def line_id(line: bytes) -> str:
    """Return a transcript line's `uuid`, '' where it has none or is cut."""
    if b'"uuid"' not in line:
        return ""
    try:
        value, _ = quickjson.decode_prefix(line)
    except ValueError:
        return ""
    identity = value.get("uuid") if isinstance(value, dict) else None
    return identity if isinstance(identity, str) else ""


def _number(env: Mapping[str, str], name: str) -> int | None:
    text = (env.get(name) or "").strip()
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) > 0 else None


def _on(env: Mapping[str, str], name: str) -> bool:
    return (env.get(name) or "").strip().lower() in ("1", "true", "yes", "on")


def window(model: str, env: Mapping[str, str], tokens: int = 0) -> int | None:
    """Return the model's context window in tokens, None where the model is not known.

    A transcript names models without `[1m]`, so a request above 200,000 tokens tells the large window.
    """
    name = model[model.find("claude-") :] if "claude-" in model else model
    given = env.get("ANTHROPIC_MODEL") or ""
    if "[1m]" in model or ("[1m]" in given and given.replace("[1m]", "") in model):
        return 1000000
    if name.startswith(_MILLION):
        return 1000000
    if name.startswith(_TWO_HUNDRED):
        return 1000000 if tokens > 200000 else 200000
    return _number(env, "CLAUDE_CODE_MAX_CONTEXT_TOKENS")


def threshold(
    model: str, version: str, env: Mapping[str, str], settings: dict[str, Any], tokens: int = 0
) -> int | None:
    """Return the tokens at which the client compacts by itself, or the window where it does not.

    None where the model is unknown. Formula, measured: min(window, auto-compact window) less the output
    reserve (20,000 or CLAUDE_CODE_MAX_OUTPUT_TOKENS) less 13,000; CLAUDE_AUTOCOMPACT_PCT_OVERRIDE can only
    lower it. Clients up to 2.1.22 compacted at 155,000 of 200,000.
    """
    size = window(model, env, tokens)
    if size is None:
        return None
    if _on(env, "DISABLE_AUTO_COMPACT") or _on(env, "DISABLE_COMPACT"):
        return size
    if settings.get("autoCompactEnabled") is False:
        return size
    chosen = _number(env, "CLAUDE_CODE_AUTO_COMPACT_WINDOW") or settings.get("autocompactFlag")
    chosen = chosen or settings.get("autoCompactWindow")
    wide = size
    if isinstance(chosen, int) and not isinstance(chosen, bool) and chosen > 0:
        wide = min(max(chosen, 100000), size) if size >= 100000 else size
    elif any(name in model for name in _NOT_BY_ITSELF) and _since(version, (2, 1, 50)):
        return size
    elif "claude-opus-4-8" in model and version and not _since(version, (2, 1, 198)):
        return size  # measured: not by itself on 2.1.197, at 967,000 on 2.1.332
    if version and not _since(version, (2, 1, 23)) and size == 200000 and wide == size:
        return 155000
    reserve = min(_number(env, "CLAUDE_CODE_MAX_OUTPUT_TOKENS") or _OUTPUT_TOKENS, _OUTPUT_TOKENS)
    usual = wide - reserve - _MARGIN_TOKENS
    percent = _number(env, "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    if percent:
        usual = min(usual, (wide - reserve) * percent // 100)
    return max(usual, 1)


def _since(version: str, floor: tuple[int, ...]) -> bool:
    parts = [int(p) for p in version.split(".") if p.isdecimal() and len(p) < 10]
    return not parts or tuple(parts) >= floor


def read_settings(env: Mapping[str, str], folder: str) -> dict[str, Any]:
    """Return the settings that move the threshold: autoCompactEnabled, autoCompactWindow, autocompactFlag.

    The project's files win over the user's, as in the client. A file that can't be parsed is passed over.
    """
    home = env.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    found: dict[str, Any] = {}
    files = [os.path.join(home, "settings.json")]
    if folder:
        files += [os.path.join(folder, ".claude", n) for n in ("settings.json", "settings.local.json")]
    for path in files:
        try:
            raw = atomic.read_bytes(path, 262144)
            value = quickjson.loads(raw) if raw and b"autoCompact" in raw else None
        except (OSError, ValueError):
            continue
        if isinstance(value, dict):
            if isinstance(value.get("autoCompactEnabled"), bool):
                found["autoCompactEnabled"] = value["autoCompactEnabled"]
            if _whole(value.get("autoCompactWindow")):
                found["autoCompactWindow"] = value["autoCompactWindow"]
    flag = _flag(os.getppid())
    if flag:
        found["autocompactFlag"] = flag
    return found


def _flag(pid: int) -> int:
    """Return the value of the client's `--autocompact` flag, 0 where it can't be seen (Linux shows it)."""
    try:
        words = (atomic.read_bytes("/proc/%d/cmdline" % pid, 262144) or b"").split(b"\0")
    except (OSError, ValueError):
        return 0
    for at, word in enumerate(words):
        name, same, value = word.partition(b"=")
        if name == b"--autocompact":
            text = value if same else (words[at + 1] if at + 1 < len(words) else b"")
            return int(text) if text.isdigit() and len(text) < 10 else 0
    return 0


def respond(event: str, text: str, kind: str) -> str:
    """Return the document for stdout: JSON, plain text for PreCompact, nothing for PostCompact.

    After a manual /compact the client shows stdout of PreCompact and PostCompact to the model as it is, so
    an empty answer there is no bytes at all.
    """
    if event == "PreCompact":
        return text
    if event == "PostCompact":
        return ""
    if not text or event not in _INJECTING:
        return "{}"
    return quickjson.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})

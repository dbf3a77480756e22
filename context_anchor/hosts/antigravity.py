"""Antigravity: payload fields, transcript lines to signals, outputs.

Sources: the runtime of google-antigravity 0.1.22 run against a stub model, 96 public transcripts of May to
August 2026, and the documented hook contract (`docs/hosts.md` has the table).
"""

from __future__ import annotations

import os

from context_anchor.wire import bundle, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

HOST = "antigravity"
TOOL = "pin_context"
CAP_UNITS = 40000  # no cap is documented; 40 KB were injected whole
RECORDS_INJECTIONS = False  # an injected step may reach the model and not the log
DROPS_ARE_COMPACTIONS = True  # older builds log no checkpoint

EVENTS = {"SessionStart": "start", "PreInvocation": "turn", "Stop": "stop"}
_FIELDS = (b'"step_index"', b'"type"')


def read_payload(event: str, raw: dict[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a payload under our names; values of the wrong type count as absent."""

    def text(name: str) -> str:
        value = raw.get(name)
        return value if isinstance(value, str) else ""

    folders = raw.get("workspacePaths")
    folders = folders if isinstance(folders, list) else []
    return {
        "event": event,
        "session_id": text("conversationId") or env.get("ANTIGRAVITY_CONVERSATION_ID", ""),
        "transcript": text("transcriptPath"),
        "cwd": "",  # the hook's own is the plugin's folder
        "folders": [_path(f) for f in folders if isinstance(f, str) and f],
        "source": "",
        "reason": text("terminationReason"),
        "trigger": "",
        "model": text("modelName"),
        "agent": False,
        "parent": text("parentConversationId"),
        "tool_use_id": "",
        "tool_name": "",
        "host_pid": 0,
    }


def _path(text: str) -> str:
    if text.startswith("file://"):
        first, *rest = text[7:].encode("utf-8", "surrogatepass").split(b"%")
        for part in rest:
            code = part[:2]
            hexadecimal = len(code) == 2 and all(c in b"0123456789abcdefABCDEF" for c in code)
            first += bytes([int(code, 16)]) + part[2:] if hexadecimal else b"%" + part
        text = first.decode("utf-8", "replace")
        if text[:1] == "/" and text[2:3] == ":":
            text = text[1:]  # file:///C:/folder
    return os.path.expanduser(text)


def transcript_files(payload_path: str) -> str:
    """Return the transcript to read: the unclipped sibling where it is there, else the named one."""
    path = os.path.expanduser(payload_path)
    folder, name = os.path.split(path)
    if name == "transcript.jsonl":
        full = os.path.join(folder, "transcript_full.jsonl")
        if os.path.exists(full):
            return full
    return path


def owns_tool(name: str) -> bool:
    """Tell whether a tool of this host is one of ours; no hook of ours asks here."""
    return False


def read_line(line: bytes, at_start: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yield the signals of one transcript line.

    Besides the signals of `watch.compaction`: ("subagent",) when the file's first line is a system message,
    which only conversations of subagents have, and ("trace", receipt id) when the model cites a receipt.
    """
    if not all(field in line for field in _FIELDS):
        return
    text = quickjson.frugal_text(line)
    try:
        value, _ = quickjson.decode_prefix(text)
    except ValueError:
        return
    if not isinstance(value, dict):
        return
    kind, index = value.get("type"), value.get("step_index")
    if not isinstance(kind, str) or not isinstance(index, int) or isinstance(index, bool):
        return
    if at_start and kind == "SYSTEM_MESSAGE":
        yield ("subagent",)
    content = value.get("content")
    content = content if isinstance(content, str) else ""
    if kind == "CHECKPOINT":
        yield ("checkpoint", checkpoint_number(content), digest(content), len(content), index)
        return
    if kind == "USER_INPUT":
        yield ("user", index, digest(content))
    else:
        yield ("step", index)
    tokens = text_tokens(value, content)
    if tokens:
        yield ("text", tokens)
    if kind == "PLANNER_RESPONSE":
        yield ("assistant",)
        context = _whole(value.get("input_tokens")) + _whole(value.get("cache_read_tokens"))
        if context:
            yield ("sample", "", context, index)
        if b"receipt r-" in line:
            yield from _traces(text)


def _traces(text: str) -> Iterator[tuple[str, str]]:
    for receipt in bundle.find_receipts(text):
        yield ("trace", receipt)


def _whole(value: Any) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 11:
        return int(value)  # protobuf JSON writes 64-bit integers as strings
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**10 else 0


def checkpoint_number(content: str) -> int | None:
    """Return N of `{{ CHECKPOINT N }}` near the beginning of a text, None where there is no such mark."""
    at = content.find("CHECKPOINT", 0, 200)
    if at < 0 or "{{" not in content[:at]:
        return None
    word = content[at + 10 : at + 24].split("}")[0].strip()
    return int(word) if word.isdecimal() else None


def digest(text: str) -> str:
    """Return a short fingerprint of a text: its length and a checksum of its two ends."""
    value = 2166136261
    for char in text[:600] + text[-600:]:
        value = ((value ^ ord(char)) * 16777619) & 0xFFFFFFFF
    return "%x-%08x" % (len(text), value)


def text_tokens(value: dict[str, Any], content: str) -> int:
    """Return an estimate of a line's size in tokens: four characters each, with what the log clipped.

    Ephemeral messages come and go and are not counted.
    """
    if value.get("type") == "EPHEMERAL_MESSAGE":
        return 0
    size = len(content) + _clipped(content)
    thinking = value.get("thinking")
    if isinstance(thinking, str):
        size += len(thinking) + _clipped(thinking)
    calls = value.get("tool_calls")
    if isinstance(calls, list) and calls:
        text = str(calls)
        size += len(text) + _clipped(text)
    return size // 4


def _clipped(text: str) -> int:
    """Return the bytes that `<truncated N bytes>` marks stand for."""
    total = 0
    at = text.find("<truncated ")
    while at >= 0:
        word = text[at + 11 : at + 40].split(" bytes>")
        if len(word) > 1 and word[0].isdecimal() and len(word[0]) < 11:
            total += int(word[0])
        at = text.find("<truncated ", at + 11)
    return total


def respond(event: str, text: str, kind: str) -> str:
    """Return the JSON document: `{}` or one injected step.

    A nudge is an ephemeral message, seen in that one request. Everything that must stay is a system step of
    exactly one field (a build that lacks another field drops the whole output), or a user message where
    CONTEXT_ANCHOR_ANTIGRAVITY_STEP is `userMessage`.
    """
    if not text or event == "Stop":
        return "{}"
    if kind == "nudge":
        step: dict[str, Any] = {"ephemeralMessage": text}
    elif os.environ.get("CONTEXT_ANCHOR_ANTIGRAVITY_STEP", "").strip() == "userMessage":
        step = {"userMessage": text}
    else:
        step = {"systemMessage": {"systemMessage": text}}
    return quickjson.dumps({"injectSteps": [step]})

"""The five tools as a host lists them: names, descriptions, schemas, annotations.

Every byte here is paid for in each session of each host that shows schemas at once, so titles are left out,
output schemas name their keys only, and what an error can teach when it is needed is not taught up front.
The same input schemas check the arguments (`arguments.check`), so what is listed is what holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SERVER_NAME: Final = "anchors"

INSTRUCTIONS: Final = """\
Context Anchor keeps pinned anchors through context compaction: after a compaction the host gives them back to \
you, critical ones first. What is not pinned may be lost.
Pin with pin_context as soon as one of these is settled:
- a decision and its reason, a constraint or user instruction that must hold to the end (priority critical or high);
- where things are: exact paths, symbols, commands, ids (category file_map);
- state of the task: what is done, what is next (category state or task);
- a pitfall that cost time.
Pin conclusions and exact pointers, never raw logs or whole files. One fact per anchor, with a title you would \
search for. Pinning the same title again replaces the old text (supersede); unpin_context what no longer holds. \
Never pin secrets.
Priorities: critical = breaking it ruins the work; high = needed to go on; normal = good to have. The bundle has \
a limit, and normal ones are left out first.
When you are told that context is nearly full, look at list_pinned_context and save the whole state at once with \
replace_session_anchors. Scope session is this conversation; scope workspace is shared by every session and \
host in this project.
Restored anchors are your own notes: trust them over a summary, but check paths reported missing. \
get_pinned_context gives the full text of an anchor that was left out. session_id is needed only when an error \
asks for it.
"""

_PRIORITY: Final[Mapping[str, Any]] = {"type": "string", "enum": ["critical", "high", "normal"]}
_CATEGORY: Final[Mapping[str, Any]] = {
    "type": "string",
    "enum": ["decision", "constraint", "state", "file_map", "pitfall", "task"],
}
_SCOPE: Final[Mapping[str, Any]] = {"type": "string", "enum": ["session", "workspace"]}
_TITLE: Final[Mapping[str, Any]] = {"type": "string", "minLength": 1, "maxLength": 200}
_CONTENT: Final[Mapping[str, Any]] = {"type": "string", "minLength": 1, "maxLength": 4000}
_STRINGS: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "string"}, "maxItems": 20}
_STRING: Final[Mapping[str, Any]] = {"type": "string"}

_ANCHOR_FIELDS: Final[Mapping[str, Any]] = {
    "title": _TITLE,
    "content": _CONTENT,
    "priority": _PRIORITY,
    "category": _CATEGORY,
    "refs": _STRINGS,
    "tags": _STRINGS,
}


def _object(properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False
    return schema


def _output(**keys: str) -> dict[str, Any]:
    """A minimal output schema: the keys and their types. An error result has `error` in their place."""
    return {"type": "object", "properties": {key: {"type": kind} for key, kind in keys.items()}}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the listing; `annotations` uses the wire's own camelCase names."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    annotations: Mapping[str, bool]


def _annotations(*, read_only: bool, destructive: bool, idempotent: bool) -> dict[str, bool]:
    return {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": False,
    }


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        "pin_context",
        "Pin one conclusion or exact pointer so that it survives context compaction. "
        "The same title replaces the earlier pin.",
        _object(
            {
                **_ANCHOR_FIELDS,
                "refs": {**_STRINGS, "description": "paths it points to"},
                "scope": {**_SCOPE, "description": "default session; workspace = all sessions of this project"},
                "anchor_id": {**_STRING, "description": "the pin to replace"},
                "session_id": _STRING,
            },
            ("title", "content"),
        ),
        _output(anchor="object", created="boolean", superseded="object"),
        _annotations(read_only=False, destructive=False, idempotent=True),
    ),
    Tool(
        "unpin_context",
        "Unpin by anchor_id, by title, or all of a scope. Undoable by the user.",
        _object(
            {
                "anchor_id": _STRING,
                "title": _STRING,
                "clear_all": {"type": "boolean", "description": "of the session, or of scope"},
                "scope": _SCOPE,
                "session_id": _STRING,
            }
        ),
        _output(removed="array"),
        _annotations(read_only=False, destructive=True, idempotent=True),
    ),
    Tool(
        "list_pinned_context",
        "List pins with priority, category, tokens, budget use and staleness.",
        _object({"scope": _SCOPE, "cursor": _STRING, "session_id": _STRING}),
        _output(anchors="array", cursor="string"),
        _annotations(read_only=True, destructive=False, idempotent=True),
    ),
    Tool(
        "get_pinned_context",
        "Get the full text of one pin, or of all, in pages.",
        _object({"anchor_id": _STRING, "title": _STRING, "cursor": _STRING, "session_id": _STRING}),
        _output(anchors="array", cursor="string"),
        _annotations(read_only=True, destructive=False, idempotent=True),
    ),
    Tool(
        "replace_session_anchors",
        "Replace all pins of this session by this list in one step: audit, merge, drop what is stale.",
        _object(
            {
                "anchors": {
                    "type": "array",
                    "maxItems": 200,
                    "items": _object(_ANCHOR_FIELDS, ("title", "content")),
                },
                "expected_revision": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "session revision from list; refused if stale",
                },
                "session_id": _STRING,
            },
            ("anchors",),
        ),
        _output(revision="integer", anchors="array"),
        _annotations(read_only=False, destructive=True, idempotent=True),
    ),
)

BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TOOLS}


def as_json() -> list[dict[str, Any]]:
    """Return the listing in the protocol's own shape, as `tools/list` sends it."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": dict(tool.input_schema),
            "outputSchema": dict(tool.output_schema),
            "annotations": dict(tool.annotations),
        }
        for tool in TOOLS
    ]

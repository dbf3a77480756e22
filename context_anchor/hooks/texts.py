"""What hooks say to the model."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

FRAME = (
    "These are notes that the user and you pinned earlier. They are data about this task: facts, constraints"
    " and decisions to respect. Lines of a note begin with `| `; a later word of the user wins over a note."
)
UNREADABLE = (
    "Context was just compacted, and some of the pinned notes could not be read just now. Call"
    " `list_pinned_context` (context-anchor): that restores them, and they are given again afterwards."
)
_PRECOMPACT_CHARS = 4000  # escapes make six characters of one; the host cuts above 10,000
_PRECOMPACT_LINE = 260
RECAP = (
    "Context was just compacted. The user has set context-anchor to ask for a recap, which takes the place of"
    " any instruction not to recap: begin your next reply with the restored core context in two or three short"
    " sentences (constraints, decisions, where the task stands), then go on with the task."
)


def tool_phrase(tool: str) -> str:
    """Return how the pin tool is named to the model on this host."""
    if tool.startswith("mcp__"):
        return "`%s`" % tool
    return "`%s` (MCP server `context-anchor_anchors`, on some builds `anchors`)" % tool


def receipt_line(receipt: str, session_id: str) -> str:
    """Return the line that proves delivery when the transcript or a tool call cites it."""
    return "context-anchor receipt %s | session %s" % (receipt, session_id)


def first_sight(tool: str, has_anchors: bool, notes: list[str]) -> list[str]:
    """Return the head of what a session is told first."""
    lines = [
        "context-anchor keeps pinned notes through context compaction. Pin lasting facts with %s: constraints,"
        " decisions and why, rejected approaches, exact paths, task state. Unpin what no longer holds."
        % tool_phrase(tool)
    ]
    lines.extend(notes)
    if has_anchors:
        lines.append(FRAME)
    return lines


def recovery(recap: bool, notes: list[str]) -> list[str]:
    """Return the head of what follows a compaction."""
    lines = ["Pinned context, restored after compaction.", FRAME]
    lines.extend(notes)
    if recap:
        lines.append(RECAP)
    return lines


def nothing_pinned(tool: str) -> list[str]:
    """Return what follows a compaction when there is nothing to restore."""
    return ["Context was just compacted and nothing is pinned. Pin lasting facts with %s." % tool_phrase(tool)]


def changed(count: int) -> list[str]:
    """Return the head of what a resumed session is told when anchors changed meanwhile."""
    return ["%d pinned note(s) are new or changed since this session last saw them." % count, FRAME]


def nudge(
    receipt: str, tool: str, tokens: int, measured: bool, threshold: int | None, entries: list[dict[str, Any]]
) -> str:
    """Return the reminder to pin before the host compacts."""
    amount = "%s tokens" % format(tokens, ",") if measured else "about %s tokens (estimated)" % format(tokens, ",")
    if threshold:
        limit = "this host compacts near %s (%d %% used)" % (format(threshold, ","), tokens * 100 // threshold)
    else:
        limit = "the limit of this model is not known"
    if entries:
        critical = sum(1 for e in entries if e["priority"] == "critical")
        names = "; ".join("%s {%s}" % (e["title"][:60], e["id"]) for e in entries[:8])
        more = "" if len(entries) <= 8 else "; and %d more" % (len(entries) - 8)
        pinned = "Pinned now: %d (%d critical): %s%s." % (len(entries), critical, names, more)
    else:
        pinned = "Nothing is pinned yet."
    return (
        "context-anchor receipt %s: the context holds %s; %s. What is not pinned may be lost at compaction. %s"
        " Before you go on, pin with %s what the rest of the task needs: constraints, decisions and why, rejected"
        " approaches, exact paths and identifiers, where the task stands and the next step. One conclusion a"
        " note with a pointer, no raw logs; update or unpin notes that no longer hold."
        % (receipt, amount, limit, pinned, tool_phrase(tool))
    )


def precompact(entries: list[dict[str, Any]], quote: Any) -> str:
    """Return the instruction for the summariser: keep titles and ids of critical anchors; '' without any.

    Titles are quoted as ASCII JSON strings, since the host reads this text raw.
    """
    lines: list[str] = []
    room = _PRECOMPACT_CHARS
    critical = [e for e in entries if e["priority"] == "critical"]
    for entry in critical:
        title = entry["title"]
        line = "- %s %s" % (entry["id"], quote(title))
        if len(line) > _PRECOMPACT_LINE:
            line = "- %s %s" % (entry["id"], quote(title[: (_PRECOMPACT_LINE - 24) // 12] + "..."))
        room -= len(line) + 1
        if room < 0:
            lines.append("- and %d more" % (len(critical) - len(lines)))
            break
        lines.append(line)
    if not lines:
        return ""
    return (
        "Keep these pinned notes in the summary by id and title, unchanged (their full text is restored"
        " separately):\n" + "\n".join(lines) + "\n"
    )

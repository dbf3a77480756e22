"""The ready-made survival bundle: parts on disk, selection within a budget, the final text."""

from __future__ import annotations

import os
import time

from context_anchor.wire import atomic, quickjson

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

FORMAT = "context-anchor-bundle/1"
DEFAULT_BUDGET = 14000
MAX_PART_BYTES = 16777216
_LISTED_UNITS = 1500  # room kept for the list of what did not fit
_STAT_LIMIT = 60
_STAT_SECONDS = 0.05


def units(text: str) -> int:
    """Return the length in UTF-16 code units, by which Claude Code caps a hook's output."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def budget(env: Any, cap: int) -> int:
    """Return the UTF-16 units one injection may take: the user's limit, never above the host's cap."""
    text = (env.get("CONTEXT_ANCHOR_MAX_INJECT_CHARS") or "").strip()
    wanted = int(text) if text.isdecimal() and len(text) < 10 else DEFAULT_BUDGET
    return min(max(wanted, 600), cap)


def load_part(path: str) -> tuple[int, list[dict[str, Any]]]:
    """Return `(revision, entries)` of a part, with each entry's text as `text`; (0, []) where there is none.

    Raises ValueError for a damaged part, OSError when reading fails.
    """
    raw = atomic.read_bytes(path, MAX_PART_BYTES)
    if not raw:
        return 0, []
    line, found, body = raw.partition(b"\n")
    head = quickjson.loads(line) if found else None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ValueError("not a bundle part: %s" % path)
    entries = []
    for entry in head["anchors"]:
        at, size = entry["at"], entry["bytes"]
        block = body[at : at + size]
        if len(block) != size:
            raise ValueError("bundle part is cut short: %s" % path)
        entry["text"] = block.decode("utf-8")
        entries.append(entry)
    return int(head.get("revision") or 0), entries


def merge(parts: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the entries of several parts in bundle order: priority, category, most recent first."""
    merged = [entry for part in parts for entry in part]
    merged.sort(key=lambda e: (e["order"], e["id"]))
    return merged


def listing(entries: list[dict[str, Any]], room: int) -> str:
    """Return the lines that name what was left out, within `room` UTF-16 units; the rest is counted."""
    if not entries:
        return ""
    lines = ["Left out for size; get any of them whole with get_pinned_context (anchor_id):\n"]
    used = units(lines[0]) + 60
    for count, entry in enumerate(entries):
        title = entry["title"] if len(entry["title"]) <= 80 else entry["title"][:77] + "..."
        line = "- {%s} [%s] %s\n" % (entry["id"], entry["priority"], title)
        used += units(line)
        if used > room:
            lines.append("- and %d more: list_pinned_context shows them all.\n" % (len(entries) - count))
            break
        lines.append(line)
    return "".join(lines)


def select(entries: list[dict[str, Any]], room: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return `(taken, left_out)`: whole anchors in order, as many as fit into `room` UTF-16 units.

    An anchor that does not fit is passed over and later, smaller ones may still be taken; nothing taken
    could have made room for a passed one of higher rank, since ranks are tried in order.
    """
    if sum(e["units"] for e in entries) <= room:
        return list(entries), []
    room -= min(_LISTED_UNITS, room // 4)
    taken, left = [], []
    for entry in entries:
        if entry["units"] <= room:
            room -= entry["units"]
            taken.append(entry)
        else:
            left.append(entry)
    return taken, left


def missing_refs(entries: list[dict[str, Any]]) -> list[str]:
    """Return the paths that anchors point to and that are not there now, within a bounded number of looks."""
    deadline = time.monotonic() + _STAT_SECONDS
    gone: list[str] = []
    looks = 0
    for entry in entries:
        for ref in entry.get("refs") or ():
            if looks >= _STAT_LIMIT or time.monotonic() > deadline:
                return gone
            if ref.startswith(("\\\\", "//")):
                continue  # another machine's share may take seconds to answer
            looks += 1
            if not os.path.exists(ref) and ref not in gone:
                gone.append(ref)
    return gone


def compose(head: list[str], entries: list[dict[str, Any]], limit: int) -> tuple[str, list[dict[str, Any]]]:
    """Return `(text, taken)`: the head's lines, then the anchors that fit, then the list of the others.

    The whole text has at most `limit` UTF-16 units.
    """
    intro = "\n".join(head) + "\n\n"
    room = limit - units(intro)
    reserve = 420 if any(e.get("refs") for e in entries) else 0
    taken, left = select(entries, room - reserve)
    gone = missing_refs(taken)
    if gone:
        line = "Missing on disk now, so treat what points there as stale: "
        shown: list[str] = []
        for path in gone:
            text = quickjson.dumps(path)
            if units(line) + sum(len(t) + 2 for t in shown) + len(text) > reserve - 30:
                shown.append("and %d more" % (len(gone) - len(shown)))
                break
            shown.append(text)
        intro = "\n".join([*head, line + ", ".join(shown)]) + "\n\n"
    body = "".join(e["text"] for e in taken)
    tail = listing(left, limit - units(intro) - units(body)) if left else ""
    text = intro + body + tail
    if units(text) > limit:  # a limit below the head alone
        text = text.encode("utf-16-le", "surrogatepass")[: 2 * limit].decode("utf-16-le", "ignore")
    return text.rstrip("\n"), taken

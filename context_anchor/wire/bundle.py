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
LEAST_BUDGET = 1500  # the head alone takes some 700
MAX_INDEX_BYTES = 4194304
MAX_BLOCK_BYTES = 262144
_LISTED_UNITS = 1500  # room kept for the list of what did not fit
_STAT_LIMIT = 60
_STAT_SECONDS = 0.05


def units(text: str) -> int:
    """Return the length in UTF-16 code units, by which Claude Code caps a hook's output."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def find_receipts(text: str) -> list[str]:
    """Return the receipt ids that a text cites, in order: `r-` and ten hex digits."""
    found = []
    at = text.find("receipt r-")
    while at >= 0:
        receipt = text[at + 8 : at + 20]
        if len(receipt) == 12 and all(c in "0123456789abcdef" for c in receipt[2:]):
            found.append(receipt)
        at = text.find("receipt r-", at + 10)
    return found


def budget(env: Any, cap: int) -> int:
    """Return the UTF-16 units one injection may take: the user's limit, never above the host's cap."""
    text = (env.get("CONTEXT_ANCHOR_MAX_INJECT_CHARS") or "").strip()
    wanted = int(text) if text.isdecimal() and len(text) < 10 else DEFAULT_BUDGET
    return min(max(wanted, LEAST_BUDGET), cap)


def load_index(path: str) -> tuple[int, list[dict[str, Any]]]:
    """Return `(revision, entries)` of a part; `block_text` gives an entry's text. (0, []) for no or an empty file.

    Every block is looked at, one at a time: a full scope has megabytes, of which an injection takes a few
    kilobytes. The file stays open (`source`), so that a part replaced meanwhile is read as it was.

    Raises ValueError, KeyError or TypeError for a damaged part, OSError when reading fails.
    """
    try:
        fd = atomic.open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return 0, []
    try:
        line = _first_line(fd)
        if not line:
            os.close(fd)
            return 0, []
        head = quickjson.loads(line)
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise ValueError("not a bundle part: %s" % path)
        entries = []
        for entry in head["anchors"]:
            if not _is_entry(entry):
                raise ValueError("an entry of the bundle part is damaged: %s" % path)
            entry["source"] = (fd, len(line) + entry["at"])
            text = block_text(entry)
            if not _is_sound(text):
                raise ValueError("a block of the bundle part is damaged: %s" % path)
            entry["units"] = units(text)
            entries.append(entry)
        return int(head.get("revision") or 0), entries
    except BaseException:
        os.close(fd)
        raise


def _first_line(fd: int) -> bytes:
    """Return the bytes up to and with the first newline; raises ValueError where there is none in reach."""
    parts: list[bytes] = []
    size = 0
    while size <= MAX_INDEX_BYTES:
        block = os.read(fd, 65536)
        if not block:
            break
        end = block.find(b"\n")
        if end >= 0:
            return b"".join([*parts, block[: end + 1]])
        parts.append(block)
        size += len(block)
    if not size:
        return b""
    raise ValueError("bundle part without an index")


def block_text(entry: dict[str, Any]) -> str:
    """Return an entry's block, read anew; raises ValueError where it is cut or no UTF-8."""
    fd, at = entry["source"]
    size = entry["bytes"]
    if not 0 < size <= MAX_BLOCK_BYTES or at < 0:
        raise ValueError("bundle part with an impossible block")
    os.lseek(fd, at, os.SEEK_SET)
    raw = b""
    while len(raw) < size:
        piece = os.read(fd, size - len(raw))
        if not piece:
            raise ValueError("bundle part is cut short")
        raw += piece
    return raw.decode("utf-8")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**40


def _is_entry(entry: Any) -> bool:
    """Tell whether an index entry has every field that hooks use, of the right type."""
    if not isinstance(entry, dict):
        return False
    order, refs = entry.get("order"), entry.get("refs")
    return (
        all(isinstance(entry.get(name), str) for name in ("id", "title", "priority", "category", "scope"))
        and all(_is_count(entry.get(name)) for name in ("at", "bytes", "units", "revision"))
        and isinstance(order, list)
        and len(order) == 3
        and all(type(rank) is int for rank in order)
        and isinstance(refs, list)
        and all(isinstance(ref, str) for ref in refs)
    )


def _is_sound(text: str) -> bool:
    """Tell whether a block keeps to its frame: a heading, then lines behind `| ` or empty ones."""
    lines = text.split("\n")
    return lines[0].startswith("## [") and all(not line or line.startswith("| ") for line in lines[1:])


def load_part(path: str) -> tuple[int, list[dict[str, Any]]]:
    """Return `(revision, entries)` of a part, each with its whole text as `text`; raises as `load_index`."""
    revision, entries = load_index(path)
    if entries:
        fd = entries[0]["source"][0]
        try:
            for entry in entries:
                entry["text"] = block_text(entry)
                del entry["source"]
        finally:
            os.close(fd)
    return revision, entries


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
    body = "".join(e["text"] if "text" in e else block_text(e) for e in taken)
    tail = listing(left, limit - units(intro) - units(body)) if left else ""
    text = intro + body + tail
    if units(text) > limit:  # a limit below the head alone
        text = text.encode("utf-16-le", "surrogatepass")[: 2 * limit].decode("utf-16-le", "ignore")
    return text.rstrip("\n"), taken

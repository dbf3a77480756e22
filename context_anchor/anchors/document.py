"""The file of one scope's anchors, format `context-anchor-anchors/1`, as bytes and as a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from context_anchor.anchors.anchor import Anchor
from context_anchor.anchors.scope import AnyScope, identity
from context_anchor.errors import InvalidAnchorError, StoreCorruptError, StoreNewerError
from context_anchor.wire import quickjson

NAME = "context-anchor-anchors/"
VERSION = 1
FORMAT = f"{NAME}{VERSION}"
_KNOWN = frozenset(
    ("format", "scope", "host", "session_id", "workspace_id", "root", "revision", "anchors")
)


@dataclass(frozen=True, slots=True)
class Document:
    """What one file holds.

    `unread` are entries of the anchor list that are no anchors to this version; they and the unknown
    fields in `extra` are written back as they were found.
    """

    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    revision: int = 0
    root: str = ""
    unread: tuple[object, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)


def dumps(value: object) -> str:
    """Return compact ASCII JSON; raises ValueError for what JSON can't hold (as NaN)."""
    # Imported at the first write: `json` costs a reading command 11 ms, but writes 200 anchors in 1 ms.
    from json import dumps as encode

    return encode(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def newer_version(tag: object, name: str, version: int) -> bool:
    """Tell whether a format tag names a later version than ours of the same format."""
    if not isinstance(tag, str) or not tag.startswith(name):
        return False
    match = re.match(r"[0-9]{1,9}", tag[len(name) :])
    return match is not None and int(match.group()) > version


def parse(raw: bytes, path: str) -> Document:
    """Return the document in a file's bytes.

    Raises StoreNewerError for a later version, StoreCorruptError for anything else that is not ours.
    """
    try:
        value = quickjson.loads(raw.decode("utf-8"))
    except ValueError as problem:
        raise StoreCorruptError(f"{path} is damaged: {problem}") from None
    if not isinstance(value, dict):
        raise StoreCorruptError(f"{path} is damaged: it holds no object")
    tag = value.get("format")
    if newer_version(tag, NAME, VERSION):
        raise StoreNewerError(
            f"{path} was written by a newer version ({str(tag)[:40]})", hint="Update context-anchor to change it."
        )
    if tag != FORMAT:
        raise StoreCorruptError(f"{path} is damaged: its format is not {FORMAT}")
    return _read(value, path)


def parse_newer(raw: bytes) -> Document:
    """Return what can be understood of a file of a later version, for reading alone."""
    try:
        return _read(quickjson.loads(raw), "")
    except StoreCorruptError:
        return Document()


def _read(value: Mapping[str, object], path: str) -> Document:
    revision, items, root = value.get("revision"), value.get("anchors"), value.get("root")
    if isinstance(revision, bool) or not isinstance(revision, int) or revision < 0:
        raise StoreCorruptError(f"{path} is damaged: revision is not a number")
    if not isinstance(items, list):
        raise StoreCorruptError(f"{path} is damaged: anchors is not a list")
    anchors: dict[str, Anchor] = {}
    unread: list[object] = []
    for item in items:
        try:
            anchor = Anchor.from_json(item)
        except InvalidAnchorError:
            unread.append(item)
            continue
        if anchor.id in anchors:
            unread.append(item)
        else:
            anchors[anchor.id] = anchor
    extra = {name: item for name, item in value.items() if name not in _KNOWN}
    return Document(anchors, revision, root if isinstance(root, str) else "", tuple(unread), extra)


def render(document: Document, scope: AnyScope) -> bytes:
    """Return the bytes to store: ASCII JSON, one anchor a line, so that a damaged file loses few.

    Raises ValueError for unknown fields that are not JSON.
    """
    head: dict[str, object] = {"format": FORMAT, **identity(scope)}
    if document.root and not head.get("root", "-"):
        head["root"] = document.root
    head["revision"] = document.revision
    head.update((name, item) for name, item in document.extra.items() if name not in head)
    items = [dumps(anchor.to_json()) for anchor in document.anchors.values()]
    items += [dumps(item) for item in document.unread]
    text = dumps(head)[:-1] + ',"anchors":[\n' + ",\n".join(items) + ("\n]}\n" if items else "]}\n")
    return text.encode("ascii")


def salvage(raw: bytes) -> dict[str, Anchor]:
    """Return the anchors that can still be read, line by line, from a damaged file."""
    found: dict[str, Anchor] = {}
    for line in raw.split(b"\n"):
        try:
            anchor = Anchor.from_json(quickjson.loads(line.strip().rstrip(b",").decode("utf-8")))
        except (ValueError, InvalidAnchorError):
            continue
        found.setdefault(anchor.id, anchor)
    return found

"""Rendering of a scope's bundle part, format `context-anchor-bundle/1`, which hooks copy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache

from context_anchor.anchors.anchor import Anchor
from context_anchor.anchors.document import dumps
from context_anchor.wire import bundle

FORMAT = bundle.FORMAT
MAX_INDEX_REFS = 5
# Tags by which a host or a model family frames what is not the user's own text, and our own frame.
_FRAME_TAG = re.compile(
    r"<(?=\s*/?\s*(?:[a-z_]+:)?(?:system|user_request|additional_metadata|ephemeral_message|persisted-output|"
    r"function_calls|function_results|context-anchor)(?![a-z0-9]))",
    re.IGNORECASE,
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|(?:mailto|urn|data):", re.IGNORECASE)
_POSITION = re.compile(r"(?:#[^/\\]*|(?::[0-9]+(?:-[0-9]+)?){1,2})\Z")
_GLOB = re.compile(r"[*?\[\]{}<>|]")


def harmless(text: str) -> str:
    """Return text in which nothing opens or closes a host's frame: that `<` is written `&lt;`."""
    return _FRAME_TAG.sub("&lt;", text)


@lru_cache(maxsize=1024)  # a change of one anchor need not render the others again
def render_block(anchor: Anchor) -> str:
    """Return an anchor's block: a heading, then every line behind `| `, then an empty line."""
    title = " ".join(anchor.title.split())
    lines = [
        f"## [{anchor.priority}] {harmless(title)} {{{anchor.id}}} ({anchor.category}, {anchor.scope})",
        *("| " + line for line in harmless(anchor.content).splitlines()),
    ]
    if anchor.refs:
        lines.append("| refs: " + harmless(", ".join(" ".join(ref.split()) for ref in anchor.refs)))
    return "\n".join(lines) + "\n\n"


def ref_path(ref: str, root: str) -> str:
    """Return the absolute path a ref points to, or "" where it names no path that could be looked for.

    A line number (`:12`, `:12-30`) or a fragment (`#part`) at the end is left out; relative refs
    start at `root`.
    """
    if _URL.match(ref):
        return ""
    path = _POSITION.sub("", ref)
    if not path or _GLOB.search(path) or "\n" in path:
        return ""
    path = os.path.expanduser(path)  # noqa: PTH111 - a path as text goes to the hooks
    if not os.path.isabs(path):  # noqa: PTH117
        # One word with neither a folder nor a suffix is more likely a name in the code than a file.
        if not root or not re.search(r"[./\\]", path):
            return ""
        path = os.path.join(root, path)  # noqa: PTH118
    return os.path.normpath(path)


def in_order(anchors: Iterable[Anchor]) -> tuple[Anchor, ...]:
    """Return anchors in bundle order: priority, category, most recent first, then id."""
    return tuple(sorted(anchors, key=lambda a: (a.order, a.id)))


def render_part(anchors: Iterable[Anchor], scope: str, revision: int, root: str) -> bytes:
    """Return a part: a line of index, then the anchors' blocks. Same anchors, same bytes below the index."""
    index: list[dict[str, object]] = []
    blocks: list[bytes] = []
    at = 0
    for anchor in in_order(anchors):
        block = render_block(anchor)
        encoded = block.encode("utf-8", "replace")
        found = [path for path in (ref_path(ref, root) for ref in anchor.refs) if path]
        index.append(
            {
                "id": anchor.id,
                "title": harmless(" ".join(anchor.title.split())),
                "priority": anchor.priority,
                "category": anchor.category,
                "scope": anchor.scope,
                "order": list(anchor.order),
                "at": at,
                "bytes": len(encoded),
                "units": bundle.units(encoded.decode("utf-8")),
                "revision": anchor.revision,
                "refs": found[:MAX_INDEX_REFS],
            }
        )
        blocks.append(encoded)
        at += len(encoded)
    head = {"format": FORMAT, "scope": scope, "revision": revision, "anchors": index}
    return dumps(head).encode("ascii") + b"\n" + b"".join(blocks)


def is_fresh(path: str, scope: str, revision: int) -> bool:
    """Tell whether a part on disk is of that revision, by its first bytes alone."""
    want = f'{{"format":"{FORMAT}","scope":"{scope}","revision":{revision},'.encode("ascii")
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the shortest way to 100 bytes
            return file.read(len(want)) == want
    except OSError:
        return False


def is_whole(path: str, revision: int) -> bool:
    """Tell whether a part on disk can be read whole by a hook and is of that revision."""
    try:
        have, _ = bundle.load_part(path)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return have == revision

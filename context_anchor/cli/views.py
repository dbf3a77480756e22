"""How anchors and scopes are shown: as JSON, as a table's rows, in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_anchor.anchors.anchor import Anchor, format_time
from context_anchor.anchors.scope import AnyScope, SessionScope, identity
from context_anchor.cli import columns, terminal
from context_anchor.server.summaries import age, missing_refs

HEAD = ("ID", "PRIORITY", "CATEGORY", "SCOPE", "TOKENS", "AGE", "TITLE")
_RIGHT = (4, 5)


def anchor_json(anchor: Anchor, scope: AnyScope) -> dict[str, Any]:
    """Return an anchor in full, with its estimated tokens and those refs that are not on disk."""
    form: dict[str, Any] = {**anchor.to_json(), "tokens": anchor.tokens}
    missing = missing_refs(anchor.refs, root_of(scope))
    if missing:
        form["missing_refs"] = missing
    return form


def scope_json(scope: AnyScope, revision: int, how: str = "") -> dict[str, Any]:
    """Return a scope's identity and revision, and how it was chosen where that is known."""
    form: dict[str, Any] = {**identity(scope), "revision": revision}
    if how and how != "none" and isinstance(scope, SessionScope):
        form["found_by"] = how
    return form


def root_of(scope: AnyScope) -> str:
    """Return the folder where a scope's relative refs start, "" where it is not known."""
    return "" if isinstance(scope, SessionScope) else scope.root


def where(scope: AnyScope) -> str:
    """Return a scope as one word for a pipe: `host/session` or the workspace's folder."""
    if isinstance(scope, SessionScope):
        return f"{scope.host}/{scope.session_id}"
    return scope.root or scope.workspace_id


def listed(anchors: Sequence[Anchor], now: float) -> str:
    """Return anchors as a table that fits the terminal."""
    rows = [
        (
            anchor.id,
            anchor.priority,
            anchor.category,
            anchor.scope,
            f"{anchor.tokens:,}",
            age(anchor, now),
            terminal.one_line(anchor.title),
        )
        for anchor in anchors
    ]
    return columns.table(HEAD, rows, terminal.width(), right=_RIGHT)


def plain_row(anchor: Anchor, scope: AnyScope) -> tuple[str, ...]:
    """Return an anchor as cells for a pipe: id, priority, category, scope, tokens, updated, where, title."""
    return (
        anchor.id,
        anchor.priority,
        anchor.category,
        anchor.scope,
        str(anchor.tokens),
        format_time(anchor.updated_at),
        terminal.one_line(where(scope)),
        terminal.one_line(anchor.title),
    )


def in_full(anchor: Anchor, scope: AnyScope, now: float) -> str:
    """Return everything of an anchor as text."""
    updated = f"updated {format_time(anchor.updated_at)} ({age(anchor, now)} ago)"
    lines = [
        f"{anchor.id}  {terminal.one_line(anchor.title)}",
        f"[{anchor.priority}] {anchor.category}, {scope.label}, ~{anchor.tokens:,} tokens",
        f"revision {anchor.revision} by {anchor.origin}, {updated}",
    ]
    gone = set(missing_refs(anchor.refs, root_of(scope)))
    lines += [f"ref: {terminal.one_line(ref)}{' (missing)' if ref in gone else ''}" for ref in anchor.refs]
    if anchor.tags:
        lines.append("tags: " + ", ".join(map(terminal.one_line, anchor.tags)))
    return "\n".join([*lines, "", anchor.content])

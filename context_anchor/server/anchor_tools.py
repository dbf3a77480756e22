"""The five tools as plain functions, whose replies keep to the hosts' size limit.

Each takes the process's `Desk`, what the host said about the `Call`, and the tool's arguments by name, as the
listing states them; all raise ContextAnchorError and have then changed nothing. The protocol is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from context_anchor.anchors.anchor import Anchor, Draft
from context_anchor.anchors.bundle import in_order
from context_anchor.anchors.lookup import same_title
from context_anchor.anchors.results import Snapshot
from context_anchor.anchors.scope import AnyScope, SessionScope
from context_anchor.errors import InvalidAnchorError, UsageError
from context_anchor.server import reading, summaries
from context_anchor.server.caller import Call, Desk, Place
from context_anchor.server.pages import PAGE_LIMIT, Reply, json_bytes

# An agent's change is told from a person's in the journal.
_ACTOR: Final = "agent"
_KEPT: Final = ("priority", "category", "refs", "tags")


def pin_context(
    desk: Desk,
    call: Call,
    *,
    title: str,
    content: str,
    priority: str | None = None,
    category: str | None = None,
    scope: str | None = None,
    refs: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    anchor_id: str | None = None,
    session_id: str | None = None,
) -> Reply:
    """Pin one anchor, or supersede the one with that id or, in the scope, that title.

    What is left out keeps the value of the superseded anchor, so that a new text never makes a critical anchor
    a normal one; a new anchor is `normal`, `state`, of scope `session`.
    """
    given = {"priority": priority, "category": category, "refs": refs, "tags": tags}
    draft = _draft({"title": title, "content": content, **given})
    place = desk.place(call, session_id)
    if anchor_id is not None:
        former = desk.store.find(place.scopes(scope), anchor_id=anchor_id)
        target, named = place.scope(former.scope), former.id
        draft = _keeping(draft, given, former)
    else:
        target, named = place.scope(scope or "session"), None
        draft = _keeping(draft, given, _of_title(desk.store.read(target), draft.title))
    result = desk.store.pin(target, draft, actor=_actor(place), anchor_id=named)
    anchor = result.anchor
    structured: dict[str, Any] = {"anchor": summaries.summary(anchor), "created": result.created}
    lines = [f"{'Pinned' if result.created else 'Superseded'} {summaries.line(anchor)}"]
    if result.superseded is not None:
        same = result.superseded.content == anchor.content
        structured["superseded"] = {"revision": result.superseded.revision, "same_content": same}
        lines.append(f"Revision {result.superseded.revision} stays in the journal.")
    _add_standing(desk, place, structured, lines, result.notices, only_when_over=True)
    return Reply("\n".join(lines), structured)


def unpin_context(
    desk: Desk,
    call: Call,
    *,
    anchor_id: str | None = None,
    title: str | None = None,
    clear_all: bool = False,
    scope: str | None = None,
    session_id: str | None = None,
) -> Reply:
    """Unpin one anchor by id or title, or all of a scope: the session's unless workspace is named."""
    named = [name for name, given in (("anchor_id", anchor_id), ("title", title)) if given is not None]
    if len(named) + bool(clear_all) != 1:
        raise UsageError(
            f"unpin_context was given {' and '.join([*named, *(['clear_all'] if clear_all else [])]) or 'nothing'}",
            hint="Give exactly one of anchor_id, title and clear_all=true.",
        )
    place = desk.place(call, session_id)
    if clear_all:
        scope_changed = place.scope(scope or "session")
        result = desk.store.unpin(scope_changed, actor=_actor(place), clear_all=True)
    else:
        found = desk.store.find(place.scopes(scope), anchor_id=anchor_id, title=title)
        scope_changed = place.scope(found.scope)
        result = desk.store.unpin(scope_changed, actor=_actor(place), anchor_id=found.id)
    removed = result.removed
    count = f"{len(removed)} anchor{'' if len(removed) == 1 else 's'}"
    structured: dict[str, Any] = {"removed": [], "count": len(removed), "revision": result.revision}
    lines = [f"Unpinned {count}." + (f" The user can take that back: `{_undo(scope_changed)}`." if removed else "")]
    _add_standing(desk, place, structured, lines, result.notices, only_when_over=True)
    _add_ids(structured, "removed", lines, removed)
    return Reply("\n".join(lines), structured)


def _undo(scope: AnyScope) -> str:
    """Return the command that takes back the newest change of a scope, whatever folder it is run in."""
    if isinstance(scope, SessionScope):
        return f"context-anchor undo --scope session --session {scope.session_id}"
    return f"context-anchor undo --scope workspace --workspace {scope.workspace_id}"


def list_pinned_context(
    desk: Desk,
    call: Call,
    *,
    scope: str | None = None,
    cursor: str | None = None,
    session_id: str | None = None,
) -> Reply:
    """List the anchors of a scope, or of session and workspace together, in bundle order, in pages."""
    place = desk.place(call, session_id)
    position = reading.ListPosition.of(cursor) if cursor is not None else None
    scopes = place.scopes(position.scope or None if position else scope)
    snapshots = {one: desk.store.read(one) for one in scopes}
    revisions = {one: snapshot.revision for one, snapshot in snapshots.items()}
    anchors = _together(snapshots.values())
    structured: dict[str, Any] = {}
    lines: list[str] = []
    if position is None:
        tokens = desk.remembered(("tokens", *revisions.items()), lambda: sum(anchor.tokens for anchor in anchors))
        structured |= {"count": len(anchors), "tokens": tokens}
        lines.append(f"{len(anchors)} anchors, ~{tokens:,} tokens.")
        structured |= summaries.place_json(place, revisions)
        lines.append(summaries.place_text(structured))
        kept = [snapshot.notices for snapshot in snapshots.values()]
        _add_standing(desk, place, structured, lines, *kept)
        delivery = summaries.last_delivery(desk.data, place)
        if delivery is not None:
            structured["last_delivery"] = delivery.as_json()
            lines.append(str(delivery))
    elif position.revisions != tuple(revisions.values()):
        notice = "The anchors have changed since the first page: list again from the start to see all of them."
        structured["notices"] = [notice]
        lines.append(notice)
    root = place.workspace.root if place.workspace else ""
    return reading.list_page(lines, structured, anchors, position, scope, revisions, root, desk.clock())


def get_pinned_context(
    desk: Desk,
    call: Call,
    *,
    anchor_id: str | None = None,
    title: str | None = None,
    cursor: str | None = None,
    session_id: str | None = None,
) -> Reply:
    """Return the whole text of one anchor, or of all in bundle order, in pages that join without a seam."""
    if sum(given is not None for given in (anchor_id, title, cursor)) > 1:
        raise UsageError(
            "get_pinned_context was given more than one of anchor_id, title and cursor",
            hint="A cursor knows its anchor; give it alone.",
        )
    place = desk.place(call, session_id)
    scopes = place.scopes(None)
    position = reading.GetPosition.of(cursor) if cursor is not None else None
    if position is not None and position.one:
        anchors: Sequence[Anchor] = (desk.store.find(scopes, anchor_id=position.anchor_id),)
    elif position is None and (anchor_id is not None or title is not None):
        anchors = (desk.store.find(scopes, anchor_id=anchor_id, title=title),)
        position = reading.GetPosition.start_of(anchors[0])
    else:
        anchors = _together(desk.store.read(one) for one in scopes)
    root = place.workspace.root if place.workspace else ""
    return reading.get_page(anchors, position, root)


def replace_session_anchors(
    desk: Desk,
    call: Call,
    *,
    anchors: Sequence[Mapping[str, Any]],
    expected_revision: int | None = None,
    session_id: str | None = None,
) -> Reply:
    """Make the session hold exactly these anchors, in one step.

    An anchor with the title of a present one supersedes it and keeps what is left out, as `pin_context` does.
    """
    place = desk.place(call, session_id)
    target = place.scope("session")
    snapshot = desk.store.read(target)
    drafts = [_draft(raw, f"anchors[{number}]") for number, raw in enumerate(anchors)]
    drafts = [
        _keeping(draft, raw, _of_title(snapshot, draft.title)) for draft, raw in zip(drafts, anchors, strict=True)
    ]
    result = desk.store.replace(target, drafts, actor=_actor(place), expected_revision=expected_revision)
    counts = {"added": len(result.added), "updated": len(result.updated), "removed": len(result.removed)}
    structured: dict[str, Any] = {
        "revision": result.revision,
        "count": len(result.anchors),
        **counts,
        "anchors": [],
    }
    lines = [
        f"The session holds {len(result.anchors)} anchors, revision {result.revision}: "
        + ", ".join(f"{number} {what}" for what, number in counts.items())
        + "."
    ]
    _add_standing(desk, place, structured, lines, result.notices, only_when_over=True)
    _add_ids(structured, "anchors", lines, result.anchors)
    return Reply("\n".join(lines), structured)


FUNCTIONS: Final[Mapping[str, Callable[..., Reply]]] = {
    "pin_context": pin_context,
    "unpin_context": unpin_context,
    "list_pinned_context": list_pinned_context,
    "get_pinned_context": get_pinned_context,
    "replace_session_anchors": replace_session_anchors,
}


def _together(snapshots: Iterable[Snapshot]) -> tuple[Anchor, ...]:
    """Return the anchors of several scopes in bundle order, in which each snapshot stands already."""
    parts = [snapshot.anchors for snapshot in snapshots if snapshot.anchors]
    return parts[0] if len(parts) == 1 else in_order(anchor for part in parts for anchor in part)


def _actor(place: Place) -> str:
    return f"{_ACTOR}@{place.host}" if place.host else _ACTOR


def _of_title(snapshot: Snapshot, title: str) -> Anchor | None:
    return next(iter(same_title(snapshot.anchors, title)), None)


def _draft(raw: Mapping[str, Any], at: str = "") -> Draft:
    """Return a clean draft of the fields that were given; an error names the place in a list of anchors."""
    try:
        return Draft.checked(**{name: value for name, value in raw.items() if value is not None})
    except InvalidAnchorError as error:
        if not at:
            raise
        raise type(error)(f"{at}: {error.message}", hint=error.hint) from None


def _keeping(draft: Draft, given: Mapping[str, Any], former: Anchor | None) -> Draft:
    """Return a draft that keeps what was not given from the anchor it supersedes."""
    if former is None:
        return draft
    kept: dict[str, Any] = {name: getattr(former, name) for name in _KEPT if given.get(name) is None}
    return replace(draft, **kept)


def _add_standing(
    desk: Desk,
    place: Place,
    structured: dict[str, Any],
    lines: list[str],
    *kept: Sequence[str],
    only_when_over: bool = False,
) -> None:
    """Add budget use (if asked only when something is left out) and notices to a reply."""
    more: list[str] = []
    try:
        use = summaries.budget(desk, place)
    except (OSError, ValueError, KeyError, TypeError):
        more.append("The rendered bundle can't be read: run `context-anchor doctor`.")
    else:
        if use.left_out or not only_when_over:
            structured["budget"] = use.as_json()
            lines.append(f"{use}.")
    told = summaries.notices(place, more, *kept)
    if told:
        structured["notices"] = told
        lines.extend(f"Notice: {text}" for text in told)


def _add_ids(structured: dict[str, Any], key: str, lines: list[str], anchors: Sequence[Anchor]) -> None:
    """Add the ids (and titles in the text) of as many anchors as the reply has room for."""
    room = PAGE_LIMIT - json_bytes(structured) - json_bytes("\n".join(lines)) - 100
    for index, anchor in enumerate(anchors):
        entry = {"id": anchor.id, "title": summaries.title(anchor)}
        shown = f"{entry['id']} {entry['title']}"
        room -= json_bytes(shown) + json_bytes(entry) + 2
        if room < 0:
            lines.append(f"and {len(anchors) - index} more")
            structured["more"] = len(anchors) - index
            break
        structured[key].append(entry)
        lines.append(shown)

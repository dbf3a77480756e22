"""`pin`, `unpin` and `replace`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from context_anchor.anchors.anchor import Anchor, Draft
from context_anchor.anchors.lookup import find_by_id, same_title
from context_anchor.anchors.scope import AnyScope
from context_anchor.anchors.text import shorten
from context_anchor.cli import places, terminal, views
from context_anchor.cli.outcome import Outcome
from context_anchor.errors import InvalidAnchorError, SessionAmbiguousError, StaleRevisionError, UsageError
from context_anchor.server.caller import Place

_TRIES = 3
_LIST = 'Give a list, as in [{"title": "...", "content": "..."}]'
_DRAFT_FIELDS = tuple(f.name for f in fields(Draft))
# What `list --json` shows of an anchor and the store decides itself.
_OWN_FIELDS = frozenset(
    ("id", "scope", "created_at", "updated_at", "revision", "tokens", "missing_refs", "where")
)


def pin(options: argparse.Namespace) -> Outcome:
    """Pin an anchor, or change the one of the same title or of --id; what is not given stays as it was."""
    if options.title is None and options.id is None:
        raise UsageError("no title was given", hint="Give --title, or --id of the anchor to change.")
    counter = places.open_counter()
    place = places.find_place(counter, options)
    scope = places.scope_to_write(place, options)
    given = _given(options)
    for attempt in range(_TRIES):
        former = _former(counter.store.read(scope).anchors, options)
        if former is None and "content" not in given:
            given["content"] = _piped_content()
        draft = Draft.checked(**{**(_kept(former) if former else {}), **given, "origin": "user"})
        expected = options.expected_revision
        if expected is None:
            expected = former.revision if former else 0
        try:
            result = counter.store.pin(
                scope,
                draft,
                actor=places.ACTOR,
                anchor_id=former.id if former else None,
                expected_revision=expected,
                allow_secret=options.allow_secret,
            )
            break
        except StaleRevisionError:
            # Another process changed it between our read and our write; the user named no revision.
            if options.expected_revision is not None or attempt == _TRIES - 1:
                raise
    document = {
        "anchor": views.anchor_json(result.anchor, scope),
        "created": result.created,
        "superseded": views.anchor_json(result.superseded, scope) if result.superseded else None,
        "scope": views.scope_json(scope, result.revision, place.how),
    }
    verb = "Pinned" if result.created else "Changed"
    text = f"{verb} {result.anchor.id} in {places.said(place, scope)}: {terminal.one_line(result.anchor.title)}"
    return Outcome(document, text, notes=places.notes_of(counter, place, result.notices, _unsure(place, options)))


def _unsure(place: Place, options: argparse.Namespace) -> Sequence[str]:
    """Return why the workspace was taken where nobody asked for it."""
    if place.session is not None or options.scope or options.workspace is not None:
        return ()
    ambiguous = isinstance(place.session_problem, SessionAmbiguousError)
    why = "several sessions are live here" if ambiguous else "no session is known here"
    return (f"{why}, so this went to the workspace's anchors, which all its sessions see (else: --session ID)",)


def _given(options: argparse.Namespace) -> dict[str, object]:
    given: dict[str, object] = {
        name: value
        for name, value in (
            ("title", options.title),
            ("priority", options.priority),
            ("category", options.category),
            ("refs", options.ref),
            ("tags", options.tag),
        )
        if value is not None
    }
    if options.content is not None and options.file is not None:
        raise UsageError("--content and --file were both given", hint="Give one of them.")
    if options.file is not None:
        given["content"] = terminal.read_text(options.file, "the content")
    elif options.content is not None:
        is_input = options.content == "-"
        given["content"] = terminal.read_text("-", "the content") if is_input else options.content
    return given


def _piped_content() -> str:
    """Return what was piped in where a new anchor was given no content; a terminal is not waited for."""
    text = "" if terminal.is_terminal(sys.stdin) else terminal.read_text("-", "the content")
    if not text:
        raise UsageError("no content was given", hint="Give --content TEXT, or --content - to read it.")
    return text


def _former(anchors: Sequence[Anchor], options: argparse.Namespace) -> Anchor | None:
    if options.id is not None:
        return find_by_id(anchors, options.id)
    # A title that is too long is refused when the draft is checked, before it is compared with anything.
    titled = same_title(anchors, options.title) if len(options.title) <= 4000 else []
    return titled[0] if len(titled) == 1 else None


def _kept(former: Anchor) -> dict[str, object]:
    return {name: getattr(former, name) for name in _DRAFT_FIELDS}


def unpin(options: argparse.Namespace) -> Outcome:
    """Take out one anchor, or with --all every anchor of one scope."""
    counter = places.open_counter()
    place = places.find_place(counter, options)
    if options.all:
        if options.id is not None or options.title is not None or options.anchor is not None:
            raise UsageError("--all was given with an anchor", hint="Leave one of them out.")
        if not options.scope and options.session is None and options.workspace is None:
            raise UsageError(
                "unpin --all needs to know which anchors", hint="Add --scope session or --scope workspace."
            )
        scope = places.scope_to_write(place, options)
        result = counter.store.unpin(scope, actor=places.ACTOR, clear_all=True)
    else:
        scope, anchor = places.chosen_anchor(counter, place, options)
        result = counter.store.unpin(scope, actor=places.ACTOR, anchor_id=anchor.id)
    document = {
        "removed": [views.anchor_json(anchor, scope) for anchor in result.removed],
        "scope": views.scope_json(scope, result.revision, place.how),
    }
    lines = [f"Unpinned {anchor.id}: {terminal.one_line(anchor.title)}" for anchor in result.removed]
    if lines:
        lines.append(f"From {places.said(place, scope)}. To bring back: {undo_line(scope, options)}")
    else:
        lines = [f"Nothing is pinned in {places.said(place, scope)}."]
    return Outcome(document, "\n".join(lines), notes=places.notes_of(counter, place, result.notices))


def undo_line(scope: AnyScope, options: argparse.Namespace) -> str:
    """Return the command that takes a change of this scope back."""
    words = ["context-anchor undo", f"--scope {scope.kind}"]
    for name in ("session", "workspace"):
        value = getattr(options, name, None)
        if value is not None:
            words.append(f"--{name} {json.dumps(value) if not value.isalnum() else value}")
    return " ".join(words)


def replace(options: argparse.Namespace) -> Outcome:
    """Make a scope hold exactly the anchors of a JSON list, in one change."""
    counter = places.open_counter()
    place = places.find_place(counter, options)
    # The wrong scope would lose more here than elsewhere, so the workspace is never only a fallback.
    fallback = "session" if options.workspace is None or options.session is not None else "workspace"
    scope = place.scope(options.scope or fallback)
    drafts, revision = parse_drafts(terminal.read_text(options.file, "the anchors"))
    expected = options.expected_revision if options.expected_revision is not None else revision
    result = counter.store.replace(
        scope, drafts, actor=places.ACTOR, expected_revision=expected, allow_secret=options.allow_secret
    )
    document: dict[str, Any] = {
        name: [views.anchor_json(anchor, scope) for anchor in getattr(result, name)]
        for name in ("anchors", "added", "updated", "removed")
    }
    document["scope"] = views.scope_json(scope, result.revision, place.how)
    counts = f"{len(result.added)} added, {len(result.updated)} changed, {len(result.removed)} removed"
    text = f"{places.said(place, scope)} now holds {len(result.anchors)} anchors: {counts}."
    if result.added or result.updated or result.removed:
        text += f" To take it back: {undo_line(scope, options)}"
    return Outcome(document, text, notes=places.notes_of(counter, place, result.notices))


def parse_drafts(text: str) -> tuple[list[Draft], int | None]:
    """Return the drafts of a JSON list, or of an object's `anchors`, and that object's expected revision.

    The form of `list --json` is taken too: what the store decides itself (ids, times, revisions) is left
    out. Raises UsageError for what is no JSON, InvalidAnchorError naming the entry.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"the anchors are no JSON: {problem}", hint=_LIST) from None
    revision = None
    if isinstance(value, Mapping):
        revision = value.get("expected_revision")
        value = value.get("anchors")
        if revision is not None and (isinstance(revision, bool) or not isinstance(revision, int)):
            raise InvalidAnchorError(f"expected_revision {shorten(revision)} is no number")
    if not isinstance(value, list):
        raise InvalidAnchorError(
            f"the anchors are no list but {type(value).__name__}", hint=_LIST
        )
    return [_draft(item, f"anchors[{number}]") for number, item in enumerate(value)], revision


def _draft(item: object, place: str) -> Draft:
    if not isinstance(item, Mapping):
        raise InvalidAnchorError(f"{place} is no object but {shorten(item)}")
    raw = {"origin": "user", **{str(k): v for k, v in item.items() if k not in _OWN_FIELDS}}
    try:
        return Draft.checked(**raw)
    except InvalidAnchorError as problem:
        raise type(problem)(f"{place}: {problem.message}", hint=problem.hint) from problem

"""`list` and `get`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from context_anchor.anchors.anchor import CATEGORIES, PRIORITIES, Anchor, checked_choice
from context_anchor.anchors.bundle import in_order
from context_anchor.anchors.results import Snapshot
from context_anchor.anchors.scope import AnyScope
from context_anchor.anchors.text import matching_title
from context_anchor.cli import columns, places, views
from context_anchor.cli.outcome import Outcome
from context_anchor.errors import UsageError
from context_anchor.server import summaries
from context_anchor.server.caller import Desk, Place


def list_anchors(options: argparse.Namespace) -> Outcome:
    """List anchors in bundle order: as a table, as tab-separated lines, or in full as JSON."""
    counter = places.open_counter()
    place, scopes = _looked_at(counter, options)
    held = [(scope, counter.store.read(scope)) for scope in scopes]
    wanted = {scope: _chosen(snapshot.anchors, options) for scope, snapshot in held}
    ordered = [] if options.all else _together(wanted)
    document: dict[str, Any] = {
        "scopes": [views.scope_json(scope, snapshot.revision, place.how) for scope, snapshot in held],
        "anchors": [
            {**views.anchor_json(anchor, scope), **({"where": views.where(scope)} if options.all else {})}
            for scope, anchor in (_each(wanted) if options.all else ordered)
        ],
    }
    shown = [anchor for anchors in wanted.values() for anchor in anchors]
    document["tokens"] = sum(anchor.tokens for anchor in shown)
    lines = _by_scope(held, wanted, counter.now) if options.all else _one_table(place, held, ordered, counter.now)
    footer = [f"{len(shown)} anchors, ~{document['tokens']:,} tokens"] if shown else []
    if not options.all:
        footer += _delivery(counter, place, document)
    stale = [a.id for scope, anchors in wanted.items() for a in anchors if _is_stale(a, scope)]
    if stale:
        footer.append("refs that are not on disk: " + ", ".join(stale[:10]) + (" ..." if stale[10:] else ""))
    if footer:
        lines += ["", *footer]
    pairs = _each(wanted) if options.all else ordered
    plain = columns.plain([views.plain_row(anchor, scope) for scope, anchor in pairs])
    unsure = () if options.all else places.unsure(place, options, "are shown")
    notes = places.notes_of(counter, place, unsure, *(snapshot.notices for _, snapshot in held))
    return Outcome(document, "\n".join(lines), plain, notes)


def _looked_at(counter: places.Counter, options: argparse.Namespace) -> tuple[Place, tuple[AnyScope, ...]]:
    if not options.all:
        place = places.find_place(counter, options)
        return place, places.scopes_of(place, options)
    if options.session is not None or options.workspace is not None:
        raise UsageError("--all was given with a session or workspace", hint="Leave one of them out.")
    scopes = counter.store.scopes()
    return Place(None, None, "none", "", None, None), tuple(
        scope for scope in scopes if options.scope in (None, scope.kind)
    )


def _chosen(anchors: Sequence[Anchor], options: argparse.Namespace) -> list[Anchor]:
    if options.priority is not None:
        checked_choice("priority", options.priority, PRIORITIES)
    if options.category is not None:
        checked_choice("category", options.category, CATEGORIES)
    title = matching_title(options.title[:4000]) if options.title is not None else ""
    return [
        anchor
        for anchor in anchors
        if options.priority in (None, anchor.priority)
        and options.category in (None, anchor.category)
        and (options.tag is None or options.tag in anchor.tags)
        and (options.id is None or anchor.id.startswith(options.id.strip("{}")))
        and title in matching_title(anchor.title)
    ]


def _together(wanted: dict[AnyScope, list[Anchor]]) -> list[tuple[AnyScope, Anchor]]:
    home = {anchor.id: scope for scope, anchors in wanted.items() for anchor in anchors}
    return [(home[a.id], a) for a in in_order(a for anchors in wanted.values() for a in anchors)]


def _each(wanted: dict[AnyScope, list[Anchor]]) -> list[tuple[AnyScope, Anchor]]:
    return [(scope, anchor) for scope, anchors in wanted.items() for anchor in anchors]


def _one_table(
    place: Place,
    held: Sequence[tuple[AnyScope, Snapshot]],
    ordered: Sequence[tuple[AnyScope, Anchor]],
    now: float,
) -> list[str]:
    lines = [f"{places.said(place, scope)}, revision {snapshot.revision}" for scope, snapshot in held]
    table = views.listed([anchor for _, anchor in ordered], now) if ordered else "Nothing is pinned."
    return [*lines, "", table]


def _by_scope(
    held: Sequence[tuple[AnyScope, Snapshot]], wanted: dict[AnyScope, list[Anchor]], now: float
) -> list[str]:
    lines: list[str] = []
    for scope, snapshot in held:
        if wanted[scope]:
            lines += ["", f"{scope.label}, revision {snapshot.revision}", views.listed(wanted[scope], now)]
    return lines[1:] or ["Nothing is pinned."]


def _delivery(counter: places.Counter, place: Place, document: dict[str, Any]) -> list[str]:
    """Return how much of an injection the anchors take and when they last reached the model."""
    lines: list[str] = []
    desk = Desk(counter.data, counter.store, "", 0, 0.0, env=counter.env)
    try:
        budget = summaries.budget(desk, place)
    except (OSError, ValueError, KeyError, TypeError):
        budget = None  # no bundle part yet, or one that doctor reports
    if budget and budget.used:
        document["budget"] = budget.as_json()
        lines.append(str(budget))
    delivery = summaries.last_delivery(counter.data, place)
    if delivery:
        document["delivery"] = delivery.as_json()
        lines.append(str(delivery))
    return lines


def _is_stale(anchor: Anchor, scope: AnyScope) -> bool:
    return bool(anchor.refs) and bool(summaries.missing_refs(anchor.refs, views.root_of(scope)))


def get(options: argparse.Namespace) -> Outcome:
    """Print one anchor in full, or with --all every anchor."""
    counter = places.open_counter()
    place = places.find_place(counter, options)
    more: tuple[str, ...] = ()
    if options.all:
        if options.id is not None or options.title is not None or options.anchor is not None:
            raise UsageError("--all was given with an anchor", hint="Leave one of them out.")
        scopes = places.scopes_of(place, options)
        more = places.unsure(place, options, "are shown")
        pairs = _together({scope: list(counter.store.read(scope).anchors) for scope in scopes})
        document: dict[str, Any] = {"anchors": [views.anchor_json(anchor, scope) for scope, anchor in pairs]}
    else:
        pairs = [places.chosen_anchor(counter, place, options, partial=True)]
        document = {"anchor": views.anchor_json(pairs[0][1], pairs[0][0])}
    if options.content_only:
        text = "\n\n".join(anchor.content for _, anchor in pairs)
    else:
        text = "\n\n\n".join(views.in_full(anchor, scope, counter.now) for scope, anchor in pairs)
    return Outcome(document, text or "Nothing is pinned.", text, places.notes_of(counter, place, more))

"""`history` and `undo`."""

from __future__ import annotations

import argparse
from typing import Any

from context_anchor.anchors.anchor import Anchor, format_time
from context_anchor.anchors.results import JournalEntry
from context_anchor.anchors.scope import AnyScope, SessionScope
from context_anchor.anchors.text import matching_title
from context_anchor.cli import columns, places, terminal, views
from context_anchor.cli.outcome import Outcome
from context_anchor.errors import NothingToUndoError, UsageError
from context_anchor.server.caller import Place
from context_anchor.wire import registry

_HEAD = ("ENTRY", "WHEN", "BY", "SCOPE", "CHANGE")
_MOST_SEARCHED = 100_000


def history(options: argparse.Namespace) -> Outcome:
    """Show the changes of the scopes, newest first; `before` and `after` in full as JSON."""
    counter = places.open_counter()
    if options.all:
        place = Place(None, None, "none", "", None, None)
        scopes = tuple(s for s in counter.store.scopes() if options.scope in (None, s.kind))
    else:
        place = places.find_place(counter, options)
        scopes = places.scopes_of(place, options)
    if options.id is not None and options.title is not None:
        raise UsageError("--id and --title were both given", hint="Give one of them.")
    anchor_id = options.id.strip().strip("{}") if options.id is not None else None
    limit = options.limit if options.title is None else _MOST_SEARCHED
    found = [
        (scope, entry)
        for scope in scopes
        for entry in counter.store.history(scope, anchor_id=anchor_id, limit=limit)
        if options.title is None or _is_about(entry, options.title)
    ]
    found.sort(key=lambda pair: pair[1].at, reverse=True)  # stable: within a scope the journal's order stays
    found = found[: options.limit]
    document = {"entries": [_entry_json(entry, scope) for scope, entry in found]}
    rows = [
        (
            str(entry.entry),
            format_time(entry.at)[:19] + "Z",
            terminal.one_line(entry.actor),
            views.where(scope) if options.all else scope.kind,
            terminal.one_line(describe(entry)),
        )
        for scope, entry in found
    ]
    text = columns.table(_HEAD, rows, terminal.width(), right=(0,)) if rows else "Nothing has been changed."
    return Outcome(document, text, columns.plain(rows), places.notes_of(counter, place))


def _is_about(entry: JournalEntry, title: str) -> bool:
    wanted = matching_title(title[:4000])
    sides = (side for change in entry.changes for side in (change.before, change.after) if side)
    return any(matching_title(side.title) == wanted for side in sides)


def _entry_json(entry: JournalEntry, scope: AnyScope) -> dict[str, Any]:
    return {
        "entry": entry.entry,
        "at": format_time(entry.at),
        "actor": entry.actor,
        "op": entry.op,
        "undoes": entry.undoes,
        "scope": scope.kind,
        "where": views.where(scope),
        "changes": [
            {
                "before": change.before.to_json() if change.before else None,
                "after": change.after.to_json() if change.after else None,
            }
            for change in entry.changes
        ],
    }


def describe(entry: JournalEntry) -> str:
    """Return a change in words."""
    if len(entry.changes) == 1:
        what = _one_change(entry.changes[0].before, entry.changes[0].after)
    else:
        counts = {"added": 0, "changed": 0, "removed": 0}
        for change in entry.changes:
            counts["added" if not change.before else "changed" if change.after else "removed"] += 1
        what = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "nothing changed"
    if entry.undoes is not None:
        return f"undo of {entry.undoes}: {what}"
    return f"{entry.op}: {what}"


def _one_change(before: Anchor | None, after: Anchor | None) -> str:
    anchor = after or before
    if anchor is None:
        return "nothing changed"
    if before is None:
        what = "added"
    elif after is None:
        what = "removed"
    else:
        names = ("title", "content", "priority", "category", "refs", "tags", "origin")
        differing = [name for name in names if getattr(before, name) != getattr(after, name)]
        what = "changed " + (", ".join(differing) or "nothing")
    return f"{what} {anchor.id} {anchor.title}"


def undo(options: argparse.Namespace) -> Outcome:
    """Take back the newest change that is not taken back yet, or the one of --entry."""
    counter = places.open_counter()
    place = places.find_place(counter, options)
    scope = _scope_to_undo(counter, place, options)
    result = counter.store.undo(scope, actor=places.ACTOR, entry=options.entry)
    document = {
        "undone": _entry_json(result.undone, scope),
        "restored": [views.anchor_json(anchor, scope) for anchor in result.restored],
        "removed": [views.anchor_json(anchor, scope) for anchor in result.removed],
        "scope": views.scope_json(scope, result.revision, place.how),
    }
    lines = [f"Undid entry {result.undone.entry} of {places.said(place, scope)} ({describe(result.undone)})."]
    lines += [f"Restored {anchor.id}: {terminal.one_line(anchor.title)}" for anchor in result.restored]
    lines += [f"Removed {anchor.id}: {terminal.one_line(anchor.title)}" for anchor in result.removed]
    return Outcome(document, "\n".join(lines), notes=places.notes_of(counter, place, result.notices))


def _refuse_if_elsewhere(
    counter: places.Counter, place: Place, changed: list[tuple[JournalEntry, AnyScope]]
) -> None:
    """Refuse where a session that can't be told here was changed later: undo would take back another change."""
    if place.session is not None or place.workspace is None:
        return
    newest = max((entry.at for entry, _ in changed), default=None)
    for record in registry.all_sessions(counter.data):
        if record["workspace_id"] != place.workspace.workspace_id:
            continue
        scope = SessionScope(record["host"], record["session_id"])
        entries = counter.store.history(scope, limit=1)
        if entries and (newest is None or entries[0].at > newest):
            raise UsageError(
                f"the newest change here is one of session {scope.session_id} ({describe(entries[0])})",
                hint=f"Add --scope session --session {scope.session_id}, or --scope workspace.",
            )


def _scope_to_undo(counter: places.Counter, place: Place, options: argparse.Namespace) -> AnyScope:
    """Return the named scope, else the one whose newest change is the latest."""
    if options.scope or options.session is not None:
        return place.scope(options.scope or "session")
    if options.workspace is not None:
        return place.scope("workspace")
    changed = [
        (entries[0], scope)
        for scope in places.scopes_of(place, options)
        if (entries := counter.store.history(scope, limit=1))
    ]
    _refuse_if_elsewhere(counter, place, changed)
    if not changed:
        raise NothingToUndoError("nothing has been changed here", hint="See: context-anchor history --all")
    if len(changed) > 1 and options.entry is not None:
        raise UsageError(
            f"entry {options.entry} may be the session's or the workspace's",
            hint="Add --scope session or --scope workspace.",
        )
    return max(changed, key=lambda pair: pair[0].at)[1]

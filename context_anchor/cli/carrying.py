"""`export` and `import`."""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timezone
from typing import Any

from context_anchor.anchors.scope import AnyScope
from context_anchor.anchors.transfer import export_scopes, import_document
from context_anchor.cli import places, terminal, views
from context_anchor.cli.outcome import Outcome
from context_anchor.errors import ImportFormatError, StoreUnavailableError, UsageError
from context_anchor.server.caller import Place
from context_anchor.wire import atomic


def export(options: argparse.Namespace) -> Outcome:
    """Write the anchors as one JSON document, to standard output or to a file of the owner's alone."""
    counter = places.open_counter()
    if options.all:
        if options.session is not None or options.workspace is not None:
            raise UsageError("--all was given with a session or workspace", hint="Leave one of them out.")
        place = Place(None, None, "none", "", None, None)
        scopes = tuple(scope for scope in counter.store.scopes() if options.scope in (None, scope.kind))
    else:
        place = places.find_place(counter, options)
        scopes = places.scopes_of(place, options)
    document = export_scopes(counter.store, scopes, at=datetime.now(timezone.utc))
    notes = places.notes_of(counter, place)
    text = json.dumps(document, indent=2)
    if options.output is None:
        return Outcome(document, text, notes=notes)
    try:
        path = terminal.path_of(options.output)
        atomic.replace_bytes(str(path.absolute()), text.encode("ascii") + b"\n", durable=True)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise StoreUnavailableError(
            f"the export can't be written to {terminal.one_line(options.output)}: {reason}",
            hint="Name another file with --output.",
        ) from problem
    count = _anchors_in(document)
    summary = {"output": str(path.absolute()), "anchors": count, "scopes": len(_parts(document))}
    return Outcome(summary, f"Exported {count} anchors of {summary['scopes']} scopes to {path}", notes=notes)


def _parts(document: dict[str, object]) -> list[dict[str, Any]]:
    parts = document["scopes"]
    return parts if isinstance(parts, list) else []


def _anchors_in(document: dict[str, object]) -> int:
    return sum(len(part["anchors"]) for part in _parts(document))


def import_anchors(options: argparse.Namespace) -> Outcome:
    """Bring in a document that export wrote: into the scopes it names, or into the one that options name."""
    counter = places.open_counter()
    place = Place(None, None, "none", "", None, None)
    into: AnyScope | None = None
    if options.scope or options.session is not None or options.workspace is not None:
        place = places.find_place(counter, options)
        into = places.scope_to_write(place, options)
    text = terminal.read_text(options.file, "the document")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ImportFormatError(f"the document is no JSON: {problem}", hint="Give what export wrote.") from None
    done = import_document(
        counter.store, document, actor=places.ACTOR, mode=options.mode, into=into, allow_secret=options.allow_secret
    )
    report: dict[str, Any] = {
        "imported": [
            {
                **views.scope_json(one.scope, one.result.revision),
                **{name: len(getattr(one.result, name)) for name in ("added", "updated", "removed")},
            }
            for one in done
        ]
    }
    lines = [
        f"{one.scope.label}: {len(one.result.added)} added, {len(one.result.updated)} changed, "
        f"{len(one.result.removed)} removed"
        for one in done
    ]
    notices = [notice for one in done for notice in one.result.notices]
    return Outcome(
        report,
        "\n".join(lines) or "The document holds no anchors.",
        notes=places.notes_of(counter, place, notices),
    )

"""Export and import of anchors as one JSON document, format `context-anchor-export/1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from context_anchor.anchors.anchor import MAX_ANCHORS, Draft, format_time, matching_title
from context_anchor.anchors.document import newer_version
from context_anchor.anchors.lookup import refuse_secrets
from context_anchor.anchors.results import ReplaceResult
from context_anchor.anchors.scope import AnyScope, from_identity, identity
from context_anchor.anchors.store import AnchorStore
from context_anchor.anchors.text import shorten
from context_anchor.errors import (
    ImportFormatError,
    InvalidAnchorError,
    ScopeFullError,
    StoreNewerError,
    UsageError,
)

NAME = "context-anchor-export/"
VERSION = 1
FORMAT = f"{NAME}{VERSION}"
_DRAFT_FIELDS = ("title", "content", "priority", "category", "refs", "tags", "origin")
_MAX_SCOPES = 10_000


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did to one scope."""

    scope: AnyScope
    result: ReplaceResult


def export_scopes(store: AnchorStore, scopes: Iterable[AnyScope], *, at: datetime) -> dict[str, object]:
    """Return a document, ready for `json.dumps`, with the present anchors of scopes; empty ones are left out.

    History is not exported. Raises StoreUnavailableError.
    """
    parts: list[dict[str, object]] = []
    for scope in scopes:
        anchors = store.read(scope).anchors
        if anchors:
            parts.append({**identity(scope), "anchors": [anchor.to_json() for anchor in anchors]})
    return {"format": FORMAT, "exported_at": format_time(at), "scopes": parts}


def import_document(
    store: AnchorStore,
    document: object,
    *,
    actor: str,
    mode: Literal["merge", "replace"] = "merge",
    into: AnyScope | None = None,
    allow_secret: bool = False,
) -> tuple[Imported, ...]:
    """Bring the anchors of a document into the store and return what changed, by scope.

    Everything is checked before anything is written. `merge` adds, and supersedes anchors of the same
    title; `replace` makes each scope hold exactly what the document has. `into` names the scope for all
    of them (a document from another machine names workspaces that are not here). Each scope is changed
    in one step, which one undo takes back.

    Raises ImportFormatError naming the place in the document, SecretRefusedError, ScopeFullError,
    StoreNewerError.
    """
    if mode not in ("merge", "replace"):
        raise UsageError(f"mode {shorten(mode)} is unknown", hint="Use merge or replace.")
    planned = _planned(_parts(document), into)
    for scope, drafts in planned:
        if not allow_secret:
            refuse_secrets(drafts)
        _check_room(store, scope, drafts, mode)
    put = store.replace if mode == "replace" else store.merge
    return tuple(
        Imported(scope, put(scope, drafts, actor=actor, allow_secret=True)) for scope, drafts in planned
    )


def _parts(document: object) -> Sequence[object]:
    if not isinstance(document, Mapping):
        raise ImportFormatError(
            f"the document is no object but {type(document).__name__}", hint="Give what export wrote."
        )
    tag = document.get("format")
    if newer_version(tag, NAME, VERSION):
        raise ImportFormatError(f"the document has a newer format ({shorten(tag)})", hint="Update context-anchor.")
    if tag != FORMAT:
        raise ImportFormatError(
            f"the document's format is {shorten(tag)}, not {FORMAT}", hint="Give what export wrote."
        )
    parts = document.get("scopes")
    if not isinstance(parts, list) or len(parts) > _MAX_SCOPES:
        raise ImportFormatError("scopes is no list of scopes", hint="Give what export wrote.")
    return parts


def _planned(parts: Sequence[object], into: AnyScope | None) -> list[tuple[AnyScope, list[Draft]]]:
    planned: dict[AnyScope, dict[str, Draft]] = {}
    for number, part in enumerate(parts):
        place = f"scopes[{number}]"
        if not isinstance(part, Mapping) or not isinstance(part.get("anchors"), list):
            raise ImportFormatError(f"{place} has no list of anchors", hint="Give what export wrote.")
        try:
            scope = into or from_identity(part)
        except UsageError as problem:
            raise ImportFormatError(f"{place}: {problem.message}", hint=problem.hint) from problem
        drafts = planned.setdefault(scope, {})
        for at, item in enumerate(part["anchors"]):
            draft = _draft(item, f"{place}.anchors[{at}]")
            if drafts.setdefault(matching_title(draft.title), draft) is not draft:
                raise ImportFormatError(
                    f"{place}.anchors[{at}]: a second anchor has the title {draft.title!r} in {scope.label}",
                    hint="Give one of them another title.",
                )
    return [(scope, list(drafts.values())) for scope, drafts in planned.items()]


def _draft(item: object, place: str) -> Draft:
    if not isinstance(item, Mapping):
        raise ImportFormatError(f"{place} is no object but {shorten(item)}", hint="Give what export wrote.")
    try:
        return Draft.checked(**{name: item[name] for name in _DRAFT_FIELDS if name in item})
    except InvalidAnchorError as problem:
        raise ImportFormatError(f"{place}: {problem.message}", hint=problem.hint) from problem


def _check_room(store: AnchorStore, scope: AnyScope, drafts: Sequence[Draft], mode: str) -> None:
    snapshot = store.read(scope)
    if not snapshot.writable:
        raise StoreNewerError(
            f"the anchors of {scope.label} were written by a newer version", hint="Update context-anchor."
        )
    titles = {matching_title(draft.title) for draft in drafts}
    kept = [a for a in snapshot.anchors if matching_title(a.title) not in titles] if mode == "merge" else []
    if len(kept) + len(drafts) > MAX_ANCHORS:
        raise ScopeFullError(
            f"{scope.label} would hold {len(kept) + len(drafts)} anchors, at most {MAX_ANCHORS} fit",
            hint="Unpin what is settled first.",
        )

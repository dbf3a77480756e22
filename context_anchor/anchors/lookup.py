"""Finding one anchor by id or title, and refusing drafts that hold secrets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from context_anchor.anchors.anchor import Anchor, Draft, matching_title
from context_anchor.anchors.text import shorten
from context_anchor.errors import (
    AmbiguousTitleError,
    AnchorNotFoundError,
    SecretRefusedError,
    UsageError,
)

MIN_PREFIX = 6
"""Characters of the shortest id prefix that is taken for an id."""
_LISTED = 8


def one_selector(anchor_id: object, title: object, clear_all: bool) -> None:
    """Raise UsageError unless exactly one way to choose is given, with the right type."""
    given = [name for name, value in (("anchor_id", anchor_id), ("title", title)) if value is not None]
    if clear_all:
        given.append("clear_all")
    if len(given) != 1:
        raise UsageError(
            "no anchor was named" if not given else f"{' and '.join(given)} were given together",
            hint="Give exactly one of anchor_id, title or clear_all.",
        )
    value = anchor_id if anchor_id is not None else title
    if not clear_all and not isinstance(value, str):
        raise UsageError(f"{given[0]} must be a text, got {type(value).__name__} {shorten(value)}")


def not_found(wanted: str, anchors: Sequence[Anchor], where: str = "") -> AnchorNotFoundError:
    """Return the error for an id or title that nothing has; names the nearest titles."""
    place = f" in {where}" if where else ""
    if not anchors:
        return AnchorNotFoundError(
            f"no anchor {shorten(wanted)}{place}: nothing is pinned there", hint="Check the scope and session."
        )
    from difflib import get_close_matches

    titles = {matching_title(anchor.title): anchor for anchor in anchors}
    near = get_close_matches(matching_title(wanted[:400]), list(titles), n=3, cutoff=0.5)
    if near:
        hint = "Near: " + "; ".join(_line(titles[one]) for one in near)
    else:
        hint = "List the anchors to see their ids and titles."
    return AnchorNotFoundError(f"no anchor {shorten(wanted)}{place}", hint=hint)


def find_by_id(anchors: Sequence[Anchor], wanted: str) -> Anchor:
    """Return the anchor of an id or of a unique prefix of it; raises as `AnchorStore.find`."""
    wanted = wanted.strip().strip("{}")
    found = [anchor for anchor in anchors if anchor.id == wanted]
    if not found and len(wanted) >= MIN_PREFIX:
        found = [anchor for anchor in anchors if anchor.id.startswith(wanted)]
    return _only(found, wanted, anchors, "ids that begin with")


def same_title(anchors: Iterable[Anchor], title: str) -> list[Anchor]:
    """Return the anchors whose title counts as the same."""
    wanted = matching_title(title)
    return [anchor for anchor in anchors if matching_title(anchor.title) == wanted]


def find_by_title(anchors: Sequence[Anchor], title: str, *, partial: bool = False) -> Anchor:
    """Return the anchor of a title, or of a part of it; raises as `AnchorStore.find`."""
    found = same_title(anchors, title[:4000])
    wanted = matching_title(title[:4000])
    if not found and partial and wanted:
        found = [anchor for anchor in anchors if wanted in matching_title(anchor.title)]
    return _only(found, title, anchors, "the title")


def _only(found: Sequence[Anchor], wanted: str, anchors: Sequence[Anchor], what: str) -> Anchor:
    if len(found) == 1:
        return found[0]
    if not found:
        raise not_found(wanted, anchors)
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    raise AmbiguousTitleError(
        f"{len(found)} anchors fit {what} {shorten(wanted)}: "
        + "; ".join(_line(anchor) for anchor in found[:_LISTED])
        + more,
        hint="Name one by its whole anchor_id.",
    )


def _line(anchor: Anchor) -> str:
    title = anchor.title if len(anchor.title) <= 60 else anchor.title[:57] + "..."
    return f"{anchor.id} ({anchor.scope}) {title}"


def refuse_secrets(drafts: Iterable[Draft]) -> None:
    """Raise SecretRefusedError for the first draft that holds a secret; the secret is not repeated."""
    from context_anchor.redact import find_secrets

    for draft in drafts:
        fields = [("title", draft.title), ("content", draft.content)]
        fields += [(f"refs[{n}]", ref) for n, ref in enumerate(draft.refs)]
        fields += [(f"tags[{n}]", tag) for n, tag in enumerate(draft.tags)]
        for name, text in fields:
            for finding in find_secrets(text):
                raise SecretRefusedError(
                    f"{name} seems to hold a secret ({finding.kind}) at characters "
                    f"{finding.start} to {finding.end}; nothing was written",
                    hint="Pin where the secret is kept (a variable's or file's name) instead of the secret.",
                )

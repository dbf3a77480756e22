"""The anchor: one pinned conclusion, its fields and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Literal, TypeVar, cast, get_args

from context_anchor.anchors.text import clean_block, clean_line, estimate_tokens, matching_title, shorten
from context_anchor.errors import ContentTooLongError, InvalidAnchorError

__all__ = [
    "CATEGORIES",
    "MAX_ANCHORS",
    "MAX_CONTENT",
    "MAX_REF",
    "MAX_REFS",
    "MAX_TAG",
    "MAX_TAGS",
    "MAX_TITLE",
    "ORIGINS",
    "PRIORITIES",
    "SCOPES",
    "Anchor",
    "Category",
    "Draft",
    "Origin",
    "Priority",
    "Scope",
    "estimate_tokens",
    "matching_title",
]

Priority = Literal["critical", "high", "normal"]
Category = Literal["decision", "constraint", "state", "file_map", "pitfall", "task"]
Scope = Literal["session", "workspace"]
Origin = Literal["agent", "user", "derived"]

PRIORITIES: tuple[str, ...] = get_args(Priority)
CATEGORIES: tuple[str, ...] = get_args(Category)
SCOPES: tuple[str, ...] = get_args(Scope)
ORIGINS: tuple[str, ...] = get_args(Origin)

MAX_TITLE = 200
"""Characters of a title."""
MAX_CONTENT = 4_000
"""Characters of a content."""
MAX_ANCHORS = 200
"""Anchors of one scope."""
MAX_REFS = 20
MAX_REF = 1_024
"""Characters of one ref."""
MAX_TAGS = 20
MAX_TAG = 40
"""Characters of one tag."""

_PRIORITY_RANK = {"critical": 0, "high": 1, "normal": 2}
_CATEGORY_RANK = {"constraint": 0, "decision": 1, "task": 2, "state": 3, "pitfall": 4, "file_map": 5}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_CONCLUDE = "Pin the conclusion and a pointer (path and line, commit, URL) instead of the text itself."
_T = TypeVar("_T")


def whole_ms(moment: datetime) -> datetime:
    """Return a moment in UTC, cut to whole milliseconds, so that it is the same after a write and a read."""
    moment = moment.astimezone(timezone.utc)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def format_time(moment: datetime) -> str:
    """Return a moment as `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return whole_ms(moment).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def parse_time(value: object) -> datetime:
    """Return the moment an ISO 8601 text names, UTC where it names no zone; raises ValueError."""
    if not isinstance(value, str) or len(value) > 40:
        raise ValueError(f"not a time: {shorten(value)}")
    return _parse_time(value)


@lru_cache(maxsize=1024)
def _parse_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    return whole_ms(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller wants pinned; made by `Draft.checked`, which cleans and checks it."""

    title: str
    content: str
    priority: Priority = "normal"
    category: Category = "state"
    refs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: Origin = "agent"

    @classmethod
    def checked(cls, **raw: object) -> Draft:
        """Return a clean draft from untrusted values.

        Raises InvalidAnchorError naming the field and the value, ContentTooLongError for long content.
        """
        unknown = sorted(set(raw) - {f.name for f in fields(cls)})
        if unknown:
            raise InvalidAnchorError(
                f"unknown field {shorten(unknown[0])}",
                hint="An anchor takes " + ", ".join(f.name for f in fields(cls)) + ".",
            )
        for name in ("title", "content"):
            if raw.get(name) is None:
                raise InvalidAnchorError(f"{name} is missing", hint=f"Give a {name} as a string.")
        return cls(
            title=_checked_title(raw["title"]),
            content=_checked_content(raw["content"]),
            priority=cast(Priority, checked_choice("priority", raw.get("priority", "normal"), PRIORITIES)),
            category=cast(Category, checked_choice("category", raw.get("category", "state"), CATEGORIES)),
            refs=_checked_list("refs", raw.get("refs", ()), MAX_REFS, MAX_REF),
            tags=_checked_list("tags", raw.get("tags", ()), MAX_TAGS, MAX_TAG),
            origin=cast(Origin, checked_choice("origin", raw.get("origin", "agent"), ORIGINS)),
        )


@dataclass(frozen=True, slots=True)
class Anchor:
    """A pinned anchor as stored; times are aware UTC datetimes in whole milliseconds.

    `revision` counts this anchor's own changes from 1 and never repeats for the same id. `extra` holds
    fields of the stored form that this version does not know; they are written back as they were.
    """

    id: str
    title: str
    content: str
    priority: Priority
    category: Category
    scope: Scope
    refs: tuple[str, ...]
    tags: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    origin: Origin
    revision: int
    extra: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def tokens(self) -> int:
        """Estimated tokens of the title and the content."""
        return estimate_tokens(self.title) + estimate_tokens(self.content)

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key of the bundle: priority rank, category rank, newest first (minus epoch milliseconds)."""
        updated_ms = (self.updated_at - _EPOCH) // timedelta(milliseconds=1)
        return _PRIORITY_RANK[self.priority], _CATEGORY_RANK[self.category], -updated_ms

    @property
    def draft(self) -> Draft:
        """What was pinned, without identity and times."""
        return Draft(
            self.title, self.content, self.priority, self.category, self.refs, self.tags, self.origin
        )

    def superseded_by(self, draft: Draft, at: datetime) -> Anchor:
        """Return this anchor with a draft's values: same id, next revision, time never going back."""
        return replace(
            self,
            title=draft.title,
            content=draft.content,
            priority=draft.priority,
            category=draft.category,
            refs=draft.refs,
            tags=draft.tags,
            origin=draft.origin,
            updated_at=max(whole_ms(at), self.updated_at),
            revision=self.revision + 1,
        )

    def to_json(self) -> dict[str, object]:
        """Return the stored form; unknown fields of an earlier read come last."""
        known: dict[str, object] = {
            "id": self.id,
            "title": self.title,
            "content": self.content,
            "priority": self.priority,
            "category": self.category,
            "scope": self.scope,
            "refs": list(self.refs),
            "tags": list(self.tags),
            "created_at": format_time(self.created_at),
            "updated_at": format_time(self.updated_at),
            "origin": self.origin,
            "revision": self.revision,
        }
        known.update((name, value) for name, value in self.extra.items() if name not in known)
        return known

    @classmethod
    def from_json(cls, value: object) -> Anchor:
        """Return the anchor of a stored form; raises InvalidAnchorError naming the field.

        Bounds are not checked here: what an earlier version stored is never refused for its length.
        """
        if not isinstance(value, Mapping):
            raise InvalidAnchorError(f"an anchor must be an object, got {shorten(value)}")
        texts = {name: _stored(value, name, str) for name in ("id", "title", "content")}
        if not texts["id"] or len(texts["id"]) > 64:
            raise InvalidAnchorError(f"id must be 1 to 64 characters, got {shorten(texts['id'])}")
        revision = _stored(value, "revision", int)
        if isinstance(revision, bool) or revision < 1:
            raise InvalidAnchorError(f"revision must be a positive number, got {shorten(revision)}")
        try:
            created_at = parse_time(value.get("created_at"))
            updated_at = parse_time(value.get("updated_at"))
        except (ValueError, OverflowError) as problem:
            raise InvalidAnchorError(f"created_at and updated_at must be times: {problem}") from None
        return cls(
            id=texts["id"],
            title=texts["title"],
            content=texts["content"],
            priority=cast(Priority, checked_choice("priority", value.get("priority"), PRIORITIES)),
            category=cast(Category, checked_choice("category", value.get("category"), CATEGORIES)),
            scope=cast(Scope, checked_choice("scope", value.get("scope"), SCOPES)),
            refs=_stored_texts(value, "refs"),
            tags=_stored_texts(value, "tags"),
            created_at=created_at,
            updated_at=updated_at,
            origin=cast(Origin, checked_choice("origin", value.get("origin"), ORIGINS)),
            revision=revision,
            extra={} if value.keys() == _STORED_NAMES else _unknown(value),
        )


_STORED_NAMES = frozenset(f.name for f in fields(Anchor)) - {"extra"}


def _unknown(value: Mapping[str, object]) -> dict[str, object]:
    return {str(name): item for name, item in value.items() if name not in _STORED_NAMES}


def _stored(value: Mapping[str, object], name: str, kind: type[_T]) -> _T:
    item = value.get(name)
    if not isinstance(item, kind):
        raise InvalidAnchorError(f"{name} must be of type {kind.__name__}, got {shorten(item)}")
    return item


def _stored_texts(value: Mapping[str, object], name: str) -> tuple[str, ...]:
    items = value.get(name, [])
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise InvalidAnchorError(f"{name} must be a list of texts, got {shorten(items)}")
    return tuple(items)


def checked_choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return a value that is one of those allowed; raises InvalidAnchorError that lists them."""
    if isinstance(value, str) and value in allowed:
        return value
    hint = f"Use one of {', '.join(allowed)}."
    raise InvalidAnchorError(f"{name} {shorten(value)} is unknown", hint=hint)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidAnchorError(
            f"{name} must be a text, got {type(value).__name__} {shorten(value)}",
            hint=f"Give {name} as a string.",
        )
    return value


def _checked_title(value: object) -> str:
    title = _text("title", value)
    # The raw length is looked at first, so that ten megabytes are refused without being cleaned.
    if len(title) <= 4 * MAX_TITLE:
        title = clean_line(title, "title")
    if len(title) > MAX_TITLE:
        raise InvalidAnchorError(
            f"title has {len(title):,} characters, at most {MAX_TITLE} fit: {shorten(title)}",
            hint="Give a short name and put the rest into the content.",
        )
    if not title:
        raise InvalidAnchorError("title is empty", hint="Give a title of at least one visible character.")
    return title


def _checked_content(value: object) -> str:
    content = _text("content", value)
    if len(content) <= 4 * MAX_CONTENT:
        content = clean_block(content, "content")
    if len(content) > MAX_CONTENT:
        raise ContentTooLongError(
            f"content has {len(content):,} characters, at most {MAX_CONTENT:,} fit in one anchor",
            hint=_CONCLUDE,
        )
    if not content.strip():
        raise InvalidAnchorError("content is empty", hint="Give the conclusion to keep.")
    return content


def _checked_list(name: str, value: object, most: int, longest: int) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        raise InvalidAnchorError(
            f"{name} must be a list of texts, got {type(value).__name__} {shorten(value)}",
            hint=f'Give {name} as a list, for example ["one", "two"].',
        )
    if len(value) > most:
        raise InvalidAnchorError(f"{name} has {len(value):,} entries, at most {most} fit")
    kept: dict[str, None] = {}
    for number, item in enumerate(value):
        place = f"{name}[{number}]"
        text = _text(place, item)
        if len(text) > longest:
            raise InvalidAnchorError(
                f"{place} has {len(text):,} characters, at most {longest:,} fit: {shorten(text)}"
            )
        text = clean_line(text, place)
        if text:
            kept[text] = None
    return tuple(kept)

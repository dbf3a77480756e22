"""Bounds and cleaning of anchors."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.anchors.anchor import (
    MAX_CONTENT,
    MAX_REFS,
    MAX_TAGS,
    MAX_TITLE,
    Anchor,
    Draft,
    estimate_tokens,
    format_time,
    matching_title,
    parse_time,
)
from context_anchor.anchors.text import clean_block, clean_line, shorten
from context_anchor.errors import ContentTooLongError, InvalidAnchorError

ANY_TEXT = st.text(alphabet=st.characters(codec=None), max_size=300)
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_a_draft_at_its_bounds_is_taken_and_one_character_more_is_refused() -> None:
    full = Draft.checked(title="t" * MAX_TITLE, content="c" * MAX_CONTENT)
    assert (len(full.title), len(full.content)) == (MAX_TITLE, MAX_CONTENT)
    with pytest.raises(InvalidAnchorError, match="title has 201 characters"):
        Draft.checked(title="t" * (MAX_TITLE + 1), content="c")
    with pytest.raises(ContentTooLongError, match="Pin the conclusion and a pointer"):
        Draft.checked(title="t", content="c" * (MAX_CONTENT + 1))


def test_content_that_fits_only_after_its_line_ends_are_cleaned_is_taken() -> None:
    assert len(Draft.checked(title="t", content="x\r\n" * 1999 + "xy").content) == MAX_CONTENT


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"content": "c"}, "title is missing"),
        ({"title": "t"}, "content is missing"),
        ({"title": None, "content": "c"}, "title is missing"),
        ({"title": 7, "content": "c"}, "title must be a text, got int 7"),
        ({"title": "t", "content": ["c"]}, "content must be a text, got list"),
        ({"title": " \n\x00", "content": "c"}, "title is empty"),
        ({"title": "t", "content": " \t\r\n "}, "content is empty"),
        ({"title": "t", "content": "c", "priority": "urgent"}, "priority 'urgent' is unknown"),
        ({"title": "t", "content": "c", "priority": None}, "priority None is unknown"),
        ({"title": "t", "content": "c", "category": ["task"]}, "category list of 1 is unknown"),
        ({"title": "t", "content": "c", "origin": "robot"}, "Use one of agent, user, derived"),
        ({"title": "t", "content": "c", "refs": "a.py"}, "refs must be a list of texts, got str 'a.py'"),
        ({"title": "t", "content": "c", "refs": ["a", 3]}, r"refs\[1\] must be a text, got int 3"),
        ({"title": "t", "content": "c", "refs": ["r"] * (MAX_REFS + 1)}, "refs has 21 entries"),
        ({"title": "t", "content": "c", "refs": ["r" * 1025]}, r"refs\[0\] has 1,025 characters"),
        ({"title": "t", "content": "c", "tags": ["t"] * (MAX_TAGS + 1)}, "tags has 21 entries"),
        ({"title": "t", "content": "c", "tags": {"a": 1}}, "tags must be a list of texts"),
        ({"title": "t", "content": "c", "colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_a_bad_field_is_refused_by_name_and_value(raw: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidAnchorError, match=named) as caught:
        Draft.checked(**raw)
    assert caught.value.code in ("invalid_anchor", "content_too_long")


@pytest.mark.parametrize("field", ["title", "content"])
@pytest.mark.parametrize("char", list(BIDI))
def test_bidirectional_overrides_are_refused(field: str, char: str) -> None:
    with pytest.raises(InvalidAnchorError, match=rf"{field} holds U\+{ord(char):04X} .*character 2"):
        Draft.checked(**{"title": "t", "content": "c", field: f"ab{char}cd"})


def test_bidirectional_overrides_in_refs_and_tags_are_refused() -> None:
    with pytest.raises(InvalidAnchorError, match=r"refs\[0\] holds"):
        Draft.checked(title="t", content="c", refs=["a\u202eb"])
    with pytest.raises(InvalidAnchorError, match=r"tags\[1\] holds"):
        Draft.checked(title="t", content="c", tags=["a", "a\u2066b"])


def test_control_characters_are_cleaned_and_tabs_and_newlines_stay() -> None:
    made = Draft.checked(
        title="  two\r\nlines\tand \x1b[31mcolour\x1b[0m  ",
        content="\r\n\ta\x00b\r\nc\rd\u2028e\x0bf\x85g\x7f\ud800h\n\n",
        refs=["a\nb", "a b", ""],
        tags=["x", "x"],
    )
    assert made.title == "two lines and colour"
    assert made.content == "\tab\nc\nd\ne\nf\ng\ufffdh"
    assert made.refs == ("a b",)
    assert made.tags == ("x",)


def test_ten_megabytes_are_refused_with_a_short_message() -> None:
    big = "x" * 10_000_000
    for raw in (
        {"title": big, "content": "c"},
        {"title": "t", "content": big},
        {"title": "t", "content": "c", "refs": [big]},
        {"title": "t", "content": "c", "priority": big},
        {"title": "t", "content": "c", "tags": big},
        {"title": "t", "content": "c", big: 1},
    ):
        with pytest.raises(InvalidAnchorError) as caught:
            Draft.checked(**raw)
        assert len(str(caught.value)) < 400


@given(ANY_TEXT)
def test_cleaned_text_can_be_stored_and_cleaning_it_again_changes_nothing(text: str) -> None:
    try:
        cleaned = clean_block(text, "content")
    except InvalidAnchorError:
        assert set(text) & set(BIDI)
        return
    assert not set(text) & set(BIDI)
    cleaned.encode("utf-8")
    assert clean_block(cleaned, "content") == cleaned
    assert not [c for c in cleaned if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]
    assert cleaned.splitlines() == (cleaned.split("\n") if cleaned else [])
    assert len(clean_line(text, "title").splitlines()) <= 1


@given(ANY_TEXT)
def test_titles_that_match_a_title_match_each_other(title: str) -> None:
    form = matching_title(title)
    assert matching_title(form) == form
    assert matching_title(f"  {title}\n") == form


def test_titles_match_whatever_their_case_width_and_spaces() -> None:
    assert matching_title("Use  ＰＯＳＴ") == matching_title("use post ")
    assert matching_title("Straße") == matching_title("STRASSE")
    assert matching_title("a b") != matching_title("ab")


TIMES = st.datetimes(
    min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(timezone.utc)
)
TITLES = st.text(min_size=1, max_size=40)


@given(
    title=TITLES,
    content=TITLES,
    created=TIMES,
    refs=st.lists(TITLES, max_size=3),
    extra=st.dictionaries(st.sampled_from(["colour", "x-y"]), st.integers() | TITLES),
)
def test_an_anchor_comes_back_from_its_stored_form(
    title: str, content: str, created: datetime, refs: list[str], extra: dict[str, object]
) -> None:
    stored: dict[str, object] = {
        "id": "a-0123456789",
        "title": title,
        "content": content,
        "priority": "high",
        "category": "pitfall",
        "scope": "session",
        "refs": refs,
        "tags": [],
        "created_at": format_time(created),
        "updated_at": format_time(created),
        "origin": "user",
        "revision": 3,
        **extra,
    }
    anchor = Anchor.from_json(json.loads(json.dumps(stored)))
    assert anchor.to_json() == stored
    assert Anchor.from_json(anchor.to_json()) == anchor


@pytest.mark.parametrize(
    "change",
    [
        {"id": ""},
        {"id": 5},
        {"id": "x" * 65},
        {"title": None},
        {"priority": "urgent"},
        {"scope": "galaxy"},
        {"revision": True},
        {"revision": 0},
        {"refs": "a"},
        {"tags": [1]},
        {"created_at": "yesterday"},
        {"updated_at": 12},
    ],
)
def test_a_stored_anchor_with_a_wrong_field_is_refused(change: dict[str, object]) -> None:
    good = {
        "id": "a-1",
        "title": "t",
        "content": "c",
        "priority": "high",
        "category": "task",
        "scope": "session",
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "origin": "user",
        "revision": 1,
    }
    assert Anchor.from_json(good).refs == ()
    with pytest.raises(InvalidAnchorError):
        Anchor.from_json({**good, **change})


def test_times_keep_milliseconds_and_turn_to_utc() -> None:
    assert format_time(parse_time("2026-03-04T05:06:07.089123+02:00")) == "2026-03-04T03:06:07.089Z"
    assert parse_time("2026-03-04T05:06:07") == datetime(2026, 3, 4, 5, 6, 7, tzinfo=timezone.utc)


def test_token_estimates_grow_with_the_text_and_count_chinese_by_character() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
    assert estimate_tokens("word" * 100) == 100
    assert estimate_tokens("中文" * 50) == 100
    assert 100 <= estimate_tokens("🙂" * 100) <= 150


def test_a_value_in_a_message_is_short_and_ascii() -> None:
    assert shorten("ü" * 500) == ascii("ü" * 500)[:57] + "..."
    assert shorten(list(range(9))) == "list of 9"
    assert shorten(7) == "7"

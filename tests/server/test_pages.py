"""Sizes on the wire, clipping, cursors, and errors as replies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.errors import ContentTooLongError, ContextAnchorError, UsageError
from context_anchor.server import pages

# Text whose JSON form is longer than itself in every way there is: escapes, two to four UTF-8 bytes.
texts = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('"\\\n\x01漢😀')))


@given(texts, st.integers(0, 30), st.integers(0, 400))
def test_a_fitting_piece_fits_and_one_more_character_would_not(text: str, start: int, room: int) -> None:
    start = min(start, len(text))
    end = pages.fitting(text, start, room)
    assert pages.inner_bytes(text[start:end]) <= room
    assert end == len(text) or pages.inner_bytes(text[start : end + 1]) > room


@given(texts, st.integers(3, 300))
def test_clipped_texts_fit_and_say_that_they_are_clipped(text: str, room: int) -> None:
    for clipped in (pages.clip(text, room), pages.clip_path(text, room)):
        assert pages.inner_bytes(clipped) <= room
        assert clipped == text or "…" in clipped
    assert pages.clip_path(text, room).lstrip("…") == "" or text.endswith(pages.clip_path(text, room)[1:])


@given(st.integers(), st.text(max_size=20), st.integers())
def test_a_cursor_holds_its_position(first: int, word: str, last: int) -> None:
    cursor = pages.encode_cursor("list", first, word, last)
    assert cursor.isascii()
    assert pages.decode_cursor(cursor, "list", (int, str, int)) == (first, word, last)
    with pytest.raises(UsageError):
        pages.decode_cursor(cursor, "get", (int, str, int))


@given(st.text(max_size=60))
def test_anything_else_is_no_cursor_and_the_error_says_how_to_begin_again(text: str) -> None:
    with pytest.raises(UsageError, match="Leave cursor out to begin again"):
        pages.decode_cursor(text, "list", (int, str))


def test_a_cursor_of_true_is_not_one_of_1() -> None:
    cursor = pages.encode_cursor("get", True)
    with pytest.raises(UsageError):
        pages.decode_cursor(cursor, "get", (int,))


def test_an_error_reply_starts_with_its_code_and_says_the_same_as_an_object() -> None:
    reply = pages.error_reply(ContentTooLongError("content has 5,000 characters", hint="Pin a conclusion."))
    assert reply.is_error
    assert reply.text == "[content_too_long] content has 5,000 characters. Pin a conclusion."
    assert reply.structured == {
        "error": {
            "code": "content_too_long",
            "message": "content has 5,000 characters",
            "hint": "Pin a conclusion.",
        }
    }


@given(st.text(alphabet=st.characters(), max_size=3_000), st.text(alphabet=st.characters(), max_size=3_000))
def test_any_error_can_be_sent_and_is_small(message: str, hint: str) -> None:
    reply = pages.error_reply(ContextAnchorError(message, hint=hint))
    assert reply.size <= pages.PAGE_LIMIT
    json.dumps([reply.text, reply.structured], ensure_ascii=False).encode("utf-8")

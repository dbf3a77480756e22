"""Strings in UTF-16 code units: length, slices, order, white space, lines, omitted middles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.engine import text

MARKER = text.MIDDLE_OMITTED
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=40)
ASTRAL = "\U0001f600"
HIGH, LOW = "\ud83d", "\ude00"


def units(value: str) -> list[int]:
    """Return the code units of a text, counted another way than the code does."""
    found: list[int] = []
    for character in value:
        point = ord(character)
        if point > 0xFFFF:
            found += [0xD800 + ((point - 0x10000) >> 10), 0xDC00 + ((point - 0x10000) & 0x3FF)]
        else:
            found.append(point)
    return found


@given(ANY_TEXT)
def test_length_counts_code_units(value: str) -> None:
    assert text.unit_length(value) == len(units(value))


@given(ANY_TEXT, st.integers(0, 45), st.none() | st.integers(0, 45))
def test_a_slice_holds_exactly_the_code_units_asked_for(value: str, start: int, end: int | None) -> None:
    assert units(text.unit_slice(value, start, end)) == units(value)[start:end]


@given(ANY_TEXT, ANY_TEXT)
def test_texts_compare_as_their_code_units_do(left: str, right: str) -> None:
    one, other = units(left), units(right)
    assert text.compare_units(left, right) == (one > other) - (one < other)
    assert (text.unit_key(left) < text.unit_key(right)) == (one < other)


def test_an_astral_character_sorts_before_the_end_of_the_basic_plane() -> None:
    assert sorted(["\uffff", ASTRAL, "\ue000"], key=text.unit_key) == [ASTRAL, "\ue000", "\uffff"]


def test_a_slice_through_a_pair_leaves_lone_halves() -> None:
    assert text.unit_slice(f"a{ASTRAL}b", 0, 2) == f"a{HIGH}"
    assert text.unit_slice(f"a{ASTRAL}b", 2) == f"{LOW}b"


def test_a_negative_position_is_refused() -> None:
    with pytest.raises(ValueError, match="beginning"):
        text.unit_slice("abc", -1)
    with pytest.raises(ValueError, match="beginning"):
        text.unit_slice("abc", 0, -1)


def test_a_pair_given_as_two_characters_is_the_character_it_means() -> None:
    assert text.paired(HIGH + LOW) == ASTRAL
    assert text.paired(LOW + HIGH) == LOW + HIGH
    assert text.utf8_bytes(HIGH + LOW) == ASTRAL.encode()


def test_each_lone_surrogate_is_the_replacement_character_in_utf_8() -> None:
    assert text.utf8_bytes(f"a{HIGH}{HIGH}b{LOW}") == b"a\xef\xbf\xbd\xef\xbf\xbdb\xef\xbf\xbd"
    assert text.utf8_length(HIGH) == 3


def test_trimming_takes_the_ecmascript_set_and_no_other() -> None:
    assert text.trim("\ufeff\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\t\n\v\f\r x \ufeff") == "x"
    kept = "\x1c\x1d\x1e\x1f\x85\u180e\u200b"
    assert text.trim(kept) == kept


def test_runs_of_white_space_become_one_space() -> None:
    assert text.collapse_spaces(" a\r\n\t\u3000b\x85c ") == "a b\x85c"


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a", ""]),
        ("a\r\nb\n\nc", ["a", "b", "", "c"]),
        ("a\rb", ["a\rb"]),
        ("a\r\r\nb\r", ["a\r", "b\r"]),
        ("a\x0b\x85\u2028b", ["a\x0b\x85\u2028b"]),
    ],
)
def test_only_line_feeds_with_or_without_a_return_end_lines(value: str, lines: list[str]) -> None:
    assert text.split_lines(value) == lines


TEN = "0123456789" * 10


@pytest.mark.parametrize(
    ("maximum", "wanted"),
    [
        (-1, ""),
        (0, ""),
        (5, MARKER[:5]),
        (24, MARKER),
        (25, "0" + MARKER),
        (26, "01" + MARKER),
        (27, "01" + MARKER + "9"),
        (34, TEN[:6] + MARKER + TEN[-4:]),
        (44, TEN[:12] + MARKER + TEN[-8:]),
        (64, TEN[:24] + MARKER + TEN[-16:]),
        (100, TEN),
    ],
)
def test_the_golden_vectors_of_an_omitted_middle(maximum: int, wanted: str) -> None:
    assert text.truncate_middle(TEN, maximum) == wanted


def test_no_text_is_an_empty_text() -> None:
    assert text.truncate_middle(None, 10) == ""
    assert len(MARKER) == 24


@given(st.text(max_size=120), st.integers(-2, 100), st.sampled_from([MARKER, "", "..", ASTRAL]))
def test_an_omitted_middle_never_exceeds_its_maximum(value: str, maximum: int, marker: str) -> None:
    result = text.truncate_middle(value, maximum, marker)
    length = text.unit_length(value)
    if maximum <= 0:
        assert result == ""
    elif length <= maximum:
        assert result == value
    else:
        assert text.unit_length(result) == maximum

"""Tables keep to the terminal's width, counted in columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.cli.columns import display_width, fit, pad, plain, table


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("中文", 4), ("e\u0301", 1), ("ａ", 2), ("🎉", 2)]
)
def test_width_counts_columns(text: str, columns: int) -> None:
    assert display_width(text) == columns


@given(st.text(max_size=40), st.integers(3, 30))
def test_a_fitted_text_keeps_within_its_columns(text: str, columns: int) -> None:
    fitted = fit(text, columns)
    assert display_width(fitted) <= columns
    assert fitted == text or fitted.endswith("...")


def test_columns_are_aligned_and_the_last_is_cut() -> None:
    text = table(("ID", "N", "TITLE"), [("a", "10", "中" * 30), ("bbb", "9", "short")], 30, right=(1,))
    lines = text.splitlines()
    assert lines[0] == "ID    N  TITLE"
    assert lines[1].startswith("a    10  中中")
    assert lines[2] == "bbb   9  short"
    assert display_width(lines[1]) <= 30


def test_a_narrow_terminal_gets_long_lines_rather_than_nothing() -> None:
    assert "a title that" in table(("ID", "T"), [("x" * 50, "a title that counts")], 40)


def test_padding_counts_columns() -> None:
    assert pad("中", 4) == "中  "
    assert pad("1", 3, right=True) == "  1"


def test_plain_lines_have_no_tab_or_line_break_of_a_cell() -> None:
    assert plain([("a\tb", "c\nd"), ("e", "")]) == "a b\tc d\ne\t"

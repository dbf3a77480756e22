"""Texts as a stream: the same bytes, measures and lines as the whole, however they are cut."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.engine.memory import artifact_text, files
from context_anchor.engine.text import split_lines, unit_length, utf8_bytes


@given(st.lists(st.text(st.characters(codec=None, categories=None), max_size=6), max_size=8))
def test_a_text_in_pieces_is_measured_and_written_as_the_whole(parts: list[str]) -> None:
    whole = "".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        with files.Staged(Path(folder), "x") as staged:
            measure = artifact_text.write_text(staged, iter(parts))
            staged.replace(Path(folder) / "x")
        data = (Path(folder) / "x").read_bytes()
    assert data == utf8_bytes(whole)
    assert (measure.chars, measure.bytes) == (unit_length(whole), len(data))
    assert measure.sha256 == hashlib.sha256(data).hexdigest()


@settings(deadline=None)
@given(
    st.text(st.sampled_from("ab\n\r\u2028é\U0001f600"), max_size=60),
    st.integers(1, 20),
    st.integers(0, 20),
    st.integers(1, 7),
)
def test_a_range_is_the_slice_of_the_lines_however_the_file_is_cut(
    text: str, start: int, more: int, cut: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "x"
        path.write_bytes(text.encode())
        patch.setattr(files, "READ_BYTES", cut)
        found = artifact_text.read_lines(path, start, start + more)
    lines = split_lines(text)
    assert list(found.lines) == lines[start - 1 : start + more]
    assert found.total_lines == len(lines)
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()

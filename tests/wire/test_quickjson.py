"""The small JSON reader and writer agree with the standard library's on everything."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_anchor.wire import quickjson

ROOT = Path(__file__).resolve().parents[2]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(ANY_TEXT, inner, max_size=5),
    max_leaves=30,
)
JSON_LIKE = st.lists(
    st.sampled_from(
        ['{', '}', '[', ']', ':', ',', '"', '"a"', '"\\u00e9"', '"\\ud83d"', '\\', '0', '-1', '1.5', '1e9', '1E400',
         'true', 'false', 'null', 'NaN', '-Infinity', ' ', '\t', '\n', '\x00', '\x1f', '\u2028', 'é', '\ud800', 'x']
    ),
    max_size=14,
).map("".join)  # fmt: skip


def reference(text: str) -> object:
    """Return what the standard decoder makes of a text, or ValueError as a value."""
    try:
        return json.JSONDecoder(strict=False).decode(text)
    except ValueError:
        return ValueError


def ours(text: str) -> object:
    try:
        return quickjson.loads(text)
    except ValueError:
        return ValueError


def same(one: object, other: object) -> bool:
    return repr(one) == repr(other)  # tells NaN, 1 from 1.0 and True from 1


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_every_value_that_json_writes_is_read_the_same(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert same(quickjson.loads(text), json.loads(text))


@given(VALUES)
def test_every_value_is_written_as_the_same_compact_ascii(value: object) -> None:
    text = quickjson.dumps(value)
    assert text.isascii()
    assert text == json.dumps(value, ensure_ascii=True, separators=(",", ":"))


@given(JSON_LIKE)
@example('"\x01\n"')
@example('{"a":1,}')
@example("[1 2]")
@example("-")
@example('"\\ud83d\\ude42"')
def test_broken_text_is_refused_exactly_where_json_refuses_it(text: str) -> None:
    assert same(ours(text), reference(text))


@given(JSON_LIKE, JSON_LIKE)
def test_a_prefix_ends_where_the_standard_decoder_ends_it(left: str, right: str) -> None:
    text = left + right
    start = len(text) - len(text.lstrip(" \t\n\r"))
    try:
        want = json.JSONDecoder(strict=False).raw_decode(text, start)
    except ValueError:
        with pytest.raises(ValueError):
            quickjson.decode_prefix(text)
    else:
        assert same(quickjson.decode_prefix(text), want)


def test_two_records_on_one_line_are_read_one_after_the_other() -> None:
    text = '{"a":1} {"b":[2]}\n'
    first, at = quickjson.decode_prefix(text)
    second, at = quickjson.decode_prefix(text, at)
    assert (first, second, text[at:]) == ({"a": 1}, {"b": [2]}, "\n")


def test_bytes_are_utf_8_and_bad_bytes_become_replacement_characters() -> None:
    assert quickjson.loads('"é🙂"'.encode()) == "é🙂"
    assert quickjson.loads(b'"\xff"') == "\ufffd"


def test_a_byte_order_mark_before_a_document_is_no_fault() -> None:
    assert quickjson.loads(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


@given(st.text(max_size=30), st.booleans())
def test_a_long_text_is_read_in_a_byte_a_character_and_its_strings_are_put_right(text: str, filled: bool) -> None:
    raw = json.dumps({"a": text, "b": [text], "c": "x" * 70_000 * filled}, ensure_ascii=False).encode()
    frugal = quickjson.frugal_text(raw)
    assert len(frugal) == len(raw) if filled else frugal == raw.decode()
    value = quickjson.loads(frugal)
    if filled:
        value = {name: quickjson.proper(item) for name, item in value.items()}
    assert value["a"] == text
    assert value["b"] == [text]


@pytest.mark.parametrize("value", ["é", "Ünï", "🙂", 5, None, {"é": 1}, ["é", 5]])
def test_what_was_written_with_escapes_is_right_already(value: object) -> None:
    assert quickjson.proper(value) == value


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_deep_nesting_is_a_value_error_and_no_crash(text: str) -> None:
    with pytest.raises(ValueError):
        quickjson.loads(text)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_deep_nesting_is_a_value_error_without_the_c_scanner_too(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quickjson, "_scan", None)
    with pytest.raises(ValueError):
        quickjson.loads(text)


def test_a_number_of_too_many_digits_is_a_value_error() -> None:
    if sys.version_info >= (3, 11):
        with pytest.raises(ValueError):
            quickjson.loads("1" * 5000)


@pytest.mark.parametrize("quote", ["fast", "slow"])
def test_what_is_no_json_is_refused_when_writing(quote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if quote == "slow":
        monkeypatch.setattr(quickjson, "_quote", None)
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    for value in (math.nan, math.inf, -math.inf, {1: 2}, {"a": {1, 2}}, b"x", object(), deep):
        with pytest.raises(ValueError):
            quickjson.dumps(value)


@given(VALUES)
def test_without_the_c_scanner_the_results_are_the_same(value: object) -> None:
    text = json.dumps(value)
    scan, quote = quickjson._scan, quickjson._quote
    quickjson._scan, quickjson._quote = None, None
    try:
        assert same(quickjson.loads(text), json.loads(text))
        assert quickjson.dumps(value) == json.dumps(value, separators=(",", ":"))
    finally:
        quickjson._scan, quickjson._quote = scan, quote


BROKEN = [
    '{"torn', '{"a":', '{"a" 1}', '{"a":1,}', "[1,]", '["\\u12"]', '"\\x"', "{1:2}", "[1 2]", "", "nul", "[" * 5000,
]  # fmt: skip


def test_broken_text_is_a_value_error_in_a_process_that_never_imported_json_too() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from context_anchor.wire import quickjson as q\n"
        "assert 'json' not in sys.modules\n"
        "for text in sys.argv[2:]:\n"
        "    try: print(repr(q.loads(text)))\n"
        "    except ValueError: print('refused')\n"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT), *BROKEN], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["refused"] * len(BROKEN)


def test_the_c_scanner_is_in_use_on_this_interpreter_without_the_json_module() -> None:
    if sys.implementation.name != "cpython":
        pytest.skip("the C scanner is CPython's")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from context_anchor.wire import quickjson as q;"
        "q.loads(q.dumps({'a': [1, 'é', None]})); print(q.is_fast(), 'json' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT)], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["True", "False"]

"""JSON texts, canonical form and digests, by the golden vectors and by properties."""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.engine import canonical
from context_anchor.engine.canonical import cjson, digest, pjson
from context_anchor.engine.text import unit_key
from context_anchor.errors import NotJsonError

from .fixture_files import fixture

SAFE = st.integers(-canonical.MAX_SAFE_INTEGER, canonical.MAX_SAFE_INTEGER)
PLAIN_KEYS = st.text(max_size=8).filter(lambda key: not key[:1].isdigit())
PLAIN = st.recursive(
    st.none() | st.booleans() | SAFE | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN_KEYS, inner, max_size=4),
    max_leaves=20,
)
ANY = st.recursive(
    st.none() | st.booleans() | SAFE | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text("0123456789-aé\U0001f600\ue000", max_size=3), inner, max_size=6),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_data_is_written_as_the_standard_library_writes_it(value: Any) -> None:
    assert cjson(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert pjson(value) == json.dumps(value, ensure_ascii=False, indent=2)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_reads_back_as_itself(value: float) -> None:
    written = canonical.number_text(value)
    assert float(written) == value
    assert ".e" not in written and not written.endswith(".0")


@given(ANY)
def test_the_canonical_form_is_the_same_after_a_second_time(value: Any) -> None:
    once = canonical.canonical(value)
    assert cjson(canonical.canonical(once)) == cjson(once)
    assert canonical.canonical_json(value) == cjson(once) == canonical.canonical_json(once)


@given(ANY)
def test_all_three_forms_hold_the_same_data(value: Any) -> None:
    read = json.loads(cjson(value))
    assert json.loads(pjson(value)) == read == json.loads(canonical.canonical_json(value))


@given(st.dictionaries(st.text(max_size=4), st.none(), max_size=8), st.randoms())
def test_the_canonical_form_does_not_depend_on_the_order_of_keys(value: dict[str, None], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    assert canonical.canonical_json(dict.fromkeys(keys)) == canonical.canonical_json(value)


@given(st.lists(st.text(st.characters(codec=None, categories=None), max_size=4), unique=True))
def test_keys_that_are_no_index_sort_by_code_unit(keys: list[str]) -> None:
    others = [key for key in keys if not key.isascii() or not key.isdigit()]
    assert canonical.ordered_keys(others, by_unit=True) == sorted(others, key=unit_key)


def test_the_golden_vector_of_doubles() -> None:
    doubles = [1.0, 0.1, 1e21, 1e20, 1e-7, 1e-6, -0.0, 5e-324, 12345.678]
    assert cjson(doubles) == "[1,0.1,1e+21,100000000000000000000,1e-7,0.000001,0,5e-324,12345.678]"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (9007199254740991, "9007199254740991"),
        (9007199254740993, "9007199254740992"),
        (-(10**21), "-1e+21"),
        (10**400, "null"),
        (math.nan, "null"),
        (-math.inf, "null"),
        (-1.5e-9, "-1.5e-9"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (123456789012345680000.0, "123456789012345680000"),
    ],
)
def test_numbers_have_the_ecmascript_layout(value: float, written: str) -> None:
    assert cjson(value) == written


def test_the_golden_vector_of_keys() -> None:
    names = ["b", "a", "10", "9", "01", "-1", "A", "_", "1.5", "4294967294", "4294967295"]
    wanted = ["9", "10", "4294967294", "-1", "01", "1.5", "4294967295", "A", "_", "a", "b"]
    assert canonical.canonical_json(dict.fromkeys(names, 0)) == cjson(dict.fromkeys(wanted, 0))
    assert list(json.loads(canonical.canonical_json(dict.fromkeys(names, 0)))) == wanted


def test_index_keys_come_first_also_where_nothing_is_sorted() -> None:
    assert cjson({"b": 1, "10": 2, "9": 3, "a": 4}) == '{"9":3,"10":2,"b":1,"a":4}'
    assert pjson({"b": [], "1": {}}) == '{\n  "1": {},\n  "b": []\n}'


def test_strings_have_the_ecmascript_escapes() -> None:
    assert cjson('"\\\b\t\n\f\r\x01\x1f/\x7f\u2028é\U0001f600') == (
        '"\\"\\\\\\b\\t\\n\\f\\r\\u0001\\u001f/\x7f\u2028é\U0001f600"'
    )
    assert cjson("\ud83d\ude00") == '"\U0001f600"'
    assert cjson("a\ud83d\udE00\ud83d") == '"a\U0001f600\\ud83d"'
    assert cjson({"\ude00": 1}) == '{"\\ude00":1}'


class Kind(str, Enum):
    TEXT = "text"


@pytest.mark.parametrize("value", [(), {1: 2}, {None: 1}, b"", object(), {"a": [print]}, Kind.TEXT, {"a": {1}}])
def test_what_is_not_json_data_is_refused(value: object) -> None:
    for write in (cjson, pjson, canonical.canonical_json, canonical.canonical):
        with pytest.raises(NotJsonError):
            write(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    for write in (cjson, pjson, canonical.canonical_json, canonical.canonical):
        with pytest.raises(NotJsonError, match="deeply"):
            write(loop)


def test_the_golden_digests() -> None:
    empty = "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
    assert digest(canonical.canonical_json([])) == empty
    request = {"conversationId": "anonymous", "messages": [{"role": "user", "content": "a"}], "tools": []}
    assert digest(cjson({**request, "maxOutputTokens": 5})) == (
        "sha256:5ecd35be42c4020a4b763fbd66ac7d6681e4da8e8e02c0e54d202b929daad2ab"
    )
    assert digest(cjson(request["messages"])) == (
        "sha256:11fb024d048144c699305eb5f1685af0cc29e5bc51fb177e18d892df0f29ca6a"
    )


def fingerprinted(units: list[dict[str, Any]]) -> str:
    """Return the text that an inventory's fingerprint is taken of."""
    return cjson(
        [
            {
                "position": position,
                "id": unit["id"],
                "kind": unit["kind"],
                "source": canonical.canonical(unit["source"]),
                "authority": unit["authority"],
                "taskId": unit["taskId"],
                "recoverability": unit["recoverability"],
                "recoveryRef": canonical.canonical(unit["recoveryRef"]),
                "protectedReasons": sorted(unit["protectedReasons"], key=unit_key),
                "dependencies": sorted(
                    unit["dependencies"], key=lambda found: unit_key(f"{found['unitId']}:{found['relation']}")
                ),
                "tokenCost": unit["tokenCost"],
                "lifecycle": unit["lifecycle"],
                "contentDigest": digest(unit["content"]),
            }
            for position, unit in enumerate(units)
        ]
    )


def test_the_fingerprint_of_the_fixture_inventory() -> None:
    units = fixture("test/fixtures/inventories/basic.json")["units"]
    assert digest(fingerprinted(units)) == (
        "sha256:1561c913550da1682c75a02bc8a52bb7ce1ae2a8a7e6d799840e5f50a45a8159"
    )


def test_the_fingerprint_of_the_worked_example() -> None:
    unit = {
        "id": "cu_demo_000001",
        "kind": "TOOL_EVIDENCE",
        "content": 'naïve ✓ "q"\n',
        "source": {"type": "tool", "name": "x", "b": {"z": 1, "a": None}},
        "authority": "EVIDENCE",
        "taskId": None,
        "recoverability": "artifact",
        "recoveryRef": {"sha256": None, "artifactId": "a-1"},
        "protectedReasons": ["UNRESOLVED_ERROR", "ACTIVE_DECISION"],
        "dependencies": [
            {"unitId": "cu_demo_000003", "relation": "supports"},
            {"unitId": "cu_demo_000002", "relation": "depends_on"},
        ],
        "tokenCost": 7,
        "lifecycle": "ACTIVE",
    }
    hashed = fingerprinted([unit])
    assert len(hashed.encode()) == 534
    assert digest(hashed) == "sha256:44643fa461ccec20b1561bcb22745b5e84c54ac715737b56f07f8bbea0238681"


def test_a_lone_surrogate_has_the_digest_of_the_replacement_character() -> None:
    assert digest("\ud83d") == digest("\ufffd")


def test_only_text_has_a_digest() -> None:
    for value in (b"a", None, 1):
        with pytest.raises(TypeError):
            digest(value)  # type: ignore[arg-type]


def test_digests_are_read_with_and_without_their_prefix() -> None:
    whole = digest("a")
    assert canonical.bare_digest(whole) == whole[7:] == canonical.bare_digest(whole[7:])
    assert canonical.bare_digest("sha256:sha256:x") == "sha256:x"
    assert canonical.is_digest(whole)
    for value in (whole[7:], whole + "\n", whole.upper(), None):
        assert not canonical.is_digest(value)


def test_safe_integers_are_whole_numbers_and_no_booleans() -> None:
    for good in (0, -5, 5.0, canonical.MAX_SAFE_INTEGER):
        assert canonical.is_safe_integer(good)
    for bad in (True, 0.5, canonical.MAX_SAFE_INTEGER + 1, math.nan, math.inf, "5", None):
        assert not canonical.is_safe_integer(bad)


def test_any_value_has_a_text() -> None:
    texts = {"": None, "a": "a", "1": 1.0, "true": True, '["é"]': ["é"]}
    for text, value in texts.items():
        assert canonical.string_form(value) == text

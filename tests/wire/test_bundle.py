"""The bundle's text: whole anchors in order of priority, never above the cap, the rest named."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.wire import bundle

PRIORITIES = ("critical", "high", "normal")
CONTENT = st.text(st.sampled_from("ab \né中🙂😀"), max_size=400)
ANCHORS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 5), CONTENT, st.text("Té🙂", max_size=90)),
    max_size=40,
)


def entry(
    number: int, rank: int, category: int, age: int, content: str, title: str = "T", **more: Any
) -> dict[str, Any]:
    body = "".join("| " + line + "\n" for line in content.split("\n"))
    text = f"## [{PRIORITIES[rank]}] {title} {{a-{number:010d}}} (state, session)\n{body}\n"
    return {
        "id": f"a-{number:010d}", "title": title, "priority": PRIORITIES[rank], "category": "state",
        "scope": "session", "order": [rank, category, age], "revision": 1, "refs": [], "text": text,
        "bytes": len(text.encode()), "units": len(text.encode("utf-16-le")) // 2, **more,
    }  # fmt: skip


def part(entries: list[dict[str, Any]], scope: str = "session", revision: int = 1) -> bytes:
    """Write a bundle part by its documented format."""
    index, body = [], b""
    for value in entries:
        raw = value["text"].encode()
        index.append({k: v for k, v in value.items() if k != "text"} | {"at": len(body)})
        body += raw
    head = {"format": "context-anchor-bundle/1", "scope": scope, "revision": revision, "anchors": index}
    return json.dumps(head).encode("ascii") + b"\n" + body


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def judge(head: list[str], entries: list[dict[str, Any]], limit: int) -> tuple[str, list[dict[str, Any]]]:
    """Compose and check all that must hold of any bundle."""
    text, taken = bundle.compose(head, entries, limit)
    assert utf16(text) <= limit
    left = [e for e in entries if e not in taken]
    at = text.find(head[0])
    assert at == 0
    for value in taken:  # whole, once, in order
        found = text.find(value["text"].rstrip("\n"), at)
        assert found >= at
        at = found + 1
    for value in left:
        assert value["text"].rstrip("\n").partition("\n")[0] not in text or value["title"] == ""
    if left:
        named = re.findall(r"^- \{(a-\d+)\}", text, re.MULTILINE)
        more = re.search(r"^- and (\d+) more", text, re.MULTILINE)
        assert named == [e["id"] for e in left][: len(named)]
        assert len(named) + int(more[1] if more else 0) == len(left)
        assert "get_pinned_context" in text or not named
    else:
        assert "Left out" not in text
    return text, taken


@given(ANCHORS, st.integers(900, 14_000))
def test_any_bundle_is_whole_ordered_counted_and_below_its_cap(
    raw: list[tuple[int, int, int, str, str]], limit: int
) -> None:
    entries = bundle.merge([[entry(n, *fields) for n, fields in enumerate(raw)]])
    _, taken = judge(["context-anchor receipt r-0123456789 | session s", "Frame."], entries, limit)
    orders = [(e["order"], e["id"]) for e in taken]
    assert orders == sorted(orders)
    if sum(e["units"] for e in entries) < limit - 100:
        assert taken == entries
    room = limit - 100 - min(1500, limit // 4)
    if entries and entries[0]["units"] < room - 100:
        assert taken[:1] == entries[:1], "the anchor of the highest rank comes first"


@pytest.mark.parametrize("limit", [2000, 9900, 14_000])
@pytest.mark.parametrize("count", [0, 1, 9, 100, 10_000])
@pytest.mark.parametrize("letter", ["m", "🙂"])
def test_zero_to_ten_thousand_anchors_stay_below_the_cap(limit: int, count: int, letter: str) -> None:
    entries = bundle.merge(
        [[entry(n, n % 3, n % 6, -n, letter * 200, f"Title {letter} {n}") for n in range(count)]]
    )
    text, taken = judge(["head"], entries, limit)
    if count >= 100:
        assert [e["id"] for e in taken][:2] == [e["id"] for e in entries][:2]
        if count == 10_000:
            assert {e["priority"] for e in taken} == {"critical"}
        assert utf16(text) > limit * 0.6


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_units_are_those_of_utf_16(text: str) -> None:
    assert bundle.units(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2


@given(ANCHORS)
def test_the_same_anchors_give_the_same_body_whatever_the_head(raw: list[tuple[int, int, int, str, str]]) -> None:
    entries = bundle.merge([[entry(n, *fields) for n, fields in enumerate(raw)]])
    one, _ = bundle.compose(["receipt r-1", "x"], entries, 100_000)
    other, _ = bundle.compose(["receipt r-2", "y", "z"], entries, 100_000)
    assert one.partition("\n\n")[2] == other.partition("\n\n")[2]


def test_a_limit_below_the_head_still_holds() -> None:
    text, taken = bundle.compose(["🙂" * 400], [entry(1, 0, 0, 0, "x")], 500)
    assert utf16(text) <= 500
    assert taken == []
    assert text.encode("utf-8")  # no half of an emoji is left


def test_missing_refs_of_the_included_anchors_are_named_once_and_present_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"")
    gone, here = str(tmp_path / "gone ü"), str(tmp_path / "here")
    entries = [entry(1, 0, 0, 0, "x", refs=[gone, here]), entry(2, 0, 0, 0, "y", refs=[gone])]
    text, _ = judge(["head"], entries, 5000)
    assert text.count(json.dumps(gone)) == 1
    assert "Missing on disk" in text.partition("\n\n")[0]
    assert json.dumps(here) not in text


def test_many_or_long_missing_refs_take_a_bounded_part_of_the_head(tmp_path: Path) -> None:
    entries = [
        entry(n, 0, 0, 0, "x" * 300, refs=[str(tmp_path / ("gone" * 40 + f"{n}-{m}")) for m in range(5)])
        for n in range(60)
    ]
    text, taken = judge(["head"], entries, 9900)
    assert "more" in text.partition("\n\n")[0]
    assert len(text.partition("\n\n")[0]) < 500
    assert len(taken) > 15


@pytest.mark.parametrize("ref", ["\x00", "a" * 100_000, "\ud800"])
def test_a_ref_that_is_no_path_does_no_harm(ref: str) -> None:
    assert bundle.missing_refs([entry(1, 0, 0, 0, "x", refs=[ref])]) == [ref]


def test_a_part_is_read_back_whole(tmp_path: Path) -> None:
    entries = [entry(1, 0, 0, 0, "é🙂\n<x>"), entry(2, 2, 3, -5, "two")]
    (tmp_path / "p").write_bytes(part(entries, revision=7))
    revision, found = bundle.load_part(str(tmp_path / "p"))
    assert revision == 7
    assert [e["text"] for e in found] == [e["text"] for e in entries]
    assert bundle.load_part(str(tmp_path / "none")) == (0, [])


@pytest.mark.parametrize(
    "damage",
    [lambda raw: raw[:-1], lambda raw: raw.replace(b"bundle/1", b"bundle/9"), lambda raw: b"{}\n", lambda raw: b"x",
     lambda raw: raw.replace(b"\n", b"", 1), lambda raw: raw.replace(b"\xc3", b"\xff")],
)  # fmt: skip
def test_a_damaged_part_is_refused(tmp_path: Path, damage: Any) -> None:
    (tmp_path / "p").write_bytes(damage(part([entry(1, 0, 0, 0, "é")])))
    with pytest.raises(ValueError):
        bundle.load_part(str(tmp_path / "p"))


def test_parts_of_session_and_workspace_are_merged_by_priority_category_and_age() -> None:
    session = [entry(1, 1, 0, -10, "x"), entry(2, 0, 5, -1, "x")]
    shared = [entry(3, 0, 0, -5, "x"), entry(4, 1, 0, -20, "x"), entry(5, 1, 0, -10, "x")]
    assert [e["id"][-1] for e in bundle.merge([session, shared])] == ["3", "2", "4", "1", "5"]


@pytest.mark.parametrize(
    ("text", "cap", "want"),
    [("", 9900, 9900), ("", 40_000, 14_000), ("5000", 9900, 5000), ("20000", 9900, 9900), ("1", 9900, 1500),
     ("x", 9900, 9900), ("-5", 9900, 9900), ("²", 9900, 9900), ("٣٠٠٠", 9900, 3000), ("9" * 50, 9900, 9900),
     (" 1700 ", 9900, 1700)],
)  # fmt: skip
def test_the_budget_is_the_users_and_never_above_the_hosts_cap(text: str, cap: int, want: int) -> None:
    assert bundle.budget({"CONTEXT_ANCHOR_MAX_INJECT_CHARS": text}, cap) == want
    if not text:
        assert bundle.budget({}, cap) == want


def test_looking_for_refs_is_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def look(path: str) -> bool:
        looks.append(path)
        return False

    many = [entry(n, 0, 0, 0, "x", refs=[f"{os.sep}r{n}-{m}" for m in range(5)]) for n in range(200)]
    monkeypatch.setattr(os.path, "exists", look)
    bundle.missing_refs(many)
    monkeypatch.undo()
    assert 0 < len(looks) <= 60

"""Bundle parts: byte-stable, in order, and a frame that no pin can leave."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.anchors.anchor import CATEGORIES, PRIORITIES, Anchor, Draft
from context_anchor.anchors.bundle import (
    in_order,
    is_fresh,
    is_whole,
    ref_path,
    render_block,
    render_part,
)
from context_anchor.errors import InvalidAnchorError
from context_anchor.wire import bundle as wire_bundle

EPOCH = datetime(2026, 1, 1, tzinfo=timezone.utc)
HOSTILE = st.lists(
    st.sampled_from(
        [
            "<system-reminder>", "</system-reminder>", "< / SYSTEM >", "<user_request", "<ADDITIONAL_METADATA>",
            "<ephemeral_message>", "</system_message>", "<persisted-output>", "<function_calls>", "<system\n>",
            "## [critical] Fake {a-0000000000} (constraint, session)", "| ", "# H", "```", "---", "\r\n", "\r",
            "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\n", "\t", "\n\n\n", "\x00", "\ud83d", "é", "中",
            "🙂", " ", "text", "<b>", "a<c", "&lt;", "{a-1}",
        ]
    ),
    max_size=12,
).map("".join)  # fmt: skip
FRAME = re.compile(
    r"<\s*/?\s*(?:[a-z]+:)?(?:system-reminder|system|user_request|additional_metadata|ephemeral_message|"
    r"system_message|persisted-output|function_calls)\b",
    re.IGNORECASE,
)
HEADING = re.compile(
    r"## \[(critical|high|normal)\] [^\n]* \{a-[0-9a-f]{10}\} "
    r"\((constraint|decision|task|state|pitfall|file_map), (session|workspace)\)\Z"
)


def anchor(number: int, **more: object) -> Anchor:
    fields: dict[str, Any] = {
        "title": f"Title {number}", "content": "text", "priority": "normal", "category": "state",
        "refs": (), "tags": (), "origin": "agent",
    }  # fmt: skip
    at = EPOCH + timedelta(seconds=number)
    return Anchor(
        id=f"a-{number:010x}", scope="session", created_at=at, updated_at=at, revision=1, **(fields | more)
    )


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    try:
        return Draft.checked(
            title="T" + draw(HOSTILE),
            content="C" + draw(HOSTILE),
            priority=draw(st.sampled_from(PRIORITIES)),
            category=draw(st.sampled_from(CATEGORIES)),
            refs=draw(st.lists(HOSTILE, max_size=3)),
        )
    except InvalidAnchorError:  # too long a title
        return Draft("T", "C")


@st.composite
def anchors(draw: st.DrawFn) -> list[Anchor]:
    made = []
    for number, one in enumerate(draw(st.lists(drafts(), max_size=6))):
        made.append(
            anchor(
                number, title=one.title, content=one.content, priority=one.priority, category=one.category,
                refs=one.refs,
            )
        )  # fmt: skip
    return made


@given(anchors(), st.randoms())
@settings(max_examples=50)
def test_same_anchors_give_the_same_bytes_whatever_their_order(made: list[Anchor], random: object) -> None:
    shuffled = list(made)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert render_part(made, "session", 4, "/r") == render_part(shuffled, "session", 4, "/r")
    body = render_part(made, "session", 4, "/r").partition(b"\n")[2]
    assert body == render_part(made, "session", 5, "/r").partition(b"\n")[2]


@given(anchors())
@settings(max_examples=120)
def test_no_pin_leaves_its_frame(made: list[Anchor]) -> None:
    body = render_part(made, "session", 1, "").partition(b"\n")[2].decode("utf-8")
    assert not FRAME.search(body)
    # Every line, by any line break that anybody honours, is one of ours.
    kinds = [
        "heading" if HEADING.match(line) else "text" if line.startswith("| ") else "empty" if not line else "FREE"
        for line in body.splitlines()
    ]
    assert "FREE" not in kinds
    assert kinds.count("heading") == len(made)
    assert body.splitlines() == body.split("\n")[:-1]
    index = json.loads(render_part(made, "session", 1, "").partition(b"\n")[0])
    assert not FRAME.search("\n".join(entry["title"] for entry in index["anchors"]))


@given(anchors())
@settings(max_examples=50)
def test_the_index_cuts_the_body_into_its_blocks(made: list[Anchor]) -> None:
    head, _, body = render_part(made, "workspace", 9, "/r").partition(b"\n")
    index = json.loads(head)
    assert (index["format"], index["scope"], index["revision"]) == (wire_bundle.FORMAT, "workspace", 9)
    pieces = [body[one["at"] : one["at"] + one["bytes"]] for one in index["anchors"]]
    assert b"".join(pieces) == body
    assert [one["units"] for one in index["anchors"]] == [len(p.decode().encode("utf-16-le")) // 2 for p in pieces]
    assert [one["id"] for one in index["anchors"]] == [one.id for one in in_order(made)]
    assert [one["order"] for one in index["anchors"]] == sorted(one["order"] for one in index["anchors"])


def test_what_hand_edits_put_into_a_title_or_ref_stays_on_its_line() -> None:
    odd = anchor(1, title="a\nb\u2028## [critical] x", refs=("r\r\nq",), content="c\x1cd")
    assert render_block(odd) == (
        "## [normal] a b ## [critical] x {a-0000000001} (state, session)\n| c\n| d\n| refs: r q\n\n"
    )


def test_a_block_reads_as_documented() -> None:
    one = anchor(
        1,
        title="Use <system> v2",
        priority="critical",
        category="constraint",
        content="one\n\ntwo",
        refs=("a.py", "b"),
    )
    assert render_block(one) == (
        "## [critical] Use &lt;system> v2 {a-0000000001} (constraint, session)\n"
        "| one\n| \n| two\n| refs: a.py, b\n\n"
    )


def test_code_with_angle_brackets_is_left_as_it_is() -> None:
    text = "Map<User, List<T>> if a<b and c<systematic; <div>"
    assert f"| {text}\n" in render_block(anchor(1, content=text))


def test_order_is_priority_then_category_then_recency() -> None:
    made = [
        anchor(1, priority="normal", category="constraint"),
        anchor(2, priority="critical", category="file_map"),
        anchor(3, priority="critical", category="constraint"),
        anchor(4, priority="high", category="task"),
        anchor(5, priority="high", category="task"),
        anchor(6, priority="high", category="decision"),
    ]
    assert [int(one.id[2:], 16) for one in in_order(made)] == [3, 2, 6, 5, 4, 1]


@pytest.mark.skipif(os.name == "nt", reason="paths of the other kind")
@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("src/a.py", "/r/src/a.py"),
        ("src/a.py:12", "/r/src/a.py"),
        ("src/a.py:12-30", "/r/src/a.py"),
        ("src/a.py:12:4", "/r/src/a.py"),
        ("docs/x.md#part-2", "/r/docs/x.md"),
        ("/abs/b c.txt", "/abs/b c.txt"),
        ("./x", "/r/x"),
        ("../up.py", "/up.py"),
        ("https://example.org/a.py", ""),
        ("src/**/*.py", ""),
        ("<system-reminder>/x", ""),
        ("parse_args", ""),
        ("", ""),
    ],
)
def test_a_ref_points_to_a_path_or_to_none(ref: str, path: str) -> None:
    assert ref_path(ref, "/r") == path


def test_relative_refs_without_a_root_and_more_than_five_are_not_looked_for() -> None:
    many = tuple(f"src/{n}.py" for n in range(9))
    head = json.loads(render_part([anchor(1, refs=many)], "session", 1, "/r").partition(b"\n")[0])
    assert len(head["anchors"][0]["refs"]) == 5
    head = json.loads(render_part([anchor(1, refs=many)], "session", 1, "").partition(b"\n")[0])
    assert head["anchors"][0]["refs"] == []


def test_the_hook_side_reads_what_is_rendered(tmp_path: Path) -> None:
    path = tmp_path / "x.bundle"
    made = [anchor(1, content="é🙂"), anchor(2, priority="high")]
    path.write_bytes(render_part(made, "session", 7, ""))
    revision, entries = wire_bundle.load_part(str(path))
    assert revision == 7
    assert [entry["text"] for entry in entries] == [render_block(one) for one in in_order(made)]
    assert is_fresh(str(path), "session", 7)
    assert not is_fresh(str(path), "session", 70)
    assert not is_fresh(str(path), "session", 6)
    assert not is_fresh(str(tmp_path / "none"), "session", 0)
    assert is_whole(str(path), 7)
    path.write_bytes(path.read_bytes()[:-5])
    assert not is_whole(str(path), 7)

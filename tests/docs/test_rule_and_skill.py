"""The always-on rule and the skill keep to what both hosts take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from context_anchor.anchors import anchor
from context_anchor.server import tool_listing

from .pages import INSTRUCTIONS, ROOT, text_of

RULE, SKILL = INSTRUCTIONS
BOTH = pytest.mark.parametrize("page", INSTRUCTIONS, ids=lambda p: p.name)


def front_matter(page: Path) -> dict[str, str]:
    """Return the simple `name: value` lines between the page's first two `---`."""
    text = text_of(page)
    assert text.startswith("---\n")
    head = text[4:].partition("\n---\n")[0]
    return {name: value.strip() for name, _, value in (line.partition(":") for line in head.splitlines())}


def test_the_rule_is_always_on_and_short() -> None:
    assert front_matter(RULE) == {"trigger": "always_on"}
    assert len(text_of(RULE)) < 2_500


def test_the_skill_has_its_folders_name_and_a_description_within_the_hosts_bound() -> None:
    head = front_matter(SKILL)
    assert set(head) == {"name", "description"}
    assert head["name"] == SKILL.parent.name
    assert 40 < len(head["description"]) < 1_000
    assert ": " not in head["description"]  # YAML would read a second key


@BOTH
def test_a_page_is_within_the_hosts_size(page: Path) -> None:
    limit = 12_000 if page == RULE else 24_000  # characters of a rule; a skill's bytes after a compaction
    assert 0 < len(page.read_bytes()) < limit


@BOTH
def test_a_page_is_plain_text_without_byte_order_mark_or_carriage_returns(page: Path) -> None:
    raw = page.read_bytes()
    assert not raw.startswith(b"\xef\xbb\xbf") and b"\r" not in raw


@BOTH
def test_a_page_holds_no_line_that_a_host_would_run_or_fill_in(page: Path) -> None:
    text = text_of(page)
    assert "$ARGUMENTS" not in text and "```!" not in text
    assert re.search(r"!`|^\s*!", text, re.MULTILINE) is None


@BOTH
def test_the_tools_named_exist_and_both_server_names_are_told(page: Path) -> None:
    text = text_of(page)
    named = set(re.findall(r"`((?:pin|unpin|list|get|replace)_[a-z_]+)`", text))
    assert "pin_context" in named
    assert named <= set(tool_listing.BY_NAME)
    plugin = json.loads((ROOT / "plugin.json").read_text(encoding="utf-8"))["name"]
    server = tool_listing.SERVER_NAME
    assert f"`{server}`" in text and f"`{plugin}_{server}`" in text


@BOTH
def test_each_priority_is_explained(page: Path) -> None:
    for priority in anchor.PRIORITIES:
        assert f"`{priority}`" in text_of(page)


def test_the_skill_saves_by_one_call_with_the_revision_and_hands_over_to_the_user() -> None:
    steps = [line for line in text_of(SKILL).splitlines() if line.startswith("## ")]
    assert len(steps) == 5
    text = text_of(SKILL)
    places = [text.index(word) for word in (
        "`list_pinned_context`", "`replace_session_anchors`", "`expected_revision`", "`/compact`", "`continue`",
    )]  # fmt: skip
    first_save = text.index("## 3.")
    assert places[0] < first_save < places[1] < places[2] < places[3]
    assert "`继续`" in text and "Antigravity" in text

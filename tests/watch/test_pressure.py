"""Nudge levels: shares of a known threshold, else absolute, each once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.watch import pressure

START, INTERVAL = "CONTEXT_ANCHOR_NUDGE_START_TOKENS", "CONTEXT_ANCHOR_NUDGE_INTERVAL_TOKENS"
ENVS = st.fixed_dictionaries(
    {}, optional={START: st.sampled_from(["1000", "50_000", "x"]), INTERVAL: st.sampled_from(["10,000", "0", ""])}
)


@pytest.mark.parametrize(
    ("tokens", "threshold", "want"),
    [
        (0, 167_000, 0), (100_199, 167_000, 0), (100_200, 167_000, 100_200), (133_599, 167_000, 100_200),
        (133_600, 167_000, 133_600), (153_639, 167_000, 133_600), (153_640, 167_000, 153_640),
        (166_999, 167_000, 153_640), (580_199, 967_000, 0), (580_200, 967_000, 580_200),
        (79_999, None, 0), (80_000, None, 80_000), (119_999, None, 80_000), (120_000, None, 120_000),
        (960_000, None, 960_000),
    ],
)  # fmt: skip
def test_levels_are_60_80_and_92_percent_or_80000_and_every_40000(
    tokens: int, threshold: int | None, want: int
) -> None:
    assert pressure.level(tokens, threshold, {}) == want


@pytest.mark.parametrize(
    ("env", "tokens", "want"),
    [
        ({START: "50000"}, 90_000, 90_000), ({START: "50000"}, 89_999, 50_000),
        ({INTERVAL: "10000"}, 95_000, 90_000), ({START: "50_000", INTERVAL: "25,000"}, 80_000, 75_000),
        ({START: "0"}, 90_000, 0), ({START: "x"}, 90_000, 0), ({START: "-5"}, 90_000, 0),
        ({START: "²"}, 90_000, 0), ({START: "9" * 30}, 90_000, 0), ({START: ""}, 90_000, 0),
    ],
)  # fmt: skip
def test_variables_that_the_user_set_win_over_the_shares(env: dict[str, str], tokens: int, want: int) -> None:
    assert pressure.level(tokens, 167_000, env) == want


def run(sizes: list[int], threshold: int | None, env: dict[str, str]) -> list[tuple[int, int]]:
    """Return (tokens, level) of each nudge over a session's sizes."""
    nudged = nudges = 0
    given_at = []
    for tokens in sizes:
        level = pressure.due(tokens, threshold, env, nudged, nudges)
        if level:
            nudged, nudges = level, nudges + 1
            given_at.append((tokens, level))
    return given_at


@given(st.lists(st.integers(0, 1_200_000), max_size=60), st.sampled_from([None, 17_000, 167_000, 967_000]), ENVS)
def test_each_level_is_given_once_and_never_at_or_above_the_threshold(
    sizes: list[int], threshold: int | None, env: dict[str, str]
) -> None:
    found = run(sizes, threshold, env)
    levels = [level for _, level in found]
    assert levels == sorted(set(levels))
    assert all(level <= tokens for tokens, level in found)
    if threshold:
        assert all(tokens < threshold for tokens, _ in found)
    else:
        assert len(found) <= 5


def test_a_200k_window_is_warned_three_times_before_its_threshold_and_a_large_one_is_not_nagged() -> None:
    usual = run(list(range(0, 167_000, 1000)), 167_000, {})
    assert usual == [(101_000, 100_200), (134_000, 133_600), (154_000, 153_640)]
    assert [level for _, level in run(list(range(0, 967_000, 1000)), 967_000, {})] == [580_200, 773_600, 889_640]
    assert len(run(list(range(0, 967_000, 1000)), None, {})) == 5


def test_a_jump_over_several_levels_is_one_nudge() -> None:
    assert run([10_000, 160_000, 161_000], 167_000, {}) == [(160_000, 153_640)]


@given(st.integers(0, 300_000), st.sampled_from([None, 167_000]), st.integers(0, 300_000))
def test_a_smaller_context_rearms_the_levels_above_it_and_no_others(
    tokens: int, threshold: int | None, nudged: int
) -> None:
    left = pressure.rearmed(tokens, threshold, {}, nudged)
    assert left <= nudged
    assert left <= tokens
    assert not pressure.due(tokens, threshold, {}, left, 0) or pressure.level(tokens, threshold, {}) > nudged

"""One compaction is one verdict, however a transcript shows it and however often."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_anchor.watch import compaction

COMPACTIONS = ("boundary", "summary", "checkpoint", "drop")
Signal = tuple[Any, ...]


def judge(signals: list[Signal], drops: bool = False, ratio: float = compaction.DEFAULT_DROP_RATIO) -> list[str]:
    """Return the verdicts; the state goes through JSON between signals, as between two hooks."""
    state = compaction.start()
    found = []
    for signal in signals:
        found.append(compaction.advance(state, signal, ratio, drops))
        kept = json.loads(json.dumps(state))
        state = compaction.resumed(kept)
        assert state == kept
    assert len(json.dumps(state)) < 6000
    return found


def compactions(signals: list[Signal], drops: bool = False) -> list[str]:
    return [v for v in judge(signals, drops) if v in COMPACTIONS]


# Claude Code ---------------------------------------------------------------------------------------------------

SHAPES = st.sampled_from(["boundary", "summary", "both", "reverse", "doubled", "attached"])


def shown(number: int, shape: str) -> list[Signal]:
    """Return the lines of one compaction in one of the ways a file may hold them."""
    boundary: Signal = ("boundary", f"b{number}", [f"kept{number}"])
    summary: Signal = ("summary", f"b{number}", f"s{number}")
    return {
        "boundary": [boundary], "summary": [summary], "both": [boundary, summary], "reverse": [summary, boundary],
        "doubled": [boundary, boundary, summary, summary, boundary],
        "attached": [boundary, ("summary", f"attachment{number}", f"s{number}")],
    }[shape]  # fmt: skip


@given(
    st.lists(st.tuples(SHAPES, st.integers(20_000, 990_000), st.integers(1000, 80_000), st.booleans()), max_size=8),
    st.data(),
)
@example([("both", 30_000, 29_000, True)] * 3, None)
def test_each_compaction_of_claude_code_counts_once(
    events: list[tuple[str, int, int, bool]], data: st.DataObject | None
) -> None:
    signals: list[Signal] = []
    old: list[Signal] = []
    for number, (shape, before, after, answered) in enumerate(events):
        for step in range(3):
            signals += [("assistant", f"t{number}{step}", f"u{number}{step}"),
                        ("sample", f"m{number}{step}", before - 2 + step, f"u{number}{step}")]  # fmt: skip
        signals += shown(number, shape)
        signals.append(("sample", f"m{number}-kept", before, f"kept{number}"))  # copied, from before the boundary
        if data and old and data.draw(st.booleans()):
            signals += data.draw(st.lists(st.sampled_from(old), max_size=3))  # lines copied in at a resume
        if answered:
            signals += [("assistant", "t", f"a{number}"), ("sample", f"n{number}", after, f"a{number}")]
        old += [s for s in shown(number, shape) if s[0] in ("boundary", "summary")]
    assert len(compactions(signals)) == len(events)


def test_without_ids_a_boundary_and_its_summary_are_still_one_compaction() -> None:
    one: list[Signal] = [("boundary", ""), ("summary", "", "")]
    assert compactions([*one, ("assistant",), *one]) == ["boundary", "boundary"]


def test_resumes_clears_and_microcompacts_lower_the_size_and_are_no_compaction() -> None:
    signals: list[Signal] = [("sample", "m1", 150_000), ("sample", "m2", 40_000), ("sample", "m3", 41_000)]
    assert judge(signals) == ["", "lower", ""]


def test_the_first_size_after_a_boundary_is_compared_with_nothing() -> None:
    signals: list[Signal] = [("sample", "m1", 150_000), ("boundary", "b"), ("sample", "m2", 30_000)]
    assert judge(signals, drops=True) == ["", "boundary", ""]


def test_lines_of_one_message_are_one_size_and_the_last_one_wins() -> None:
    signals: list[Signal] = [("sample", "m1", 100_000), ("sample", "m1", 100_900), ("sample", "m2", 60_000)]
    assert judge(signals, drops=True) == ["", "", "drop"]
    assert judge([("sample", "m1", 150_000), ("sample", "m1", 50_000)], drops=True) == ["", ""]


def test_a_line_that_the_compaction_kept_is_no_answer_and_no_size() -> None:
    signals: list[Signal] = [
        ("boundary", "b", ["k1", "k2"]), ("assistant", "t", "k2"), ("sample", "m", 168_000, "k2"),
        ("sample", "n", 40_000, "u"),
    ]  # fmt: skip
    assert judge(signals) == ["boundary", "stale", "stale", ""]


# Antigravity ---------------------------------------------------------------------------------------------------


class Log:
    """An Antigravity transcript as signals, with step indexes that go up."""

    def __init__(self) -> None:
        self.index = 0
        self.signals: list[Signal] = []

    def work(self, steps: int, tokens: int = 0, text: int = 500) -> Log:
        for _ in range(steps):
            self.index += 1
            self.signals += [("step", self.index), ("text", text)]
            if tokens:
                self.signals += [("assistant",), ("sample", "", tokens, self.index)]
        return self

    def user(self, index: int | None = None, text: str = "x") -> Log:
        self.index = self.index + 1 if index is None else index
        self.signals.append(("user", self.index, text))
        return self

    def checkpoint(self, number: int | None, late: int = 0, text: str | None = None) -> Log:
        self.index += 0 if late else 1
        digest = f"d{number}" if text is None else text
        self.signals.append(("checkpoint", number, digest, 12_000, self.index - late))
        return self


def counted(log: Log) -> list[str]:
    return compactions(log.signals, drops=True)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["checkpoint", "late checkpoint", "drop, late checkpoint", "drop", "stale samples"]),
            st.integers(0, 7),
            st.booleans(),
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_each_compaction_of_antigravity_counts_once(
    events: list[tuple[str, int, bool]], reported: bool
) -> None:
    log = Log().user().work(2, 11_400 if reported else 0).checkpoint(0)
    expected = 0
    for number, (shape, late, again) in enumerate(events, start=1):
        high, low = (150_000, 40_000) if reported else (0, 0)
        log.work(12, high)
        if shape == "drop" and not reported:
            continue  # neither tokens nor a checkpoint: nothing can be seen
        expected += 1
        if shape == "checkpoint":
            log.checkpoint(number).work(4, low)
        elif shape == "late checkpoint":
            log.work(late).checkpoint(number, late).work(4, low)
        elif shape == "drop, late checkpoint":
            at = log.index
            log.work(min(late, 3) + 1, low)
            if reported and again:
                log.signals.append(("sample", "", high, at))  # an answer of before, written late
            log.checkpoint(number, log.index - at).work(4, low)
        elif shape == "stale samples":
            log.checkpoint(number)
            log.signals += [("assistant",), ("sample", "", high or 1, log.index - 2)]
            log.work(4, low)
        else:
            log.work(4, low)
        if again and shape != "drop":
            log.checkpoint(number, late=1)  # the same line once more
    assert len(counted(log)) == expected


def test_checkpoint_0_is_no_compaction_even_after_much_text() -> None:
    assert counted(Log().user().work(200, text=2000).checkpoint(0)) == []


@pytest.mark.parametrize(("characters", "want"), [(4_000, []), (39_000, []), (41_000, ["checkpoint"])])
def test_an_unnumbered_checkpoint_counts_by_the_text_before_it(characters: int, want: list[str]) -> None:
    assert counted(Log().user().work(1, text=characters // 4).checkpoint(None)) == want


@pytest.mark.parametrize(("tokens", "want"), [(9_999, []), (10_000, ["checkpoint"])])
def test_an_unnumbered_checkpoint_counts_by_the_tokens_before_it(tokens: int, want: list[str]) -> None:
    assert counted(Log().user().work(1, tokens, text=1).checkpoint(None)) == want


def test_numbers_go_up_by_any_step_and_a_lower_one_is_not_new() -> None:
    log = Log().work(20).checkpoint(2).work(20).checkpoint(9).work(20).checkpoint(3)
    log.work(20).checkpoint(9, text="other")
    assert counted(log) == ["checkpoint", "checkpoint"]


def test_an_edit_by_the_user_is_a_rewind_and_no_compaction() -> None:
    log = Log().user().work(10, 150_000).user(3, "edited").work(3, 20_000)
    verdicts = judge(log.signals, drops=True)
    assert verdicts.count("rewind") == 1
    assert not set(verdicts) & set(COMPACTIONS)


def test_after_a_rewind_the_same_number_counts_with_new_text_only() -> None:
    log = Log().user().work(20).checkpoint(1).work(5).user(3, "edited").work(20).checkpoint(1, text="new")
    assert counted(log) == ["checkpoint", "checkpoint"]
    log = Log().user().work(20).checkpoint(1).work(5).user(3, "edited").work(20).checkpoint(1)
    assert counted(log) == ["checkpoint"]


def test_the_same_request_written_twice_is_no_rewind() -> None:
    log = Log().user().work(3)
    log.signals += [("user", 1, "x")] * 2
    assert "rewind" not in judge(log.signals, drops=True)


def test_lines_that_come_late_are_no_rewind_and_move_no_baseline() -> None:
    log = Log().user().work(8, 90_000)
    log.signals += [("step", 2), ("text", 5), ("step", 3)]
    log.work(2, 91_000)
    assert set(judge(log.signals, drops=True)) == {""}


def test_an_answer_of_before_the_checkpoint_that_is_written_after_it_counts_for_nothing() -> None:
    log = Log().user().work(8, 150_000).checkpoint(1)
    log.signals.append(("sample", "", 150_500, log.index - 1))
    log.work(2, 40_000)
    verdicts = judge(log.signals, drops=True)
    assert [v for v in verdicts if v] == ["checkpoint", "stale"]


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [(100_000, 65_000, ["drop"]), (100_000, 65_001, []), (28_571, 18_571, ["drop"]), (28_000, 18_001, []),
     (12_000, 3_000, []), (150_000, 150_000, [])],
)  # fmt: skip
def test_a_drop_needs_the_ratio_and_ten_thousand_tokens(before: int, after: int, want: list[str]) -> None:
    assert compactions([("sample", "", before, 1), ("sample", "", after, 2)], drops=True) == want


def test_the_ratio_is_a_setting() -> None:
    signals: list[Signal] = [("sample", "", 100_000, 1), ("sample", "", 80_000, 2)]
    assert judge(signals, drops=True)[-1] == ""
    assert judge(signals, drops=True, ratio=0.9)[-1] == "drop"


def test_estimates_never_make_a_drop() -> None:
    assert counted(Log().user().work(300, text=2000)) == []


def test_a_checkpoint_starts_the_estimate_anew_with_its_own_text() -> None:
    state = compaction.start()
    for signal in Log().user().work(100, text=1000).checkpoint(1).signals:
        compaction.advance(state, signal, drops=True)
    assert state["estimate"] == compaction.BASELINE_TOKENS + 12_000 // 4


def test_a_file_read_anew_repeats_nothing() -> None:
    log = Log().user().work(20, 150_000).checkpoint(1).work(5, 40_000).work(40, 120_000)
    state = compaction.start()
    for signal in log.signals:
        compaction.advance(state, signal, drops=True)
    compaction.reread(state)
    again = [compaction.advance(state, signal, drops=True) for signal in log.signals[-120:]]
    assert not set(again) & {*COMPACTIONS, "rewind"}
    log.signals.clear()
    log.checkpoint(2)
    assert [compaction.advance(state, s, drops=True) for s in log.signals] == ["checkpoint"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*compaction.start(), "measured", "other"]), JSON) | JSON)
def test_a_damaged_state_never_stops_the_judge(saved: Any) -> None:
    state = compaction.resumed(saved)
    log = Log().user().work(3, 50_000).checkpoint(3).checkpoint(None).user(1)
    for signal in [*log.signals, ("boundary", "b", ["k"]), ("summary", "b", "s"), ("assistant", "t", "k")]:
        compaction.advance(state, signal, drops=True)

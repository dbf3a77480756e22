"""Generated ids, the grammar of identifiers, time stamps."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest

from context_anchor.engine import ids

MOMENT = datetime(2026, 1, 31, 9, 8, 7, 6999, tzinfo=timezone.utc)


def test_a_generated_id_tells_its_kind_and_its_time() -> None:
    made = ids.generated_id("read_file", MOMENT)
    assert re.fullmatch(r"read_file-20260131090807006-[0-9a-z]{6}", made)
    assert ids.stamp_digits(made) == "20260131090807006"
    assert ids.generated_id("tool", MOMENT, lambda: "abc") == "tool-20260131090807006-abc"


def test_generated_ids_differ() -> None:
    assert len({ids.generated_id("tool", MOMENT) for _ in range(500)}) == 500


def test_times_are_told_in_utc_with_milliseconds() -> None:
    assert ids.iso_stamp(MOMENT) == "2026-01-31T09:08:07.006Z"
    east = datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=2)))
    assert ids.iso_stamp(east) == "2026-01-30T23:00:00.000Z"
    assert ids.generated_id("a", east, lambda: "x") == "a-20260130230000000-x"


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        ids.iso_stamp(datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="zone"):
        ids.generated_id("a", datetime(2026, 1, 1))


@pytest.mark.parametrize("name", ["tool-2026-abc", "tool-20260131090807006-ABC", "20260131090807006-abc", "x", "",
                                  "tool-20260131090807006-abcdefg", "tool-20260131090807006-abc\n"])  # fmt: skip
def test_other_names_hold_no_time(name: str) -> None:
    assert ids.stamp_digits(name) is None


def test_protocol_ids_are_matched_as_a_whole_and_in_ascii() -> None:
    for good in ("plan_a", "plan_A0_-", "plan_" + "x" * 96):
        assert ids.is_prefixed("plan_", good)
    for bad in ("plan_", "plan__a", "plan_a\n", "plan_" + "x" * 97, "plan_é", "exec_a", "plan_\u0661", None, 5):
        assert not ids.is_prefixed("plan_", bad)
    for good in ("cu_demo_000001", "cu_a_1234567", "cu_a-b_c_000001"):
        assert ids.is_unit_id(good)
    for bad in ("cu_demo_00001", "cu_demo_000001\n", "cu__000001", "cu_demo_00000\u0661", None):
        assert not ids.is_unit_id(bad)
    assert ids.is_inventory_id("inv_fixture_1561c913550da168")
    for bad in ("inv_fixture_1561C913550da168", "inv_fixture_1561c913550da16", "inv_fixture_1561c913550da168\n"):
        assert not ids.is_inventory_id(bad)

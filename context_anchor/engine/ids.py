"""Generated ids, the grammar of identifiers, and time stamps."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from datetime import datetime, timezone

Clock = Callable[[], datetime]
"""Returns the present time with its zone; given as an argument so that tests choose it."""

TAIL = "[A-Za-z0-9][A-Za-z0-9_-]{0,95}"
"""What follows the prefix of a protocol id: a letter or digit, then 0 to 95 of letter, digit, `_`, `-`."""

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_SUFFIX_LENGTH = 6
_UNIT = re.compile(rf"cu_{TAIL}_[0-9]{{6,}}")
_INVENTORY = re.compile(rf"inv_{TAIL}_[0-9a-f]{{16}}")
_TAIL = re.compile(TAIL)
_GENERATED = re.compile(r"(?s:.*)-([0-9]{17})-[0-9a-z]{1,6}")


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(timezone.utc)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a clock must return the time with its zone")
    return moment.astimezone(timezone.utc)


def iso_stamp(moment: datetime) -> str:
    """Return a time as `2026-01-31T09:08:07.006Z`; raises ValueError for a time without zone."""
    at = _utc(moment)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z".rjust(24, "0")


def random_suffix() -> str:
    """Return six characters of `0-9a-z` from the system's source of randomness."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX_LENGTH))


def generated_id(prefix: str, moment: datetime, suffix: Callable[[], str] = random_suffix) -> str:
    """Return `<prefix>-<YYYYMMDDhhmmssSSS in UTC>-<suffix>`."""
    at = _utc(moment)
    return f"{prefix}-{at:%Y%m%d%H%M%S}{at.microsecond // 1000:03d}-{suffix()}"


def stamp_digits(identifier: str) -> str | None:
    """Return the 17 digits of time in a generated id, None where it has none."""
    found = _GENERATED.fullmatch(identifier)
    return None if found is None else found[1]


def is_prefixed(prefix: str, value: object) -> bool:
    """Return whether a value is `prefix` and a tail, such as `plan_` and what names the plan."""
    return isinstance(value, str) and value.startswith(prefix) and _TAIL.fullmatch(value, len(prefix)) is not None


def is_unit_id(value: object) -> bool:
    """Return whether a value is the id of a context unit."""
    return isinstance(value, str) and _UNIT.fullmatch(value) is not None


def is_inventory_id(value: object) -> bool:
    """Return whether a value is the id of an inventory."""
    return isinstance(value, str) and _INVENTORY.fullmatch(value) is not None

"""What a command gives back: one result, as JSON, as text for a person, as plain lines for a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """A command's result.

    `document` is printed with `--json`. `text` is for a terminal; `plain` is for a pipe and is the same
    text where it is None. `notes` go to standard error (with `--json`: into the document's `notices`).
    """

    document: Mapping[str, Any]
    text: str
    plain: str | None = None
    notes: tuple[str, ...] = ()
    code: int = 0

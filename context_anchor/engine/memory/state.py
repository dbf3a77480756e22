"""The working state of a project: what its agent is about, in ten fields."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from context_anchor.engine.canonical import string_form
from context_anchor.engine.ids import Clock, iso_stamp, utc_now
from context_anchor.engine.memory import files
from context_anchor.engine.memory.layout import Layout
from context_anchor.errors import InvalidStateError

TEXT_FIELDS = ("objective", "currentTask", "stateTransfer")
LIST_FIELDS = ("constraints", "activeFiles", "knownFailures", "decisions", "nextActions", "notes")
ENGINE_FIELDS = ("stateTransfer", "updatedAt")
"""Fields that the engine alone sets; an agent's own update never does."""

LOCK_WAIT_S = 10.0


def empty_state() -> dict[str, Any]:
    """Return a state with nothing in it."""
    return {
        "objective": "",
        "currentTask": "",
        "constraints": [],
        "activeFiles": [],
        "knownFailures": [],
        "decisions": [],
        "nextActions": [],
        "notes": [],
        "stateTransfer": "",
        "updatedAt": None,
    }


def _checked(field: str, value: object) -> Any:
    if field in TEXT_FIELDS:
        if not isinstance(value, str):
            raise InvalidStateError(f"{field} must be text; it is of type {type(value).__name__}")
        return value
    if not isinstance(value, list):
        raise InvalidStateError(f"{field} must be a list of texts; it is of type {type(value).__name__}")
    for position, element in enumerate(value):
        if not isinstance(element, str):
            raise InvalidStateError(
                f"{field}[{position}] must be text; it is of type {type(element).__name__}"
            )
    return list(value)


def _loaded(field: str, value: object) -> Any:
    """Return a stored value in its field's type; earlier writers checked none, and what they wrote is kept."""
    if field == "updatedAt":
        return value if isinstance(value, str) else None
    if field in TEXT_FIELDS:
        return string_form(value)
    if isinstance(value, list):
        return [string_form(element) for element in value]
    return [] if value is None or value == "" else [string_form(value)]


class WorkingState:
    """The file of the working state."""

    def __init__(self, layout: Layout, now: Clock = utc_now, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self._layout = layout
        self._now = now
        self._lock_wait_s = lock_wait_s

    def create(self) -> None:
        """Write the empty state where there is no file; raises LockTimeoutError, MemoryUnavailableError."""
        self._layout.require_writable()
        if os.path.lexists(self._layout.state):
            return
        with self._locked():
            if not os.path.lexists(self._layout.state):
                files.replace_json(self._layout.state, empty_state())

    def _locked(self) -> AbstractContextManager[None]:
        lock = self._layout.state.with_name(self._layout.state.name + ".lock")
        return files.locked(lock, self._lock_wait_s)

    def read(self) -> dict[str, Any]:
        """Return the state; the empty one where there is no file. Fields of other versions are kept.

        Raises MemoryDamagedError for a file that is no JSON object, ProjectEscapeError, MemoryUnavailableError.
        """
        stored = files.read_object(self._layout.to_read(self._layout.state)) or {}
        state = empty_state()
        for field in state:
            if field in stored:
                state[field] = _loaded(field, stored[field])
        return {**state, **{key: value for key, value in stored.items() if key not in state}}

    def update(self, patch: Mapping[str, Any], *, by_agent: bool = False) -> dict[str, Any]:
        """Replace fields and return the whole new state; a key that is no field is passed over.

        With `by_agent` the fields that the engine alone sets are passed over too. Other processes wait.
        Raises InvalidStateError for a value of another type (nothing is written), LockTimeoutError,
        MemoryDamagedError, MemoryUnavailableError.
        """
        self._layout.require_writable()
        settable = [*TEXT_FIELDS, *LIST_FIELDS]
        changes = {
            field: _checked(field, patch[field])
            for field in settable
            if field in patch and not (by_agent and field in ENGINE_FIELDS)
        }
        with self._locked():
            state = self.read() | changes | {"updatedAt": iso_stamp(self._now())}
            files.replace_json(self._layout.state, state)
        return state

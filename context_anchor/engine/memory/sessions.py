"""The log of one session: a line an event, appended, never read back into a prompt."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from context_anchor.engine.canonical import cjson, pjson
from context_anchor.engine.config import DURABILITY_DEFAULTS
from context_anchor.engine.ids import Clock, iso_stamp, utc_now
from context_anchor.engine.memory import files
from context_anchor.engine.memory.layout import Layout
from context_anchor.engine.messages import clone
from context_anchor.engine.text import unit_length

_REFERENCE = ("artifactId", "originalChars", "sha256")


class SessionLog:
    """The file of one session; it is created by its first event."""

    def __init__(
        self,
        layout: Layout,
        session_id: str,
        now: Clock = utc_now,
        max_tool_output_chars: int = DURABILITY_DEFAULTS["maxToolOutputChars"],
    ) -> None:
        self.session_id = session_id
        self.path = layout.sessions / f"{session_id}.jsonl"
        self._layout = layout
        self._now = now
        self._max_tool_output_chars = max_tool_output_chars
        self._writing = threading.Lock()
        self._torn = False

    def append(self, event: Mapping[str, Any]) -> None:
        """Add an event under the present time, whatever time it holds itself.

        A tool's result that is longer than `max_tool_output_chars` code units and has an artifact is noted
        as its reference. Raises NotJsonError (nothing is written), ProjectEscapeError,
        MemoryUnavailableError.
        """
        self._layout.require_writable()
        self._layout.to_read(self._layout.sessions)
        noted = self._shortened(clone(dict(event)))
        noted.pop("timestamp", None)
        line = (cjson({"timestamp": iso_stamp(self._now()), **noted}) + "\n").encode("utf-8")
        with self._writing, files.reported(self.path):
            # A line that a full disk cut is ended first, so that it spoils no other.
            data = b"\n" + line if self._torn else line
            written = files.append(self.path, data)
            while written < len(data):
                self._torn = True
                data = data[written:]
                written = files.append(self.path, data)
            self._torn = False

    def _shortened(self, event: dict[str, Any]) -> dict[str, Any]:
        evidence = event.get("evidence")
        if event.get("type") != "tool_result" or not isinstance(evidence, dict):
            return event
        if not isinstance(evidence.get("artifactId"), str) or "result" not in event:
            return event
        if unit_length(pjson(event["result"])) > self._max_tool_output_chars:
            event["result"] = {key: evidence[key] for key in _REFERENCE if key in evidence}
        return event

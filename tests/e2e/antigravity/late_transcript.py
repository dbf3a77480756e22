"""A transcript that reaches the disk late, as on builds that flush it seldom."""

from __future__ import annotations

from pathlib import Path

from .host import Antigravity


class LateTranscript:
    """What hooks of one host read in place of the runtime's file: the same bytes, some lines later.

    Only ever appended to, as by a writer with a buffer, and with half of the first missing line at its
    end, since a buffer does not end where a line does.
    """

    def __init__(self, host: Antigravity) -> None:
        self.behind = 0
        """Lines that the runtime has written and the disk does not have yet."""
        self._host = host
        host.hooks.transcript_of = self.path

    def path(self, conversation: str) -> Path:
        """Bring a conversation's late file up to what is flushed now; its path."""
        source = self._host.brain / conversation / ".system_generated" / "logs" / "transcript.jsonl"
        late = self._host.folder / "late" / conversation / "transcript.jsonl"
        lines = source.read_bytes().splitlines(keepends=True) if source.is_file() else []
        there = max(0, len(lines) - self.behind)
        flushed = b"".join(lines[:there])
        if there < len(lines):
            flushed += lines[there][: len(lines[there]) // 2]
        late.parent.mkdir(parents=True, exist_ok=True)
        with late.open("ab") as handle:
            handle.write(flushed[handle.tell() :])
        return late

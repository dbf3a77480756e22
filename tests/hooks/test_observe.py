"""A transcript that grows in any pieces, torn lines among them, gives what the whole file gives."""

from __future__ import annotations

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.hooks import dispatch
from context_anchor.hosts import antigravity, claude_code
from context_anchor.wire import marks
from hooks.driver import Antigravity, Claude, Host


def claude_lines(folder: Path, shape: list[tuple[int, bool]]) -> bytes:
    host = Claude(folder)
    host.user()
    for tokens, compacted in shape:
        host.answer(tokens)
        host.write({"type": "progress", "data": {"message": {"message": {"usage": {"input_tokens": 1}}}}})
        if compacted:
            host.boundary()
    return host.transcript.read_bytes()


def antigravity_lines(folder: Path, shape: list[tuple[int, bool]]) -> bytes:
    host = Antigravity(folder)
    host.step("USER_INPUT", "x")
    for number, (tokens, compacted) in enumerate(shape, start=1):
        host.step("PLANNER_RESPONSE", "é🙂" * 100, input_tokens=tokens)
        if compacted:
            host.step("CHECKPOINT", f"{{{{ CHECKPOINT {number} }}}} text")
    return host.transcript.read_bytes()


def watched(folder: Path, host: Host, module: Any, event: str, pieces: list[bytes]) -> dict[str, Any]:
    """Run a hook that says nothing after each piece; return the marks at the end."""
    host.transcript.unlink(missing_ok=True)
    for number, piece in enumerate([b"", *pieces]):
        if number:
            with host.transcript.open("ab") as out:
                out.write(piece)
        dispatch.run(module, event, host.payload(event), str(folder / "data"), 1000.0 + number)
    value = marks.load(str(folder / "data"), host.host, host.session)
    assert value is not None
    return value


@settings(max_examples=12)
@pytest.mark.parametrize("name", ["claude-code", "antigravity"])
@given(
    shape=st.lists(st.tuples(st.integers(50_000, 60_000), st.booleans()), max_size=6),
    cuts=st.lists(st.floats(0, 1), max_size=9),
    crlf=st.booleans(),
)
def test_sizes_and_compactions_are_the_same_however_the_file_grew(
    name: str, shape: list[tuple[int, bool]], cuts: list[float], crlf: bool
) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", place)
        patch.setenv("CLAUDE_PID", "77")
        lines, module = (claude_lines, claude_code) if name == "claude-code" else (antigravity_lines, antigravity)
        kind = Claude if name == "claude-code" else Antigravity
        Path(place, "a").mkdir()
        raw = lines(Path(place, "a"), shape)
        raw = raw.replace(b"\n", b"\r\n") if crlf else raw
        at = sorted({int(c * len(raw)) for c in cuts} | {0, len(raw)})
        found = []
        for folder, pieces in (("b", [raw]), ("c", [raw[a:b] for a, b in pairwise(at)])):
            Path(place, folder).mkdir()
            value = watched(Path(place, folder), kind(Path(place, folder)), module, "Stop", pieces)
            names = ("compactions", "tokens", "tokens_measured", "skipped_lines", "errors")
            found.append({name: value[name] for name in names})
            assert value["recovery"].get("state", "") == ("due" if any(c for _, c in shape) else "")
        assert found[0] == found[1]
        assert found[0]["compactions"] == sum(c for _, c in shape)
        if shape and not shape[-1][1]:
            assert found[0]["tokens"] == shape[-1][0]


def test_lines_that_cannot_be_taken_apart_are_counted_and_the_rest_is_read(
    claude: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude.open()
    with claude.transcript.open("ab") as out:
        out.write(b'{"type":"assistant","message":{"usage":\n')
        out.write(b"\xff\xfe\x00 usage\n\n\r\n")
        out.write(b"[" * 5000 + b'"usage"\n')
        out.write(b'{"type":"assistant","message":{"id":["m"],"model":"m","usage":{"input_tokens":7}}}\n')
        out.write(b'"usage" ' + b"x" * 1_100_000 + b"\n")
    assert claude.at(90_000) == ""
    assert claude.marks["tokens"] == 90_000
    assert claude.marks["skipped_lines"] == 1
    assert claude.failures == []

    def fail(line: bytes, at_start: bool = False) -> list[tuple[Any, ...]]:
        raise KeyError("a line of the future")

    real = claude_code.read_line
    monkeypatch.setenv("HOME", str(claude.folder))
    monkeypatch.setattr(claude_code, "read_line", lambda x, s=False: fail(x) if b"future" in x else real(x, s))
    claude.write({"type": "future"})
    claude.answer(95_000)
    out_text = dispatch.run(claude_code, "Stop", claude.payload("Stop"), str(claude.data), 5_000_000_000.0)
    assert json.loads(out_text) == {}
    assert claude.marks["tokens"] == 95_000
    assert claude.marks["skipped_lines"] == 2

"""At how many tokens the client compacts: every measured row."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from context_anchor.hosts.claude_code import _flag, read_settings, threshold, window

A, B = "2.1.332", "2.1.197"
WINDOW, PERCENT = "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"
OUTPUT = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"
MEASURED: list[tuple[str, str, dict[str, str], dict[str, Any], int | None]] = [
    ("claude-opus-4-6", A, {}, {}, 167_000),
    ("claude-opus-4-6", B, {}, {}, 167_000),
    ("claude-sonnet-4-6", A, {}, {}, 167_000),
    ("claude-opus-5-5", A, {}, {}, 967_000),
    ("claude-haiku-5-5", A, {}, {}, 967_000),
    ("claude-opus-5", A, {}, {}, 967_000),
    ("claude-opus-4-8", A, {}, {}, 967_000),
    ("claude-opus-4-8[1m]", A, {}, {}, 967_000),
    ("claude-sonnet-5", A, {}, {}, 967_000),
    ("claude-fable-5", A, {}, {}, 967_000),
    ("claude-opus-4-6", A, {WINDOW: "100000"}, {}, 67_000),
    ("claude-opus-4-6", A, {WINDOW: "50000"}, {}, 67_000),
    ("claude-opus-4-6", A, {WINDOW: "400000"}, {}, 167_000),
    ("claude-opus-4-6", A, {WINDOW: "150000"}, {}, 117_000),
    ("claude-opus-4-6", A, {PERCENT: "50"}, {}, 90_000),
    ("claude-opus-4-6", B, {PERCENT: "50"}, {}, 90_000),
    ("claude-opus-4-6", A, {PERCENT: "80"}, {}, 144_000),
    ("claude-opus-4-6", A, {PERCENT: "95"}, {}, 167_000),
    ("claude-opus-4-6", A, {PERCENT: "50", WINDOW: "100000"}, {}, 40_000),
    ("claude-opus-4-6", A, {}, {"autocompactFlag": 120_000}, 87_000),
    ("claude-opus-4-6", A, {}, {"autoCompactWindow": 120_000}, 87_000),
    ("claude-opus-4-6", A, {}, {"autoCompactWindow": 150_000}, 117_000),
    ("claude-opus-4-6", A, {OUTPUT: "8000"}, {}, 179_000),
    ("claude-opus-4-6", A, {"DISABLE_AUTO_COMPACT": "1"}, {}, 200_000),
    ("claude-opus-4-6", A, {"DISABLE_COMPACT": "true"}, {}, 200_000),
    ("claude-opus-4-6", A, {}, {"autoCompactEnabled": False}, 200_000),
    ("claude-opus-4-6", A, {"DISABLE_AUTO_COMPACT": "0"}, {"autoCompactEnabled": True}, 167_000),
    ("claude-sonnet-4-5", A, {}, {}, 200_000),
    ("claude-sonnet-4-5", B, {}, {}, 200_000),
    ("claude-haiku-4-5", A, {}, {}, 200_000),
    ("claude-opus-4-5", A, {}, {}, 200_000),
    ("claude-sonnet-4-5", A, {PERCENT: "50"}, {}, 200_000),
    ("claude-sonnet-4-5", A, {WINDOW: "200000"}, {}, 167_000),
    ("claude-opus-4-8[1m]", B, {}, {}, 1_000_000),
    ("someone/model-x", A, {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "50000"}, {}, 17_000),
    ("someone/model-x", A, {}, {}, None),
    ("", A, {}, {}, None),
    # Public logs: 34 automatic compactions of 2.0.76 to 2.1.22 at 155,000, 49 of 2.1.25 to 2.1.49 at 167,000.
    ("claude-opus-4-5-20251101", "2.0.76", {}, {}, 155_000),
    ("claude-opus-4-5-20251101", "2.1.22", {}, {}, 155_000),
    ("claude-opus-4-5-20251101", "2.1.25", {}, {}, 167_000),
    ("claude-opus-4-5-20251101", "2.1.49", {}, {}, 167_000),
    # A gateway's spelling of the name.
    ("us.anthropic.claude-opus-4-6-v1", A, {}, {}, 167_000),
    # Precedence: the variable, then the flag, then the setting.
    ("claude-opus-4-6", A, {WINDOW: "110000"}, {"autocompactFlag": 120_000, "autoCompactWindow": 130_000}, 77_000),
    ("claude-opus-4-6", A, {}, {"autocompactFlag": 120_000, "autoCompactWindow": 130_000}, 87_000),
]


@pytest.mark.parametrize(("model", "version", "env", "settings", "want"), MEASURED)
def test_the_threshold_is_the_measured_one(
    model: str, version: str, env: dict[str, str], settings: dict[str, Any], want: int | None
) -> None:
    assert threshold(model, version, env, settings) == want


def test_a_request_above_the_small_window_tells_the_large_one() -> None:
    assert window("claude-sonnet-4-6", {}, 199_000) == 200_000
    assert window("claude-sonnet-4-6", {}, 210_000) == 1_000_000
    assert threshold("claude-sonnet-4-6", A, {}, {}, 210_000) == 967_000
    assert window("claude-sonnet-4-6", {"ANTHROPIC_MODEL": "claude-sonnet-4-6[1m]"}) == 1_000_000
    assert window("claude-opus-4-6", {"ANTHROPIC_MODEL": "claude-sonnet-4-6[1m]"}) == 200_000


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1e5", "²", "9" * 40, " "])
@pytest.mark.parametrize("name", [WINDOW, PERCENT, OUTPUT, "CLAUDE_CODE_MAX_CONTEXT_TOKENS"])
def test_variables_that_are_no_numbers_change_nothing(name: str, text: str) -> None:
    assert threshold("claude-opus-4-6", A, {name: text}, {}) == 167_000


@pytest.mark.parametrize("version", ["", "x", "2", "2.1.332-beta", "9" * 6000, "2.²"])
def test_any_version_text_gives_a_threshold(version: str) -> None:
    assert threshold("claude-opus-4-6", version, {}, {}) in (155_000, 167_000)


@pytest.mark.parametrize("chosen", [True, "120000", None, -5, [], 10**30])
def test_settings_of_the_wrong_type_are_passed_over(chosen: Any) -> None:
    assert threshold("claude-opus-4-6", A, {}, {"autoCompactWindow": chosen}) == 167_000


def test_the_projects_settings_win_over_the_users_and_broken_files_are_passed_over(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "p"
    (project / ".claude").mkdir(parents=True)
    home.mkdir()
    env = {"CLAUDE_CONFIG_DIR": str(home)}
    (home / "settings.json").write_text(json.dumps({"autoCompactWindow": 120_000, "autoCompactEnabled": False}))
    assert read_settings(env, "") == {"autoCompactWindow": 120_000, "autoCompactEnabled": False}
    (project / ".claude" / "settings.json").write_text(json.dumps({"autoCompactWindow": 130_000}))
    (project / ".claude" / "settings.local.json").write_text('{"autoCompactEnabled": true}')
    assert read_settings(env, str(project)) == {"autoCompactWindow": 130_000, "autoCompactEnabled": True}
    (project / ".claude" / "settings.json").write_text('{"autoCompactWindow": "x", broken')
    odd = '{"autoCompactEnabled": "yes", "autoCompactWindow": -1}'
    (project / ".claude" / "settings.local.json").write_text(odd)
    assert read_settings(env, str(project)) == {"autoCompactWindow": 120_000, "autoCompactEnabled": False}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="command lines are read from /proc")
@pytest.mark.parametrize(
    ("words", "want"),
    [(["--autocompact", "120000"], 120_000), (["--autocompact=130000"], 130_000), (["--autocompact"], 0),
     (["--autocompact", "auto"], 0), (["--other", "5"], 0)],
)  # fmt: skip
def test_the_clients_flag_is_read_from_its_command_line(words: list[str], want: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert _flag(child.pid) == want
    finally:
        child.communicate(b"\n")
    assert _flag(child.pid) == 0

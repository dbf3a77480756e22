"""The server as hosts start it, spoken to within bounds."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from context_anchor.errors import InstallError
from context_anchor.install import mirror, render, server_check
from context_anchor.install.server_process import ServerProcess
from context_anchor.install.source import Source

HOSTS = ("claude-code", "antigravity")


@pytest.fixture
def bundle(source: Source, place: render.Place, tmp_path: Path) -> Path:
    root = tmp_path / "plügin with space"
    mirror.write(root, render.antigravity(source, place, root).files)
    return root


def test_the_configured_command_answers_with_the_five_tools(bundle: Path, tmp_path: Path) -> None:
    (finding,) = server_check.check("antigravity", bundle, tmp_path / "data")
    assert finding.level == "ok" and "5 tools" in finding.what, finding
    assert not (tmp_path / "data" / "anchors").exists()


def test_claude_codes_command_is_expanded_as_the_client_expands_it(
    source: Source, place: render.Place, tmp_path: Path
) -> None:
    root = tmp_path / "plügin"
    mirror.write(root, render.claude_code(source, place).files)
    assert server_check.read_command("claude-code", root)[-1] == str(root / "scripts" / "serve.py")
    (finding,) = server_check.check("claude-code", root, tmp_path / "data")
    assert finding.level == "ok", finding


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ({}, "names no server"),
        ({"anchors": {"command": 3}}, "is not text"),
        ({"anchors": {"command": "/gone/python", "args": []}}, "is gone"),
        ({"anchors": {"command": sys.executable, "args": ["/gone/serve.py"]}}, "is not there"),
        ({"anchors": {"command": sys.executable, "args": [], "disabled": True}}, "switched off"),
        (
            {"anchors": {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no luck')"]}},
            "ended with code 1",
        ),
        ({"anchors": {"command": sys.executable, "args": ["-c", "print('hello'); input(); input()"]}}, "not JSON"),
    ],
)
def test_a_server_that_does_not_come_up_is_an_error_with_a_cure(
    servers: dict[str, object], words: str, bundle: Path, tmp_path: Path
) -> None:
    (bundle / "mcp_config.json").write_text(json.dumps({"mcpServers": servers}))
    (finding,) = server_check.check("antigravity", bundle, tmp_path)
    assert finding.level == "error" and words in finding.what and finding.cure, finding


def test_a_server_that_says_why_it_ended_is_quoted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('the reason')"]
    with ServerProcess(command, os.environ, str(tmp_path)) as server, pytest.raises(InstallError) as caught:
        server.initialize(20)
    assert "the reason" in str(caught.value)


def test_a_silent_server_costs_no_more_than_the_time_given(tmp_path: Path) -> None:
    started = time.monotonic()
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with (
        ServerProcess(command, os.environ, str(tmp_path)) as server,
        pytest.raises(InstallError, match="no answer"),
    ):
        server.initialize(0.5)
    assert time.monotonic() - started < 20


def test_a_command_that_does_not_exist_is_an_install_error(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="does not start"):
        ServerProcess(["/nowhere/at-all"], os.environ, str(tmp_path))

"""Getting the plugin into a real Claude Code client and out again, with the pins left alone."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from context_anchor.errors import EnvironmentSetupError
from context_anchor.install import environment

from .claude_code import anchors
from .claude_code.anchors import blocks, pinning_chat, receipts
from .claude_code.client import ClaudeCode
from .test_claude_code import RULE, both

MARKETPLACE = "context-anchor"


@both
def test_the_client_finds_nothing_to_complain_about(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path) as host:
        # Strict turns each warning into a failure.
        checked = host.command("plugin", "validate", str(plugin), "--strict")
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_public_directory_would_take_the_plugin(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path) as host:
        checked = host.command("plugin", "validate", str(plugin), "--profile", "directory")
        assert checked.returncode == 0, checked.stdout + checked.stderr


@both
def test_pins_outlive_the_plugin_installed_from_a_marketplace_in_a_folder(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path) as host:
        for arguments in (
            ("marketplace", "add", str(plugin)),
            ("install", f"context-anchor@{MARKETPLACE}"),
        ):
            done = host.command("plugin", *arguments)
            assert done.returncode == 0, done.stdout + done.stderr
        chat, turn = pinning_chat(host, RULE)
        anchors.assert_sound(host, turn)
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        assert len(receipts(host.model.main[-1])) == 1
        assert blocks(host.model.main[-1], "BILLING-RULE") == 1
        chat.close()
        done = host.command("plugin", "uninstall", f"context-anchor@{MARKETPLACE}")
        assert done.returncode == 0, done.stdout + done.stderr
        assert anchors.titles(host, turn.session_id) == {"Never touch billing"}
        without = host.chat().say("Hello.")
        assert anchors.SERVER not in {server["name"] for server in without.init["mcp_servers"]}


@pytest.fixture(scope="session")
def prepared_data(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose private environment is made already: the one step that needs a registry."""
    data = tmp_path_factory.mktemp("data")
    try:
        environment.ensure(data, plugin, package=True)
    except EnvironmentSetupError as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no private environment without a package registry: {problem}")
    return data


def test_the_installer_puts_the_plugin_in_and_takes_it_out_and_the_pins_stay(
    client: Path, plugin: Path, prepared_data: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path) as host:
        programs = tmp_path / "programs"
        programs.mkdir()
        if sys.platform == "win32":
            shutil.copy2(client, programs / "claude.exe")
        else:
            (programs / "claude").symlink_to(client)
        host.environment["PATH"] = os.pathsep.join([str(programs), host.environment["PATH"]])
        installer = [sys.executable, str(plugin / "scripts" / "install.py"), "--host", "claude-code"]
        host.environment["CONTEXT_ANCHOR_DATA_DIR"] = str(prepared_data)
        for _ in range(2):  # a second run changes nothing
            done = host.run(*installer, seconds=180)
            assert done.returncode == 0, done.stdout + done.stderr
        del host.environment["CONTEXT_ANCHOR_DATA_DIR"]  # the installed copy remembers where the data are
        host.data = prepared_data
        chat, turn = pinning_chat(host, RULE)
        anchors.assert_sound(host, turn)
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        assert blocks(host.model.main[-1], "BILLING-RULE") == 1
        chat.close()
        host.environment["CONTEXT_ANCHOR_DATA_DIR"] = str(prepared_data)
        done = host.run(*installer, "--uninstall")
        assert done.returncode == 0, done.stdout + done.stderr
        assert anchors.titles(host, turn.session_id) == {"Never touch billing"}
        gone = host.chat().say("Hello.")
        assert anchors.SERVER not in {server["name"] for server in gone.init["mcp_servers"]}

"""Getting the plugin into a real Claude Code client and out again, with the pins left alone."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from context_anchor.install import environment, source

from .claude_code import anchors
from .claude_code.anchors import blocks, pinning_chat, receipts
from .claude_code.client import ClaudeCode
from .claude_code.model import Reply
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


@pytest.fixture
def lent_data(plugin: Path, tmp_path: Path) -> Path:
    """A data folder with a private environment as the installer leaves it, without asking a registry.

    It borrows the packages of the interpreter the tests run with; that pip fills such an environment
    is tried where the installer is tested by itself.
    """
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    folder = environment.folder_of(data)
    venv.create(folder, with_pip=False)
    (borrowed,) = (
        folder.glob("lib/*/site-packages") if sys.platform != "win32" else folder.glob("Lib/site-packages")
    )
    paths = f"{sysconfig.get_path('purelib')}\n{plugin}\n"
    (borrowed / "borrowed.pth").write_text(paths, encoding="utf-8")
    command = environment.command_of(folder)
    python = environment.python_of(folder)
    command.write_text(f"#!/bin/sh\nexec '{python}' -m context_anchor \"$@\"\n", encoding="utf-8")
    command.chmod(0o755)
    product = source.find(plugin / "context_anchor")
    record = {
        "format": environment.FORMAT,
        "version": product.version,
        "requirements": list(product.requirements()),
        "python": sys.executable,
        "package": product.fingerprint(),
    }
    (folder / environment.MARKER).write_text(json.dumps(record), encoding="utf-8")
    return data


def test_the_installer_puts_the_plugin_in_and_takes_it_out_and_the_pins_stay(
    client: Path, plugin: Path, lent_data: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path / "host") as host:
        programs = tmp_path / "programs"
        programs.mkdir()
        if sys.platform == "win32":
            shutil.copy2(client, programs / "claude.exe")
        else:
            (programs / "claude").symlink_to(client)
        host.environment["PATH"] = os.pathsep.join([str(programs), host.environment["PATH"]])
        host.data = lent_data
        named = {"CONTEXT_ANCHOR_DATA_DIR": str(lent_data), "PIP_RETRIES": "0"}
        settings = host.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text('{"permissions": {"allow": ["Bash(ls:*)"]}}', encoding="utf-8")

        def install(*words: str) -> str:
            command = [sys.executable, str(plugin / "scripts" / "install.py"), "--host", "claude-code", *words]
            done = host.run(*command, seconds=180, env=named)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        install("--allow-mcp", "--no-proof")
        report = json.loads(install("--allow-mcp", "--json"))
        assert [found["changed"] for found in report["hosts"]] == [False], "a second time changes nothing"
        wrong = [f for f in report["findings"] if f["level"] not in ("ok", "info")]
        assert not wrong, wrong
        assert {played["host"] for played in report["demo"]} >= {"claude-code"}
        allowed = json.loads(settings.read_text(encoding="utf-8"))["permissions"]["allow"]
        assert allowed[0] == "Bash(ls:*)"
        assert len(allowed) == 2

        chat = host.chat()  # without CONTEXT_ANCHOR_DATA_DIR: the installed copy knows where the data are
        host.model.plan(Reply("I pin.", (RULE,), tokens=30_000), Reply("Pinned."))
        turn = chat.say("Pin.")
        anchors.assert_sound(host, turn)
        assert anchors.titles(host, turn.session_id) == {"Never touch billing"}
        chat.say("Go on.")
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        assert blocks(host.model.main[-1], "BILLING-RULE") == 1
        chat.close()
        doctor = host.run(
            sys.executable,
            str(plugin / "scripts" / "cli.py"),
            "doctor",
            "--host",
            "claude-code",
            "--json",
            env=named,
        )
        checks = {found["check"]: found for found in json.loads(doctor.stdout)["findings"]}
        assert checks["claude-code.delivery"]["level"] == "ok", checks
        assert receipts(host.model.main[-1])[0] in checks["claude-code.delivery"]["what"]

        install("--uninstall")
        assert anchors.titles(host, turn.session_id) == {"Never touch billing"}
        assert json.loads(settings.read_text(encoding="utf-8"))["permissions"]["allow"] == ["Bash(ls:*)"]
        gone = host.chat().say("Hello.")
        assert anchors.SERVER not in {server["name"] for server in gone.init["mcp_servers"]}

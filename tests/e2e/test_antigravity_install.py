"""Getting the plugin into Antigravity's folders and out again, used by the real runtime in between.

"emulated": the SDK's runtime does not load plugins, so the driver hands over what lies in the folder.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from .antigravity import anchors
from .antigravity.anchors import blocks, receipts
from .antigravity.host import SERVER, Antigravity
from .antigravity.model import Reply
from .test_antigravity import COMPACTS_AT, RULE, STEP
from .test_claude_code_install import lent_data  # noqa: F401  # a fixture

FOREIGN_HOOKS = {"mine": {"Stop": [{"type": "command", "command": "echo {}"}]}}
FOREIGN_SERVERS = {"mcpServers": {"mine": {"command": "mine"}}}


def pin_and_compact(host: Antigravity) -> str:
    """Let a conversation pin and be compacted with the plugin as it lies there; its id."""
    chat = host.open(compact_at=COMPACTS_AT)
    chat.say(
        "Pin.",
        Reply("I pin.", (RULE,), tokens=60_000),
        Reply("full", STEP, tokens=COMPACTS_AT + 500),
        Reply("on", tokens=20_000),
    )
    anchors.assert_sound(host)
    restored = host.model.of(chat.id)[-1]
    assert chat.compactions == 1
    assert len(receipts(restored)) == 1
    assert blocks(restored, "BILLING-RULE") == 1
    return chat.id


def test_the_installer_puts_the_plugin_in_and_takes_it_out_and_the_pins_stay_emulated(
    antigravity_python: Path,
    plugin: Path,
    lent_data: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    with Antigravity(antigravity_python, tmp_path / "host", install=False) as host:
        host.data = lent_data
        config = host.home / ".gemini" / "config"
        settings = host.home / ".gemini" / "antigravity-cli" / "settings.json"
        theirs = {
            config / "hooks.json": FOREIGN_HOOKS,
            config / "mcp_config.json": FOREIGN_SERVERS,
            settings: {"permissions": {"allow": ["command(ls)"]}, "other": 1},
        }
        for path, content in theirs.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content), encoding="utf-8")
        named = {"CONTEXT_ANCHOR_DATA_DIR": str(lent_data), "PIP_RETRIES": "0"}

        def install(*words: str) -> str:
            script = str(plugin / "scripts" / "install.py")
            done = host.run(sys.executable, script, "--host", "antigravity", *words, seconds=180, env=named)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        report = json.loads(install("--allow-mcp", "--no-proof", "--json"))
        assert report["ok"]
        assert not (host.plugin / ".claude-plugin").exists()
        allowed = json.loads(settings.read_text(encoding="utf-8"))["permissions"]["allow"]
        assert allowed == ["command(ls)", f"mcp({SERVER}/*)", "mcp(anchors/*)"]

        conversation = pin_and_compact(host)
        script = str(plugin / "scripts" / "install.py")
        looked = host.run(sys.executable, script, "doctor", "--host", "antigravity", "--json", env=named)
        assert looked.returncode == 0, looked.stdout

        install("--uninstall")
        assert not host.plugin.exists()
        assert anchors.titles(host, conversation) == {"Never touch billing"}
        for path, content in theirs.items():
            assert json.loads(path.read_text(encoding="utf-8")) == content, f"{path.name} is as it was"


def test_a_rendered_folder_works_where_the_client_copies_it_emulated(
    antigravity_python: Path,
    plugin: Path,
    lent_data: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    with Antigravity(antigravity_python, tmp_path / "host", install=False) as host:
        host.data = lent_data
        rendered = tmp_path / "rendered here"
        named = {"CONTEXT_ANCHOR_DATA_DIR": str(lent_data), "PIP_RETRIES": "0"}
        script = str(plugin / "scripts" / "install.py")
        done = host.run(sys.executable, script, "--render", "antigravity", str(rendered), seconds=180, env=named)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"agy plugin install {shlex.quote(str(rendered))}" in done.stdout
        shutil.copytree(rendered, host.plugin)
        shutil.rmtree(rendered)
        pin_and_compact(host)


@pytest.mark.parametrize("name", ["plugin.json", "hooks.json", "mcp_config.json"])
@pytest.mark.uncontained
def test_the_committed_files_are_of_the_form_the_host_takes(plugin: Path, name: str) -> None:
    text = (plugin / name).read_bytes()
    assert not text.startswith(b"\xef\xbb\xbf")
    document = json.loads(text.decode("ascii"))
    if name == "plugin.json":
        assert document["name"] == "context-anchor"
    elif name == "hooks.json":
        for events in document.values():
            for handlers in events.values():
                for handler in handlers:
                    assert set(handler) == {"type", "command", "timeout"}, "flat handlers, no matcher groups"
                    assert type(handler["timeout"]) is int
                    assert not set(handler["command"]) & set("\"'%!")
    else:
        assert isinstance(document["mcpServers"], dict)

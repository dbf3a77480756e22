"""The files by which hosts find the server in a clone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_anchor import __version__
from context_anchor.server import tool_listing

ROOT = Path(__file__).resolve().parents[2]


def strictly(path: str) -> Any:
    """Read a file as the strictest host does: no byte order mark, no key twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs), f"a key stands twice in {path}"
        return dict(pairs)

    return json.loads((ROOT / path).read_bytes().decode("utf-8"), object_pairs_hook=once)


def test_the_claude_manifest_starts_the_server_at_once_from_the_plugins_folder() -> None:
    manifest = strictly(".claude-plugin/plugin.json")
    assert (manifest["name"], manifest["version"]) == ("context-anchor", __version__)
    assert manifest["mcpServers"] == {
        tool_listing.SERVER_NAME: {
            "command": "python3",
            "args": ["${CLAUDE_PLUGIN_ROOT}/scripts/serve.py"],
            "alwaysLoad": True,
        }
    }
    assert (ROOT / "scripts" / "serve.py").is_file()
    assert manifest["hooks"] == "./hooks/claude-code.json"
    assert (ROOT / manifest["hooks"]).is_file()
    assert not (ROOT / "hooks" / "hooks.json").exists()  # that host would run it as well


def test_the_marketplace_offers_this_folder_as_the_plugin() -> None:
    market = strictly(".claude-plugin/marketplace.json")
    (plugin,) = market["plugins"]
    assert (plugin["name"], plugin["source"]) == (strictly(".claude-plugin/plugin.json")["name"], "./")
    assert market["owner"]["name"]


def test_the_antigravity_server_file_is_sound_and_empty_until_a_path_is_written_into_it() -> None:
    assert strictly("mcp_config.json") == {"mcpServers": {}}


@pytest.mark.parametrize(
    "path", [".claude-plugin/plugin.json", ".claude-plugin/marketplace.json", "mcp_config.json"]
)
def test_manifests_name_no_path_of_the_machine_they_were_made_on(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not any(word in text for word in ("/home/", "/opt/", "/tmp/", "/Users/", ":\\"))

"""Antigravity: a plain folder of real files, other people's things left alone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from context_anchor.errors import HostConfigError
from context_anchor.install import antigravity, render
from context_anchor.install.antigravity import Antigravity
from context_anchor.install.findings import worst
from context_anchor.install.source import Source

from .conftest import tree_digest


@pytest.fixture
def host(home: Path, scrubbed: Callable[..., dict[str, str]]) -> Antigravity:
    (home / ".gemini" / "config").mkdir(parents=True)
    found = antigravity.detect(scrubbed(), home)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["config", "antigravity", "antigravity-cli", "antigravity-ide"])
def test_it_is_found_by_any_of_its_folders(name: str, home: Path, scrubbed: Callable[..., dict[str, str]]) -> None:
    assert antigravity.detect(scrubbed(), home) is None
    (home / ".gemini").mkdir()
    assert antigravity.detect(scrubbed(), home) is None, "another program's folder alone is no Antigravity"
    (home / ".gemini" / name).mkdir()
    assert antigravity.detect(scrubbed(), home) is not None


def test_the_folder_holds_real_files_and_no_claude_manifest(
    host: Antigravity, source: Source, place: render.Place
) -> None:
    done = antigravity.install(host, source, place, dry_run=False)
    assert done.changed and worst(done.findings) == "ok"
    names = [path.relative_to(host.plugin).as_posix() for path in host.plugin.rglob("*")]
    assert "plugin.json" in names and "hooks.json" in names and "scripts/hook.py" in names
    assert not [name for name in names if ".claude-plugin" in name]
    assert not [path for path in host.plugin.rglob("*") if path.is_symlink()]
    before = tree_digest(host.plugin)
    assert not antigravity.install(host, source, place, dry_run=False).changed
    assert tree_digest(host.plugin) == before


def test_a_dry_run_changes_nothing(host: Antigravity, source: Source, place: render.Place, tmp_path: Path) -> None:
    before = tree_digest(tmp_path)
    antigravity.install(host, source, place, dry_run=True)
    antigravity.uninstall(host, dry_run=True)
    assert tree_digest(tmp_path) == before


def test_another_plugin_of_that_name_is_set_aside_whole(
    host: Antigravity, source: Source, place: render.Place
) -> None:
    host.plugin.mkdir(parents=True)
    (host.plugin / "plugin.json").write_text('{"name": "context-anchor", "version": "theirs"}')
    done = antigravity.install(host, source, place, dry_run=False)
    (kept,) = (place.data / "backups").iterdir()
    assert "theirs" in (kept / "plugin.json").read_text()
    assert str(kept) in " ".join(done.did)


def test_other_plugins_servers_and_hooks_are_not_touched(
    host: Antigravity, source: Source, place: render.Place
) -> None:
    (host.config / "plugins" / "other").mkdir(parents=True)
    (host.config / "plugins" / "other" / "plugin.json").write_text('{"name": "other"}')
    (host.config / "mcp_config.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    (host.config / "hooks.json").write_text('{"mine": {"Stop": []}}')
    before = {path: path.read_bytes() for path in host.config.rglob("*") if path.is_file()}
    antigravity.install(host, source, place, dry_run=False)
    antigravity.uninstall(host, dry_run=False)
    assert {path: path.read_bytes() for path in host.config.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_link_is_refused_and_left(host: Antigravity, source: Source, place: render.Place, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    host.plugin.parent.mkdir()
    host.plugin.symlink_to(tmp_path / "dev")
    with pytest.raises(HostConfigError, match="is a link"):
        antigravity.install(host, source, place, dry_run=False)
    assert antigravity.uninstall(host, dry_run=False).changed is False
    assert host.plugin.is_symlink() and list((tmp_path / "dev").iterdir()) == []


def test_a_clone_of_its_own_is_left_and_told_how_to_be_set_up(
    host: Antigravity, source: Source, place: render.Place
) -> None:
    (host.plugin / ".git").mkdir(parents=True)
    with pytest.raises(HostConfigError) as caught:
        antigravity.install(host, source, place, dry_run=False)
    assert "--in-place" in caught.value.hint
    assert [path.name for path in host.plugin.iterdir()] == [".git"]
    assert antigravity.uninstall(host, dry_run=False).changed is False
    assert (host.plugin / ".git").is_dir()


@pytest.mark.parametrize("name", ["config/mcp_config.json", "config/config.json", "antigravity-cli/settings.json"])
def test_a_broken_file_of_the_host_is_reported_and_left(
    name: str, host: Antigravity, source: Source, place: render.Place
) -> None:
    path = host.base / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("{ broken")
    done = antigravity.install(host, source, place, dry_run=False)
    (finding,) = [f for f in done.findings if f.level == "error"]
    assert str(path) in finding.what and finding.code == "host_config"
    assert path.read_text() == "{ broken"
    assert (host.plugin / "plugin.json").is_file()


def test_uninstalling_keeps_what_the_user_put_there(host: Antigravity, source: Source, place: render.Place) -> None:
    antigravity.install(host, source, place, dry_run=False)
    (host.plugin / "notes.md").write_text("mine")
    done = antigravity.uninstall(host, dry_run=False)
    assert [path.name for path in host.plugin.rglob("*")] == ["notes.md"]
    assert any("notes.md" in line for line in done.todo)


def test_a_folder_copied_by_the_hosts_own_installer_is_taken_over(
    host: Antigravity, source: Source, place: render.Place, tmp_path: Path
) -> None:
    """`agy plugin install DIR` copies a rendered folder as it is; installing later must update that copy."""
    import shutil

    from context_anchor.install import mirror

    mirror.write(tmp_path / "rendered", render.antigravity(source, place, host.plugin).files)
    shutil.copytree(tmp_path / "rendered", host.plugin)
    done = antigravity.install(host, source, place, dry_run=False)
    assert not done.changed and not (place.data / "backups").exists()


def test_the_switch_in_config_json_wins_over_the_manifest(
    host: Antigravity, source: Source, place: render.Place
) -> None:
    antigravity.install(host, source, place, dry_run=False)
    assert [plugin.enabled for plugin in antigravity.plugins(host)] == [True]
    (host.config / "config.json").write_text(json.dumps({"plugins": {"context-anchor": {"enabled": False}}}))
    assert [plugin.enabled for plugin in antigravity.plugins(host)] == [False]
    found = antigravity.look_over(host, antigravity.plugins(host))
    assert any(f.check == "antigravity.plugin" and f.level == "warning" for f in found)


def test_copies_that_run_twice_are_found(
    host: Antigravity, source: Source, place: render.Place, tmp_path: Path
) -> None:
    antigravity.install(host, source, place, dry_run=False)
    project = tmp_path / "project" / "sub"
    second = tmp_path / "project" / ".agents" / "plugins" / "anchor-copy"
    second.mkdir(parents=True)
    project.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (second / "plugin.json").write_text('{"name": "context-anchor"}')
    (host.config / "hooks.json").write_text('{"x": {"Stop": [{"command": "python3 /p/hook.py antigravity Stop"}]}}')
    server = {"command": "python3", "args": ["/x/context-anchor/scripts/serve.py"]}
    (host.config / "mcp_config.json").write_text(json.dumps({"mcpServers": {"anchors": server}}))
    found = antigravity.look_over(host, antigravity.plugins(host, project))
    assert [f.level for f in found if f.check == "antigravity.twice"] == ["error", "error", "warning"]


@pytest.mark.parametrize(
    ("allow", "missing"),
    [([], True), (["mcp(anchors/*)"], True), (["mcp(*)"], False), (list(antigravity.PERMISSIONS), False)],
)
def test_missing_permissions_are_reported_under_both_server_names(
    allow: list[str], missing: bool, host: Antigravity, source: Source, place: render.Place
) -> None:
    antigravity.install(host, source, place, dry_run=False)
    host.settings.parent.mkdir()
    host.settings.write_text(json.dumps({"permissions": {"allow": allow}}))
    found = antigravity.look_over(host, antigravity.plugins(host))
    assert any(f.check == "antigravity.permission" for f in found) is missing


@pytest.mark.skipif(os.name == "nt", reason="POSIX shell")
def test_the_installed_line_runs_from_the_plugins_folder_as_the_host_runs_it(
    host: Antigravity, source: Source, place: render.Place, tmp_path: Path
) -> None:
    antigravity.install(host, source, place, dry_run=False)
    line = json.loads((host.plugin / "hooks.json").read_text())["context-anchor"]["PreInvocation"][0]["command"]
    payload = {"conversationId": "c-1", "workspacePaths": [str(tmp_path)], "transcriptPath": "/none.jsonl"}
    env = {"PATH": "/nonexistent", "CONTEXT_ANCHOR_DATA_DIR": str(tmp_path / "d")}
    out = subprocess.run(
        ["/bin/sh", "-c", line], cwd=host.plugin, input=json.dumps(payload).encode(), capture_output=True, env=env
    )  # fmt: skip
    assert out.returncode == 0 and out.stderr == b"", out.stderr
    assert "pin_context" in json.dumps(json.loads(out.stdout))

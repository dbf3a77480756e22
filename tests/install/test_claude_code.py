"""Claude Code: which commands its client is given, and what is left alone. The real client: tests/e2e."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from context_anchor.errors import HostConfigError, InstallError
from context_anchor.install import claude_code, render
from context_anchor.install.claude_code import ClaudeCode
from context_anchor.install.findings import worst
from context_anchor.install.source import Source

from .conftest import tree_digest

Make = Callable[..., Path]


@pytest.fixture
def host(home: Path, fake_client: Make, scrubbed: Callable[..., dict[str, str]]) -> ClaudeCode:
    found = claude_code.detect(scrubbed(fake_client()), home)
    assert found is not None and found.client.endswith("claude")
    return found


def calls(host: ClaudeCode) -> list[list[str]]:
    log = host.config / "calls.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def changing(host: ClaudeCode) -> list[str]:
    return [" ".join(words[1:3]) for words in calls(host) if words[:1] == ["plugin"] and words[1] != "list"]


def test_it_is_found_by_client_or_by_folder_and_only_then(
    home: Path, fake_client: Make, scrubbed: Callable[..., dict[str, str]]
) -> None:
    assert claude_code.detect(scrubbed(), home) is None
    (home / ".claude").mkdir()
    found = claude_code.detect(scrubbed(), home)
    assert found is not None and found.client == ""
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    named = claude_code.detect(scrubbed(CLAUDE_CONFIG_DIR=str(elsewhere)), home)
    assert named is not None and named.config == elsewhere


def test_the_client_is_given_the_folder_and_then_the_plugin(
    host: ClaudeCode, source: Source, place: render.Place
) -> None:
    done = claude_code.install(host, source, place, dry_run=False)
    folder = claude_code.folder_of(place.data)
    assert worst(done.findings) == "ok" and done.changed
    assert ["plugin", "marketplace", "add", str(folder)] in calls(host)
    assert ["plugin", "install", "context-anchor@context-anchor"] in calls(host)
    (copy,) = claude_code.plugins(host)
    assert (copy.root, copy.enabled) == (folder, True)
    assert (folder / "context_anchor" / "hooks" / "__pycache__").is_dir()


def test_installing_again_changes_no_file(host: ClaudeCode, source: Source, place: render.Place) -> None:
    claude_code.install(host, source, place, dry_run=False)
    before = tree_digest(claude_code.folder_of(place.data))
    again = claude_code.install(host, source, place, dry_run=False)
    assert not again.changed
    assert tree_digest(claude_code.folder_of(place.data)) == before
    assert "plugin update" not in " ".join(changing(host)[4:])


def test_a_dry_run_starts_no_client_and_writes_nothing(
    host: ClaudeCode, source: Source, place: render.Place, tmp_path: Path
) -> None:
    before = tree_digest(tmp_path)
    done = claude_code.install(host, source, place, dry_run=True)
    claude_code.uninstall(host, place.data, dry_run=True)
    assert "would run: claude plugin marketplace add" in " ".join(done.did)
    assert tree_digest(tmp_path) == before


def test_without_a_client_the_commands_are_printed(
    home: Path, source: Source, place: render.Place, scrubbed: Callable[..., dict[str, str]]
) -> None:
    (home / ".claude").mkdir()
    host = claude_code.detect(scrubbed(), home)
    assert host is not None
    done = claude_code.install(host, source, place, dry_run=False)
    told = " ".join(done.todo)
    assert (
        "claude plugin marketplace add '" in told and "claude plugin install context-anchor@context-anchor" in told
    )


@pytest.mark.parametrize(
    "name", ["settings.json", "plugins/known_marketplaces.json", "plugins/installed_plugins.json"]
)
def test_a_broken_settings_file_stops_before_anything_is_done(
    name: str, host: ClaudeCode, source: Source, place: render.Place, tmp_path: Path
) -> None:
    path = host.config / name
    path.parent.mkdir(parents=True)
    path.write_text('{"a": 1, // mine\n}')
    before = tree_digest(tmp_path)
    with pytest.raises(HostConfigError) as caught:
        claude_code.install(host, source, place, dry_run=False)
    assert str(path) in caught.value.message
    assert tree_digest(tmp_path) == before


def test_a_client_that_refuses_is_reported_with_its_words(
    host: ClaudeCode, source: Source, place: render.Place
) -> None:
    host.config.mkdir()
    (host.config / "refuse").write_text("")
    with pytest.raises(InstallError, match="refused for the test"):
        claude_code.install(host, source, place, dry_run=False)


def test_a_plugin_that_the_user_disabled_stays_so_and_is_told(
    host: ClaudeCode, source: Source, place: render.Place
) -> None:
    claude_code.install(host, source, place, dry_run=False)
    state = json.loads((host.config / "fake.json").read_text())
    state["plugins"]["context-anchor@context-anchor"] = False
    (host.config / "fake.json").write_text(json.dumps(state))
    done = claude_code.install(host, source, place, dry_run=False)
    assert any("plugin enable" in line for line in done.todo)
    assert claude_code.plugins(host)[0].enabled is False


def test_a_copy_from_another_marketplace_is_reported_as_running_twice(
    host: ClaudeCode, source: Source, place: render.Place
) -> None:
    claude_code.install(host, source, place, dry_run=False)
    state = json.loads((host.config / "fake.json").read_text())
    state["plugins"]["context-anchor@elsewhere"] = True
    (host.config / "fake.json").write_text(json.dumps(state))
    done = claude_code.install(host, source, place, dry_run=False)
    (twice,) = [finding for finding in done.findings if finding.check == "claude-code.twice"]
    assert twice.level == "error" and "context-anchor@elsewhere" in twice.cure
    looked = claude_code.look_over(host, claude_code.plugins(host), place.data)
    assert any(finding.check == "claude-code.twice" for finding in looked)


def test_uninstalling_goes_through_the_client_and_removes_our_folder(
    host: ClaudeCode, source: Source, place: render.Place
) -> None:
    claude_code.install(host, source, place, dry_run=False)
    done = claude_code.uninstall(host, place.data, dry_run=False)
    assert done.changed and not done.todo
    assert changing(host)[-2:] == ["uninstall context-anchor@context-anchor", "marketplace remove"]
    assert not claude_code.folder_of(place.data).exists()
    assert claude_code.plugins(host) == ()
    assert not claude_code.uninstall(host, place.data, dry_run=False).changed


def test_a_copy_that_is_not_from_our_folder_is_not_uninstalled(host: ClaudeCode, place: render.Place) -> None:
    host.config.mkdir()
    state = {"markets": {"context-anchor": "/their/clone"}, "plugins": {"context-anchor@context-anchor": True}}
    (host.config / "fake.json").write_text(json.dumps(state))
    claude_code.uninstall(host, place.data, dry_run=False)
    assert changing(host) == []


def test_without_a_client_installed_copies_are_read_from_its_files(
    home: Path, scrubbed: Callable[..., dict[str, str]]
) -> None:
    config = home / ".claude"
    (config / "plugins").mkdir(parents=True)
    entries = {
        "context-anchor@m": [{"scope": "user", "installPath": "/cache", "version": "0.1.0"}],
        "other@m": [{}],
    }
    (config / "plugins" / "installed_plugins.json").write_text(json.dumps({"version": 2, "plugins": entries}))
    (config / "settings.json").write_text(json.dumps({"enabledPlugins": {"context-anchor@m": True}}))
    host = claude_code.detect(scrubbed(), home)
    assert host is not None
    (copy,) = claude_code.plugins(host)
    assert (copy.plugin_id, copy.enabled, copy.root) == ("context-anchor@m", True, Path("/cache"))


@pytest.mark.parametrize(
    ("settings", "check", "level"),
    [
        ({"disableAllHooks": True}, "claude-code.settings", "error"),
        (
            {"hooks": {"Stop": [{"hooks": [{"command": "python3 x/hook.py claude-code Stop"}]}]}},
            "claude-code.twice",
            "error",
        ),
        ({"permissions": {"allow": []}}, "claude-code.permission", "info"),
    ],
)
def test_doctor_sees_what_the_settings_do_to_the_plugin(
    settings: dict[str, object], check: str, level: str, host: ClaudeCode, source: Source, place: render.Place
) -> None:
    claude_code.install(host, source, place, dry_run=False)
    host.settings.write_text(json.dumps(settings))
    looked = claude_code.look_over(host, claude_code.plugins(host), place.data)
    assert [finding.level for finding in looked if finding.check == check] == [level]


def test_an_old_client_is_warned_about(
    home: Path, fake_client: Make, scrubbed: Callable[..., dict[str, str]]
) -> None:
    host = claude_code.detect(scrubbed(fake_client("2.1.20")), home)
    assert host is not None
    (found,) = [f for f in claude_code.look_over(host, (), home) if f.check == "claude-code.version"]
    assert found.level == "warning" and "2.1.20" in found.what

"""scripts/install.py as people run it: an empty home, a scrubbed environment, a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context_anchor.anchors.anchor import Draft
from context_anchor.anchors.store import AnchorStore, SessionScope
from context_anchor.install import antigravity, claude_code, environment, interpreter

from .conftest import ROOT, run_install, tree_digest

Scrub = Callable[..., dict[str, str]]


@pytest.fixture
def both(home: Path, data: Path, fake_client: Callable[..., Path], scrubbed: Scrub) -> dict[str, str]:
    """A home with both hosts, and the environment that the shared data folder already has."""
    (home / ".gemini" / "config").mkdir(parents=True)
    return scrubbed(fake_client(), CONTEXT_ANCHOR_DATA_DIR=str(data))


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_from_an_empty_home_with_no_host_it_says_so_and_proves_itself(
    home: Path, scrubbed: Scrub, shared_environment: Path
) -> None:
    """The one test that makes everything from nothing: pip, package, command, doctor, demo."""
    done = run_install(scrubbed())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no host was found" in done.stdout
    assert "anchors pinned, lost in a compaction, and back after it" in done.stdout
    data = home / ".local" / "share" / "context-anchor"
    if sys.platform == "linux":
        assert data.stat().st_mode & 0o077 == 0
        assert sorted(path.name for path in home.iterdir()) == [".local"]
        ready = json.loads((data / "env" / "py" / "ready.json").read_text())
        assert ready["version"] == "0.1.0" and ready["package"]
        command = environment.command_of(environment.folder_of(data))
        assert command.is_file() and str(command) in done.stdout


def test_it_installs_for_every_host_found_and_a_second_run_changes_nothing(
    both: dict[str, str], home: Path, data: Path
) -> None:
    done = run_install(both, "--no-proof")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Open a new conversation" in done.stdout
    plugin = home / ".gemini" / "config" / "plugins" / "context-anchor"
    assert json.loads((plugin / "mcp_config.json").read_text())["mcpServers"]["anchors"]["command"].startswith(
        str(data)
    )
    before = [
        tree_digest(plugin),
        tree_digest(claude_code.folder_of(data)),
        (home / ".claude/fake.json").read_text(),
    ]
    again = run_install(both, "--no-proof", "--json")
    assert again.returncode == 0
    assert [host["changed"] for host in report(again)["hosts"]] == [False, False]
    after = [
        tree_digest(plugin),
        tree_digest(claude_code.folder_of(data)),
        (home / ".claude/fake.json").read_text(),
    ]
    assert after == before


def test_doctor_and_demo_prove_an_installation_for_both_hosts(both: dict[str, str]) -> None:
    done = run_install(both, "--json", "--allow-mcp")
    value = report(done)
    assert done.returncode == 0 and value["ok"] is True, done.stdout + done.stderr
    checks = {item["check"]: item["level"] for item in value["findings"]}
    for host in ("claude-code", "antigravity"):
        assert checks[f"{host}.hooks"] in ("ok", "warning")  # a warning only where this machine is slow
        assert checks[f"{host}.server"] == "ok"
        assert f"{host}.permission" not in checks
    assert checks["data.store"] == "ok"
    assert [proof["host"] for proof in value["demo"]] == ["claude-code", "antigravity"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--uninstall",),
        ("--uninstall", "--purge-anchors"),
        ("--in-place",),
        ("--allow-mcp",),
        ("--render", "antigravity", "made"),
    ],
)
def test_a_dry_run_changes_nothing_at_all(words: tuple[str, ...], both: dict[str, str], tmp_path: Path) -> None:
    before = tree_digest(tmp_path)
    done = run_install(both, *words, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "would" in done.stdout or "--uninstall" in words
    assert tree_digest(tmp_path) == before


def test_a_dry_run_in_an_empty_home_leaves_it_empty(home: Path, scrubbed: Scrub) -> None:
    done = run_install(scrubbed(), "--dry-run")
    assert done.returncode == 0 and "would make the private environment" in done.stdout
    assert list(home.iterdir()) == []


def test_uninstalling_keeps_anchors_until_told_otherwise(both: dict[str, str], home: Path, data: Path) -> None:
    assert run_install(both, "--no-proof", "--allow-mcp").returncode == 0
    scope = SessionScope("claude-code", "a-session")
    AnchorStore(data).pin(scope, Draft.checked(title="Kept", content="through an uninstall"), actor="user")
    done = run_install(both, "--uninstall")
    assert done.returncode == 0, done.stderr
    assert "kept in" in done.stdout and "anchors" in done.stdout
    assert not (home / ".gemini" / "config" / "plugins" / "context-anchor").exists()
    assert not (data / "plugins").exists() and not (data / "env").exists()
    assert json.loads((home / ".claude" / "fake.json").read_text()) == {"markets": {}, "plugins": {}}
    assert [anchor.title for anchor in AnchorStore(data).read(scope).anchors] == ["Kept"]
    assert json.loads((home / ".gemini" / "antigravity-cli" / "settings.json").read_text()) == {}
    assert run_install(both, "--uninstall", "--purge-anchors").returncode == 0
    assert not data.exists()


def test_the_installed_command_can_take_itself_away(both: dict[str, str], data: Path, tmp_path: Path) -> None:
    """Run from the environment it removes; a copy, so that the shared one stays."""
    assert run_install(both, "--no-proof").returncode == 0
    shared = environment.folder_of(data).resolve()
    site = next(path for path in shared.rglob("context_anchor") if (path / "install").is_dir())
    copy = environment.folder_of(data)
    (data / "env").unlink()
    shutil.copytree(site, copy / "site" / "context_anchor")
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); "
        "from context_anchor.install.cli_entry import main; sys.exit(main())"
    )
    done = subprocess.run(
        [interpreter.running().path, "-I", "-c", code, str(copy / "site"), "uninstall"],
        env=both, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "removed below" in done.stdout, done.stderr
    assert not (data / "env").exists()


def test_purging_never_deletes_what_is_not_ours(both: dict[str, str], data: Path) -> None:
    (data / "my-own-file.txt").write_text("not yours")
    (data / "anchors").mkdir()
    assert run_install(both, "--uninstall", "--purge-anchors").returncode == 0
    assert [path.name for path in data.iterdir()] == ["my-own-file.txt"]


def test_permission_entries_are_added_for_both_names_and_only_ours_are_taken_back(
    both: dict[str, str], home: Path
) -> None:
    settings = home / ".gemini" / "antigravity-cli" / "settings.json"
    settings.parent.mkdir()
    mine = {"theme": "dark", "permissions": {"allow": ["mcp(mine/*)", "mcp(anchors/*)"], "deny": ["command(rm)"]}}
    settings.write_text(json.dumps(mine))
    assert run_install(both, "--no-proof", "--host", "antigravity").returncode == 0
    assert json.loads(settings.read_text()) == mine, "without --allow-mcp nothing is written"
    done = run_install(both, "--no-proof", "--host", "antigravity", "--allow-mcp")
    assert done.returncode == 0
    allowed = json.loads(settings.read_text())["permissions"]["allow"]
    assert set(antigravity.PERMISSIONS) <= set(allowed) and "mcp(mine/*)" in allowed
    assert run_install(both, "--uninstall", "--host", "antigravity").returncode == 0
    assert json.loads(settings.read_text()) == mine, "the entry that the user had written stays"


def test_a_broken_host_is_reported_and_the_other_goes_on(both: dict[str, str], home: Path) -> None:
    broken = home / ".claude" / "settings.json"
    broken.parent.mkdir()
    broken.write_text("{ not json")
    done = run_install(both, "--no-proof", "--json")
    assert done.returncode == 1
    claude, agy = report(done)["hosts"]
    assert claude["findings"][0]["code"] == "host_config" and str(broken) in claude["findings"][0]["what"]
    assert agy["changed"] is True and agy["findings"] == []
    assert broken.read_text() == "{ not json"
    assert (home / ".gemini" / "config" / "plugins" / "context-anchor" / "plugin.json").is_file()


def test_a_host_that_was_asked_for_and_is_not_there_is_an_error(home: Path, data: Path, scrubbed: Scrub) -> None:
    done = run_install(scrubbed(CONTEXT_ANCHOR_DATA_DIR=str(data)), "--host", "antigravity", "--no-proof")
    assert done.returncode == 1 and "not on this machine" in done.stdout
    assert list(home.iterdir()) == []


def test_one_host_alone_can_be_chosen(both: dict[str, str], home: Path) -> None:
    assert run_install(both, "--host", "antigravity", "--no-proof").returncode == 0
    assert not (home / ".claude").exists()


def test_a_rendered_bundle_names_the_place_it_will_be_copied_to(
    both: dict[str, str], home: Path, tmp_path: Path
) -> None:
    target = tmp_path / "rendered here"
    done = run_install(both, "--render", "antigravity", str(target))
    assert done.returncode == 0 and f"agy plugin install {shlex.quote(str(target))}" in done.stdout
    args = json.loads((target / "mcp_config.json").read_text())["mcpServers"]["anchors"]["args"]
    assert args[-1] == str(home / ".gemini/config/plugins/context-anchor/scripts/serve.py")
    workspace = tmp_path / "project" / ".agents" / "plugins" / "context-anchor"
    assert run_install(both, "--render", "antigravity", str(workspace)).returncode == 0
    args = json.loads((workspace / "mcp_config.json").read_text())["mcpServers"]["anchors"]["args"]
    assert args[-1] == str(workspace / "scripts" / "serve.py")


def test_rendering_into_a_folder_of_someone_elses_is_refused(both: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("x")
    done = run_install(both, "--render", "claude-code", str(tmp_path / "theirs"))
    assert done.returncode == 1 and "not empty" in done.stderr
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["file"]


def test_words_that_are_not_understood_are_told_with_code_2(both: dict[str, str]) -> None:
    assert run_install(both, "--render", "other-host", "x").returncode == 2
    assert run_install(both, "--no-such-option").returncode == 2


def test_a_clone_in_the_plugins_folder_is_set_up_where_it_lies(both: dict[str, str], home: Path) -> None:
    clone = home / ".gemini" / "config" / "plugins" / "context-anchor"
    for name in ("context_anchor", "scripts", "hooks", ".claude-plugin"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("plugin.json", "hooks.json", "mcp_config.json", "pyproject.toml"):
        shutil.copy(ROOT / name, clone / name)
    (clone / ".git").mkdir()
    command = [str(clone / "scripts" / "install.py"), "--in-place"]
    python = run_install(
        both, "doctor", "--host", "antigravity", "--json"
    )  # before: hooks work, the server has no path
    checks = {item["check"]: item["level"] for item in json.loads(python.stdout)["findings"]}
    assert (checks["antigravity.hooks"], checks["antigravity.server"]) in (("ok", "error"), ("warning", "error"))
    done = subprocess.run([interpreter.running().path, *command], env=both, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    entry = json.loads((clone / "mcp_config.json").read_text())["mcpServers"]["anchors"]
    assert Path(entry["command"]).is_absolute() and entry["args"][-1] == str(clone / "scripts" / "serve.py")
    after = run_install(both, "doctor", "--host", "antigravity", "--json")
    checks = {item["check"]: item["level"] for item in json.loads(after.stdout)["findings"]}
    assert checks["antigravity.server"] == "ok", after.stdout


@pytest.mark.skipif(os.name == "nt", reason="a shell script as an old Python")
def test_a_python_that_is_too_old_hands_over_or_says_what_to_install(
    home: Path, scrubbed: Scrub, tmp_path: Path
) -> None:
    # Any Python reads this file; one that is too old takes this branch, which a changed version stands in for.
    code = (
        "import sys; real = sys.version_info; sys.version_info = (3, 8, 1, 'final', 0)\n"
        f"sys.argv = ['install.py', '--help']; path = {str(ROOT / 'scripts' / 'install.py')!r}\n"
        "import runpy; runpy.run_path(path, run_name='__main__')"
    )
    env = scrubbed()
    handed = subprocess.run([interpreter.running().path, "-c", code], env=env, capture_output=True, text=True)
    assert handed.returncode == 0 and "--allow-mcp" in handed.stdout, handed.stderr
    alone = {**env, "PATH": str(tmp_path / "empty")}
    told = subprocess.run([interpreter.running().path, "-c", code], env=alone, capture_output=True, text=True)
    assert told.returncode == 1 and "needs Python 3.10 or newer; this is 3.8.1" in told.stderr


def test_the_installer_and_all_it_imports_need_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from context_anchor.install import cli_entry, installer, doctor, demo\n"
        "print([m for m in ('mcp', 'filelock', 'platformdirs', 'pydantic', 'anyio') if m in sys.modules])"
    )
    out = subprocess.run(
        [interpreter.running().path, "-I", "-S", "-c", code, str(ROOT)], capture_output=True, text=True
    )
    assert out.stdout.strip() == "[]", out.stderr

"""The bundles: each host's files alone, with this machine's paths in the commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from context_anchor.errors import InstallError
from context_anchor.install import hook_check, mirror, render, server_check
from context_anchor.install.source import Source, find

from .conftest import ROOT, tree_digest


def test_the_antigravity_bundle_holds_its_hosts_files_alone(
    source: Source, place: render.Place, tmp_path: Path
) -> None:
    files = render.antigravity(source, place, tmp_path / "root").files
    assert {"plugin.json", "hooks.json", "mcp_config.json", "scripts/hook.py", "data-dir.txt"} <= set(files)
    assert not [name for name in files if ".claude-plugin" in name or name.startswith("hooks/")]
    assert set(json.loads(files["plugin.json"])) == {"name", "description"}


def test_the_claude_code_bundle_is_a_marketplace_and_has_no_second_hooks_file(
    source: Source, place: render.Place
) -> None:
    files = render.claude_code(source, place).files
    assert {".claude-plugin/plugin.json", ".claude-plugin/marketplace.json", "hooks/claude-code.json"} <= set(files)
    assert not {"hooks/hooks.json", "hooks.json", "plugin.json", "mcp_config.json", ".mcp.json"} & set(files)
    manifest = json.loads(files[".claude-plugin/plugin.json"])
    server = manifest["mcpServers"]["anchors"]
    assert server["command"] == place.server_python
    assert server["alwaysLoad"] is True


def test_every_hook_of_claude_code_starts_the_named_interpreter_without_a_shell(
    source: Source, place: render.Place
) -> None:
    committed = json.loads((ROOT / "hooks" / "claude-code.json").read_text(encoding="utf-8"))["hooks"]
    rendered = json.loads(render.claude_code(source, place).files["hooks/claude-code.json"])["hooks"]
    assert set(rendered) == set(committed)
    for event, groups in rendered.items():
        for group, original in zip(groups, committed[event], strict=True):
            for handler, first in zip(group["hooks"], original["hooks"], strict=True):
                assert handler == {**first, "command": place.hook_python}
                assert handler["args"][-1] == event


@pytest.mark.parametrize("event", ["SessionStart", "PreInvocation", "Stop"])
@pytest.mark.parametrize("python", ["/opt/py thön/3.12/bin/python3", "/usr/bin/python3", "/a&b/$HOME/`x`/python"])
@pytest.mark.skipif(os.name == "nt", reason="POSIX shell")
def test_an_antigravity_command_survives_sh_and_holds_no_quote(event: str, python: str) -> None:
    line, note = render.hook_command(python, event, windows=False)
    assert '"' not in line and note == ""
    first = line.split(" -I -S ")[0]
    out = subprocess.run(["sh", "-c", f"printf %s {first}"], capture_output=True, check=True).stdout.decode()
    assert out == python
    assert line.endswith("|| echo {}") and line.count(f"antigravity {event} ") == 2


@pytest.mark.skipif(os.name == "nt", reason="POSIX shell")
def test_a_command_whose_interpreters_are_all_gone_still_prints_a_document(tmp_path: Path) -> None:
    line, _ = render.hook_command("/gone/python3.12", "Stop", windows=False)
    out = subprocess.run(["/bin/sh", "-c", line], capture_output=True, cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert (out.returncode, out.stdout.strip()) == (0, b"{}")
    assert out.stderr.isascii()


def test_a_path_that_no_command_can_hold_falls_back_to_path_and_says_so() -> None:
    line, note = render.hook_command('/odd"path/python3', "Stop", windows=False)
    assert line.startswith("python3 -I -S") and '"' not in line
    assert "can't be written" in note
    line, note = render.hook_command(r"C:\Program Files\Python 3\python.exe", "Stop", windows=True)
    if os.name != "nt":
        assert line.startswith("python -I -S") and '"' not in line and note


def test_the_antigravity_server_is_named_by_absolute_paths(
    source: Source, place: render.Place, tmp_path: Path
) -> None:
    document = json.loads(render.antigravity(source, place, tmp_path / "röot").files["mcp_config.json"])
    assert document == {
        "mcpServers": {
            "anchors": {
                "command": place.server_python,
                "args": ["-I", str(tmp_path / "röot" / "scripts" / "serve.py")],
            }
        }
    }


def test_other_servers_of_a_configuration_are_kept(tmp_path: Path) -> None:
    mine = {"mcpServers": {"other": {"command": "x"}}, "more": 1}
    changed = render.antigravity_servers(mine, "/py", tmp_path)
    assert changed["mcpServers"]["other"] == {"command": "x"} and changed["more"] == 1
    assert "anchors" not in mine["mcpServers"]


def test_the_data_folder_is_pointed_to_in_utf8(source: Source, place: render.Place) -> None:
    assert render.claude_code(source, place).files["data-dir.txt"].decode("utf-8") == f"{place.data}\n"


def test_a_bundle_is_no_source_of_bundles(source: Source, place: render.Place, tmp_path: Path) -> None:
    mirror.write(tmp_path / "b", render.claude_code(source, place).files)
    with pytest.raises(InstallError, match="installed bundle"):
        render.claude_code(find(tmp_path / "b" / "context_anchor"), place)


def test_the_layout_of_a_wheel_renders_the_same_bundles(
    source: Source, place: render.Place, tmp_path: Path
) -> None:
    """pyproject.toml copies the plugin's files to context_anchor/bundle; the installer must find them there."""
    import re

    package = tmp_path / "site-packages" / "context_anchor"
    shutil.copytree(source.package, package, ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text[text.index("force-include]") :].split("\n[", 1)[0]
    for origin, target in re.findall(r'^"([^"]+)" = "context_anchor/([^"]+)"', section, re.MULTILINE):
        if (ROOT / origin).is_dir():
            shutil.copytree(ROOT / origin, package / target)
        elif (ROOT / origin).is_file():
            (package / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / origin, package / target)
    record = package.parent / "context_anchor-0.1.0.dist-info"
    record.mkdir()
    names = [f"Requires-Dist: {name}" for name in reversed(source.requirements())]
    text = "\n".join(["Metadata-Version: 2.1", "Name: context-anchor", "Version: 0.1.0", *names])
    (record / "METADATA").write_text(text + "\nRequires-Dist: pytest; extra == 'dev'\n", encoding="utf-8")
    wheel = find(package)
    assert wheel.kind == "wheel"
    for host in ("claude-code", "antigravity"):
        ours = render.render(host, source, place, tmp_path).files  # type: ignore[arg-type]
        theirs = render.render(host, wheel, place, tmp_path).files  # type: ignore[arg-type]
        optional = {"LICENSE", "README.md", "scripts/cli.py", "scripts/install.py"}
        assert set(ours) - optional == set(theirs) - optional
        assert all(ours[name] == theirs[name] for name in set(theirs) - optional)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the tracked product files, as a clone in a plugins folder."""
    target = tmp_path / "plügins folder" / "context-anchor"
    for name in ("context_anchor", "scripts", "hooks", ".claude-plugin", "rules", "skills"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("plugin.json", "hooks.json", "mcp_config.json", "pyproject.toml"):
        shutil.copy(ROOT / name, target / name)
    return target


def test_in_place_writes_the_paths_into_a_clone_and_nothing_the_second_time(
    clone: Path, place: render.Place
) -> None:
    copy = find(clone / "context_anchor")
    changed, notes = render.in_place(copy, place)
    assert notes == ()
    assert set(changed) == {
        "hooks.json", "mcp_config.json", "hooks/claude-code.json", ".claude-plugin/plugin.json", "data-dir.txt",
    }  # fmt: skip
    for host in ("claude-code", "antigravity"):
        handlers, findings = hook_check.read_handlers(host, clone)
        assert handlers and not findings
        command = server_check.read_command(host, clone)
        assert command == [place.server_python, "-I", str(clone / "scripts" / "serve.py")]
    before = tree_digest(clone)
    assert render.in_place(copy, place) == ((), ())
    assert tree_digest(clone) == before

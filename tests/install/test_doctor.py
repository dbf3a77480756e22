"""Doctor as a whole: what it finds wrong with an installation, and the cure it names."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from context_anchor.install import cli_entry, doctor, environment
from context_anchor.install.findings import Finding, from_error, lines, worst

from .conftest import tree_digest

Scrub = Callable[..., dict[str, str]]


@pytest.fixture
def here(
    home: Path, data: Path, fake_client: Callable[..., Path], scrubbed: Scrub, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """This process in a home with both hosts, so that commands run in it without a second process."""
    (home / ".gemini" / "config").mkdir(parents=True)
    env = scrubbed(fake_client(), CONTEXT_ANCHOR_DATA_DIR=str(data))
    for name in [name for name in os.environ if name.startswith(("CLAUDE", "CONTEXT_ANCHOR_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name, text in env.items():
        monkeypatch.setenv(name, text)
    monkeypatch.chdir(home)
    return env


def examined(here: dict[str, str], data: Path, home: Path) -> dict[str, Finding]:
    return {finding.check: finding for finding in doctor.examine(data, here, home)}


def test_a_sound_installation_has_no_error_and_the_command_says_so(
    here: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_entry.main(["--no-proof", "--allow-mcp"]) == 0
    capsys.readouterr()
    assert cli_entry.main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert " 0 errors" in told and "5 tools" in told and "hooks ran and answered" in told
    assert cli_entry.main(["doctor", "--json", "--host", "antigravity"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["ok"] is True
    assert not any(item["check"].startswith("claude-code.") for item in value["findings"])


def test_an_error_is_told_with_its_cure_and_exit_code_1(
    here: dict[str, str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_entry.main(["--no-proof", "--host", "antigravity"]) == 0
    (home / ".gemini/config/plugins/context-anchor/hooks.json").write_text("{")
    capsys.readouterr()
    assert cli_entry.main(["doctor", "--host", "antigravity"]) == 1
    told = capsys.readouterr().out
    assert "error   antigravity.hooks:" in told and "-> Install again." in told


def test_without_hosts_it_says_so_and_is_no_error(home: Path, tmp_path: Path, scrubbed: Scrub) -> None:
    before = tree_digest(tmp_path)
    found = doctor.examine(tmp_path / "none", scrubbed(), home)
    assert worst(found) in ("ok", "info")
    assert any(finding.check == "hosts" for finding in found)
    assert tree_digest(tmp_path) == before


def test_the_state_of_the_private_environment_is_told(
    here: dict[str, str], data: Path, home: Path, shared_environment: Path
) -> None:
    assert examined(here, data, home)["environment"].level == "ok"
    (data / "env").unlink()
    assert examined(here, data, home)["environment"].level == "info"
    folder = environment.folder_of(data)
    folder.mkdir(parents=True)
    assert "half made" in examined(here, data, home)["environment"].what
    record = json.loads((environment.folder_of(shared_environment) / "ready.json").read_text())
    (folder / "ready.json").write_text(json.dumps(record))
    dead = examined(here, data, home)["environment"]
    assert (dead.level, "no longer works" in dead.what) == ("error", True)


def test_other_requirements_are_told(here: dict[str, str], data: Path, home: Path, tmp_path: Path) -> None:
    real = environment.folder_of(data).resolve()
    (data / "env").unlink()
    folder = environment.folder_of(data)
    folder.parent.mkdir()
    for name in ("bin", "lib", "Scripts", "Lib", "pyvenv.cfg"):
        if (real / name).exists():
            folder.mkdir(exist_ok=True)
            (folder / name).symlink_to(real / name)
    record = json.loads((real / "ready.json").read_text())
    (folder / "ready.json").write_text(json.dumps({**record, "requirements": record["requirements"][:1]}))
    assert "other requirements" in examined(here, data, home)["environment"].what


def test_hooks_that_write_to_another_data_folder_are_told(
    here: dict[str, str], data: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_entry.main(["--no-proof", "--host", "antigravity"]) == 0
    assert "antigravity.data" not in examined(here, data, home)
    (home / ".gemini/config/plugins/context-anchor/data-dir.txt").write_text("/elsewhere\n")
    found = examined(here, data, home)["antigravity.data"]
    assert found.level == "warning" and "/elsewhere" in found.what


def test_the_demo_command_prints_text_json_or_one_line(
    here: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_entry.main(["demo", "--host", "antigravity", "--quiet"]) == 0
    assert capsys.readouterr().out == "passed: antigravity\n"
    assert cli_entry.main(["demo", "--host", "antigravity", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert "forbids floats" in result["recovery"]


def test_a_problem_is_one_document_under_json_and_a_sentence_for_people(
    here: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    assert cli_entry.main(["--render", "antigravity", str(tmp_path / "full"), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "install"
    assert "not empty" in err and "Traceback" not in err


def test_uninstall_is_the_same_as_a_first_word_or_as_an_option(
    here: dict[str, str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = home / ".gemini" / "config" / "plugins" / "context-anchor"
    for words in (["uninstall", "--host", "antigravity"], ["--uninstall", "--host", "antigravity"]):
        assert cli_entry.main(["--no-proof", "--host", "antigravity"]) == 0
        assert plugin.is_dir()
        assert cli_entry.main(words) == 0
        assert not plugin.exists()


def test_findings_are_ordered_filtered_and_carry_their_code() -> None:
    found = (
        Finding("ok", "a", "fine"),
        Finding("warning", "b", "odd", "do this", "/where"),
        from_error("c", environment.EnvironmentSetupError("broken", hint="mend it")),
    )
    assert worst(found) == "error" and worst(()) == "ok"
    assert lines(found, least="warning") == [
        "warning b: odd (/where)", "        -> do this", "error   c: broken", "        -> mend it",
    ]  # fmt: skip
    assert found[2].to_json() == {
        "level": "error", "check": "c", "what": "broken", "cure": "mend it", "code": "environment_setup",
    }  # fmt: skip


def test_a_cure_that_names_our_command_can_be_typed_as_it_stands(tmp_path: Path) -> None:
    finding = Finding("warning", "c", "broken", "Run: context-anchor install --host antigravity")
    told = doctor._runnable(finding, tmp_path / "data", {"PATH": str(tmp_path)}).cure
    assert told.endswith("cli.py install --host antigravity"), told
    made = environment.python_of(environment.folder_of(tmp_path / "my data"))
    made.parent.mkdir(parents=True)
    made.with_name("context-anchor.exe" if os.name == "nt" else "context-anchor").touch()
    told = doctor._runnable(finding, tmp_path / "my data", {"PATH": str(tmp_path)}).cure
    assert "my data" in told and told.endswith("install --host antigravity"), told
    (tmp_path / "context-anchor").touch(mode=0o755)
    assert doctor._runnable(finding, tmp_path / "data", {"PATH": str(tmp_path)}) == finding

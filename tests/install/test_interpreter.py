"""The interpreter that commands name, and the way it is written for a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.errors import EnvironmentSetupError
from context_anchor.install import interpreter

WORD = st.text(st.characters(blacklist_characters="\0\"'\n", blacklist_categories=("Cs",)), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("path", "shim"),
    [
        ("/home/u/.pyenv/shims/python3", True),
        ("/home/u/.asdf/shims/python", True),
        ("/home/u/.local/share/mise/shims/python3", True),
        (r"C:\Users\u\.pyenv\pyenv-win\shims\python.bat", True),
        ("/home/u/.pyenv/versions/3.12.1/bin/python3", False),
        ("/opt/shims", False),
        ("python3", False),
    ],
)
def test_a_version_managers_shim_is_told_by_its_path(path: str, shim: bool) -> None:
    assert interpreter.is_shim(path) is shim


@pytest.mark.parametrize(
    ("path", "alias"),
    [
        (r"C:\Users\u\AppData\Local\Microsoft\WindowsApps\python3.exe", True),
        (r"C:\Python312\python.exe", False),
        (r"C:\Users\u\AppData\Local\Microsoft\WindowsApps\other.exe", False),
    ],
)
def test_the_stores_stand_in_is_told_by_its_path(path: str, alias: bool) -> None:
    assert interpreter.is_store_alias(path) is alias


@pytest.mark.skipif(os.name == "nt", reason="POSIX shell")
@given(WORD)
@settings(max_examples=60, deadline=None)
def test_any_path_without_quotes_reaches_a_program_whole_through_sh(path: str) -> None:
    word = interpreter.for_shell(path, windows=False)
    assert word is not None and '"' not in word
    out = subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
    assert out == path.encode("utf-8")


@pytest.mark.parametrize("path", ['/a"b/python', "/it's/python", "/a\nb"])
def test_a_path_that_needs_quotes_is_given_up_on_posix(path: str) -> None:
    assert interpreter.for_shell(path, windows=False) is None


def test_a_windows_path_without_a_short_name_is_used_only_when_it_needs_no_quotes() -> None:
    assert interpreter.for_shell(r"C:\Python312\python.exe", windows=True) == r"C:\Python312\python.exe"
    if sys.platform != "win32":
        assert interpreter.for_shell(r"C:\Program Files\Python\python.exe", windows=True) is None


def test_a_virtual_environments_python_is_resolved_to_its_base(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "v e")], check=True)
    python = tmp_path / "v e" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    found = interpreter.resolve(str(python))
    assert not Path(found.path).is_relative_to(tmp_path)
    assert found.path == interpreter.running().path
    assert found.version == tuple(sys.version_info[:3])


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_the_plain_name_is_kept_where_it_is_the_same_file(tmp_path: Path) -> None:
    real = tmp_path / "python3.12"
    real.write_text("")
    assert interpreter.durable_path(str(real)) == str(real)
    (tmp_path / "python3").symlink_to(real)
    assert interpreter.durable_path(str(real)) == str(tmp_path / "python3")
    (tmp_path / "python3").unlink()
    (tmp_path / "python3").write_text("another")
    assert interpreter.durable_path(str(real)) == str(real)


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_folder_that_the_next_patch_release_removes_is_not_named(tmp_path: Path) -> None:
    cellar = tmp_path / "Cellar" / "python@3.12" / "3.12.5" / "bin"
    cellar.mkdir(parents=True)
    (cellar / "python3.12").write_text("")
    stable = tmp_path / "opt" / "python@3.12"
    stable.parent.mkdir()
    stable.symlink_to(cellar.parent)
    assert interpreter.durable_path(str(cellar / "python3.12")) == str(stable / "bin" / "python3.12")


@pytest.mark.parametrize("words", [["/nowhere/python3"], [sys.executable.replace("python", "no-such-python")]])
def test_what_does_not_start_is_an_error_of_the_environment(words: list[str]) -> None:
    with pytest.raises(EnvironmentSetupError, match="does not start as a Python"):
        interpreter.resolve(words[0])


@pytest.mark.skipif(os.name == "nt", reason="a shell script as a stand-in")
def test_a_stand_in_that_answers_something_else_is_not_taken_for_a_python(tmp_path: Path) -> None:
    script = tmp_path / "python3"
    script.write_text("#!/bin/sh\necho 'Python was not found'; exit 9\n")
    script.chmod(0o755)
    with pytest.raises(EnvironmentSetupError, match="exit code 9"):
        interpreter.resolve(str(script))

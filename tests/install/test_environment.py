"""The private environment: made once by real venv and pip, repaired, and safe against a second maker."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from context_anchor.errors import EnvironmentSetupError
from context_anchor.install import environment
from context_anchor.install.source import find

from .conftest import ROOT, write_bundle_source, write_wheel


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of the product that requires one wheel on disk, so that pip needs no index."""
    return write_bundle_source(tmp_path / "bündle", [write_wheel(tmp_path, "tinydist")])


def imports(python: Path, name: str) -> str:
    out = subprocess.run([str(python), "-I", "-c", f"import {name}; print({name}.VERSION)"], capture_output=True)
    return out.stdout.decode().strip()


def test_it_is_made_once_and_marked_ready_only_when_it_works(bundle: Path, tmp_path: Path) -> None:
    log = io.StringIO()
    python = environment.ensure(tmp_path / "data dir", bundle, log)
    assert imports(python, "tinydist") == "1.0"
    record = json.loads((tmp_path / "data dir/env/py/ready.json").read_text())
    assert record["format"] == "context-anchor-env/1"
    assert record["requirements"] == list(find(bundle / "context_anchor").requirements())
    assert Path(record["python"]).is_absolute()
    assert "making the private environment" in log.getvalue()
    stamp = (tmp_path / "data dir/env/py/ready.json").stat().st_mtime_ns
    log = io.StringIO()
    assert environment.ensure(tmp_path / "data dir", bundle, log) == python
    assert log.getvalue() == ""
    assert (tmp_path / "data dir/env/py/ready.json").stat().st_mtime_ns == stamp


def test_a_half_made_environment_is_made_anew(bundle: Path, tmp_path: Path) -> None:
    folder = environment.folder_of(tmp_path / "d")
    (folder / "bin").mkdir(parents=True)
    (folder / "left-over").write_text("x")
    python = environment.ensure(tmp_path / "d", bundle)
    assert imports(python, "tinydist") == "1.0"
    assert not (folder / "left-over").exists()
    assert [p.name for p in folder.parent.iterdir() if p.name.startswith("py.old")] == []


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_one_whose_base_python_is_gone_is_made_anew(bundle: Path, tmp_path: Path) -> None:
    python = environment.ensure(tmp_path / "d", bundle)
    python.unlink()
    python.symlink_to(tmp_path / "removed-by-an-upgrade")
    assert environment.ensure(tmp_path / "d", bundle) == python
    assert imports(python, "tinydist") == "1.0"


def test_new_requirements_are_added_in_place(bundle: Path, tmp_path: Path) -> None:
    python = environment.ensure(tmp_path / "d", bundle)
    newer = [write_wheel(tmp_path, "tinydist", "2.0"), write_wheel(tmp_path, "otherdist")]
    write_bundle_source(bundle, newer, "2.0")
    marker = python.parent / "kept"
    marker.write_text("")
    assert environment.ensure(tmp_path / "d", bundle) == python
    assert (imports(python, "tinydist"), imports(python, "otherdist")) == ("2.0", "1.0")
    assert marker.exists(), "it was made anew instead of brought up to date"


def test_one_that_cannot_be_brought_up_to_date_stays_in_use_and_says_so(bundle: Path, tmp_path: Path) -> None:
    python = environment.ensure(tmp_path / "d", bundle)
    before = environment.read_ready(environment.folder_of(tmp_path / "d"))
    write_bundle_source(bundle, [f"absent @ {(tmp_path / 'absent-1-py3-none-any.whl').as_uri()}"])
    log = io.StringIO()
    assert environment.ensure(tmp_path / "d", bundle, log) == python
    assert imports(python, "tinydist") == "1.0"
    assert environment.read_ready(environment.folder_of(tmp_path / "d")) == before
    assert "stays in use" in log.getvalue() and "absent" in log.getvalue()


def test_a_failure_leaves_nothing_and_tells_pips_words_and_the_command(bundle: Path, tmp_path: Path) -> None:
    write_bundle_source(bundle, [f"absent @ {(tmp_path / 'absent-1-py3-none-any.whl').as_uri()}"])
    with pytest.raises(EnvironmentSetupError) as caught:
        environment.ensure(tmp_path / "d", bundle)
    assert "absent" in caught.value.message and "could not be made" in caught.value.message
    assert "install" in caught.value.hint
    assert not environment.folder_of(tmp_path / "d").exists()


MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
from context_anchor.install import environment
print(environment.ensure(sys.argv[2], sys.argv[3], sys.stderr))
"""


def start(bundle: Path, data: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", MAKE, str(ROOT), str(data), str(bundle)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_of_two_at_once_one_makes_it_and_the_other_waits(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    both = [start(bundle, tmp_path / "d") for _ in range(2)]
    outs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert outs[0][0] == outs[1][0] != ""
    assert (
        sum(
            "making the private environment /" in err
            or "making the private environment \\" in err
            or "making the private environment " + str(tmp_path) in err
            for _, err in outs
        )
        == 1
    )


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_maker_that_is_killed_holds_nobody_up(bundle: Path, tmp_path: Path) -> None:
    folder = environment.folder_of(tmp_path / "d")
    process = start(bundle, tmp_path / "d")
    deadline = time.monotonic() + 60
    while not folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert environment.read_ready(folder) is None
    assert imports(environment.ensure(tmp_path / "d", bundle, wait_s=60), "tinydist") == "1.0"


def test_waiting_for_another_maker_is_bounded(bundle: Path, tmp_path: Path) -> None:
    from context_anchor.wire.atomic import Lock

    (tmp_path / "d" / "env").mkdir(parents=True)
    lock = Lock(str(tmp_path / "d" / "env" / "lock"))
    assert lock.acquire()
    try:
        with pytest.raises(EnvironmentSetupError, match="Another process"):
            environment.ensure(tmp_path / "d", bundle, wait_s=0.3)
    finally:
        lock.release()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": "other/1"}',
        '{"format": "context-anchor-env/1"}',
        '{"format":"context-anchor-env/1","requirements":[],"version":1,"python":"","package":""}',
    ],
)
def test_a_marker_that_is_none_counts_as_not_ready(tmp_path: Path, text: str) -> None:
    (tmp_path / "ready.json").write_text(text)
    assert environment.read_ready(tmp_path) is None


def test_settings_that_would_send_pip_elsewhere_are_not_handed_on(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    for name in ("PIP_TARGET", "PYTHONHOME", "PYTHONPATH", "PIP_PREFIX"):
        monkeypatch.setenv(name, str(elsewhere))
    monkeypatch.setenv("PIP_USER", "1")
    python = environment.ensure(tmp_path / "d", bundle)
    for name in ("PIP_TARGET", "PYTHONHOME", "PYTHONPATH", "PIP_PREFIX", "PIP_USER"):
        monkeypatch.delenv(name)
    assert imports(python, "tinydist") == "1.0"
    assert not elsewhere.exists()


def test_the_real_one_runs_the_server_and_is_found_ready_again(shared_environment: Path) -> None:
    folder = environment.folder_of(shared_environment)
    out = subprocess.run(
        [str(environment.python_of(folder)), "-I", "-c", "import mcp, filelock, platformdirs; print('all')"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert out.stdout.strip() == "all", out.stderr
    assert environment.ensure(shared_environment, ROOT) == environment.python_of(folder)


@pytest.mark.skipif(os.name == "nt", reason="a script as a stand-in for pip's absence")
def test_a_python_without_pip_goes_the_way_of_ensurepip(bundle: Path, tmp_path: Path) -> None:
    if subprocess.run([sys.executable, "-I", "-c", "import ensurepip"], capture_output=True).returncode:
        pytest.skip("this Python has no ensurepip")
    from context_anchor.install.interpreter import Interpreter, running

    base = running()
    wrapper = tmp_path / "python-without-pip"
    # Answers like the real interpreter, but as one whose `-m pip` is missing.
    wrapper.write_text(
        f'#!/bin/sh\nif [ "$2" = -m ] && [ "$3" = pip ]; then echo "No module named pip" >&2; exit 1; fi\n'
        f'exec {shutil.which("env")} "{base.path}" "$@"\n'
    )
    wrapper.chmod(0o755)
    python = environment.ensure(tmp_path / "d", bundle, base=Interpreter(str(wrapper), base.version))
    assert imports(python, "tinydist") == "1.0"

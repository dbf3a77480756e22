"""The launcher: which Python runs the server, and that nothing it does reaches the protocol."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVE = ROOT / "scripts" / "serve.py"
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
)
ENSURE = """
import os, subprocess, sys
from context_anchor.errors import EnvironmentSetupError

def ensure(data_dir, source_root, log=None):
    print("printed by the set-up")
    os.write(1, b"written by the set-up")
    subprocess.run([sys.executable, "-c", "import sys; print('read', repr(sys.stdin.read()))"])
    log.write("data %s\\nsource %s\\n" % (data_dir, source_root))
"""


def clone(folder: Path, outcome: str) -> Path:
    """Copy what a launcher needs into a folder, with an environment module that ends in an outcome."""
    ignored = shutil.ignore_patterns("__pycache__", "bundle", "cli")
    shutil.copytree(ROOT / "context_anchor", folder / "context_anchor", ignore=ignored)
    (folder / "scripts").mkdir()
    shutil.copy(SERVE, folder / "scripts")
    install = folder / "context_anchor" / "install"
    shutil.rmtree(install)
    install.mkdir()
    (install / "__init__.py").write_text("", encoding="utf-8")
    (install / "environment.py").write_text(ENSURE + f"    {outcome}\n", encoding="utf-8")
    return folder


def launch(folder: Path, data: Path, *options: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run a launcher to the end of its input with `-S`, so that this Python has no packages."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    return subprocess.run(
        [sys.executable, *options, str(folder / "scripts" / "serve.py")],
        input=INITIALIZE,
        capture_output=True,
        env={**kept, "HOME": str(data.parent), "CONTEXT_ANCHOR_DATA_DIR": str(data), **env},
        cwd=data.parent,
        timeout=60,
    )


def test_it_is_python_3_9_syntax_and_imports_only_the_standard_library_at_its_top() -> None:
    tree = ast.parse(SERVE.read_text(encoding="utf-8"), feature_version=(3, 9))
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in top if isinstance(node, ast.ImportFrom) and node.module}
    assert names == {"__future__", "os", "sys", "pathlib"}


def test_a_python_without_packages_goes_on_in_the_private_environment(tmp_path: Path, data: Path) -> None:
    folder = clone(tmp_path / "with space ü", f"return {sys.executable!r}")
    done = launch(folder, data, "-S")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b'{"jsonrpc":"2.0","id":1,"result":{')
    assert done.stdout.count(b"\n") == 1
    err = done.stderr.decode()
    assert "printed by the set-up" in err
    assert "written by the set-up" in err
    assert "read ''" in err
    assert f"data {data}\nsource {folder}\n" in err


def test_a_private_environment_that_does_not_help_ends_with_one_line_and_the_command(
    tmp_path: Path, data: Path
) -> None:
    bare = tmp_path / "bare.py"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    if os.name == "nt":
        pytest.skip("needs a shell script as an interpreter")
    folder = clone(tmp_path / "clone", f"return {str(bare)!r}")
    done = launch(folder, data, "-S")
    assert (done.returncode, done.stdout) == (1, b"")
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("context-anchor: the MCP server cannot start: the private environment is not usable")
    assert str(folder / "scripts" / "install.py") in last


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ('raise EnvironmentSetupError("Pip reached no index " + "x" * 900)', "pip reached no index"),
        ('raise EnvironmentSetupError("No venv", hint="Then run: my-exact-command")', "Then run: my-exact-command"),
        ('raise PermissionError(13, "Permission denied", "/data")', "Permission denied"),
    ],
)
def test_without_an_environment_it_says_in_one_line_what_to_run(
    tmp_path: Path, data: Path, outcome: str, words: str
) -> None:
    folder = clone(tmp_path / "clone", outcome)
    done = launch(folder, data, "-S")
    assert (done.returncode, done.stdout) == (1, b"")
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("context-anchor: the MCP server cannot start: ")
    assert words in last
    assert str(folder / "scripts" / "install.py") in last or "my-exact-command" in last
    assert len(last) < 900


def test_the_host_is_the_launchers_parent_whatever_was_inherited(tmp_path: Path, data: Path) -> None:
    folder = clone(tmp_path / "clone", f"return {sys.executable!r}")
    (folder / "context_anchor" / "server" / "app.py").write_text(
        "import os\n\n\ndef main():\n    print(os.environ['CONTEXT_ANCHOR_HOST_PID'])\n    return 0\n",
        encoding="utf-8",
    )
    for options in ([], ["-S"]):  # in this process, and after going on in another one
        done = launch(folder, data, *options, CONTEXT_ANCHOR_HOST_PID="1")
        assert done.stdout.decode().strip() == str(os.getpid()), done.stderr.decode()


def test_other_scripts_beside_it_do_not_shadow_the_standard_library(tmp_path: Path, data: Path) -> None:
    folder = clone(tmp_path / "clone", f"return {sys.executable!r}")
    (folder / "scripts" / "json.py").write_text("raise SystemExit('shadowed')\n", encoding="utf-8")
    done = launch(folder, data)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b'{"jsonrpc":"2.0","id":1,"result":{')

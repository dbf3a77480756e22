"""Homes, a fake client and the private environment for the installer's tests."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from context_anchor.install import environment, interpreter, render
from context_anchor.install.source import Source, find

ROOT = Path(__file__).resolve().parents[2]


def tree_digest(top: Path) -> str:
    """One digest over every path below a folder: kind, mode, content, link target."""
    digest = hashlib.sha256()
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        digest.update(f"{path.relative_to(top)}|{stat.S_IFMT(status.st_mode)}|".encode())
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home whose path has a space and a letter that is not ASCII."""
    made = tmp_path / "hömé of user"
    made.mkdir()
    return made


@pytest.fixture
def scrubbed(home: Path) -> Callable[..., dict[str, str]]:
    """Make an environment of nothing but a home, the system's programs, and pip's own settings."""

    def make(*folders: Path, **more: str) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
        system = [str(Path(sys.executable).parent), "/usr/bin", "/bin"] if os.name != "nt" else [os.environ["PATH"]]
        base = {"HOME": str(home), "USERPROFILE": str(home), "PATH": os.pathsep.join([*map(str, folders), *system])}
        for name in ("SYSTEMROOT", "TEMP", "TMP", "COVERAGE_PROCESS_START"):
            if name in os.environ:
                base[name] = os.environ[name]
        user = Path.home() / ".config" / "pip" / "pip.conf"
        if "PIP_CONFIG_FILE" not in kept and user.is_file():
            kept["PIP_CONFIG_FILE"] = str(user)
        return {**kept, **base, **more}

    return make


@pytest.fixture(scope="session")
def shared_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose private environment was really made by pip, once for all tests that need it."""
    data = tmp_path_factory.mktemp("shared data")
    try:
        environment.ensure(data, ROOT, sys.stderr, package=True)
    except environment.EnvironmentSetupError as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"pip reaches no index here: {problem}")
    return data


@pytest.fixture
def data(tmp_path: Path, shared_environment: Path) -> Path:
    """A data folder of this test alone, with the shared environment in its place."""
    made = tmp_path / "dätä folder"
    made.mkdir(mode=0o700)
    (made / "env").symlink_to(shared_environment / "env", target_is_directory=True)
    return made


@pytest.fixture(scope="session")
def source() -> Source:
    return find()


@pytest.fixture
def place(tmp_path: Path) -> render.Place:
    """Paths for a rendered bundle; the server's Python is the one that runs the tests."""
    return render.Place(interpreter.running().path, sys.executable, tmp_path / "dätä folder")


def write_wheel(folder: Path, name: str, version: str = "1.0") -> str:
    """Write a small pure wheel and return it as a requirement that needs no index."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    record = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{record}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{record}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{record}/RECORD", "")
    return f"{name} @ {path.as_uri()}"


def write_bundle_source(top: Path, requirements: list[str], version: str = "1.0") -> Path:
    """Write the least that counts as a copy of the product: an installed bundle with these requirements."""
    (top / "context_anchor").mkdir(parents=True, exist_ok=True)
    (top / "scripts").mkdir(exist_ok=True)
    (top / "context_anchor" / "__init__.py").write_text(f'__version__ = "{version}"\n', encoding="utf-8")
    (top / "scripts" / "hook.py").write_text("", encoding="utf-8")
    (top / "requirements.txt").write_text("\n".join(requirements) + "\n", encoding="utf-8")
    return top


FAKE_CLIENT = r'''#!@PYTHON@ -I
"""Stands in for the client: keeps its state in the configuration folder and logs every call."""
import json, os, pathlib, sys
config = pathlib.Path(os.environ.get("CLAUDE_CONFIG_DIR") or pathlib.Path(os.environ["HOME"]) / ".claude")
config.mkdir(exist_ok=True)
state_file = config / "fake.json"
state = json.loads(state_file.read_text()) if state_file.exists() else {"markets": {}, "plugins": {}}
words = sys.argv[1:]
with (config / "calls.log").open("a") as log:
    log.write(json.dumps(words) + "\n")
if words == ["--version"]:
    print("@VERSION@ (Claude Code)")
elif words[:3] == ["plugin", "list", "--json"]:
    print(json.dumps([{"id": name, "enabled": on, "version": "0.1.0",
                       "readFromFolder": state["markets"].get(name.split("@")[1], "")}
                      for name, on in state["plugins"].items()]))
elif (config / "refuse").exists():
    sys.exit("refused for the test")
elif words[:3] == ["plugin", "marketplace", "add"]:
    name = json.loads((pathlib.Path(words[3]) / ".claude-plugin" / "marketplace.json").read_text())["name"]
    state["markets"][name] = words[3]
elif words[:3] == ["plugin", "marketplace", "remove"]:
    del state["markets"][words[3]]
elif words[:2] == ["plugin", "install"]:
    state["plugins"].setdefault(words[2], True)
elif words[:2] == ["plugin", "uninstall"]:
    del state["plugins"][words[2]]
elif words[:2] != ["plugin", "update"]:
    sys.exit(f"unknown command {words}")
state_file.write_text(json.dumps(state))
known = {n: {"source": {"source": "directory", "path": p}} for n, p in state["markets"].items()}
(config / "plugins").mkdir(exist_ok=True)
(config / "plugins" / "known_marketplaces.json").write_text(json.dumps(known))
'''


@pytest.fixture
def fake_client(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Write a stand-in `claude` into a folder for PATH; the real client is driven by tests/e2e."""

    def make(version: str = "2.1.332") -> Path:
        folder = tmp_path / "client"
        folder.mkdir(exist_ok=True)
        program = folder / "claude"
        python = interpreter.running().path
        program.write_text(FAKE_CLIENT.replace("@PYTHON@", python).replace("@VERSION@", version), encoding="utf-8")
        program.chmod(0o755)
        return folder

    if os.name == "nt":
        pytest.skip("the stand-in is a script with a shebang")
    yield make


def run_install(env: dict[str, str], *words: str, python: str = "") -> subprocess.CompletedProcess[str]:
    """Run scripts/install.py in a process of its own."""
    command = [python or interpreter.running().path, str(ROOT / "scripts" / "install.py"), *words]
    return subprocess.run(
        command,
        env=env,
        cwd=env["HOME"],
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        stdin=subprocess.DEVNULL,
    )

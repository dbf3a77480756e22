"""Fixtures of the end-to-end tests: pinned hosts, containment, a copy of the plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from . import hosts
from .containment import run_contained

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "uncontained: runs in pytest's own process, with its network")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run each end-to-end test away from the network; fixtures are made before, in pytest's process."""
    if pyfuncitem.get_closest_marker("uncontained"):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    run_contained(lambda: pyfuncitem.obj(**arguments))
    return True


def absent(name: str) -> None:
    """A missing host: a reason to skip on a desk, a failure under CI=true."""
    reason = f"{name} is not under {hosts.cache_folder()}; {hosts.FETCH_HINT}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Path:
    """The Claude Code binary of the version a test asks for (indirect parameter), else the newest."""
    version = getattr(request, "param", hosts.CLAUDE_CODE_NEWEST)
    binary = hosts.claude_code(version)
    if binary is None:
        absent(f"Claude Code {version}")
    assert binary is not None
    return binary


@pytest.fixture(scope="session")
def antigravity_python() -> Path:
    """The interpreter that has the pinned Antigravity runtime."""
    python = hosts.antigravity_python()
    if python is None:
        absent(f"google-antigravity {hosts.ANTIGRAVITY_VERSION}")
    assert python is not None
    return python


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository's files in a folder whose path has a space and a non-ASCII letter."""
    target = tmp_path_factory.mktemp("copy") / "my plugins \u00fc" / "context-anchor"
    for name in repository_files():
        source = hosts.REPOSITORY / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


def repository_files() -> list[str]:
    """Names of the files that a clone would hold, new ones that are not ignored included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=hosts.REPOSITORY,
        check=True,
        capture_output=True,
    )
    return sorted(set(filter(None, listed.stdout.decode("utf-8").split("\0"))))

"""Where the pinned hosts are looked for, and what their absence means."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import hosts
from .conftest import absent

pytestmark = pytest.mark.uncontained


def test_the_cache_is_in_the_build_folder_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(hosts.CACHE_VARIABLE, raising=False)
    assert hosts.cache_folder() == hosts.REPOSITORY / "build" / "e2e-hosts"
    monkeypatch.setenv(hosts.CACHE_VARIABLE, str(tmp_path))
    assert hosts.cache_folder() == tmp_path
    assert set(hosts.located().values()) == {None}
    assert hosts.main(["where"]) == 1


def test_a_host_whose_fetching_was_broken_off_counts_as_absent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(hosts.CACHE_VARIABLE, str(tmp_path))
    folder = tmp_path / f"antigravity-{hosts.ANTIGRAVITY_VERSION}"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    (folder / "Scripts").mkdir()
    (folder / "Scripts" / "python.exe").touch()
    assert hosts.antigravity_python() is None
    record = f"google_antigravity-{hosts.ANTIGRAVITY_VERSION}.dist-info"
    (folder / "lib" / "python3" / "site-packages" / record).mkdir(parents=True)
    assert hosts.antigravity_python() is not None


def test_an_absent_host_skips_on_a_desk_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"python tests/e2e/hosts\.py fetch"):
        absent("Claude Code 0")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Claude Code 0"):
        absent("Claude Code 0")

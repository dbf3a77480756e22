"""The demo: real hooks and the real server; it must notice when the product does not keep its promise."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from context_anchor.errors import InstallError
from context_anchor.install import demo
from context_anchor.install.source import Source

from .conftest import ROOT, tree_digest

HOSTS = tuple(demo.RECORDINGS)


@pytest.mark.parametrize("host", HOSTS)
def test_what_was_pinned_is_back_after_the_compaction(host: str, tmp_path: Path) -> None:
    said: list[str] = []
    result = demo.play(host, tmp_path / "data", said.append)
    told = "\n".join(said)
    assert "Amounts are whole cents" in result.pinned and "Round half to even at import only" in result.pinned
    assert "forbids floats" in result.recovery
    assert result.recovery.index("[critical]") < result.recovery.index("[high]")
    for words in ("before the compaction", "What the host itself kept", "What the model gets back", "tokens"):
        assert words in told
    assert not (tmp_path / "data").exists(), "the demo keeps to a folder of its own"


def test_settings_of_the_user_do_not_bend_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "CONTEXT_ANCHOR_NUDGE_START_TOKENS": "999999", "CONTEXT_ANCHOR_POST_COMPACT_RECAP": "0",
        "CONTEXT_ANCHOR_DATA_DIR": str(tmp_path / "real"), "DISABLE_AUTO_COMPACT": "1",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "400000", "CONTEXT_ANCHOR_MAX_INJECT_CHARS": "10",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, text)
    assert demo.play("claude-code", tmp_path / "data", lambda text: None).recovery
    assert not (tmp_path / "real").exists()


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Source) -> Path:
    """A copy of the product whose hooks the test can break, put in the demo's hands."""
    top = tmp_path / "copy"
    for name in ("context_anchor", "scripts"):
        shutil.copytree(ROOT / name, top / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(demo, "find", lambda: Source("clone", top / "context_anchor", top))
    return top


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('{}')", "told nothing"),
        ("import sys; sys.exit(1)", "failed: code 1"),
        ("print('noise')", "failed"),
        ("import time; time.sleep(30)", "did not end within"),
    ],
)
def test_a_hook_that_does_not_do_its_part_fails_the_demo(
    broken: Path, script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_WAIT_S", 2.0 if "sleep" in script else 60.0)
    monkeypatch.setattr(demo._Player, "open_server", lambda player: nullcontext())
    (broken / "scripts" / "hook.py").write_text(script + "\n", encoding="utf-8")
    with pytest.raises(InstallError, match=words):
        demo.play("claude-code", tmp_path / "data", lambda text: None)


def test_a_recovery_without_an_anchor_fails_the_demo(broken: Path, tmp_path: Path) -> None:
    path = broken / "context_anchor" / "wire" / "bundle.py"
    text = path.read_text(encoding="utf-8")
    start = text.index("def load_index(")
    path.write_text(
        text[:start] + text[start:].replace('\n    """', '\n    return 0, []\n    """', 1), encoding="utf-8"
    )
    with pytest.raises(InstallError):
        demo.play("claude-code", tmp_path / "data", lambda text: None)


def test_the_recordings_are_small_and_name_no_machine() -> None:
    for name in demo.RECORDINGS.values():
        text = (ROOT / "context_anchor" / "install" / name).read_text(encoding="utf-8")
        assert len(text) < 20_000
        assert all(json.loads(line) for line in text.splitlines())
        assert "/home/" not in text and "/root" not in text and "/tmp" not in text


def test_the_product_is_not_written_to(tmp_path: Path, broken: Path) -> None:
    demo.play("antigravity", tmp_path / "data", lambda text: None)
    for folder in broken.rglob("__pycache__"):
        shutil.rmtree(folder)
    first = tree_digest(broken)
    demo.play("antigravity", tmp_path / "data", lambda text: None)
    for folder in broken.rglob("__pycache__"):
        shutil.rmtree(folder)
    assert tree_digest(broken) == first

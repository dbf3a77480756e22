"""A folder of the user's, a data folder, and two ways to run a command: in this process and in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from context_anchor.cli.main import main
from context_anchor.wire import registry, workspace

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Answer:
    """What a command ended with and said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)


# Variables of the tester's own session that would decide something here.
_SPEAKING = ("CONTEXT_ANCHOR", "CLAUDE", "ANTIGRAVITY", "VISUAL", "EDITOR")


class Desk:
    """One user on one machine: home, data folder, a project folder to work in."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.data, self.project = top / "home", top / "data", top / "my project"
        self.home.mkdir()
        self.project.mkdir()
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.env = {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "PATH": os.environ.get("PATH", ""),
            "CONTEXT_ANCHOR_DATA_DIR": str(self.data),
            "PYTHONPATH": str(ROOT),
        }
        for name in ("SYSTEMROOT", "TEMP", "TMP"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        for name in list(os.environ):
            if name not in self.env and name.startswith(_SPEAKING):
                monkeypatch.delenv(name)
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(self.project)

    def __call__(self, *words: str, stdin: bytes | str = b"") -> Answer:
        """Run a command in this process."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        self._capsys.readouterr()
        code = main(list(words))
        out, err = self._capsys.readouterr()
        return Answer(code, out, err)

    def process(
        self, *words: str | bytes, stdin: bytes = b"", command: tuple[str, ...] = (), **env: str
    ) -> Answer:
        """Run a command in a process of its own, as a shell does."""
        done = subprocess.run(
            [*(command or (sys.executable, "-m", "context_anchor")), *words],
            input=stdin,
            capture_output=True,
            cwd=self.project,
            env={**self.env, **env},
            timeout=120,
        )
        return Answer(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def pin(self, title: str, content: str = "content", *more: str) -> str:
        """Pin an anchor and return its id."""
        answer = self("pin", "--title", title, "--content", content, "--json", *more)
        assert answer.code == 0, answer
        return str(answer.json["anchor"]["id"])

    def titles(self, *more: str) -> list[str]:
        """Return the titles that `list` shows, in its order."""
        return [anchor["title"] for anchor in self("list", "--json", *more).json["anchors"]]

    def open_session(
        self, session_id: str, host: str = "claude-code", folder: Path | None = None, **more: Any
    ) -> str:
        """Register a session as a hook does."""
        record = registry.new(host, session_id, time.time())
        record["workspace_id"], record["workspace_root"] = workspace.identify(str(folder or self.project))
        record.update(more)
        registry.save(str(self.data), record)
        return session_id

    def files(self) -> dict[str, bytes]:
        """Return every file of the data folder but locks, with its bytes."""
        return {
            str(path.relative_to(self.data)): path.read_bytes()
            for path in sorted(self.data.rglob("*"))
            if path.is_file() and not path.name.endswith(".lock")
        }


@pytest.fixture
def ca(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A user's desk with empty folders."""
    yield Desk(tmp_path, monkeypatch, capsys)

"""Going on with the private environment's Python where this one lacks a library."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from cli.conftest import ROOT, Desk
from context_anchor.install import environment

BARE = (sys.executable, "-I", "-S", str(ROOT / "scripts" / "cli.py"))


def make_environment(data: Path, program: str) -> None:
    """Put something in the place of the environment's Python and mark the environment as ready."""
    folder = environment.folder_of(data)
    python = environment.python_of(folder)
    python.parent.mkdir(parents=True)
    python.write_text(program, encoding="utf-8")
    python.chmod(0o700)
    ready = {"format": environment.FORMAT, "version": "", "requirements": [], "python": "", "package": ""}
    (folder / environment.MARKER).write_text(json.dumps(ready), encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_a_command_that_writes_goes_on_in_the_environment_with_its_words_and_input(ca: Desk) -> None:
    make_environment(ca.data, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    answer = ca.process(
        "pin", "--title", "a b 'c' \"d\" $e", "--content", "-", "--json", stdin="ü\n".encode(), command=BARE
    )
    assert answer.code == 0, answer
    assert answer.json["anchor"]["title"] == "a b 'c' \"d\" $e"
    assert answer.json["anchor"]["content"] == "ü"
    assert ca.process("unpin", "none", command=BARE).code == 3


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_an_environment_that_lacks_it_too_is_not_tried_for_ever(ca: Desk) -> None:
    make_environment(ca.data, f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    answer = ca.process("pin", "--title", "t", "--content", "c", command=BARE)
    assert answer.code == 6
    assert "has no filelock" in answer.err


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_an_environment_whose_python_is_gone_or_broken_is_reported(ca: Desk) -> None:
    make_environment(ca.data, "#!/no/such/interpreter\n")
    answer = ca.process("pin", "--title", "t", "--content", "c", "--json", command=BARE)
    assert (answer.code, answer.json["error"]["code"]) == (6, "environment_setup")


def test_serve_without_the_protocol_library_says_what_to_run(ca: Desk) -> None:
    answer = ca.process("serve", command=BARE)
    assert (answer.code, answer.out) == (6, "")
    assert "install" in answer.err

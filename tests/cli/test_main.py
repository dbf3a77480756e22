"""The entry: one document, one exit code, UTF-8 whatever the locale, and nothing heavy for --help."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from cli.conftest import ROOT, Desk
from context_anchor import errors
from context_anchor.cli import exit_codes, parser
from context_anchor.cli.main import main

COMMANDS = (
    "pin", "list", "get", "unpin", "replace", "edit", "history", "undo", "export", "import", "sessions",
    "workspaces", "install", "uninstall", "doctor", "demo", "serve",
)  # fmt: skip


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_printed_for_every_command(ca: Desk, command: str) -> None:
    answer = ca(*([command] if command else []), "--help")
    assert answer.code == 0
    assert answer.out.startswith("usage: context-anchor" + (f" {command}" if command else ""))
    assert answer.err == ""


def test_help_names_every_command_and_the_choices_that_the_store_takes(ca: Desk) -> None:
    from context_anchor.anchors.anchor import CATEGORIES, PRIORITIES

    text = ca("--help").out
    assert all(re.search(rf"^    {command}\b", text, re.MULTILINE) for command in COMMANDS)
    assert tuple(parser.PRIORITIES.split("|")) == PRIORITIES
    assert tuple(parser.CATEGORIES.split("|")) == CATEGORIES


@pytest.mark.parametrize("words", [["--help"], ["pin", "--help"], ["list", "--help"], ["--version"], ["bogus"]])
def test_help_and_usage_errors_import_nothing_heavy(ca: Desk, words: list[str]) -> None:
    code = (
        "import sys; from context_anchor.cli.main import main\n"
        f"main({words!r})\n"
        "print([m for m in ('mcp', 'mcp_types', 'pydantic', 'anyio', 'filelock', 'platformdirs', 'pathspec',"
        " 'context_anchor.anchors', 'context_anchor.install', 'context_anchor.server') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ca.env, check=True, text=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_listing_imports_no_lock_and_no_protocol_library(ca: Desk) -> None:
    ca.pin("a")
    code = (
        "import sys; from context_anchor.cli.main import main\n"
        "assert main(['list']) == 0\n"
        "print([m for m in ('mcp', 'pydantic', 'anyio', 'filelock') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=ca.env, cwd=ca.project, check=True, text=True
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_a_clone_runs_the_commands_that_only_read_without_any_library(ca: Desk) -> None:
    ca.pin("read me")
    bare = (sys.executable, "-I", "-S", str(ROOT / "scripts" / "cli.py"))
    assert "read me" in ca.process("list", command=bare).out
    assert ca.process("get", "read me", "--content-only", command=bare).out == "content\n"
    answer = ca.process("pin", "--title", "t", "--content", "c", "--json", command=bare)
    assert answer.code == exit_codes.UNAVAILABLE
    assert answer.json["error"]["code"] == "environment_setup"
    assert "install" in answer.json["error"]["hint"]


def test_pinning_listing_and_unpinning_work_as_processes(ca: Desk) -> None:
    for command in ((), (sys.executable, str(ROOT / "scripts" / "cli.py"))):
        text = "immer Tabs ü\n".encode()
        made = ca.process("pin", "--title", "Tabs", "--content", "-", stdin=text, command=command)
        assert (made.code, made.err.startswith("note: no session is known here")) == (0, True)
        listed = ca.process("list", command=command)
        assert listed.out.endswith("\tTabs\n")
        assert ca.process("get", "tabs", "--content-only", command=command).out == "immer Tabs ü\n"
        assert ca.process("unpin", "--title", "tabs", command=command).code == 0
        assert ca.process("list", command=command).out == ""


@pytest.mark.parametrize(
    "locale",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONUTF8": "0", "LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii:strict"},
    ],
    ids=["cp1252", "C", "ascii"],
)
def test_text_goes_out_as_utf8_in_every_locale(ca: Desk, locale: dict[str, str]) -> None:
    title = "中文 ✓ Übung 🎉"
    made = ca.process("pin", "--title", title, "--content", "-", stdin="→ 内容".encode(), **locale)
    assert made.code == 0
    for words in (("list",), ("get", "--all"), ("history",)):
        answer = ca.process(*words, **locale)
        assert answer.code == 0
        assert title in answer.out
    missing = ca.process("get", "--title", "无", **locale)
    assert missing.code == exit_codes.NOT_FOUND
    document = ca.process("list", "--json", **locale)
    assert document.out.isascii()
    assert document.json["anchors"][0]["content"] == "→ 内容"


def test_a_reader_that_goes_away_ends_the_command_quietly(ca: Desk) -> None:
    for number in range(30):
        ca.pin(f"anchor {number}", "x" * 3000)
    child = subprocess.Popen(
        [sys.executable, "-m", "context_anchor", "get", "--all"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ca.project,
        env=ca.env,
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.read(10)
    child.stdout.close()
    complaint = child.stderr.read()
    assert child.wait(60) == exit_codes.READER_GONE
    assert complaint == b""


def test_json_is_one_document_also_for_errors_and_wherever_the_option_stands(ca: Desk) -> None:
    for words in (
        ["--json", "list"], ["list", "--json"], ["get", "x", "--json"], ["--json", "bogus"], ["--json"],
        ["pin", "--json"], ["list", "--scope", "moon", "--json"], ["history", "--limit", "-3", "--json"],
        ["workspaces", "attach", "/a", "/b", "--json"], ["sessions", "--json"],
    ):  # fmt: skip
        answer = ca(*words)
        document = json.loads(answer.out)
        assert answer.err == ""
        assert ("error" in document) == (answer.code != 0), words
        if answer.code:
            assert set(document["error"]) == {"code", "message", "hint"}


def test_notices_stand_in_the_document_and_not_beside_it(ca: Desk) -> None:
    answer = ca("pin", "--title", "t", "--content", "c", "--json")
    assert answer.err == ""
    assert "workspace" in answer.json["notices"][0]


def test_every_error_has_an_exit_code_of_its_kind() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.ContextAnchorError)]
    codes = {kind.code: exit_codes.exit_code(kind("x")) for kind in kinds}
    assert codes.pop("context_anchor") == exit_codes.INTERNAL
    assert exit_codes.INTERNAL not in codes.values()
    assert codes["usage"] == 2
    assert codes["anchor_not_found"] == codes["session_unknown"] == codes["nothing_to_undo"] == 3
    assert codes["secret_refused"] == codes["content_too_long"] == codes["import_format"] == 4
    assert codes["stale_revision"] == codes["lock_timeout"] == 5
    assert codes["store_unavailable"] == codes["store_newer"] == codes["environment_setup"] == 6


def test_the_exit_codes_in_the_help_are_those_that_are_documented(ca: Desk) -> None:
    documented = set(re.findall(r"^(\d+) ", exit_codes.__doc__ or "", re.MULTILINE))
    assert {int(code) for code in documented} == {
        value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)
    }
    shown = re.findall(r"(\d+) [a-z]", ca("--help").out.split("Exit codes:")[1].split("With --json")[0])
    assert set(shown) < documented


def test_a_defect_ends_with_its_own_code_and_a_document(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_anchor.cli import reading

    def broken(options: object) -> object:
        raise RuntimeError("boom")

    monkeypatch.setattr(reading, "list_anchors", broken)
    answer = ca("list", "--json")
    assert answer.code == exit_codes.INTERNAL
    assert answer.json["error"]["code"] == "internal"
    assert "boom" in ca("list").err
    monkeypatch.setenv("CONTEXT_ANCHOR_DEBUG", "1")
    assert "Traceback" in ca("list").err


def test_an_interrupt_ends_with_130_and_without_a_traceback(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_anchor.cli import reading

    def interrupted(options: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(reading, "list_anchors", interrupted)
    assert ca("list").code == exit_codes.INTERRUPTED


def test_missing_streams_are_no_error(monkeypatch: pytest.MonkeyPatch, ca: Desk) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["list"]) == 0
    assert main(["get", "nothing"]) == exit_codes.NOT_FOUND


def test_doctor_and_demo_are_found_where_the_installer_has_them(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_anchor.install import cli_entry

    asked: list[tuple[str, bool]] = []

    def run(command: str, options: object) -> int:
        asked.append((command, bool(getattr(options, "json", None))))
        return 1

    monkeypatch.setattr(cli_entry, "run", run)
    assert ca("doctor", "--json").code == 1
    assert ca("demo").code == 1
    assert asked == [("doctor", True), ("demo", False)]


def test_serve_speaks_the_protocol_and_ends_with_its_input(ca: Desk) -> None:
    pytest.importorskip("mcp")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    answer = ca.process("serve", stdin=json.dumps(hello).encode() + b"\n")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out.splitlines()[0])["result"]["serverInfo"]["name"]


@pytest.mark.skipif(os.name == "nt", reason="a terminal of its own needs a pseudo terminal")
def test_on_a_terminal_the_list_is_a_table_that_fits(ca: Desk) -> None:
    import pty

    ca.pin("中" * 90, "one", "--priority", "critical")
    ca.pin("short", "two")
    first, second = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "context_anchor", "list"],
        stdin=subprocess.DEVNULL, stdout=second, stderr=subprocess.PIPE, cwd=ca.project,
        env={**ca.env, "COLUMNS": "90"}, timeout=60,
    )  # fmt: skip
    os.close(second)
    shown = b""
    while True:
        try:
            piece = os.read(first, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(first)
    assert done.returncode == 0
    lines = shown.decode().splitlines()
    from context_anchor.cli.columns import display_width

    rows = [line for line in lines if line.startswith("a-")]
    assert [line.split()[1] for line in rows] == ["critical", "normal"]
    assert all(display_width(line) <= 90 for line in rows)
    assert any(line.startswith("ID ") for line in lines)
    assert "2 anchors" in shown.decode()

"""The documentation says what the code does: names, numbers, files, links."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from context_anchor import __version__, errors
from context_anchor.anchors import anchor
from context_anchor.anchors.bundle import render_block
from context_anchor.cli import exit_codes, parser
from context_anchor.hooks import texts
from context_anchor.hosts import antigravity as antigravity_host
from context_anchor.hosts import claude_code as claude_host
from context_anchor.install import antigravity, claude_code, cli_entry
from context_anchor.server import pages as result_pages
from context_anchor.server import tool_listing
from context_anchor.watch import compaction, pressure
from context_anchor.wire import bundle

from .pages import (
    DOCS,
    PAGES,
    README,
    README_ZH,
    ROOT,
    code_blocks,
    code_words,
    commands,
    links,
    named_files,
    rows,
    slugs,
    text_of,
)

HOSTS = ROOT / "docs" / "hosts.md"
FORMATS = ROOT / "docs" / "formats.md"
ERRORS = ROOT / "docs" / "errors.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
ANCHORS = ROOT / "docs" / "anchors.md"
BOTH_READMES = pytest.mark.parametrize("page", [README, README_ZH], ids=lambda p: p.name)
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)


def sources(*tops: str) -> list[Path]:
    found = [path for top in tops for path in sorted((ROOT / top).rglob("*.py"))]
    assert found
    return found


def texts_in(*tops: str) -> set[str]:
    """Return every string that stands in the code below some folders, docstrings too."""
    found: set[str] = set()
    for path in sources(*tops):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def variables_in(*tops: str) -> set[str]:
    """Return the names of our environment variables that stand in strings of the code."""
    texts = texts_in(*tops)
    return {name for text in texts for name in re.findall(r"CONTEXT_ANCHOR_[A-Z0-9_]*[A-Z0-9]", text)}


def documented_variables(page: Path) -> set[str]:
    return set(re.findall(r"`(CONTEXT_ANCHOR_[A-Z0-9_]+)`", text_of(page)))


def kinds(kind: type[errors.ContextAnchorError] = errors.ContextAnchorError) -> set[str]:
    own = {kind.code} if kind.__module__ == errors.__name__ else set()
    return own.union(*(kinds(child) for child in kind.__subclasses__()))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"shown_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bare(cell: str) -> str:
    return cell.strip("` ")


# Settings


@BOTH_READMES
def test_every_environment_variable_of_the_code_is_documented_and_no_other(page: Path) -> None:
    used = variables_in("context_anchor", "scripts")
    assert used - documented_variables(page) == set()
    assert documented_variables(page) - used - variables_in("tests") == set()


@pytest.mark.parametrize(("page", "header"), [(README, "Variable"), (README_ZH, "变量")], ids=["en", "zh"])
def test_the_defaults_of_settings_are_those_of_the_code(page: Path, header: str) -> None:
    default = {bare(cells[0]): cells[2] for cells in rows(page, header)}
    meaning = {bare(cells[0]): cells[3] for cells in rows(page, header)}
    assert str(bundle.DEFAULT_BUDGET) in default["CONTEXT_ANCHOR_MAX_INJECT_CHARS"]
    for cap in (claude_host.CAP_UNITS, antigravity_host.CAP_UNITS):
        assert f"{cap:,}" in meaning["CONTEXT_ANCHOR_MAX_INJECT_CHARS"]
    assert str(pressure.START_TOKENS) in default["CONTEXT_ANCHOR_NUDGE_START_TOKENS"]
    for share in pressure.SHARES:
        assert str(share) in default["CONTEXT_ANCHOR_NUDGE_START_TOKENS"]
    assert default["CONTEXT_ANCHOR_NUDGE_INTERVAL_TOKENS"] == str(pressure.INTERVAL_TOKENS)
    assert default["CONTEXT_ANCHOR_DROP_RATIO"] == str(compaction.DEFAULT_DROP_RATIO)
    assert f"{compaction.DROP_TOKENS:,}" in meaning["CONTEXT_ANCHOR_DROP_RATIO"]


# Commands


@pytest.mark.parametrize(("page", "header"), [(README, "Command"), (README_ZH, "命令")], ids=["en", "zh"])
def test_the_command_table_lists_exactly_the_commands_of_the_help(page: Path, header: str) -> None:
    script = str(ROOT / "scripts" / "cli.py")
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, encoding="utf-8", check=True)
    part = done.stdout.partition("COMMAND\n")[2].partition("\n\n")[0]
    listed = set(re.findall(r"^ {4}([a-z]+)", part, re.MULTILINE))
    assert "pin" in listed
    assert {bare(cells[0]) for cells in rows(page, header)} == listed


def test_every_command_line_shown_is_understood() -> None:
    seen = set()
    for line in commands(README):
        words = shlex.split(line)
        if words[0] == "context-anchor":
            parser.parse(words[1:])  # raises UsageError for what it does not know
            seen.add(words[1])
        elif words[0] == "python3":
            script = words[1].rpartition("context-anchor/")[2]
            assert (ROOT / script).is_file(), line
            if script == "scripts/install.py":
                check_install_words(words[2:])
                seen.add(script)
    assert {"pin", "doctor", "scripts/install.py"} <= seen


def check_install_words(words: list[str]) -> None:
    """Fail where the installer would not take the words; nothing is run."""
    command = words[0] if words and words[0] in cli_entry.COMMANDS else "install"
    if "--uninstall" in words:
        command = "uninstall"
    made = argparse.ArgumentParser(exit_on_error=False)
    cli_entry.add_arguments(made, command)
    left = [word for word in words if word not in ("--uninstall", *cli_entry.COMMANDS)]
    assert made.parse_known_args(left)[1] == [], words


def test_a_wrong_option_in_a_shown_command_would_be_seen() -> None:
    with pytest.raises(AssertionError):
        check_install_words(["--no-such-option"])
    with pytest.raises(errors.UsageError):
        parser.parse(["pin", "--no-such-option"])


@BOTH_READMES
def test_the_plugin_and_permission_names_shown_are_the_real_ones(page: Path) -> None:
    folder = ROOT / ".claude-plugin"
    marketplace = json.loads((folder / "marketplace.json").read_text(encoding="utf-8"))["name"]
    plugin = json.loads((folder / "plugin.json").read_text(encoding="utf-8"))["name"]
    assert f"claude plugin install {plugin}@{marketplace}" in commands(page)
    words = code_words(page)
    assert claude_code.PERMISSION in words
    assert set(antigravity.PERMISSIONS) <= set(words)


# Tools and anchors


@pytest.mark.parametrize(("page", "header"), [(README, "Tool"), (README_ZH, "工具")], ids=["en", "zh"])
def test_the_tool_table_lists_exactly_the_tools_of_the_server(page: Path, header: str) -> None:
    table = {bare(cells[0]): cells[1] for cells in rows(page, header)}
    assert set(table) == set(tool_listing.BY_NAME)
    for word in (*anchor.PRIORITIES, *anchor.CATEGORIES, *anchor.SCOPES):
        assert word in table["pin_context"]
    for number in (anchor.MAX_TITLE, anchor.MAX_CONTENT):
        assert f"{number:,}" in table["pin_context"]


def test_fields_and_bounds_of_an_anchor_are_those_of_the_code() -> None:
    table = {word: cells[1] for cells in rows(ANCHORS, "field") for word in re.findall(r"`(\w+)`", cells[0])}
    assert set(table) == set(anchor.Anchor.__dataclass_fields__) - {"extra"}
    assert str(anchor.MAX_TITLE) in table["title"]
    assert f"{anchor.MAX_CONTENT:,}" in table["content"]
    assert f"{anchor.MAX_REFS} paths of {anchor.MAX_REF:,}" in table["refs"]
    assert f"{anchor.MAX_TAGS} of {anchor.MAX_TAG}" in table["tags"]
    for field, allowed in (
        ("priority", anchor.PRIORITIES),
        ("category", anchor.CATEGORIES),
        ("scope", anchor.SCOPES),
        ("origin", anchor.ORIGINS),
    ):
        assert re.sub(r" \(default\)", "", table[field]).split(", ") == list(allowed)
    assert f"at most {anchor.MAX_ANCHORS} anchors" in text_of(ANCHORS)


def outcomes(node: ast.expr) -> set[str]:
    """Return the texts that an expression of constants and conditions may be."""
    if isinstance(node, ast.IfExp):
        return outcomes(node.body) | outcomes(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def written_states(path: Path) -> set[str]:
    """Return what a module writes under the key `state`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "state":
                    found |= outcomes(value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and outcomes(target.slice) == {"state"}:
                    found |= outcomes(node.value)
    return found


def test_every_recovery_state_is_documented_and_no_other() -> None:
    written = set().union(*(written_states(path) for path in (ROOT / "context_anchor" / "hooks").glob("*.py")))
    assert {bare(cells[0]) for cells in rows(ANCHORS, "state")} == written


@BOTH_READMES
def test_the_recovery_shown_is_written_as_the_code_writes_it(page: Path) -> None:
    shown = next(body for kind, body in code_blocks(page) if kind == "text")
    first, second = shown.splitlines()[:2]
    receipt, session = first.removeprefix("context-anchor receipt ").split(" | session ")
    assert first == texts.receipt_line(receipt, session)
    assert re.fullmatch(r"r-[0-9a-f]{10}", receipt)
    assert second == texts.recovery(recap=True, notes=[])[0]
    heads = re.findall(r"^## \[(\w+)\] (.+) \{(a-[0-9a-f]{10})\} \((\w+), (\w+)\)$", shown, re.MULTILINE)
    notes = [part.splitlines()[1:] for part in shown.split("\n## ")[1:]]
    assert len(heads) == len(notes) == 2
    blocks = ""
    for (priority, title, anchor_id, category, scope), lines in zip(heads, notes, strict=True):
        kept = [line.removeprefix("| ") for line in lines if line]
        refs = tuple(ref for line in kept if line.startswith("refs: ") for ref in line[6:].split(", "))
        content = "\n".join(line for line in kept if not line.startswith("refs: "))
        blocks += render_block(
            anchor.Anchor.from_json({
                "id": anchor_id, "title": title, "content": content, "priority": priority, "category": category,
                "scope": scope, "refs": list(refs), "tags": [], "origin": "agent", "revision": 1,
                "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
            })
        )  # fmt: skip
    assert shown.endswith(blocks.rstrip("\n") + "\n")


# Errors and formats


def test_every_error_code_is_documented_and_no_other() -> None:
    listed = {bare(cells[0]) for cells in rows(ERRORS, "code") if cells[0].startswith("`")}
    assert listed == kinds() | {"internal"}


@pytest.mark.parametrize(
    ("page", "header"),
    [(ERRORS, "code"), (README, "Exit code"), (README_ZH, "退出码")],
    ids=["errors", "en", "zh"],
)
def test_every_exit_code_is_documented_and_no_other(page: Path, header: str) -> None:
    listed = {int(cells[0]) for cells in rows(page, header) if cells[0].isdecimal()}
    known = {name: value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    assert known["OK"] == 0
    assert listed == set(known.values())


def test_every_format_tag_is_documented_and_no_other() -> None:
    named = {text for text in texts_in("context_anchor") if re.fullmatch(r"context-anchor-[a-z]+/\d?", text)}
    tags = {text if text[-1].isdecimal() else f"{text}1" for text in named}
    assert {"context-anchor-marks/1", "context-anchor-journal/1"} <= tags
    assert set(re.findall(r"context-anchor-[a-z]+/\d", text_of(FORMATS))) == tags


def test_every_golden_file_is_documented_and_there() -> None:
    named = {path for path in named_files(FORMATS) if path.startswith("tests/golden/")}
    there = {f"tests/golden/{p.name}" for p in (ROOT / "tests" / "golden").iterdir() if not p.name.startswith(".")}
    assert named == there


# Hosts and rooms


def test_supported_versions_are_those_that_installer_and_tests_know() -> None:
    pinned = load(ROOT / "tests" / "e2e" / "hosts.py")
    oldest, newest = (".".join(map(str, version)) for version in claude_code.TESTED)
    assert (oldest, newest) == (pinned.CLAUDE_CODE_OLDEST, pinned.CLAUDE_CODE_NEWEST)
    supported = next(cells for cells in rows(HOSTS, "") if cells[0] == "supported")
    assert supported[1].startswith(f"{oldest} and newer") and newest in supported[1]
    assert ".".join(map(str, antigravity.OLDEST)) in supported[2] and pinned.ANTIGRAVITY_VERSION in supported[2]
    for page, header in ((README, "Host"), (README_ZH, "宿主")):
        # The first table of this kind; the one of permissions comes later.
        shown = {cells[0]: " ".join(cells[1:]) for cells in reversed(rows(page, header))}
        assert oldest in shown["Claude Code"] and newest in shown["Claude Code"]
        known = (".".join(map(str, antigravity.OLDEST)), pinned.ANTIGRAVITY_VERSION)
        assert all(version in shown["Antigravity"] for version in known)


def test_the_hooks_listed_for_a_host_are_those_of_its_file() -> None:
    listed = next(cells for cells in rows(HOSTS, "") if cells[0] == "hooks used")
    claude = json.loads((ROOT / "hooks" / "claude-code.json").read_text(encoding="utf-8"))["hooks"]
    agy = json.loads((ROOT / "hooks.json").read_text(encoding="utf-8"))["context-anchor"]
    for cell, events in ((listed[1], claude), (listed[2], agy)):
        assert [re.sub(r" \(.*\)", "", word) for word in cell.split(", ")] == list(events)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-4-6", 167_000),
        ("claude-opus-5", 967_000),
        ("claude-opus-4-8", 967_000),
        ("claude-sonnet-4-5", None),
    ],
)
def test_the_threshold_table_agrees_with_the_code(model: str, tokens: int | None) -> None:
    found = claude_host.threshold(model, "2.1.332", {}, {})
    line = next(cells for cells in rows(HOSTS, "model or setting") if model.removeprefix("claude-") in cells[0])
    if tokens is None:
        assert found == claude_host.window(model, {}) and "not by itself" in line[1]
    else:
        assert found == tokens and f"{tokens:,}" in line[1]


def test_the_table_of_rooms_is_the_one_that_the_import_test_holds() -> None:
    may = load(ROOT / "tests" / "test_architecture.py").MAY_IMPORT
    shown: dict[str, set[str]] = {}
    for cells in rows(ARCHITECTURE, "room"):
        targets = set(re.findall(r"`(\w+)`", cells[2]))
        for room in re.findall(r"`(\w+)[./]", cells[0]):
            shown[room] = targets
    rooms = set(may) - {"__main__", "__init__"}
    assert set(shown) == rooms
    for room in rooms - {"cli", "redact", "secret_formats"}:
        assert shown[room] == may[room], room
    assert may["cli"] == rooms - {"cli", "hooks", "secret_formats"} and shown["cli"] == {"hooks"}
    assert may["redact"] == {"errors", "secret_formats"} and shown["redact"] == {"errors"}


# The pages themselves


@EVERY_PAGE
def test_every_link_leads_to_a_page_and_heading_that_are_there(page: Path) -> None:
    for target in links(page):
        if target.startswith("https://"):
            continue
        name, _, fragment = target.partition("#")
        goal = (page.parent / name).resolve() if name else page
        assert goal.is_file(), f"{page.name}: {target}"
        assert not fragment or fragment in slugs(goal), f"{page.name}: {target}"


@EVERY_PAGE
def test_every_file_named_is_there(page: Path) -> None:
    made_by_running = {"hooks/hooks.json"}  # named as what must not be there
    missing = {name for name in named_files(page) if not (ROOT / name).exists()}
    assert missing <= made_by_running, page.name


def test_all_docs_are_reached_from_the_readmes() -> None:
    for readme in (README, README_ZH):
        assert {f"docs/{page.name}" for page in DOCS} <= set(links(readme))


REGISTRY = r"\b[\w.]*(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com))\b"


@EVERY_PAGE
def test_no_page_names_a_machine_or_a_registry(page: Path) -> None:
    machine = r"(?<![\w~.])/(?:work|root|opt|tmp|home)\b\S*"
    assert re.findall(f"{machine}|{REGISTRY}", text_of(page)) == []


def tracked_texts() -> dict[str, str]:
    """Return the text of every text file that git follows, by its path from the root."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a clone to tell which files belong to the project")
    done = subprocess.run([git, "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True)
    found: dict[str, str] = {}
    for name in done.stdout.decode("utf-8").split("\0"):
        path = ROOT / name
        if name and path.is_file() and b"\0" not in (raw := path.read_bytes()):
            found[name] = raw.decode("utf-8", "replace")
    assert "README.md" in found
    return found


def test_no_file_of_the_project_names_the_machine_it_was_made_on_or_a_registry() -> None:
    # Tests may make up folders below /opt; nothing else may name one.
    made_on, installed = rf"(?<![\w~.])/{'work'}/|/tmp/{'ca'}\b", r"(?<![\w~.])/opt/"
    found = [
        (name, hit.group())
        for name, text in tracked_texts().items()
        for hit in re.finditer(
            f"{made_on}|{REGISTRY}" + ("" if name.startswith("tests/") else f"|{installed}"), text
        )
    ]
    assert found == []


def test_the_readme_is_long_enough_to_list_the_plugin_in_a_directory() -> None:
    assert len(text_of(README).split()) >= 40


def test_the_changes_begin_with_the_present_version() -> None:
    found = re.search(r"^## (\S+)", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert found is not None and found[1] == __version__
    assert f"{result_pages.RESULT_LIMIT:,} bytes" in text_of(ROOT / "CHANGELOG.md")


def test_the_chinese_readme_has_the_same_blocks_tables_and_links() -> None:
    assert code_blocks(README_ZH) == code_blocks(README)
    pages = [[target for target in links(page) if not target.startswith("#")] for page in (README, README_ZH)]
    assert set(pages[0]) ^ set(pages[1]) == {"README.md", "README.zh-CN.md"}
    assert len(links(README)) == len(links(README_ZH))  # links to headings are in each page's own language
    lines = [text_of(page).splitlines() for page in (README, README_ZH)]
    heads = [[line.split()[0] for line in page if line.startswith("#")] for page in lines]
    assert heads[0] == heads[1]
    counts = [sum(line.startswith("|") for line in page) for page in lines]
    assert counts[0] == counts[1]
    names = [{word for word in code_words(page) if word.isascii()} for page in (README, README_ZH)]
    assert names[0] ^ names[1] == set()

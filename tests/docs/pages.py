"""The pages of documentation as values: their tables, code blocks, links and named files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
README_ZH = ROOT / "README.zh-CN.md"
DOCS = tuple(sorted((ROOT / "docs").glob("*.md")))
PAGES = (README, README_ZH, ROOT / "CHANGELOG.md", *DOCS)
INSTRUCTIONS = (ROOT / "rules" / "AGENTS.md", ROOT / "skills" / "context-anchor" / "SKILL.md")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
# Folders of the tree; a path that begins with one of them names a file of this repository.
_TOP = (
    "context_anchor/",
    "scripts/",
    "tests/",
    "docs/",
    "rules/",
    "skills/",
    "hooks/",
    "benchmarks/",
    ".claude-plugin/",
)


def text_of(page: Path) -> str:
    """Return a page's text."""
    return page.read_text(encoding="utf-8")


def code_blocks(page: Path) -> list[tuple[str, str]]:
    """Return `(language, body)` of every fenced block."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(text_of(page))]


def prose(page: Path) -> str:
    """Return a page's text without its fenced blocks."""
    return _BLOCK.sub("", text_of(page))


def commands(page: Path) -> list[str]:
    """Return the lines of a page's shell blocks."""
    return [line for kind, body in code_blocks(page) if kind == "sh" for line in body.splitlines() if line]


def code_words(page: Path) -> list[str]:
    """Return what stands in single backquotes, in order."""
    return _CODE.findall(prose(page))


def links(page: Path) -> list[str]:
    """Return the targets of a page's links."""
    return _LINK.findall(prose(page))


def slugs(page: Path) -> set[str]:
    """Return the fragments that a page's headings have on the web."""
    found = set()
    for line in prose(page).splitlines():
        if line.startswith("#"):
            title = line.lstrip("#").strip().lower()
            kept = "".join(c for c in title if c.isalnum() or c in "-_ ")
            found.add(kept.replace(" ", "-"))
    return found


def rows(page: Path, header: str) -> list[list[str]]:
    """Return the cells of the tables whose first header cell reads `header`, row by row.

    Raises AssertionError where the page has no such table.
    """
    found: list[list[str]] = []
    inside = seen = False
    for line in prose(page).splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not inside and cells[0] == header:
            inside = seen = True
        elif inside and not set(line) <= set("|-: "):
            found.append(cells)
    assert seen, f"{page.name} has no table that begins with {header!r}"
    return found


def named_files(page: Path) -> set[str]:
    """Return the files and folders of this repository that a page names in backquotes."""
    found = set()
    for word in code_words(page):
        for part in word.split():
            path = part.strip(",;:()")
            if path.startswith(_TOP) and not set(path) & set("*<>$"):
                found.add(path.split("#")[0])
    return found

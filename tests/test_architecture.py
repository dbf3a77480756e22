"""The import table, the shape of the rooms and the files of the tree, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "context_anchor"

FAST = ("wire", "hosts", "watch", "hooks")
CHEAP = {
    "__future__", "os", "sys", "time", "errno", "stat", "select", "io", "_json", "fcntl", "msvcrt",
}
# room -> the rooms it may import from; a module's own room is always allowed.
MAY_IMPORT = {
    "errors": set(),
    "redact": {"errors", "secret_formats"},
    "secret_formats": set(),
    "wire": set(),
    "hosts": {"wire"},
    "watch": set(),
    "hooks": {"wire", "hosts", "watch"},
    "anchors": {"errors", "wire", "redact"},
    "engine": {"errors"},
    "install": {"errors", "anchors", "hosts", "wire", "redact"},
    "server": {"errors", "anchors", "wire", "redact", "hosts", "watch"},
    "cli": {"errors", "anchors", "wire", "redact", "hosts", "watch", "install", "server", "engine"},
    "__main__": {"cli"},
    "__init__": set(),
}
ONLY_IN = {
    "mcp": {"server/app.py"},
    "mcp_types": {"server/app.py"},
    "filelock": {"anchors/", "engine/memory/"},
}


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "__pycache__" not in p.parts)


def room_of(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part[:-3] if part.endswith(".py") else part


def imports(path: Path, *, with_type_checking: bool) -> list[str]:
    """Return every module named in an import, absolute, at any depth of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    if not with_type_checking:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                for inner in node.body:
                    skipped.update(ast.walk(inner))
    names: list[str] = []
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            if module == "context_anchor":
                names += [f"context_anchor.{alias.name}" for alias in node.names]
            else:
                names.append(module)
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_from_the_rooms_its_own_may_use(path: Path) -> None:
    room = room_of(path)
    assert room in MAY_IMPORT, f"room {room} is not in the import table"
    for name in imports(path, with_type_checking=True):
        if name.startswith("context_anchor."):
            target = name.split(".")[1]
            if target.startswith("__"):
                continue
            assert target == room or target in MAY_IMPORT[room], f"{room} must not import {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_stay_in_their_one_room(path: Path) -> None:
    where = path.relative_to(PACKAGE).as_posix()
    for name in imports(path, with_type_checking=True):
        top = name.split(".")[0]
        for allowed in ONLY_IN.get(top, {where}):
            if where.startswith(allowed):
                break
        else:
            pytest.fail(f"{where} imports {name}, which only {sorted(ONLY_IN[top])} may")


@pytest.mark.parametrize("room", FAST)
def test_fast_rooms_import_nothing_but_cheap_modules(room: str) -> None:
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for name in imports(path, with_type_checking=False):
            top = name.split(".")[0]
            if top == "json":  # the guarded way back where the C scanner is missing
                assert path.name == "quickjson.py"
                continue
            assert top in CHEAP or top == "context_anchor", f"{path.name} imports {name}"


def test_fast_rooms_keep_to_the_syntax_of_python_3_9() -> None:
    for room in FAST:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    for name in ("hook.py", "serve.py", "install.py", "cli.py"):
        ast.parse((ROOT / "scripts" / name).read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_every_module_says_in_one_line_what_is_in_the_room(path: Path) -> None:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert doc, "no docstring"
    first = doc.splitlines()[0]
    assert len(first) <= 116, first


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_grows_beyond_450_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


def test_the_package_imports_nothing_by_itself() -> None:
    code = "import sys; before = set(sys.modules); import context_anchor; print(len(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "1"


def test_the_top_level_holds_both_hosts_bundles_and_no_default_claude_hooks_file() -> None:
    for name in (
        "pyproject.toml", "plugin.json", "hooks.json", "mcp_config.json", ".claude-plugin/plugin.json",
        ".claude-plugin/marketplace.json", "hooks/claude-code.json", "rules/AGENTS.md",
        "skills/context-anchor/SKILL.md", "README.md", "README.zh-CN.md", "CHANGELOG.md", "LICENSE", ".ci/run",
    ):
        assert (ROOT / name).is_file(), name
    assert not (ROOT / "hooks" / "hooks.json").exists()
    for name in ("plugin.json", "hooks.json", "mcp_config.json", ".claude-plugin/plugin.json"):
        assert isinstance(json.loads((ROOT / name).read_text(encoding="utf-8")), dict)


def tracked() -> list[Path]:
    out = subprocess.run(["git", "ls-files", "-z"], capture_output=True, cwd=ROOT, check=False)
    if out.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in out.stdout.decode().split("\0") if name]


def test_the_tree_holds_no_symbolic_links() -> None:
    assert [p for p in tracked() if p.is_symlink()] == []


def test_every_imported_distribution_is_declared() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = text[text.index("dependencies = [") :]
    names = re.findall(r'"([^"]+)"', block[: block.index("]")])
    declared = {re.split(r"[<>=\[]", name)[0].replace("-", "_") for name in names}
    declared |= {"mcp_types"}  # mcp pins it to its own version
    for path in modules():
        for name in imports(path, with_type_checking=False):
            top = name.split(".")[0]
            if top != "context_anchor" and top not in sys.stdlib_module_names and top not in ("msvcrt", "tomli"):
                assert top in declared, f"{path.name} imports {top}"

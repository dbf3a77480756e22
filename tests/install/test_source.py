"""Where the product's files lie, and what it requires."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_anchor.errors import InstallError
from context_anchor.install import source as source_module
from context_anchor.install.source import Source, find, parse_dependencies

from .conftest import ROOT, write_bundle_source

NAME = st.from_regex(r"[a-z][a-z0-9-]{0,12}(\[[a-z]+(,[a-z]+)?\])?([<>=~]=[0-9.]{1,5})?", fullmatch=True)


@given(st.lists(NAME, max_size=6), st.booleans(), st.booleans())
def test_dependencies_read_the_same_as_a_toml_reader_reads_them(
    names: list[str], wide: bool, comment: bool
) -> None:
    separator = ",\n    " if wide else ", "
    body = separator.join(f'"{name}"' for name in names)
    note = '  # a note, with ] and "\n' if comment and wide else ""
    head = '[build-system]\nrequires = ["x"]\n[project]\nname = "p"\n'
    text = f"{head}dependencies = [{note}{body}]\n[tool.z]\na = []\n"
    assert parse_dependencies(text) == tuple(names)
    if sys.version_info >= (3, 11):
        import tomllib

        assert list(parse_dependencies(text)) == tomllib.loads(text)["project"]["dependencies"]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("mcp>=2.3,<3", "mcp<3,>=2.3"),
        ("mcp<3,>=2.3", "mcp<3,>=2.3"),
        (" mcp [cli] >= 2.3 , < 3 ", "mcp[cli]<3,>=2.3"),
        ("mcp (>=2.3,<3)", "mcp<3,>=2.3"),
        ("tomli>=2; python_version < '3.11'", "tomli>=2; python_version < '3.11'"),
        ("x @ file:///a,b/x-1-py3-none-any.whl", "x @ file:///a,b/x-1-py3-none-any.whl"),
        ("plain", "plain"),
    ],
)
def test_a_requirement_has_one_form_whichever_copy_tells_it(text: str, form: str) -> None:
    assert source_module.canonical(text) == form
    assert source_module.canonical(form) == form


def test_the_projects_own_dependencies_are_found() -> None:
    found = parse_dependencies((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert any(name.startswith("mcp") for name in found) and len(found) >= 3
    assert not any("pytest" in name or "hatchling" in name for name in found)


@pytest.mark.parametrize("text", ["", "[project]\nname='x'\n", "[project]\ndependencies = 3\n[x]\ny = ['z']\n"])
def test_a_project_without_a_list_of_dependencies_is_an_error(text: str) -> None:
    with pytest.raises(InstallError, match="no list of dependencies"):
        parse_dependencies(text)


def test_a_clone_is_told_from_a_bundle_and_from_a_wheel(tmp_path: Path) -> None:
    assert find().kind == "clone"
    assert find().assets == ROOT
    bundle = write_bundle_source(tmp_path / "b", ["one>=1", "", "# note", "two"])
    found = find(bundle / "context_anchor")
    assert (found.kind, found.version, found.requirements()) == ("bundle", "1.0", ("one>=1", "two"))
    package = tmp_path / "site" / "context_anchor"
    (package / "bundle" / "scripts").mkdir(parents=True)
    (package / "bundle" / "scripts" / "hook.py").write_text("")
    assert find(package).kind == "wheel"


def test_a_package_without_its_files_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InstallError) as caught:
        find(tmp_path / "context_anchor")
    assert "scripts/hook.py" in str(caught.value) and "clone" in caught.value.hint


def test_a_fingerprint_changes_with_any_file_and_not_with_byte_code(tmp_path: Path) -> None:
    package = tmp_path / "context_anchor"
    shutil.copytree(ROOT / "context_anchor" / "wire", package / "wire")
    copy = Source("clone", package, tmp_path)
    before = copy.fingerprint()
    (package / "wire" / "__pycache__").mkdir(exist_ok=True)
    (package / "wire" / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert copy.fingerprint() == before
    (package / "wire" / "paths.py").write_bytes(b"# other\n")
    assert copy.fingerprint() != before


def test_the_packages_files_are_listed_without_byte_code_and_the_wheels_bundle() -> None:
    names = source_module.package_files(ROOT / "context_anchor")
    assert "hooks/dispatch.py" in names and "install/demo_claude_code.jsonl" in names
    assert not any("__pycache__" in name or name.startswith("bundle/") for name in names)

"""Export and import: the whole way round, into another folder, and nothing half done."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from cli.conftest import Desk


def test_what_was_exported_comes_back_by_import(ca: Desk, tmp_path: Path) -> None:
    ca.open_session("11111111-aaaa")
    ca.pin("mine", "中文", "--scope", "session", "--priority", "critical", "--tag", "x")
    ca.pin("ours", "two", "--scope", "workspace")
    exported = ca("export").out
    assert json.loads(exported)["format"] == "context-anchor-export/1"
    ca("unpin", "--all", "--scope", "session")
    ca("unpin", "--all", "--scope", "workspace")
    answer = ca("import", "--json", stdin=exported)
    assert answer.code == 0, answer
    assert [(part["added"], part["updated"]) for part in answer.json["imported"]] == [(1, 0), (1, 0)]
    assert ca.titles() == ["mine", "ours"]
    assert ca("get", "mine", "--json").json["anchor"]["tags"] == ["x"]
    assert ca("history").out.count("import:") == 2


def test_an_export_to_a_file_is_the_owners_alone(ca: Desk, tmp_path: Path) -> None:
    ca.pin("one")
    target = tmp_path / "out ü.json"
    answer = ca("export", "--output", str(target), "--json")
    assert answer.json == {"output": str(target), "anchors": 1, "scopes": 1}
    assert json.loads(target.read_text(encoding="ascii"))["scopes"][0]["anchors"][0]["title"] == "one"
    if os.name != "nt":
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert ca("import", str(target)).code == 0
    assert ca("export", "--output", str(tmp_path / "no" / "folder.json")).code == 6


def test_an_import_can_go_into_one_named_scope_and_replace_it(ca: Desk, tmp_path: Path) -> None:
    ca.pin("theirs")
    exported = ca("export").out
    other = tmp_path / "other"
    other.mkdir()
    assert ca("import", "--workspace", str(other), stdin=exported).code == 0
    assert ca.titles("--workspace", str(other)) == ["theirs"]
    ca.pin("more", "c", "--workspace", str(other))
    assert ca("import", "--workspace", str(other), "--mode", "replace", stdin=exported).code == 0
    assert ca.titles("--workspace", str(other)) == ["theirs"]
    assert ca("undo", "--workspace", str(other)).code == 0
    assert sorted(ca.titles("--workspace", str(other))) == ["more", "theirs"]


def test_export_of_all_holds_every_scope(ca: Desk) -> None:
    ca.open_session("11111111-aaaa", folder=ca.home)
    ca.pin("mine", "c", "--session", "11111111")
    ca.pin("ours")
    kinds = {part["scope"] for part in ca("export", "--all", "--json").json["scopes"]}
    assert kinds == {"session", "workspace"}
    assert len(ca("export", "--json").json["scopes"]) == 1
    assert ca("export", "--all", "--workspace", ".").code == 2


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "3", "{}", '{"format": "context-anchor-export/99", "scopes": []}',
        '{"format": "context-anchor-export/1"}', '{"format": "context-anchor-export/1", "scopes": [{}]}',
        '{"format": "context-anchor-export/1", "scopes": [{"scope": "moon", "anchors": []}]}',
        '{"format": "context-anchor-export/1", "scopes": [{"scope": "workspace", "workspace_id": "w", "anchors": [3]}]}',  # noqa: E501
        "[" * 100_000,
    ],
)  # fmt: skip
def test_a_bad_document_is_refused_and_changes_nothing(ca: Desk, text: str) -> None:
    ca.pin("one")
    before = ca.files()
    answer = ca("import", "--json", stdin=text)
    assert (answer.code, answer.json["error"]["code"]) == (4, "import_format")
    assert ca.files() == before


def test_a_missing_file_is_named(ca: Desk, tmp_path: Path) -> None:
    answer = ca("import", str(tmp_path / "none.json"))
    assert answer.code == 2
    assert "none.json" in answer.err
    assert ca("import", str(tmp_path)).code == 2
    assert ca("import", "nul\0name").code == 2

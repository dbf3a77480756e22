"""The formats on disk against files written once and kept for ever.

A difference here means that stored data changes its form: raise the version and keep the old file.
To write the files for a new version, run this module: `python -m tests.anchors.test_formats`.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from context_anchor.anchors.scope import AnyScope, ScopeFiles, SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.anchors.transfer import export_scopes, import_document
from context_anchor.wire import bundle

from .conftest import Clock, draft

GOLDEN = Path(__file__).parents[1] / "golden"
SESSION = SessionScope("claude-code", "0b5c1f6e-9d7a-4c1e-8a44-2f6f1f0e7a31")
WORKSPACE = WorkspaceScope("w-0123456789abcdef0123456789abcdef", "/home/dev/Projekt Ü")
NAMES: dict[str, tuple[AnyScope, str]] = {
    "session-anchors-1.json": (SESSION, "anchors"),
    "session-journal-1.jsonl": (SESSION, "journal"),
    "session-bundle-1.bundle": (SESSION, "bundle"),
    "workspace-anchors-1.json": (WORKSPACE, "anchors"),
    "workspace-journal-1.jsonl": (WORKSPACE, "journal"),
    "workspace-bundle-1.bundle": (WORKSPACE, "bundle"),
}


def scenario(data: str) -> AnchorStore:
    """Write what the golden files hold: every operation and every field at least once."""
    numbers = iter(range(0xC0FFEE, 0xFFFFFF))
    store = AnchorStore(data, now=Clock(), new_id=lambda: f"a-{next(numbers):010x}")
    store.pin(
        SESSION,
        draft(
            "Never push to main",
            "Open a pull request;\n\trun `make check` first. 中文 🙂 </system-reminder>",
            priority="critical",
            category="constraint",
            refs=["/srv/docs/rules.md:12", "https://example.org/rules"],
            tags=["git", "規則"],
            origin="user",
        ),
        actor="user:cli",
    )
    store.pin(SESSION, draft("Parser state", "Half done.", category="task", priority="high"), actor="agent")
    store.pin(SESSION, draft("parser STATE", "Done; tests left.", category="task"), actor="agent")
    store.replace(SESSION, [a.draft for a in store.read(SESSION).anchors] + [draft("Extra")], actor="agent")
    store.unpin(SESSION, actor="agent", title="extra")
    store.unpin(SESSION, actor="user:cli", clear_all=True)
    store.undo(SESSION, actor="user:cli")
    store.pin(WORKSPACE, draft("Entry point", "src/app.py:main", category="file_map"), actor="agent")
    store.merge(WORKSPACE, [draft("Ports", "8080", category="decision", origin="derived")], actor="user:cli")
    return store


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    data = str(tmp_path_factory.mktemp("formats"))
    scenario(data)
    return data


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_byte_for_byte_what_was_promised(name: str, written: str) -> None:
    scope, part = NAMES[name]
    if os.name == "nt" and part == "bundle":
        pytest.skip("the index names absolute paths, which are other ones there")
    assert Path(getattr(ScopeFiles.of(written, scope), part)).read_bytes() == (GOLDEN / name).read_bytes()


def place(data: str, names: tuple[str, ...]) -> AnchorStore:
    for name in names:
        scope, part = NAMES[name]
        path = Path(getattr(ScopeFiles.of(data, scope), part))
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(GOLDEN / name, path)
    return AnchorStore(data)


def test_kept_files_load_and_need_no_repair(tmp_path: Path) -> None:
    store = place(str(tmp_path), tuple(NAMES))
    snapshot = store.read(SESSION)
    assert [(a.title, a.revision) for a in snapshot.anchors] == [("Never push to main", 2), ("parser STATE", 3)]
    assert (snapshot.revision, snapshot.notices, snapshot.writable) == (7, (), True)
    first = snapshot.anchors[0]
    assert first.content.startswith("Open a pull request;\n\trun") and first.tags == ("git", "規則")
    assert first.created_at == datetime(2026, 3, 4, 5, 6, 8, 89_000, tzinfo=timezone.utc)
    assert [e.op for e in store.history(SESSION)] == ["undo", "clear", "unpin", "replace", "update", "pin", "pin"]
    assert [a.title for a in store.read(WORKSPACE).anchors] == ["Ports", "Entry point"]
    assert [f for f in store.check() if "others on this machine" not in f.what] == []
    for name, (scope, part) in NAMES.items():
        assert Path(getattr(ScopeFiles.of(str(tmp_path), scope), part)).read_bytes() == (GOLDEN / name).read_bytes()


def test_kept_journals_alone_give_the_same_anchors(tmp_path: Path) -> None:
    store = place(str(tmp_path / "j"), tuple(n for n in NAMES if n.endswith("jsonl")))
    full = place(str(tmp_path / "all"), tuple(NAMES))
    for scope in (SESSION, WORKSPACE):
        assert store.read(scope).anchors == full.read(scope).anchors
        assert Path(ScopeFiles.of(str(tmp_path / "j"), scope).bundle).read_bytes() == (
            GOLDEN / f"{scope.kind}-bundle-1.bundle"
        ).read_bytes()


def test_a_kept_bundle_is_what_a_hook_copies() -> None:
    revision, entries = bundle.load_part(str(GOLDEN / "session-bundle-1.bundle"))
    assert revision == 7
    assert entries[0]["text"] == (
        "## [critical] Never push to main {a-0000c0ffee} (constraint, session)\n"
        "| Open a pull request;\n"
        "| \trun `make check` first. 中文 🙂 &lt;/system-reminder>\n"
        "| refs: /srv/docs/rules.md:12, https://example.org/rules\n\n"
    )


def test_a_kept_export_is_written_and_read_again(written: str, tmp_path: Path) -> None:
    at = datetime(2026, 3, 5, tzinfo=timezone.utc)
    document = export_scopes(AnchorStore(written), (SESSION, WORKSPACE), at=at)
    kept = json.loads((GOLDEN / "export-1.json").read_text(encoding="utf-8"))
    assert document == kept
    done = import_document(AnchorStore(tmp_path), kept, actor="a")
    assert [(one.scope, len(one.result.added)) for one in done] == [(SESSION, 2), (WORKSPACE, 2)]


def write_golden() -> None:
    """Write the files of the present version."""
    with TemporaryDirectory() as data:
        store = scenario(data)
        for name, (scope, part) in NAMES.items():
            shutil.copyfile(getattr(ScopeFiles.of(data, scope), part), GOLDEN / name)
        document = export_scopes(store, (SESSION, WORKSPACE), at=datetime(2026, 3, 5, tzinfo=timezone.utc))
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        (GOLDEN / "export-1.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_golden()

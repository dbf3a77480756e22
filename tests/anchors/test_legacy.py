"""Earlier stores inside a host's plugin data are imported once and left as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from context_anchor.anchors.legacy import MARKER, import_once
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.wire import workspace

from .conftest import SESSION, draft

SECRET = "ghp_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1bC2"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def put(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def item(title: str, **more: object) -> dict[str, object]:
    return {"title": title, "content": f"content of {title}", **more}


def test_without_earlier_stores_nothing_is_written(data: str, home: Path) -> None:
    assert import_once(data, home, {}) is None
    assert not Path(data).exists()


def test_our_own_format_keeps_scopes_and_is_imported_once(data: str, home: Path) -> None:
    earlier = home / ".claude" / "plugins" / "data" / "context-anchor-inline"
    shared = WorkspaceScope("w-" + "1" * 32, "/srv/p")
    old = AnchorStore(earlier)
    old.pin(SESSION, draft("From before", priority="critical"), actor="a")
    old.pin(shared, draft("Shared before"), actor="a")
    stored = {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()}
    done = import_once(data, home, {})
    assert done is not None and (done.anchors, done.problems) == (2, ())
    assert done.sources == (str(earlier),)
    store = AnchorStore(data)
    assert [(a.title, a.priority) for a in store.read(SESSION).anchors] == [("From before", "critical")]
    assert [a.title for a in store.read(shared).anchors] == ["Shared before"]
    assert {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()} == stored
    assert json.loads((Path(data) / MARKER).read_text(encoding="utf-8"))["anchors"] == 2
    store.unpin(SESSION, actor="a", clear_all=True)
    assert import_once(data, home, {}) is None
    assert store.read(SESSION).anchors == ()


def test_loose_documents_of_both_hosts_are_understood(data: str, home: Path, tmp_path: Path) -> None:
    claude = tmp_path / "claude config"
    put(claude / "plugins" / "data" / "context-anchor-market" / "s1.json", {"anchors": [item("List")]})
    put(claude / "plugins" / "data" / "unrelated" / "s9.json", {"anchors": [item("Foreign")]})
    gemini = home / ".gemini" / "antigravity" / "plugin-data" / "context-anchor"
    put(gemini / "conv-1.json", [item("Bare list", priority="HIGH", category="odd", refs=["a", 3], tags="x")])
    put(gemini / "deep" / "er" / "x.json", {"conversationId": "conv-2", "pins": {"k": item("By key")}})
    project = tmp_path / "project"
    project.mkdir()
    put(gemini / "ws.json", {"scope": "workspace", "workspace_root": str(project), "anchors": [item("Shared")]})
    done = import_once(data, home, {"CLAUDE_CONFIG_DIR": str(claude)})
    assert done is not None and (done.anchors, done.problems) == (4, ())
    store = AnchorStore(data)
    (bare,) = store.read(SessionScope("antigravity", "conv-1")).anchors
    assert (bare.title, bare.priority, bare.category, bare.refs) == ("Bare list", "high", "state", ("a",))
    assert [a.title for a in store.read(SessionScope("claude-code", "s1")).anchors] == ["List"]
    assert [a.title for a in store.read(SessionScope("antigravity", "conv-2")).anchors] == ["By key"]
    assert [a.title for a in store.read(WorkspaceScope(*workspace.identify(str(project)))).anchors] == ["Shared"]


def test_what_is_here_wins_and_long_secret_or_broken_things_are_handled(data: str, home: Path) -> None:
    folder = home / ".gemini" / "antigravity" / "plugin-data" / "context-anchor"
    path = put(
        folder / "conv-1.json",
        {"anchors": [
            item("Here", content="old"), item("Long", content="x" * 9000), item("Key", content=f"token {SECRET}"),
            item("bad\u202etitle"), {"title": 7, "content": "c"}, "text", item("", content="c"),
        ]},
    )  # fmt: skip
    put(folder / "broken.json", "{not json")
    put(folder / "notes.txt", "x")
    store = AnchorStore(data)
    scope = SessionScope("antigravity", "conv-1")
    store.pin(scope, draft("here", "new"), actor="a")
    done = import_once(data, home, {})
    assert done is not None and done.anchors == 2
    assert [part for part in ("broken.json", "U+202E", "title is empty") if part in str(done.problems)] == [
        "broken.json", "U+202E", "title is empty",
    ]  # fmt: skip
    by_title = {a.title: a.content for a in store.read(scope).anchors}
    assert by_title["here"] == "new"
    assert len(by_title["Long"]) <= 4000 and by_title["Long"].endswith(f"[cut; the whole text stands in {path}]")
    assert SECRET not in by_title["Key"] and "redacted" in by_title["Key"]
    assert all(SECRET.encode() not in p.read_bytes() for p in Path(data).rglob("*") if p.is_file())


def test_more_than_fit_are_taken_by_priority_and_the_rest_is_told(data: str, home: Path) -> None:
    folder = home / ".gemini" / "antigravity" / "plugin-data" / "context-anchor"
    items = [item(f"T{n}") for n in range(205)] + [item("Vital", priority="critical")]
    put(folder / "conv-1.json", {"anchors": items})
    done = import_once(data, home, {})
    assert done is not None and done.anchors == 200 and "6 anchors did not fit" in done.problems[0]
    assert AnchorStore(data).read(SessionScope("antigravity", "conv-1")).anchors[0].title == "Vital"


def test_a_data_folder_that_lies_there_itself_is_no_earlier_store(home: Path) -> None:
    data = home / ".gemini" / "antigravity" / "plugin-data" / "context-anchor"
    AnchorStore(data).pin(SESSION, draft("T"), actor="a")
    assert import_once(str(data), home, {}) is None

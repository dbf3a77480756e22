"""Export and import: everything is checked before anything is written."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.anchors.anchor import MAX_ANCHORS
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.anchors.transfer import export_scopes, import_document
from context_anchor.errors import (
    ContextAnchorError,
    ImportFormatError,
    ScopeFullError,
    SecretRefusedError,
    UsageError,
)

from .conftest import OTHER, SESSION, START, draft


@pytest.fixture
def document(store: AnchorStore, workspace: WorkspaceScope) -> dict[str, Any]:
    store.pin(SESSION, draft("One", "1", priority="critical", refs=["a.py"], tags=["x"], origin="user"), actor="a")
    store.pin(SESSION, draft("Two", "2"), actor="a")
    store.pin(workspace, draft("Shared", "3"), actor="a")
    made = export_scopes(store, (SESSION, OTHER, workspace), at=START)
    result: dict[str, Any] = json.loads(json.dumps(made))
    return result


def test_what_is_exported_comes_back_on_another_machine(
    store: AnchorStore, document: dict[str, Any], workspace: WorkspaceScope, tmp_path: Path
) -> None:
    assert [len(part["anchors"]) for part in document["scopes"]] == [2, 1]
    other = AnchorStore(tmp_path / "other")
    done = import_document(other, document, actor="a")
    assert [one.scope for one in done] == [SESSION, workspace]
    for scope in (SESSION, workspace):
        assert {a.draft for a in other.read(scope).anchors} == {a.draft for a in store.read(scope).anchors}
    again = import_document(other, document, actor="a")
    assert [one.result.revision for one in again] == [1, 1]
    assert all(one.result.updated == one.result.added == () for one in again)


def test_merge_keeps_what_is_there_and_replace_does_not(store: AnchorStore, document: dict[str, Any]) -> None:
    kept = store.pin(SESSION, draft("Three"), actor="a").anchor
    one = store.find((SESSION,), title="One")
    store.pin(SESSION, draft("one", "changed"), actor="a")
    (session, _) = import_document(store, document, actor="a")
    assert [(a.id, a.content) for a in session.result.updated] == [(one.id, "1")]
    assert kept in session.result.anchors and session.result.removed == ()
    (session, _) = import_document(store, document, actor="a", mode="replace")
    assert session.result.removed == (kept,)
    assert store.undo(SESSION, actor="a").undone.op == "replace"
    assert kept.draft in [a.draft for a in store.read(SESSION).anchors]


def test_everything_can_go_into_one_scope(store: AnchorStore, document: dict[str, Any]) -> None:
    (done,) = import_document(store, document, actor="a", into=OTHER)
    assert {a.title for a in store.read(OTHER).anchors} == {"One", "Two", "Shared"}
    assert {a.scope for a in done.result.anchors} == {"session"}
    document["scopes"][1]["anchors"][0]["title"] = "two "
    with pytest.raises(ImportFormatError, match=r"scopes\[1\]\.anchors\[0\]: a second anchor"):
        import_document(store, document, actor="a", into=OTHER)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(format="context-anchor-export/2"), "newer format"),
        (lambda d: d.update(format="x" * 500), "format is 'xxx"),
        (lambda d: d.pop("format"), "format is None"),
        (lambda d: d.update(scopes={}), "scopes is no list"),
        (lambda d: d["scopes"].append(7), r"scopes\[2\] has no list"),
        (lambda d: d["scopes"][1].update(scope="galaxy"), r"scopes\[1\]: scope 'galaxy' is unknown"),
        (lambda d: d["scopes"][1].update(workspace_id=""), r"scopes\[1\]: workspace_id '' is no id"),
        (lambda d: d["scopes"][1]["anchors"].append(None), r"scopes\[1\]\.anchors\[1\] is no object"),
        (lambda d: d["scopes"][1]["anchors"][0].pop("content"), r"anchors\[0\]: content is missing"),
        (lambda d: d["scopes"][1]["anchors"][0].update(content="c" * 4001), "4,001 characters"),
        (lambda d: d["scopes"][1]["anchors"][0].update(priority="urgent"), "priority 'urgent' is unknown"),
        (lambda d: d["scopes"][1]["anchors"][0].update(title="a\u202eb"), r"U\+202E"),
    ],
)
def test_one_fault_anywhere_and_nothing_is_written(
    document: dict[str, Any], tmp_path: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    change(document)
    with pytest.raises(ImportFormatError, match=says):
        import_document(AnchorStore(tmp_path / "other"), document, actor="a")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("value", [None, [], "text", 7])
def test_what_is_no_document_is_refused(store: AnchorStore, value: object) -> None:
    with pytest.raises(ImportFormatError):
        import_document(store, value, actor="a")


def test_secrets_full_scopes_and_unknown_modes_are_refused_before_anything_is_written(
    document: dict[str, Any], tmp_path: Path
) -> None:
    other = AnchorStore(tmp_path / "other")
    secret = copy.deepcopy(document)
    secret["scopes"][1]["anchors"][0]["content"] = "token ghp_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1bC2"
    with pytest.raises(SecretRefusedError):
        import_document(other, secret, actor="a")
    full = copy.deepcopy(document)
    full["scopes"][1]["anchors"] = [dict(full["scopes"][1]["anchors"][0], title=f"T{n}") for n in range(201)]
    with pytest.raises(ScopeFullError):
        import_document(other, full, actor="a")
    with pytest.raises(UsageError, match="merge or replace"):
        import_document(other, document, actor="a", mode="append")  # type: ignore[arg-type]
    assert not (tmp_path / "other").exists()
    assert import_document(other, secret, actor="a", allow_secret=True)


def test_a_merge_that_would_overfill_changes_no_scope(store: AnchorStore, document: dict[str, Any]) -> None:
    scope = SessionScope("claude-code", "full")
    store.replace(scope, [draft(f"T{n}") for n in range(MAX_ANCHORS)], actor="a")
    with pytest.raises(ScopeFullError):
        import_document(store, document, actor="a", into=scope)
    assert store.read(scope).revision == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["format", "scopes", "scope", "anchors", "title", "content", "host", "session_id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=150, deadline=None)
def test_no_document_whatever_ends_in_anything_but_our_own_errors(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    store = AnchorStore(tmp_path_factory.getbasetemp() / "any-document")
    wrapped = {"format": "context-anchor-export/1", "scopes": value if isinstance(value, list) else [value]}
    for one in (value, wrapped):
        try:
            import_document(store, one, actor="a")
        except ContextAnchorError as refused:
            assert refused.code == "import_format"

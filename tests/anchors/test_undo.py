"""History, and taking changes back."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_anchor.anchors.anchor import MAX_ANCHORS
from context_anchor.anchors.store import AnchorStore
from context_anchor.errors import ContextAnchorError, NothingToUndoError, ScopeFullError, StaleRevisionError

from .conftest import SESSION, draft


def contents(store: AnchorStore) -> dict[str, str]:
    return {a.title: a.content for a in store.read(SESSION).anchors}


def test_history_shows_changes_with_former_values_newest_first(store: AnchorStore) -> None:
    first = store.pin(SESSION, draft("T", "one"), actor="agent:claude").anchor
    other = store.pin(SESSION, draft("U"), actor="agent").anchor
    second = store.pin(SESSION, draft("T", "two"), actor="agent").anchor
    store.unpin(SESSION, actor="user", title="T")
    entries = store.history(SESSION)
    assert [(e.entry, e.op, e.actor) for e in entries] == [
        (4, "unpin", "user"),
        (3, "update", "agent"),
        (2, "pin", "agent"),
        (1, "pin", "agent:claude"),
    ]
    assert (entries[1].changes[0].before, entries[1].changes[0].after) == (first, second)
    assert [e.entry for e in store.history(SESSION, anchor_id=first.id)] == [4, 3, 1]
    assert [e.entry for e in store.history(SESSION, anchor_id=other.id)] == [2]
    assert [e.entry for e in store.history(SESSION, limit=2)] == [4, 3]


def test_undo_walks_back_and_each_undo_is_in_the_history(store: AnchorStore) -> None:
    store.pin(SESSION, draft("T", "one"), actor="a")
    store.pin(SESSION, draft("T", "two"), actor="a")
    store.pin(SESSION, draft("U"), actor="a")
    store.unpin(SESSION, actor="a", clear_all=True)
    store.replace(SESSION, [draft("V")], actor="a")
    seen = []
    for _ in range(5):
        seen.append(contents(store))
        store.undo(SESSION, actor="a")
    assert seen == [
        {"V": draft("V").content},
        {},
        {"T": "two", "U": draft("U").content},
        {"T": "two"},
        {"T": "one"},
    ]
    assert contents(store) == {}
    with pytest.raises(NothingToUndoError):
        store.undo(SESSION, actor="a")
    assert [e.op for e in store.history(SESSION)][:5] == ["undo"] * 5


def test_undo_brings_an_anchor_back_as_it_was_with_a_fresh_revision(store: AnchorStore) -> None:
    first = store.pin(SESSION, draft("T", "one"), actor="a").anchor
    store.pin(SESSION, draft("T", "two"), actor="a")
    result = store.undo(SESSION, actor="a")
    (back,) = result.restored
    assert (back.draft, back.id, back.updated_at, back.revision) == (first.draft, first.id, first.updated_at, 3)
    assert result.removed == ()
    assert store.undo(SESSION, actor="a").removed == (back,)


def test_an_undo_can_be_undone_by_its_number_and_then_again(store: AnchorStore) -> None:
    store.pin(SESSION, draft("T", "one"), actor="a")
    store.unpin(SESSION, actor="a", title="T")
    undo = store.undo(SESSION, actor="a")
    assert contents(store) == {"T": "one"}
    store.undo(SESSION, actor="a", entry=undo.revision)
    assert contents(store) == {}
    with pytest.raises(NothingToUndoError, match=r"entry 3 .* already undone, by entry 4"):
        store.undo(SESSION, actor="a", entry=undo.revision)
    assert store.undo(SESSION, actor="a").undone.entry == 2
    assert contents(store) == {"T": "one"}


def test_an_older_entry_is_undone_only_while_its_anchors_are_as_it_left_them(store: AnchorStore) -> None:
    store.pin(SESSION, draft("T", "one"), actor="a")
    store.pin(SESSION, draft("U"), actor="a")
    assert store.undo(SESSION, actor="a", entry=1).undone.entry == 1
    assert set(contents(store)) == {"U"}
    store.undo(SESSION, actor="a", entry=3)
    store.pin(SESSION, draft("T", "two"), actor="a")
    with pytest.raises(StaleRevisionError, match="changed again after entry 1"):
        store.undo(SESSION, actor="a", entry=1)
    with pytest.raises(NothingToUndoError, match="no entry 99"):
        store.undo(SESSION, actor="a", entry=99)
    assert contents(store)["T"] == "two"


def test_undo_refuses_to_bring_back_a_title_that_is_taken(store: AnchorStore) -> None:
    store.pin(SESSION, draft("T"), actor="a")
    store.unpin(SESSION, actor="a", title="T")
    store.pin(SESSION, draft("t", "another"), actor="a")
    with pytest.raises(StaleRevisionError, match="is now that of anchor"):
        store.undo(SESSION, actor="a", entry=2)


def test_undo_refuses_to_overfill_a_scope(store: AnchorStore) -> None:
    store.pin(SESSION, draft("T"), actor="a")
    store.unpin(SESSION, actor="a", title="T")
    store.replace(SESSION, [draft(f"N{n}") for n in range(MAX_ANCHORS)], actor="a")
    with pytest.raises(ScopeFullError):
        store.undo(SESSION, actor="a", entry=2)


STEPS = st.lists(
    st.tuples(st.sampled_from(["pin", "unpin", "clear", "replace", "merge"]), st.integers(0, 3), st.integers(0, 2)),
    max_size=7,
)


@given(STEPS)
@settings(max_examples=25, deadline=None)
def test_undoing_everything_step_by_step_passes_every_former_state(steps: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as data:
        store = AnchorStore(data)
        states = [contents(store)]
        for op, number, text in steps:
            before = store.read(SESSION).revision
            title, content = f"T{number}", f"c{text}"
            try:
                if op == "pin":
                    store.pin(SESSION, draft(title, content), actor="a")
                elif op == "unpin":
                    store.unpin(SESSION, actor="a", title=title)
                elif op == "clear":
                    store.unpin(SESSION, actor="a", clear_all=True)
                elif op == "replace":
                    store.replace(SESSION, [draft(f"T{n}", content) for n in range(number)], actor="a")
                else:
                    store.merge(SESSION, [draft(f"T{n}", content) for n in range(number)], actor="a")
            except ContextAnchorError as refused:
                assert refused.code == "anchor_not_found"
            if store.read(SESSION).revision != before:
                states.append(contents(store))
        assert contents(AnchorStore(data)) == states[-1]
        for state in reversed(states[:-1]):
            store.undo(SESSION, actor="a")
            assert contents(store) == state
        with pytest.raises(NothingToUndoError):
            store.undo(SESSION, actor="a")
        assert store.check() == ()

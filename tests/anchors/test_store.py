"""What the store keeps, supersedes, refuses and finds."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from context_anchor.anchors.anchor import MAX_ANCHORS
from context_anchor.anchors.scope import AnyScope, ScopeFiles, SessionScope, WorkspaceScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.errors import (
    AmbiguousTitleError,
    AnchorNotFoundError,
    InvalidAnchorError,
    LockTimeoutError,
    ScopeFullError,
    SecretRefusedError,
    StaleRevisionError,
    UsageError,
)
from context_anchor.wire import bundle, registry, workspace

from .conftest import OTHER, SESSION, Clock, draft

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1bC2"


def test_a_pin_is_there_for_the_next_process_and_for_the_hook(
    make_store: Callable[[], AnchorStore], data: str
) -> None:
    pinned = make_store().pin(SESSION, draft("Parser", refs=["src/parse.py"]), actor="agent")
    assert (pinned.created, pinned.superseded, pinned.revision, pinned.notices) == (True, None, 1, ())
    snapshot = make_store().read(SESSION)
    assert snapshot.anchors == (pinned.anchor,)
    assert (snapshot.revision, snapshot.notices, snapshot.writable) == (1, (), True)
    revision, entries = bundle.load_part(ScopeFiles.of(data, SESSION).bundle)
    assert revision == 1
    assert entries[0]["text"].startswith("## [normal] Parser {")


def test_scopes_do_not_see_each_other(store: AnchorStore, workspace: WorkspaceScope) -> None:
    twin = SessionScope("antigravity", SESSION.session_id)
    scopes: tuple[AnyScope, ...] = (SESSION, OTHER, workspace, twin)
    for number, scope in enumerate(scopes):
        store.pin(scope, draft(f"T{number}"), actor="agent")
    for number, scope in enumerate(scopes):
        (anchor,) = store.read(scope).anchors
        assert (anchor.title, anchor.scope) == (f"T{number}", scope.kind)
    assert set(store.scopes()) == set(scopes)


def test_an_empty_scope_is_empty_and_leaves_no_file(store: AnchorStore, data: str) -> None:
    assert store.read(SESSION) == type(store.read(SESSION))((), 0)
    assert not Path(data).exists()
    assert store.scopes() == ()
    assert store.check() == ()
    assert store.history(SESSION) == ()


def test_the_same_title_supersedes_and_keeps_the_id(store: AnchorStore) -> None:
    first = store.pin(SESSION, draft("Build  Command", "make"), actor="agent")
    second = store.pin(SESSION, draft("build command", "ninja", priority="high"), actor="agent")
    assert (second.created, second.superseded) == (False, first.anchor)
    assert (second.anchor.id, second.anchor.revision) == (first.anchor.id, 2)
    assert second.anchor.created_at == first.anchor.created_at < second.anchor.updated_at
    assert store.read(SESSION).anchors == (second.anchor,)


def test_anchor_id_names_what_to_supersede_even_under_a_new_title(store: AnchorStore) -> None:
    first = store.pin(SESSION, draft("Old name"), actor="agent").anchor
    store.pin(SESSION, draft("Taken"), actor="agent")
    renamed = store.pin(SESSION, draft("New name"), actor="agent", anchor_id=first.id).anchor
    assert (renamed.id, renamed.title) == (first.id, "New name")
    with pytest.raises(InvalidAnchorError, match="already that of anchor"):
        store.pin(SESSION, draft("TAKEN"), actor="agent", anchor_id=first.id)
    with pytest.raises(AnchorNotFoundError, match="'a-none'"):
        store.pin(SESSION, draft("x"), actor="agent", anchor_id="a-none")
    assert store.read(SESSION).revision == 3


def test_a_stale_revision_is_refused_and_changes_nothing(store: AnchorStore) -> None:
    anchor = store.pin(SESSION, draft("T", "one"), actor="agent").anchor
    updated = store.pin(SESSION, draft("T", "two"), actor="agent", anchor_id=anchor.id, expected_revision=1)
    for expected in (0, 1, 3):
        with pytest.raises(StaleRevisionError, match="at revision 2"):
            store.pin(SESSION, draft("T", "three"), actor="agent", expected_revision=expected)
    with pytest.raises(StaleRevisionError, match="at revision 0"):
        store.pin(SESSION, draft("gone"), actor="agent", expected_revision=1)
    with pytest.raises(StaleRevisionError, match="is at revision 2, not 1"):
        store.replace(SESSION, [], actor="agent", expected_revision=1)
    assert store.read(SESSION).anchors == (updated.anchor,)


def test_two_hundred_anchors_fit_and_the_next_is_refused(store: AnchorStore) -> None:
    full = store.replace(SESSION, [draft(f"T{n}") for n in range(MAX_ANCHORS)], actor="agent")
    assert len(full.anchors) == len(full.added) == MAX_ANCHORS
    with pytest.raises(ScopeFullError, match="201 anchors, at most 200"):
        store.pin(SESSION, draft("one more"), actor="agent")
    with pytest.raises(ScopeFullError):
        store.merge(SESSION, [draft("one more")], actor="agent")
    with pytest.raises(ScopeFullError):
        store.replace(OTHER, [draft(f"T{n}") for n in range(MAX_ANCHORS + 1)], actor="agent")
    store.pin(SESSION, draft("T7", "an update still fits"), actor="agent")
    assert (store.read(SESSION).revision, store.read(OTHER).revision) == (2, 0)


def test_unpin_by_id_by_prefix_by_title_and_all(store: AnchorStore) -> None:
    made = [store.pin(SESSION, draft(f"T{n}"), actor="agent").anchor for n in range(4)]
    assert store.unpin(SESSION, actor="a", anchor_id=made[0].id).removed == (made[0],)
    assert store.unpin(SESSION, actor="a", title=" t1 ").removed == (made[1],)
    with pytest.raises(AmbiguousTitleError, match=r"2 anchors fit .*T2.*T3"):
        store.unpin(SESSION, actor="a", anchor_id=made[2].id[:8])
    with pytest.raises(AnchorNotFoundError):
        store.unpin(SESSION, actor="a", anchor_id=made[2].id[:4])
    with pytest.raises(AnchorNotFoundError, match=r"Near: .*T2"):
        store.unpin(SESSION, actor="a", title="T22")
    cleared = store.unpin(SESSION, actor="a", clear_all=True)
    assert set(cleared.removed) == {made[2], made[3]}
    assert store.unpin(SESSION, actor="a", clear_all=True) == type(cleared)((), cleared.revision)
    with pytest.raises(AnchorNotFoundError, match="nothing is pinned there"):
        store.unpin(SESSION, actor="a", title="T1")


@pytest.mark.parametrize(
    "how", [{}, {"anchor_id": "a", "title": "b"}, {"title": "b", "clear_all": True}, {"anchor_id": 7}]
)
def test_unpin_wants_exactly_one_way_to_choose(store: AnchorStore, how: dict[str, object]) -> None:
    store.pin(SESSION, draft("T"), actor="agent")
    with pytest.raises(UsageError):
        store.unpin(SESSION, actor="a", **how)  # type: ignore[arg-type]
    assert len(store.read(SESSION).anchors) == 1


def test_replace_keeps_what_is_the_same_and_says_what_changed(store: AnchorStore) -> None:
    keep, change, drop = (store.pin(SESSION, draft(t), actor="agent").anchor for t in ("keep", "change", "drop"))
    result = store.replace(
        SESSION, [draft("keep"), draft("change", "new"), draft("fresh")], actor="agent",
        expected_revision=3,
    )  # fmt: skip
    assert result.revision == 4
    assert result.removed == (drop,)
    assert [a.title for a in result.added] == ["fresh"]
    assert [(a.id, a.revision, a.content) for a in result.updated] == [(change.id, 2, "new")]
    assert keep in result.anchors
    assert store.read(SESSION).anchors == result.anchors
    same = store.replace(SESSION, [a.draft for a in result.anchors], actor="agent")
    assert (same.revision, same.added, same.updated, same.removed) == (4, (), (), ())


def test_replace_and_merge_refuse_two_drafts_of_one_title(store: AnchorStore) -> None:
    for put in (store.replace, store.merge):
        with pytest.raises(InvalidAnchorError, match="two of the anchors have the title"):
            put(SESSION, [draft("Same"), draft("same ")], actor="agent")
    assert store.read(SESSION).revision == 0


def test_find_looks_through_all_scopes_and_lists_the_candidates(
    store: AnchorStore, workspace: WorkspaceScope
) -> None:
    mine = store.pin(SESSION, draft("Deploy steps"), actor="agent").anchor
    shared = store.pin(workspace, draft("Deploy Steps"), actor="agent").anchor
    only = store.pin(workspace, draft("Port is 8080"), actor="agent").anchor
    scopes = (SESSION, workspace)
    assert store.find(scopes, anchor_id=shared.id) == shared
    assert store.find(scopes, anchor_id="{" + mine.id + "}") == mine
    assert store.find(scopes, title="port IS 8080") == only
    with pytest.raises(AmbiguousTitleError) as caught:
        store.find(scopes, title="deploy steps")
    assert mine.id in str(caught.value) and shared.id in str(caught.value)
    with pytest.raises(AnchorNotFoundError):
        store.find(scopes, title="port")
    assert store.find(scopes, title="port", partial=True) == only
    with pytest.raises(AmbiguousTitleError):
        store.find(scopes, title="steps", partial=True)
    with pytest.raises(AnchorNotFoundError):
        store.find(scopes, title="", partial=True)
    with pytest.raises(UsageError):
        store.find(scopes)


@pytest.mark.parametrize(
    "where", [{"title": TOKEN}, {"content": f"token is {TOKEN}"}, {"refs": ["a", TOKEN]}, {"tags": [TOKEN]}]
)
def test_a_secret_is_refused_before_any_byte_is_written(
    store: AnchorStore, data: str, where: dict[str, object]
) -> None:
    bad = draft(**{"title": "T", "content": "c", **where})  # type: ignore[arg-type]
    for put in (
        lambda: store.pin(SESSION, bad, actor="a"),
        lambda: store.replace(SESSION, [draft("ok"), bad], actor="a"),
        lambda: store.merge(SESSION, [bad], actor="a"),
    ):
        with pytest.raises(SecretRefusedError) as caught:
            put()
        assert TOKEN not in str(caught.value)
        assert next(iter(where)) in str(caught.value)
    assert not Path(data).exists()
    store.pin(SESSION, bad, actor="a", allow_secret=True)
    assert store.read(SESSION).anchors[0].draft == bad


def test_names_of_secrets_are_no_secrets(store: AnchorStore) -> None:
    store.pin(SESSION, draft("Key", "The key is read from env.API_KEY, see ${TOKEN}."), actor="a")


def test_files_are_readable_by_the_owner_alone(store: AnchorStore, data: str, workspace: WorkspaceScope) -> None:
    if os.name == "nt":
        pytest.skip("Windows keeps the user's own folder private by its access lists")
    before = os.umask(0)
    try:
        store.pin(SESSION, draft("T"), actor="a")
        store.pin(workspace, draft("T"), actor="a")
    finally:
        os.umask(before)
    for path in (Path(data), *Path(data).rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    "identity", ["../../../etc/passwd", "/abs/path", "a\\..\\b", "CON", "nul.txt", "a" * 512, "\u202e", ".", "a:b"]
)
def test_ids_can_not_reach_outside_the_data_folder(
    store: AnchorStore, data: str, tmp_path: Path, identity: str
) -> None:
    for scope in (
        SessionScope("claude-code", identity),
        SessionScope(identity, "x"),
        WorkspaceScope(identity, ""),
    ):
        store.pin(scope, draft("T"), actor="a")
        assert store.read(scope).anchors
        assert scope in store.scopes()
    inside = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(Path(data) in path.parents for path in inside)
    assert all(len(path.name) < 160 for path in inside)


@pytest.mark.parametrize("identity", ["", "x" * 513])
def test_ids_out_of_bounds_are_refused(identity: str) -> None:
    with pytest.raises(UsageError, match="session_id"):
        SessionScope("claude-code", identity)
    with pytest.raises(UsageError, match="workspace_id"):
        WorkspaceScope(identity)


def test_a_clock_going_backwards_does_not_disturb_order_or_history(store: AnchorStore, clock: Clock) -> None:
    first = store.pin(SESSION, draft("T", "one"), actor="a").anchor
    clock.at = clock.at.replace(year=2001)
    second = store.pin(SESSION, draft("T", "two"), actor="a").anchor
    store.pin(SESSION, draft("U"), actor="a")
    assert second.updated_at >= first.updated_at
    assert [entry.entry for entry in store.history(SESSION)] == [3, 2, 1]
    assert store.undo(SESSION, actor="a").undone.entry == 3
    assert store.read(SESSION).anchors == (second,)


def test_a_held_lock_ends_in_an_error_and_readers_go_on(data: str, store: AnchorStore) -> None:
    store.pin(SESSION, draft("T"), actor="a")
    lock = ScopeFiles.of(data, SESSION).lock
    code = (
        "import filelock, sys, time\n"
        "with filelock.FileLock(sys.argv[1]):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        impatient = AnchorStore(data, lock_wait_s=0.05)
        with pytest.raises(LockTimeoutError, match="another process has held"):
            impatient.pin(SESSION, draft("U"), actor="a")
        assert len(impatient.read(SESSION).anchors) == 1
        holder.stdin.close()
        holder.wait(10)
    assert impatient.pin(SESSION, draft("U"), actor="a").revision == 2


def test_a_workspace_pin_records_its_root_and_keeps_an_attachment(
    store: AnchorStore, data: str, workspace: WorkspaceScope
) -> None:
    from context_anchor.wire import workspace as workspaces

    store.pin(workspace, draft("T"), actor="a")
    record = workspaces.load(data, workspace.workspace_id)
    assert record is not None
    assert (record["root"], record["attached_to"]) == (workspace.root, None)
    moved = WorkspaceScope(workspace.workspace_id, workspace.root + "-moved")
    store.pin(moved, draft("U"), actor="a")
    record = workspaces.load(data, workspace.workspace_id)
    assert record is not None and record["root"] == moved.root
    assert store.scopes() == (moved,)
    # Without a known root the recorded one stays.
    store.pin(WorkspaceScope(workspace.workspace_id), draft("V"), actor="a")
    assert store.scopes() == (moved,)


def test_refs_are_looked_for_below_the_sessions_workspace(store: AnchorStore, data: str, tmp_path: Path) -> None:
    record = registry.new(SESSION.host, SESSION.session_id, 1.0)
    record["workspace_root"] = str(tmp_path)
    registry.save(data, record)
    store.pin(SESSION, draft("T", refs=["src/a.py:3", "https://x.org"]), actor="a")
    _, entries = bundle.load_part(ScopeFiles.of(data, SESSION).bundle)
    assert entries[0]["refs"] == [str(tmp_path / "src" / "a.py")]


def registered(data: str, session_id: str, *, forked_from: str = "", started_at: float = 0.0) -> SessionScope:
    record = registry.new("claude-code", session_id, started_at)
    record["forked_from"] = forked_from
    registry.save(data, record)
    return SessionScope("claude-code", session_id)


def test_a_fork_takes_its_parents_anchors_once_at_first_use(store: AnchorStore, data: str, clock: Clock) -> None:
    parent = registered(data, "parent")
    early = store.pin(parent, draft("early", "one"), actor="a").anchor
    dropped = store.pin(parent, draft("dropped later"), actor="a").anchor
    child = registered(data, "child", forked_from="parent", started_at=clock().timestamp())
    store.pin(parent, draft("early", "changed after the fork"), actor="a")
    store.pin(parent, draft("late"), actor="a")
    store.unpin(parent, actor="a", anchor_id=dropped.id)
    assert store.read(child).anchors == (dropped, early)
    assert len(store.read(parent).anchors) == 2
    store.unpin(child, actor="a", clear_all=True)
    assert store.read(child).anchors == ()
    assert store.adopt_fork(parent, child) == 0
    assert [entry.op for entry in store.history(child)] == ["clear", "adopt"]


def test_a_fork_of_a_fork_and_a_ring_of_forks_come_to_an_end(store: AnchorStore, data: str, clock: Clock) -> None:
    grand = registered(data, "grand")
    store.pin(grand, draft("T"), actor="a")
    later = clock().timestamp()
    registered(data, "mid", forked_from="grand", started_at=later)
    leaf = registered(data, "leaf", forked_from="mid", started_at=later + 50)
    assert [a.title for a in store.read(leaf).anchors] == ["T"]
    one = registered(data, "one", forked_from="two", started_at=later)
    registered(data, "two", forked_from="one", started_at=later)
    own = registered(data, "own", forked_from="own", started_at=later)
    assert store.read(one).anchors == store.read(own).anchors == ()


def test_a_fork_pins_into_its_own_copy(store: AnchorStore, data: str) -> None:
    parent = registered(data, "parent")
    store.pin(parent, draft("T", "of the parent"), actor="a")
    child = registered(data, "child", forked_from="parent")
    result = store.pin(child, draft("T", "of the child"), actor="a")
    assert not result.created
    assert [a.content for a in store.read(parent).anchors] == ["of the parent"]
    assert store.adopt_fork(parent, child) == 0


def test_reading_does_not_import_the_lock(data: str, store: AnchorStore) -> None:
    store.pin(SESSION, draft("T"), actor="a")
    code = (
        "import sys\n"
        "from context_anchor.anchors.store import AnchorStore, SessionScope\n"
        f"s = AnchorStore({data!r}).read(SessionScope({SESSION.host!r}, {SESSION.session_id!r}))\n"
        "print(len(s.anchors), 'filelock' in sys.modules, 'json' in sys.modules, 'mcp' in sys.modules)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.split() == ["1", "False", "False", "False"]


def test_workspace_ids_of_real_folders_work(store: AnchorStore, tmp_path: Path) -> None:
    scope = WorkspaceScope(*workspace.identify(str(tmp_path)))
    assert store.pin(scope, draft("T"), actor="a").anchor.scope == "workspace"

"""Which anchors a command works on: the session and workspace that its options name or its folder has."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_anchor.anchors.anchor import Anchor
from context_anchor.anchors.lookup import one_selector
from context_anchor.anchors.scope import AnyScope, SessionScope, WorkspaceScope
from context_anchor.anchors.sessions import ResolvedSession, resolve_session
from context_anchor.anchors.store import AnchorStore
from context_anchor.anchors.text import shorten
from context_anchor.cli.terminal import path_of
from context_anchor.errors import (
    AnchorNotFoundError,
    ContextAnchorError,
    SessionAmbiguousError,
    SessionUnknownError,
    UsageError,
    WorkspaceUnknownError,
)
from context_anchor.server.caller import Place
from context_anchor.wire import paths, registry
from context_anchor.wire import workspace as workspaces

ACTOR = "user"
CLI_HOST = "cli"
"""Host name of sessions that a person opens from the command line (`--session cli/NAME`)."""
# Variables in which a host tells its commands the session they run in.
SESSION_VARIABLES = (
    ("claude-code", "CLAUDE_CODE_SESSION_ID"),
    ("antigravity", "ANTIGRAVITY_CONVERSATION_ID"),
)
_WORKSPACE_ID = "w-"
_LEAST_ID = 8


@dataclass(frozen=True, slots=True)
class Counter:
    """What commands work with: the data folder, its store, and this process's surroundings."""

    data: str
    store: AnchorStore
    env: Mapping[str, str]
    now: float
    notes: tuple[str, ...] = ()


def open_counter() -> Counter:
    """Open the store of the user's data folder, and import earlier stores where that was not done yet."""
    from context_anchor.anchors import legacy

    data = paths.data_dir()
    store = AnchorStore(data)
    notes: tuple[str, ...] = ()
    try:
        done = legacy.import_once(data, Path.home())
    except (ContextAnchorError, OSError, RuntimeError) as problem:
        notes = (f"earlier anchors were not imported: {problem}",)
    else:
        if done is not None and (done.anchors or done.problems):
            notes = (f"{done.anchors} anchors were imported once from {', '.join(done.sources)}", *done.problems)
    return Counter(data, store, os.environ, time.time(), notes)


def find_place(counter: Counter, options: argparse.Namespace) -> Place:
    """Return the session and workspace that the options mean.

    Raises SessionUnknownError, SessionAmbiguousError and WorkspaceUnknownError for what was named; where
    nothing was named and nothing can be told, the place says why it has none.
    """
    named = getattr(options, "workspace", None)
    workspace, no_workspace = (find_workspace(counter, named), None) if named is not None else _here(counter)
    wanted = getattr(options, "session", None)
    if wanted is not None:
        known = named_session(counter, wanted, workspace)
        shared = workspace if named is not None else known.workspace_scope or workspace
        return Place(known.scope, shared, "named", known.warning, None, no_workspace)
    if named is not None and getattr(options, "scope", None) != "session":
        return Place(None, workspace, "none", "", _not_looked_for(), None)
    try:
        known, how = _current_session(counter, workspace)
    except (SessionUnknownError, SessionAmbiguousError) as problem:
        return Place(None, workspace, "none", "", _for_people(problem), no_workspace)
    return Place(known.scope, workspace or known.workspace_scope, how, known.warning, None, no_workspace)


def _not_looked_for() -> ContextAnchorError:
    return SessionUnknownError(
        "--workspace alone means the workspace's own anchors", hint="Add --session ID or --scope session."
    )


def _for_people(problem: ContextAnchorError) -> ContextAnchorError:
    """Return an error whose advice speaks of options, where the server's speaks of a tool's arguments."""
    return type(problem)(
        problem.message, hint="Name one with --session ID, or use the workspace's anchors (--scope workspace)."
    )


def _here(counter: Counter) -> tuple[WorkspaceScope | None, ContextAnchorError | None]:
    try:
        folder = Path.cwd()
        is_home = folder in (folder.parent, Path.home().resolve())
    except (OSError, RuntimeError) as problem:
        return None, WorkspaceUnknownError(f"this folder can't be used: {problem}", hint="Change to another.")
    if is_home:
        return None, WorkspaceUnknownError(
            f"{folder} is no project", hint="Change to the project's folder, or name it with --workspace."
        )
    return WorkspaceScope(*workspaces.resolve(counter.data, str(folder))), None


def find_workspace(counter: Counter, named: str) -> WorkspaceScope:
    """Return the workspace of a folder, or of an id or 8 or more characters of one."""
    if named.startswith(_WORKSPACE_ID) and len(named) >= _LEAST_ID and not _exists(named):
        known = known_workspaces(counter)
        fits = [scope for scope in known.values() if scope.workspace_id.startswith(named)]
        if len(fits) == 1:
            return fits[0]
        raise WorkspaceUnknownError(
            f"{len(fits) or 'no'} workspaces have an id that begins with {shorten(named)}",
            hint="See: context-anchor workspaces",
        )
    folder = existing_folder(named)
    return WorkspaceScope(*workspaces.resolve(counter.data, folder))


def _exists(named: str) -> bool:
    try:
        return path_of(named).exists()
    except (OSError, ValueError):
        return False


def existing_folder(named: str) -> str:
    """Return a folder's absolute path; raises WorkspaceUnknownError."""
    try:
        folder = path_of(named).expanduser()
        if named and folder.is_dir():
            return str(folder.absolute())
    except (OSError, ValueError, RuntimeError) as problem:
        raise WorkspaceUnknownError(f"{shorten(named)} is no folder: {problem}", hint="Name a folder.") from None
    raise WorkspaceUnknownError(
        f"{shorten(named)} is no folder",
        hint="Name a folder of the workspace, or its id; see: context-anchor workspaces",
    )


def known_workspaces(counter: Counter) -> dict[str, WorkspaceScope]:
    """Return every workspace with anchors, a record or a session, by id; roots where they are known."""
    found: dict[str, WorkspaceScope] = {}

    def add(workspace_id: object, root: object) -> None:
        if not isinstance(workspace_id, str) or not 0 < len(workspace_id) <= paths.MAX_ID_CHARS:
            return
        known = found.get(workspace_id)
        if known is None or not known.root:
            found[workspace_id] = WorkspaceScope(workspace_id, root if isinstance(root, str) else "")

    for record in workspace_records(counter.data):
        add(record.get("workspace_id"), record.get("root"))
    for scope in counter.store.scopes():
        if isinstance(scope, WorkspaceScope):
            add(scope.workspace_id, scope.root)
    for session in registry.all_sessions(counter.data):
        if session["workspace_id"]:
            add(session["workspace_id"], session["workspace_root"])
    return found


def workspace_records(data: str) -> Iterable[dict[str, Any]]:
    """Yield the readable records of workspaces."""
    try:
        names = sorted(path.name for path in Path(data, "workspaces").iterdir())
    except OSError:
        return
    for name in names:
        if name.endswith(".json"):
            record = workspaces.load(data, name[:-5])
            if record:
                yield record


def named_session(counter: Counter, wanted: str, workspace: WorkspaceScope | None = None) -> ResolvedSession:
    """Return the session of an id; also one that no hook registered but that has anchors."""
    try:
        return resolve_session(
            counter.data,
            explicit=wanted,
            workspace=workspace.root or None if workspace else None,
            server_started_at=0,
            now=counter.now,
        )
    except SessionUnknownError as problem:
        stored = [s for s in counter.store.scopes() if isinstance(s, SessionScope) and _fits(s, wanted.strip())]
        if len(stored) == 1:
            return ResolvedSession(stored[0].host, stored[0].session_id, "", "", "explicit")
        if len(stored) > 1:
            raise SessionAmbiguousError(
                f"{len(stored)} sessions fit {shorten(wanted)}: " + ", ".join(s.label for s in stored[:8]),
                hint="Give host/id.",
            ) from None
        host, slash, name = wanted.strip().partition("/")
        if host == CLI_HOST and slash and name:
            return ResolvedSession(CLI_HOST, SessionScope(CLI_HOST, name).session_id, "", "", "explicit")
        raise SessionUnknownError(
            problem.message, hint=f"See: context-anchor sessions --all. A new one of your own: {CLI_HOST}/NAME"
        ) from None


def _fits(scope: SessionScope, wanted: str) -> bool:
    whole = wanted in (scope.session_id, f"{scope.host}/{scope.session_id}")
    return whole or (len(wanted) >= 6 and scope.session_id.startswith(wanted))


def _current_session(counter: Counter, workspace: WorkspaceScope | None) -> tuple[ResolvedSession, str]:
    told: list[tuple[ResolvedSession, str]] = []
    for host, variable in SESSION_VARIABLES:
        value = counter.env.get(variable, "").strip()
        if not 0 < len(value) <= paths.MAX_ID_CHARS:
            continue
        record = registry.load(counter.data, host, value)
        # A session that ended (`/clear` does that) leaves its variable behind in what it had started.
        if record is None or record["ended_at"] or record["subagent"]:
            continue
        if workspace and record["workspace_id"] not in ("", workspace.workspace_id):
            continue
        shared = (record["workspace_id"], record["workspace_root"])
        told.append((ResolvedSession(host, value, *shared, "explicit"), f"named by {variable}"))
    if len(told) > 1:
        raise SessionAmbiguousError(
            "the environment names sessions of two hosts: " + ", ".join(one.scope.label for one, _ in told)
        )
    if told:
        return told[0]
    # The workspace's identity decides, so any folder of it will do.
    folder = workspace.root if workspace else None
    found = resolve_session(counter.data, workspace=folder or None, server_started_at=0, now=counter.now)
    return found, "the only live session here"


def scopes_of(place: Place, options: argparse.Namespace) -> tuple[AnyScope, ...]:
    """Return the scopes that a reading command looks at."""
    return place.scopes(getattr(options, "scope", None))


def scope_to_write(place: Place, options: argparse.Namespace) -> AnyScope:
    """Return the one scope that a writing command changes: the named one, else the session's, else the
    workspace's."""
    kind = getattr(options, "scope", None)
    if kind:
        return place.scope(kind)
    return place.scopes(None)[0]


def unsure(place: Place, options: argparse.Namespace, what: str) -> tuple[str, ...]:
    """Return a note on the session's anchors that are left out because several sessions are live."""
    if options.scope or place.session or not isinstance(place.session_problem, SessionAmbiguousError):
        return ()
    return (f"several sessions are live here, so only the workspace's anchors {what} (else: --session ID)",)


def said(place: Place, scope: AnyScope) -> str:
    """Return how messages name a scope and how it was chosen."""
    if isinstance(scope, SessionScope) and place.how not in ("none", "named"):
        return f"{scope.label} ({place.how})"
    return scope.label


def notes_of(counter: Counter, place: Place, *more: Sequence[str]) -> tuple[str, ...]:
    """Return what the person should know besides the result, each once."""
    found = dict.fromkeys([*counter.notes, place.warning, *(note for part in more for note in part)])
    return tuple(note for note in found if note)


def chosen_anchor(
    counter: Counter, place: Place, options: argparse.Namespace, *, partial: bool = False
) -> tuple[AnyScope, Anchor]:
    """Return the anchor that the options name, and its scope.

    A bare word is an id if one fits, else a title. Raises AnchorNotFoundError, AmbiguousTitleError,
    UsageError.
    """
    scopes = scopes_of(place, options)
    anchor_id, title, word = options.id, options.title, options.anchor
    if word is not None and (anchor_id is not None or title is not None):
        raise UsageError("the anchor was named twice", hint="Give an id or title once.")
    held = {scope: counter.store.read(scope).anchors for scope in scopes}
    if word is not None:
        anchors = [anchor for found in held.values() for anchor in found]
        is_id = word.startswith(("a-", "{a-")) and _is_id(anchors, word.strip("{}"))
        anchor_id, title = (word, None) if is_id else (None, word)
    if anchor_id is None and title is None:
        raise UsageError("no anchor was named", hint="Give its id or title, or --all.")
    one_selector(anchor_id, title, False)
    try:
        anchor = counter.store.find(scopes, anchor_id=anchor_id, title=title, partial=partial)
    except AnchorNotFoundError as problem:
        more = "".join(f" Note: {note}." for note in unsure(place, options, "were looked at"))
        raise AnchorNotFoundError(problem.message, hint=problem.hint + more) from None
    for scope, found in held.items():
        if scope.kind == anchor.scope and any(one.id == anchor.id for one in found):
            return scope, anchor
    raise AnchorNotFoundError(f"anchor {anchor.id} has just been unpinned", hint="List the anchors again.")


def _is_id(anchors: Iterable[Anchor], word: str) -> bool:
    return any(anchor.id == word or (len(word) >= 6 and anchor.id.startswith(word)) for anchor in anchors)

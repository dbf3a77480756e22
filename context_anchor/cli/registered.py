"""`sessions` and `workspaces`: what hosts have opened, and re-attaching a folder that has moved."""

from __future__ import annotations

import argparse
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from context_anchor.anchors import disk
from context_anchor.anchors.scope import SessionScope, WorkspaceScope
from context_anchor.anchors.sessions import is_live
from context_anchor.cli import columns, places, terminal
from context_anchor.cli.outcome import Outcome
from context_anchor.errors import (
    InvalidAnchorError,
    StoreError,
    StoreUnavailableError,
    UsageError,
    WorkspaceUnknownError,
)
from context_anchor.server import summaries
from context_anchor.server.caller import Place
from context_anchor.wire import atomic, paths, quickjson, registry
from context_anchor.wire import workspace as workspace_records

_SESSION_HEAD = ("SESSION", "HOST", "STATE", "SEEN", "ANCHORS", "LAST INJECTION", "WORKSPACE")
_WORKSPACE_HEAD = ("WORKSPACE", "ANCHORS", "SESSIONS", "SEEN", "ROOT")
_LOCK_WAIT_S = 5.0


def sessions(options: argparse.Namespace) -> Outcome:
    """List registered sessions, newest first; with --all of every workspace, and those with anchors alone."""
    counter = places.open_counter()
    place = Place(None, None, "none", "", None, None) if options.all else places.find_place(counter, options)
    wanted = None if options.all else place.scope("workspace")
    rows: list[dict[str, Any]] = []
    seen: set[SessionScope] = set()
    for record in reversed(registry.all_sessions(counter.data)):
        if isinstance(wanted, WorkspaceScope) and record["workspace_id"] != wanted.workspace_id:
            continue
        scope = SessionScope(record["host"], record["session_id"])
        seen.add(scope)
        rows.append(_session_json(counter, scope, record))
    if options.all:
        rows += [
            _session_json(counter, scope, None)
            for scope in counter.store.scopes()
            if isinstance(scope, SessionScope) and scope not in seen
        ]
    cells = [
        (
            terminal.one_line(row["session_id"]),
            terminal.one_line(row["host"]),
            row["state"],
            row["seen_at"] or "-",
            str(row["anchors"]),
            _injection(row["delivery"]),
            terminal.one_line(row["workspace_root"]) or "-",
        )
        for row in rows
    ]
    text = columns.table(_SESSION_HEAD, cells, terminal.width(), right=(4,)) if cells else _no_sessions(wanted)
    return Outcome({"sessions": rows}, text, columns.plain(cells), places.notes_of(counter, place))


def _injection(delivery: dict[str, Any] | None) -> str:
    """Return when anchors were last handed to the host, and whether the model has seen them."""
    if delivery is None:
        return "-"
    seen = {"yes": "delivered", "no": "not seen yet"}.get(str(delivery["delivered"]), "unconfirmed")
    return f"{delivery['at']} {seen}"


def _no_sessions(wanted: object) -> str:
    where = f" of {wanted.root}" if isinstance(wanted, WorkspaceScope) else ""
    return f"No session{where} is registered. Hooks register a session when a host opens one."


def _session_json(counter: places.Counter, scope: SessionScope, record: dict[str, Any] | None) -> dict[str, Any]:
    known = record or registry.new(scope.host, scope.session_id, 0.0)
    delivery = summaries.last_delivery(counter.data, Place(scope, None, "none", "", None, None))
    return {
        "host": scope.host,
        "session_id": scope.session_id,
        "state": _state(counter, record),
        "started_at": _time(known["started_at"]),
        "seen_at": _time(known["seen_at"]),
        "ended_at": _time(known["ended_at"]),
        "workspace_id": known["workspace_id"],
        "workspace_root": known["workspace_root"],
        "forked_from": known["forked_from"],
        "cleared_from": known["cleared_from"],
        "anchors": _count(counter, scope),
        "delivery": delivery.as_json() if delivery else None,
    }


def _state(counter: places.Counter, record: dict[str, Any] | None) -> str:
    if record is None:
        return "unregistered"
    if record["subagent"]:
        return "subagent"
    if record["ended_at"]:
        return "ended"
    return "live" if is_live(record, counter.now) else "idle"


def _count(counter: places.Counter, scope: SessionScope | WorkspaceScope) -> int | None:
    try:
        return len(counter.store.read(scope).anchors)
    except StoreError:
        return None  # doctor says what is wrong with that file


def _time(epoch_seconds: float) -> str:
    if not 0 < epoch_seconds < 4e9:
        return ""
    return datetime.fromtimestamp(epoch_seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def workspaces(options: argparse.Namespace) -> Outcome:
    """List the workspaces that are known, or attach and detach a folder."""
    if options.action == "attach":
        return attach(options)
    if options.action == "detach":
        return detach(options)
    counter = places.open_counter()
    rows: list[dict[str, Any]] = []
    for workspace_id, scope in sorted(places.known_workspaces(counter).items(), key=lambda pair: pair[1].root):
        record = workspace_records.load(counter.data, workspace_id) or {}
        attached = record.get("attached_to")
        rows.append(
            {
                "workspace_id": workspace_id,
                "root": scope.root,
                "exists": bool(scope.root) and Path(scope.root).is_dir(),
                "attached_to": attached if isinstance(attached, str) else None,
                "anchors": _count(counter, scope),
                "sessions": sum(
                    r["workspace_id"] == workspace_id for r in registry.all_sessions(counter.data)
                ),
                "seen_at": _time(_number(record.get("seen_at"))),
            }
        )
    cells = [
        (
            row["workspace_id"],
            str(row["anchors"]),
            str(row["sessions"]),
            row["seen_at"] or "-",
            _root_cell(row),
        )
        for row in rows
    ]
    table = columns.table(_WORKSPACE_HEAD, cells, terminal.width(), right=(1, 2))
    text = table if cells else "No workspace is known."
    return Outcome({"workspaces": rows}, text, columns.plain(cells), counter.notes)


def _root_cell(row: dict[str, Any]) -> str:
    root = terminal.one_line(row["root"]) or "-"
    if row["attached_to"]:
        return f"{root} (uses the anchors of {row['attached_to']})"
    return root if row["exists"] else f"{root} (no such folder)"


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def attach(options: argparse.Namespace) -> Outcome:
    """Let a folder use the anchors of a workspace whose folder has moved there.

    The anchors stay where they are; the folder's own identity points to them. Raises
    WorkspaceUnknownError, UsageError; InvalidAnchorError if the folder has anchors of its own and
    --merge was not given.
    """
    counter = places.open_counter()
    old = _old_workspace(counter, options.old)
    folder = places.existing_folder(options.new)
    new = WorkspaceScope(*workspace_records.identify(folder))
    if new.workspace_id == old.workspace_id:
        raise UsageError(
            f"{options.new} is that workspace already", hint="Nothing is to be done; list its anchors there."
        )
    own = counter.store.read(new).anchors
    merged = 0
    moved = WorkspaceScope(old.workspace_id, new.root)
    if own:
        if not options.merge:
            raise InvalidAnchorError(
                f"{new.root} has {len(own)} anchors of its own, which would no longer be seen",
                hint="Add --merge to bring them over (they win where titles are the same).",
            )
        result = counter.store.merge(
            moved, [anchor.draft for anchor in own], actor=places.ACTOR, allow_secret=True
        )
        merged = len(result.added) + len(result.updated)
    _point(counter, new, old.workspace_id)
    # The old identity is found by the folder it is in now; a pointer of its own would lead in a circle.
    _point(counter, moved, None)
    count = len(counter.store.read(moved).anchors)
    document = {
        "workspace_id": old.workspace_id,
        "root": new.root,
        "attached": new.workspace_id,
        "anchors": count,
        "merged": merged,
    }
    text = f"{new.root} now uses the {count} anchors of {old.root or old.workspace_id}."
    if merged:
        text += f" {merged} of its own were brought over."
    return Outcome(document, text, notes=counter.notes)


def detach(options: argparse.Namespace) -> Outcome:
    """Let a folder have anchors of its own again; nothing is deleted."""
    counter = places.open_counter()
    folder = places.existing_folder(options.new)
    own = WorkspaceScope(*workspace_records.identify(folder))
    record = workspace_records.load(counter.data, own.workspace_id)
    target = record.get("attached_to") if record else None
    if not target:
        raise WorkspaceUnknownError(f"{own.root} is attached to no other workspace")
    _point(counter, own, None)
    text = f"{own.root} has its own anchors again; those of {target} stay where they are."
    return Outcome({"workspace_id": own.workspace_id, "root": own.root, "detached_from": target}, text,
                   notes=counter.notes)  # fmt: skip


def _old_workspace(counter: places.Counter, named: str) -> WorkspaceScope:
    """Return the workspace of an id or of a folder that may be gone."""
    known = places.known_workspaces(counter)
    if not named:
        raise WorkspaceUnknownError("the former folder has no name", hint="See: context-anchor workspaces")
    by_id = [scope for scope in known.values() if len(named) >= 8 and scope.workspace_id.startswith(named)]
    try:
        path = terminal.path_of(named).expanduser()
        texts = {os.path.normcase(str(path.absolute())), os.path.normcase(str(path.resolve()))}
    except (OSError, ValueError, RuntimeError):
        texts = set()
    by_root = [scope for scope in known.values() if scope.root and os.path.normcase(scope.root) in texts]
    # A folder that has been attached is recorded as the root of two; the one with the anchors is meant.
    own = [scope for scope in by_root if not (workspace_records.load(counter.data, scope.workspace_id) or {}).get(
        "attached_to")]  # fmt: skip
    found = {scope.workspace_id: scope for scope in (by_id or own or by_root)}
    if not found and texts:
        for text in sorted(texts):
            workspace_id = workspace_records.identity_of(text)
            if workspace_id in known:
                found[workspace_id] = known[workspace_id]
    if len(found) != 1:
        raise WorkspaceUnknownError(
            f"{len(found) or 'no'} known workspaces fit {terminal.one_line(named)[:200]}",
            hint="See: context-anchor workspaces",
        )
    return next(iter(found.values()))


def _point(counter: places.Counter, scope: WorkspaceScope, target: str | None) -> None:
    """Write a workspace's record, with the workspace whose anchors it uses."""
    path = workspace_records.record_path(counter.data, scope.workspace_id)
    try:
        with disk.locked(path + ".lock", _LOCK_WAIT_S):
            stored = workspace_records.load(counter.data, scope.workspace_id) or {}
            record = {
                **stored,
                "format": workspace_records.FORMAT,
                "workspace_id": scope.workspace_id,
                "root": scope.root,
                "seen_at": counter.now,
                "attached_to": target,
            }
            paths.ensure_folder(str(Path(path).parent))
            atomic.replace_bytes(path, quickjson.dumps(record).encode("ascii"), durable=True)
    except OSError as problem:
        raise StoreUnavailableError(
            f"{path} can't be written: {problem.strerror or problem}", hint="Nothing was changed."
        ) from problem

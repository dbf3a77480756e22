"""What replies say of anchors, scopes, budget and delivery, in both their forms."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

from context_anchor.anchors.anchor import Anchor
from context_anchor.anchors.bundle import ref_path
from context_anchor.anchors.scope import AnyScope, ScopeFiles
from context_anchor.hosts import antigravity, claude_code
from context_anchor.server.caller import Desk, Place
from context_anchor.server.pages import clip, clip_path
from context_anchor.wire import bundle, marks

HEAD_UNITS: Final = 900
"""UTF-16 units kept for what a hook says before the anchors (frame, receipt, missing paths)."""

_CAPS: Final[Mapping[str, int]] = {"claude-code": claude_code.CAP_UNITS, "antigravity": antigravity.CAP_UNITS}
_NOTICES: Final = 4
_NOTICE_BYTES: Final = 160
_PATH_BYTES: Final = 120
_TITLE_BYTES: Final = 800


def summary(anchor: Anchor) -> dict[str, Any]:
    """Return the fields by which an anchor is recognised, without its content."""
    return {
        "id": anchor.id,
        "title": title(anchor),
        "priority": anchor.priority,
        "category": anchor.category,
        "scope": anchor.scope,
        "tokens": anchor.tokens,
        "revision": anchor.revision,
    }


def line(anchor: Anchor) -> str:
    """Return the same as one line of text."""
    return f"{anchor.id} [{anchor.priority}] {details(anchor)}: {title(anchor)}"


def title(anchor: Anchor) -> str:
    """Return the title; one that an earlier version stored longer than today's bound is cut."""
    return clip(anchor.title, _TITLE_BYTES)


def details(anchor: Anchor) -> str:
    """Return category, scope, tokens and revision in words."""
    return f"{anchor.category}, {anchor.scope}, ~{anchor.tokens:,} tokens, revision {anchor.revision}"


def age(anchor: Anchor, now: float) -> str:
    """Return how long ago an anchor was last changed, in its largest whole unit: `5m`, `3h`, `12d`."""
    seconds = max(0, int(now - anchor.updated_at.timestamp()))  # a clock set back must not show negative ages
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def missing_refs(refs: Sequence[str], root: str) -> list[str]:
    """Return those refs that name a path which is not on disk now; relative ones start at the workspace's root.

    Network paths are never touched: looking could hang, or hand credentials to another machine.
    """
    return [ref for ref in refs if not ref.startswith(("\\\\", "//")) and _is_missing(ref_path(ref, root))]


def _is_missing(path: str) -> bool:
    try:
        return bool(path) and not os.path.exists(path)  # noqa: PTH110
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of one injection the pins take, in UTF-16 code units, and the ids of those that do not fit."""

    used: int
    limit: int
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the object form; at most ten ids are listed."""
        form: dict[str, Any] = {"used": self.used, "limit": self.limit, "left_out": len(self.left_out)}
        if self.left_out:
            form["left_out_ids"] = list(self.left_out[:10])
        return form

    def __str__(self) -> str:
        text = f"injection {self.used:,} of {self.limit:,} characters"
        if not self.left_out:
            return text + ", all fit"
        return (
            text
            + f", {len(self.left_out)} left out (shorten, unpin or lower others): "
            + ", ".join(self.left_out[:10])
        )


def budget(desk: Desk, place: Place) -> Budget:
    """Return the budget use of a call's scopes, as a hook of its host would compute it.

    Raises OSError, ValueError, KeyError or TypeError when a bundle part can't be read.
    """
    scopes = [scope for scope in (place.session, place.workspace) if scope is not None]
    parts = [ScopeFiles.of(desk.data, scope).bundle for scope in scopes]
    limit = bundle.budget(desk.env, _CAPS.get(place.host, bundle.DEFAULT_BUDGET))
    return desk.remembered(("budget", limit, *map(_state, parts)), lambda: _budget(parts, limit))


def _budget(parts: Sequence[str], limit: int) -> Budget:
    entries = bundle.merge([bundle.load_part(part)[1] for part in parts])
    left = bundle.select(entries, limit - HEAD_UNITS)[1]
    return Budget(sum(e["units"] for e in entries), limit, tuple(str(e["id"]) for e in left))


def _state(path: str) -> tuple[str, int, int, int]:
    """Return what changes when a file is replaced."""
    try:
        at = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return path, 0, 0, 0
    return path, at.st_mtime_ns, at.st_size, at.st_ino


@dataclass(frozen=True, slots=True)
class Delivery:
    """When anchors last went to the model: epoch seconds, estimated tokens, and how sure that is."""

    at: float
    tokens: int
    delivered: str

    def as_json(self) -> dict[str, Any]:
        """Return the object form, with the time in UTC."""
        return {"at": moment(self.at), "tokens": self.tokens, "delivered": self.delivered}

    def __str__(self) -> str:
        what = {
            "yes": "last delivered to the model at",
            "no": "last handed to the host, not seen by the model yet, at",
        }.get(self.delivered, "last handed to the host (it keeps no trace of delivery) at")
        return f"{what} {moment(self.at)}, {self.tokens:,} tokens"


def last_delivery(data: str, place: Place) -> Delivery | None:
    """Return the newest delivery to a call's session that hooks recorded, or None."""
    if place.session is None:
        return None
    try:
        state = marks.load(data, place.session.host, place.session.session_id)
    except (marks.NewerMarksError, OSError):
        return None
    receipt = state["last_receipt"] if state else None
    if not isinstance(receipt, dict):
        return None
    delivered = str(receipt.get("delivered", "unknown"))
    when = receipt.get("delivered_at") if delivered == "yes" else None
    at = when or receipt.get("at")
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 < at < 4e9:
        return None
    tokens = receipt.get("tokens")
    return Delivery(float(at), tokens if isinstance(tokens, int) else 0, delivered)


def moment(epoch_seconds: float) -> str:
    """Return a time as `YYYY-MM-DDTHH:MM:SSZ`."""
    return datetime.fromtimestamp(epoch_seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def place_json(place: Place, revisions: Mapping[AnyScope, int]) -> dict[str, Any]:
    """Return session and workspace of a call with the revisions of their scopes."""
    form: dict[str, Any] = {}
    if place.session:
        form["session"] = {
            "host": place.session.host,
            "session_id": clip(place.session.session_id, _PATH_BYTES),
            "found_by": place.how,
        }
        if place.session in revisions:
            form["session"]["revision"] = revisions[place.session]
    elif place.session_problem:
        form["session"] = {"unknown": place.session_problem.code}
    if place.workspace:
        form["workspace"] = {"root": clip_path(place.workspace.root, _PATH_BYTES)}
        if place.workspace in revisions:
            form["workspace"]["revision"] = revisions[place.workspace]
    elif place.workspace_problem:
        form["workspace"] = {"unknown": place.workspace_problem.code}
    return form


def place_text(form: Mapping[str, Any]) -> str:
    """Return the same as one line."""
    words = []
    session, shared = form.get("session", {}), form.get("workspace", {})
    if "unknown" in session:
        words.append("no session is known here, workspace scope only")
    elif session:
        known = f"session {session['session_id']} of {session['host']} (found by {session['found_by']})"
        words.append(known + _revision(session))
    if "unknown" in shared:
        words.append("no workspace is known here, session scope only")
    elif shared:
        words.append(f"workspace {shared['root']}{_revision(shared)}")
    return "; ".join(words)


def _revision(form: Mapping[str, Any]) -> str:
    return f", revision {form['revision']}" if "revision" in form else ""


def notices(place: Place, *more: Sequence[str]) -> list[str]:
    """Return what the person or agent should know, each once and short."""
    found = dict.fromkeys([place.warning, *(notice for part in more for notice in part)])
    texts = [clip(" ".join(text.split()), _NOTICE_BYTES) for text in found if text]
    if len(texts) > _NOTICES:
        texts[_NOTICES - 1 :] = [f"and {len(texts) - _NOTICES + 1} more notices: run `context-anchor doctor`"]
    return texts

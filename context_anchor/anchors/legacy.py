"""One-time import of anchors from stores inside a host's own plugin data, which an uninstall deletes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from context_anchor.anchors import disk
from context_anchor.anchors.anchor import (
    CATEGORIES,
    MAX_ANCHORS,
    MAX_CONTENT,
    MAX_REF,
    MAX_REFS,
    MAX_TAG,
    MAX_TAGS,
    MAX_TITLE,
    ORIGINS,
    PRIORITIES,
    Draft,
    format_time,
    matching_title,
)
from context_anchor.anchors.scope import AnyScope, SessionScope, WorkspaceScope, from_identity
from context_anchor.anchors.store import AnchorStore
from context_anchor.errors import ContextAnchorError, InvalidAnchorError, UsageError
from context_anchor.redact import redact
from context_anchor.wire import atomic, paths, quickjson
from context_anchor.wire import workspace as workspaces

FORMAT = "context-anchor-legacy/1"
MARKER = "legacy-import.json"
_MAX_FILES = 500
_MAX_DEPTH = 4
_MAX_BYTES = 8 << 20
_LISTS = ("anchors", "pins", "pinned", "items", "context")
_SESSION_FIELDS = ("session_id", "sessionId", "conversation_id", "conversationId")
_FOLDER_FIELDS = ("workspace_root", "workspace", "root", "project", "cwd")


@dataclass(frozen=True, slots=True)
class LegacyImport:
    """What the import found: how many anchors came over, from which folders, and what could not."""

    anchors: int
    sources: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Plan:
    """Drafts by scope, by title; the first of a title stays."""

    drafts: dict[AnyScope, dict[str, Draft]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def import_once(data: str, home: str | Path, env: Mapping[str, str] | None = None) -> LegacyImport | None:
    """Import earlier stores if there are any and it was not done before; None where nothing was to do.

    Looks into `plugins/data/context-anchor-*` of Claude's configuration folder and into
    `~/.gemini/antigravity/plugin-data/context-anchor`. Nothing there is changed or deleted. Anchors that
    are here already win; long contents are cut with a pointer to the file, secrets are redacted. What
    was done is written to `legacy-import.json` in the data folder, and only once.

    Raises StoreUnavailableError, LockTimeoutError.
    """
    marker = str(Path(data, MARKER))
    if Path(marker).exists():
        return None
    sources = _sources(data, Path(home), os.environ if env is None else env)
    if not sources:
        return None
    with disk.locked(marker + ".lock", 5.0):
        if Path(marker).exists():
            return None
        store = AnchorStore(data)
        plan = _Plan()
        for host, folder in sources:
            for path in _files(folder):
                _read(path, host, plan)
        count = sum(_put(store, scope, list(drafts.values()), plan) for scope, drafts in plan.drafts.items())
        done = LegacyImport(count, tuple(str(folder) for _, folder in sources), tuple(plan.problems))
        record = {
            "format": FORMAT,
            "at": format_time(datetime.now(timezone.utc)),
            "anchors": done.anchors,
            "sources": list(done.sources),
            "problems": list(done.problems)[:200],
        }
        try:
            atomic.replace_bytes(marker, quickjson.dumps(record).encode("ascii"), durable=True)
        except OSError as problem:
            raise disk.unavailable(problem, marker) from problem
    return done


def _sources(data: str, home: Path, env: Mapping[str, str]) -> list[tuple[str, Path]]:
    configured = env.get("CLAUDE_CONFIG_DIR", "").strip()
    claude = Path(configured) if configured else home / ".claude"
    found: list[tuple[str, Path]] = []
    plugin_data = claude / "plugins" / "data"
    try:
        names = sorted(os.listdir(plugin_data))  # noqa: PTH208 - names alone
    except OSError:
        names = []
    for name in names:
        if name == "context-anchor" or name.startswith("context-anchor-"):
            found.append(("claude-code", plugin_data / name))
    found.append(("antigravity", home / ".gemini" / "antigravity" / "plugin-data" / "context-anchor"))
    own = os.path.realpath(data)
    return [(host, path) for host, path in found if path.is_dir() and os.path.realpath(path) != own]


def _files(folder: Path) -> Iterator[Path]:
    """Yield the JSON files of a store, bounded in number, depth and size; links are not followed."""
    count = 0
    for top, folders, names in os.walk(folder, followlinks=False):
        depth = len(Path(top).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _MAX_DEPTH else []
        for name in sorted(names):
            path = Path(top, name)
            if name.endswith(".json") and not path.is_symlink():
                count += 1
                if count > _MAX_FILES:
                    return
                yield path


def _read(path: Path, host: str, plan: _Plan) -> None:
    try:
        raw = atomic.read_bytes(str(path), _MAX_BYTES)
        value = quickjson.loads(raw) if raw else None
    except (OSError, ValueError) as problem:
        plan.problems.append(f"{path}: {problem}")
        return
    for item, outer in _items(value):
        try:
            scope = _scope(item, outer, host, path)
            draft = _draft(item, path)
        except (UsageError, InvalidAnchorError, ValueError) as problem:
            plan.problems.append(f"{path}: {problem}")
            continue
        plan.drafts.setdefault(scope, {}).setdefault(matching_title(draft.title), draft)


def _items(value: object) -> Iterator[tuple[Mapping[str, object], Mapping[str, object]]]:
    """Yield what looks like an anchor in a document, with the object around it."""
    outer: Mapping[str, object] = value if isinstance(value, Mapping) else {}
    lists: list[object] = [value] if isinstance(value, list) else [outer.get(name) for name in _LISTS]
    for one in lists:
        entries = one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
        for item in entries:
            if isinstance(item, Mapping) and isinstance(item.get("title"), str) and item.get("content"):
                yield item, outer


def _scope(item: Mapping[str, object], outer: Mapping[str, object], host: str, path: Path) -> AnyScope:
    if str(outer.get("format", "")).startswith("context-anchor-anchors/"):
        return from_identity(outer)
    wanted = item.get("scope") or outer.get("scope")
    folder = _first(item, outer, _FOLDER_FIELDS)
    if wanted in ("workspace", "project") and folder and Path(folder).is_absolute():
        return WorkspaceScope(*workspaces.identify(folder))
    return SessionScope(host, _first(item, outer, _SESSION_FIELDS) or path.stem)


def _first(item: Mapping[str, object], outer: Mapping[str, object], names: tuple[str, ...]) -> str:
    for holder in (item, outer):
        for name in names:
            value = holder.get(name)
            if isinstance(value, str) and 0 < len(value) <= paths.MAX_ID_CHARS:
                return value
    return ""


def _draft(item: Mapping[str, object], path: Path) -> Draft:
    content = redact(str(item["content"])[: 4 * MAX_CONTENT])
    if len(content) > MAX_CONTENT:
        pointer = f"\n[cut; the whole text stands in {path}]"
        content = content[: max(0, MAX_CONTENT - len(pointer))] + pointer[:MAX_CONTENT]
    return Draft.checked(
        title=redact(str(item["title"])[: 4 * MAX_TITLE])[:MAX_TITLE],
        content=content,
        priority=_choice(item.get("priority"), PRIORITIES, "normal"),
        category=_choice(item.get("category"), CATEGORIES, "state"),
        refs=_texts(item.get("refs"), MAX_REFS, MAX_REF),
        tags=_texts(item.get("tags"), MAX_TAGS, MAX_TAG),
        origin=_choice(item.get("origin"), ORIGINS, "agent"),
    )


def _choice(value: object, allowed: tuple[str, ...], default: str) -> str:
    text = value.strip().lower() if isinstance(value, str) else ""
    return text if text in allowed else default


def _texts(value: object, most: int, longest: int) -> list[str]:
    if not isinstance(value, list):
        return []
    return [redact(text) for text in value if isinstance(text, str) and len(text) <= longest][:most]


def _put(store: AnchorStore, scope: AnyScope, drafts: list[Draft], plan: _Plan) -> int:
    try:
        snapshot = store.read(scope)
        here = {matching_title(anchor.title) for anchor in snapshot.anchors}
        fresh = [draft for draft in drafts if matching_title(draft.title) not in here]
        room = MAX_ANCHORS - len(snapshot.anchors)
        if len(fresh) > room:
            plan.problems.append(f"{scope.label}: {len(fresh) - room} anchors did not fit")
            rank = PRIORITIES.index
            fresh = sorted(fresh, key=lambda draft: rank(draft.priority))[:room]
        if not fresh:
            return 0
        return len(store.merge(scope, fresh, actor="import of an earlier store", allow_secret=True).added)
    except ContextAnchorError as problem:
        plan.problems.append(f"{scope.label}: {problem}")
        return 0

"""Claude Code: found, installed through its own client from a folder of ours, removed, looked over."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from context_anchor.errors import HostConfigError, InstallError
from context_anchor.install import host_settings, interpreter, mirror, render
from context_anchor.install.findings import Finding, Outcome
from context_anchor.install.source import Source

HOST: Final = "claude-code"
TITLE: Final = "Claude Code"
TESTED: Final = ((2, 1, 197), (2, 1, 332))  # the oldest and newest client that the end-to-end tests drive
PERMISSION: Final = "mcp__plugin_context-anchor_anchors__*"
_CLIENT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """This machine's Claude Code: its configuration folder and its client, "" where none was found."""

    config: Path
    client: str
    env: Mapping[str, str]

    @property
    def settings(self) -> Path:
        """The user's settings file."""
        return self.config / "settings.json"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One installed copy of the plugin: `root` is the folder that the client runs it from."""

    plugin_id: str
    enabled: bool
    root: Path
    version: str


def detect(env: Mapping[str, str], home: Path) -> ClaudeCode | None:
    """Return Claude Code if its client or its configuration is on this machine."""
    named = env.get("CLAUDE_CONFIG_DIR", "").strip()
    config = Path(named).expanduser() if named else home / ".claude"
    client = shutil.which("claude", path=env.get("PATH", os.defpath)) or ""
    if not client:
        names = ("claude.exe", "claude.cmd") if os.name == "nt" else ("claude",)
        places = [folder / name for folder in (home / ".local" / "bin", config / "local") for name in names]
        client = next((str(place) for place in places if place.is_file()), "")
    return ClaudeCode(config, client, env) if client or config.is_dir() else None


def folder_of(data: Path) -> Path:
    """Return the folder that the client reads the plugin from; it must stay where it is."""
    return data / "plugins" / "claude-code"


def install(host: ClaudeCode, source: Source, place: render.Place, *, dry_run: bool) -> Outcome:
    """Render the bundle and let the client install it from there.

    Raises HostConfigError where a settings file of the client is broken, InstallError when the client refuses.
    """
    _sound_settings(host)
    folder = folder_of(place.data)
    bundle = render.claude_code(source, place)
    marketplace = str(json.loads(bundle.files[".claude-plugin/marketplace.json"])["name"])
    plugin_id = f"{render.PLUGIN}@{marketplace}"
    add = ("plugin", "marketplace", "add", str(folder))
    get = ("plugin", "install", plugin_id)
    if dry_run:
        changes = mirror.plan(folder, bundle.files)
        planned = (
            f"would write {len(changes.written)} of {len(bundle.files)} files to {folder}",
            f"would run: {_shown(host, add)} ; {_shown(host, get)}",
        )
        return Outcome(HOST, TITLE, planned, findings=_notes(bundle), changed=changes.any)
    others = [p for p in plugins(host) if p.plugin_id != plugin_id and p.enabled]
    changes = mirror.write(folder, bundle.files)
    problem = render.compile_byte_code(folder, place.hook_python) if changes.any else ""
    did = [f"plugin {plugin_id}, read from {folder}"]
    findings = [*_notes(bundle), *_compile_note(problem)]
    todo: list[str] = []
    for other in others:
        findings.append(_second_copy(host, other))
    if host.client:
        _client(host, add)
        _client(host, get)
        if changes.any:
            _client(host, ("plugin", "update", plugin_id))
        mine = next((p for p in plugins(host) if p.plugin_id == plugin_id), None)
        if mine is None:
            raise InstallError(
                f"{host.client} reports no plugin {plugin_id} after installing it",
                hint=f"Run: {_shown(host, get)}",
            )
        if not mine.enabled:
            todo.append(f"It is disabled, as it was; to enable it: {_shown(host, ('plugin', 'enable', plugin_id))}")
    else:
        did = [f"the plugin's files are in {folder}"]
        todo += [f"No `claude` was found on PATH. Run: {_shown(host, words)}" for words in (add, get)]
    return Outcome(HOST, TITLE, tuple(did), tuple(todo), tuple(findings), changes.any)


def uninstall(host: ClaudeCode | None, data: Path, *, dry_run: bool) -> Outcome:
    """Remove the plugin through the client, and the folder it was read from."""
    folder = folder_of(data)
    did: list[str] = []
    todo: list[str] = []
    mine = [p for p in (plugins(host) if host and not dry_run else ()) if _same(p.root, folder)]
    marketplace = _marketplace_of(folder)
    plugin_id = f"{render.PLUGIN}@{marketplace}"
    gone = ("plugin", "uninstall", plugin_id)
    drop = ("plugin", "marketplace", "remove", marketplace)
    if dry_run:
        did = [f"would run: {_shown(host, gone)} ; {_shown(host, drop)}"] if host and folder.is_dir() else []
        did += [f"would remove {folder}"] if folder.is_dir() else []
        return Outcome(HOST, TITLE, tuple(did), changed=bool(did))
    if host and host.client and mine:
        _client(host, gone)
        did.append(f"plugin {plugin_id} removed")
    if host and host.client and _same(_marketplace_folder(host, marketplace), folder):
        _client(host, drop)
    elif mine:
        todo = [f"Run: {_shown(host, words)}" for words in (gone, drop)]
    if folder.is_dir():
        changes = mirror.remove(folder)
        did.append(f"{folder} removed")
        if changes.foreign:
            todo.append(f"{folder} still holds files that are not ours: {', '.join(changes.foreign[:5])}")
    return Outcome(HOST, TITLE, tuple(did), tuple(todo), changed=bool(did))


def plugins(host: ClaudeCode) -> tuple[Plugin, ...]:
    """Return every installed copy of the plugin, by the client's own list or, without a client, its files."""
    listed: Any = None
    if host.client:
        done = _call(host, ("plugin", "list", "--json"))
        try:
            listed = json.loads(done.stdout) if done.returncode == 0 else None
        except ValueError:
            listed = None
    if not isinstance(listed, list):
        listed = _listed_in_files(host)
    found = []
    for entry in listed:
        name = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(name, str) and name.partition("@")[0] == render.PLUGIN:
            folder = entry.get("readFromFolder") or _marketplace_folder(host, name.partition("@")[2])
            root = folder or entry.get("installPath") or ""
            found.append(Plugin(name, entry.get("enabled") is True, Path(str(root)), str(entry.get("version", ""))))
    return tuple(found)


def _listed_in_files(host: ClaudeCode) -> list[dict[str, Any]]:
    installed = _quiet(host.config / "plugins" / "installed_plugins.json").get("plugins")
    enabled = _quiet(host.settings).get("enabledPlugins")
    enabled = enabled if isinstance(enabled, dict) else {}
    found: list[dict[str, Any]] = []
    for name, copies in installed.items() if isinstance(installed, dict) else ():
        for entry in copies if isinstance(copies, list) else ():
            if isinstance(entry, dict):
                found.append({**entry, "id": name, "enabled": enabled.get(name) is True})
    return found


def _marketplace_folder(host: ClaudeCode, marketplace: str) -> str:
    """Return the folder of a marketplace that is read in place, '' for one that is fetched."""
    known = _quiet(host.config / "plugins" / "known_marketplaces.json").get(marketplace)
    source = known.get("source") if isinstance(known, dict) else None
    if isinstance(source, dict) and source.get("source") == "directory" and isinstance(source.get("path"), str):
        return str(source["path"])
    return ""


def _quiet(path: Path) -> dict[str, Any]:
    try:
        return host_settings.read_object(path) or {}
    except HostConfigError:
        return {}


def _marketplace_of(folder: Path) -> str:
    try:
        value = json.loads((folder / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
        return str(value["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return render.PLUGIN


def _sound_settings(host: ClaudeCode) -> None:
    for path in (
        host.settings,
        *(host.config / "plugins" / f"{n}.json" for n in ("known_marketplaces", "installed_plugins")),
    ):
        host_settings.read_object(path)


def version(host: ClaudeCode) -> tuple[int, ...]:
    """Return the client's version, () where it does not say."""
    if not host.client:
        return ()
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", _call(host, ("--version",)).stdout.strip())
    return tuple(int(part) for part in found.groups()) if found else ()


def look_over(host: ClaudeCode, installed: Sequence[Plugin], data: Path) -> tuple[Finding, ...]:
    """Return what doctor says of the host itself: version, settings, copies, permission."""
    found: list[Finding] = []
    have = version(host)
    shown = ".".join(map(str, have)) or "of unknown version"
    if not host.client:
        found.append(Finding("info", f"{HOST}.version", f"{host.config} is there, but no `claude` is on PATH"))
    elif have and have < TESTED[0]:
        oldest = ".".join(map(str, TESTED[0]))
        found.append(
            Finding(
                "warning",
                f"{HOST}.version",
                f"client {shown} is older than {oldest}, the oldest that is tested",
                "Update Claude Code: a client that does not know one of our events drops all of our hooks.",
            )
        )
    else:
        found.append(Finding("ok", f"{HOST}.version", f"client {shown}", where=host.client))
    try:
        _sound_settings(host)
        allowed = host_settings.allowed(host.settings)
    except HostConfigError as problem:
        found.append(Finding("error", f"{HOST}.settings", problem.message, problem.hint, code=problem.code))
        allowed = ()
    else:
        if _quiet(host.settings).get("disableAllHooks") is True:
            found.append(
                Finding(
                    "error",
                    f"{HOST}.settings",
                    "disableAllHooks is set, so no hook of ours runs",
                    "Remove disableAllHooks from the settings.",
                    str(host.settings),
                )
            )
    enabled = [p for p in installed if p.enabled]
    if not installed:
        found.append(
            Finding(
                "warning",
                f"{HOST}.plugin",
                "the plugin is not installed here",
                "Run: context-anchor install --host claude-code",
            )
        )
    elif not enabled:
        words = ("plugin", "enable", installed[0].plugin_id)
        found.append(Finding("warning", f"{HOST}.plugin", "the plugin is disabled", f"Run: {_shown(host, words)}"))
    else:
        found.append(
            Finding(
                "ok",
                f"{HOST}.plugin",
                f"{enabled[0].plugin_id} {enabled[0].version} is enabled",
                where=str(enabled[0].root),
            )
        )
    found += [_second_copy(host, other) for other in enabled[1:]]
    found += _hooks_in_settings(host)
    if enabled and not any(entry in allowed for entry in (PERMISSION, PERMISSION[:-3])):
        found.append(
            Finding(
                "info",
                f"{HOST}.permission",
                "each first use of a tool asks the user, and `claude -p` refuses it",
                f"Run: context-anchor install --allow-mcp (adds {PERMISSION} to permissions.allow)",
                str(host.settings),
            )
        )
    return tuple(found)


def _hooks_in_settings(host: ClaudeCode) -> list[Finding]:
    text = json.dumps(_quiet(host.settings).get("hooks", {}))
    if "hook.py" in text and HOST in text:
        return [
            Finding(
                "error",
                f"{HOST}.twice",
                "settings.json starts our hooks as well, so that each event is handled twice",
                "Remove our entries from `hooks` in the settings; the plugin brings them.",
                str(host.settings),
            )
        ]
    return []


def _second_copy(host: ClaudeCode, other: Plugin) -> Finding:
    words = ("plugin", "uninstall", other.plugin_id)
    return Finding(
        "error",
        f"{HOST}.twice",
        f"{other.plugin_id} is enabled too: every hook runs twice",
        f"Keep one of them. To remove this one: {_shown(host, words)} --keep-data",
        str(other.root),
    )


def _notes(bundle: render.Bundle) -> tuple[Finding, ...]:
    return tuple(Finding("warning", f"{HOST}.render", note) for note in bundle.notes)


def _compile_note(problem: str) -> list[Finding]:
    if not problem:
        return []
    return [
        Finding("warning", f"{HOST}.render", f"byte code was not cached: {problem}", "Hooks work, a little slower.")
    ]


def _client(host: ClaudeCode, words: Sequence[str]) -> None:
    done = _call(host, words)
    if done.returncode != 0:
        told = " ".join((done.stderr + " " + done.stdout).split())[-400:]
        raise InstallError(f"`{_shown(host, words)}` failed: {told}", hint="Run it by hand to see more.")


def _call(host: ClaudeCode, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [host.client, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_CLIENT_S,
            env=dict(host.env),
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return subprocess.CompletedProcess([host.client, *words], 127, "", str(problem))


def _shown(host: ClaudeCode | None, words: Sequence[str]) -> str:
    return interpreter.shown("claude", *words)


def _same(one: Path | str, other: Path) -> bool:
    return bool(str(one)) and os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))

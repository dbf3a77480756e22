"""Antigravity: found, installed as a plain folder that the CLI, the app and the IDE all load, looked over."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from context_anchor.errors import HostConfigError
from context_anchor.install import host_settings, mirror, render
from context_anchor.install.findings import Finding, Outcome
from context_anchor.install.source import Source
from context_anchor.wire import paths

HOST: Final = "antigravity"
TITLE: Final = "Antigravity"
OLDEST: Final = (1, 1, 7)  # before, hooks of plugins were behind a switch, or read from elsewhere
# Builds differ in the server's name: with the plugin's name before it, or bare.
PERMISSIONS: Final = ("mcp(context-anchor_anchors/*)", "mcp(anchors/*)")
_MARKS: Final = ("config", "antigravity", "antigravity-cli", "antigravity-ide")


@dataclass(frozen=True, slots=True)
class Antigravity:
    """This machine's Antigravity: the folder `.gemini` and the CLI, "" where none was found."""

    base: Path
    client: str
    env: Mapping[str, str]

    @property
    def config(self) -> Path:
        """The folder that the CLI, the app and the IDE share."""
        return self.base / "config"

    @property
    def plugin(self) -> Path:
        """The plugin's folder."""
        return self.config / "plugins" / render.PLUGIN

    @property
    def settings(self) -> Path:
        """The CLI's settings, which hold permissions."""
        return self.base / "antigravity-cli" / "settings.json"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One folder from which the host loads the plugin."""

    root: Path
    enabled: bool


def detect(env: Mapping[str, str], home: Path) -> Antigravity | None:
    """Return Antigravity if its CLI or a folder of one of its programs is on this machine."""
    base = home / ".gemini"
    client = shutil.which("agy", path=env.get("PATH", os.defpath)) or ""
    if not client:
        local = env.get("LOCALAPPDATA", "")
        place = (
            Path(local, "agy", "bin", "agy.exe") if os.name == "nt" and local else home / ".local" / "bin" / "agy"
        )
        client = str(place) if place.is_file() else ""
    if client or any((base / name).is_dir() for name in _MARKS):
        return Antigravity(base, client, env)
    return None


def install(host: Antigravity, source: Source, place: render.Place, *, dry_run: bool) -> Outcome:
    """Write the plugin's folder. A clone that lies there already gets this machine's paths written in.

    Raises HostConfigError where something else stands in the folder's place that we must not touch.
    """
    folder = host.plugin
    findings = [*_broken_files(host)]
    did: list[str] = []
    if folder.is_symlink():
        raise HostConfigError(
            f"{folder} is a link, which some builds do not follow",
            hint=f"Remove the link (rm {folder}) and install again.",
        )
    if (folder / ".git").exists():
        if os.path.realpath(folder) != os.path.realpath(source.assets):
            script = folder / "scripts" / "install.py"
            raise HostConfigError(
                f"{folder} is a clone of its own", hint=f"Run `python3 {script} --in-place`, or remove that clone."
            )
        if dry_run:
            return Outcome(
                HOST, TITLE, (f"would write this machine's paths into the clone {folder}",), changed=True
            )
        changed, notes = render.in_place(source, place)
        findings += [Finding("warning", f"{HOST}.render", note) for note in notes]
        return Outcome(
            HOST, TITLE, (f"the clone {folder}, paths written in",), findings=tuple(findings), changed=bool(changed)
        )
    bundle = render.antigravity(source, place, folder)
    findings += [Finding("warning", f"{HOST}.render", note) for note in bundle.notes]
    stranger = folder.is_dir() and mirror.recorded(folder) is None and any(folder.iterdir())
    aside = place.data / "backups" / f"antigravity-plugin-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    if dry_run:
        changes = mirror.plan(folder, bundle.files)
        did = [f"would move what is in {folder} to {aside}"] if stranger else []
        did.append(f"would write {len(changes.written)} of {len(bundle.files)} files to {folder}")
        return Outcome(HOST, TITLE, tuple(did), findings=tuple(findings), changed=changes.any)
    if stranger:
        paths.ensure_folder(str(aside.parent))
        shutil.move(folder, aside)
        did.append(f"what was in {folder} was moved to {aside}")
    changes = mirror.write(folder, bundle.files)
    did.insert(0, f"plugin folder {folder}")
    problem = render.compile_byte_code(folder, place.hook_python) if changes.any else ""
    if problem:
        findings.append(
            Finding(
                "warning", f"{HOST}.render", f"byte code was not cached: {problem}", "Hooks work, a little slower."
            )
        )
    return Outcome(HOST, TITLE, tuple(did), findings=tuple(findings), changed=changes.any or stranger)


def uninstall(host: Antigravity, *, dry_run: bool) -> Outcome:
    """Remove the files we put into the plugin's folder; a clone and other people's files stay."""
    folder = host.plugin
    if not folder.is_dir():
        return Outcome(HOST, TITLE)
    if (folder / ".git").exists() or folder.is_symlink():
        advice = f"{folder} is a clone or a link of yours; remove it yourself to uninstall"
        return Outcome(HOST, TITLE, todo=(advice,))
    if mirror.recorded(folder) is None:
        return Outcome(HOST, TITLE, todo=(f"{folder} was not written by this installer and is left alone",))
    if dry_run:
        return Outcome(HOST, TITLE, (f"would remove {folder}",), changed=True)
    changes = mirror.remove(folder)
    todo: tuple[str, ...] = ()
    if changes.foreign:
        todo = (f"{folder} still holds files that are not ours: {', '.join(changes.foreign[:5])}",)
    return Outcome(HOST, TITLE, (f"{folder} removed",), todo, changed=True)


def plugins(host: Antigravity, folder: Path | None = None) -> tuple[Plugin, ...]:
    """Return every folder from which the plugin is loaded: the shared one, and those above `folder`."""
    tops = [host.config / "plugins"]
    if folder is not None:
        for here in (folder, *folder.parents):
            tops += [here / name / "plugins" for name in (".agents", ".agent", "_agents", "_agent")]
            if (here / ".git").exists():
                break
    found: list[Plugin] = []
    for top in tops:
        for place in sorted(top.iterdir()) if top.is_dir() else ():
            manifest = _quiet(place / "plugin.json")
            if (place / "plugin.json").is_file() and manifest.get("name", place.name) == render.PLUGIN:
                found.append(Plugin(place, _enabled(host, place, manifest)))
    return tuple(found)


def _enabled(host: Antigravity, place: Path, manifest: dict[str, Any]) -> bool:
    """Tell whether a plugin folder is on: config.json wins over the manifest, keyed by the folder's name."""
    named = _quiet(host.config / "config.json").get("plugins")
    entry = named.get(place.name) if isinstance(named, dict) else None
    chosen = entry.get("enabled") if isinstance(entry, dict) else None
    return chosen if isinstance(chosen, bool) else manifest.get("disabled") is not True


def version(host: Antigravity) -> tuple[int, ...]:
    """Return the CLI's version, () where it does not say."""
    if not host.client:
        return ()
    try:
        done = subprocess.run(
            [host.client, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=30,
            env=dict(host.env),
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else ()


def look_over(host: Antigravity, installed: tuple[Plugin, ...]) -> tuple[Finding, ...]:
    """Return what doctor says of the host itself: version, files, copies, permission."""
    found: list[Finding] = []
    have = version(host)
    if have and have < OLDEST:
        found.append(
            Finding(
                "warning",
                f"{HOST}.version",
                f"agy {'.'.join(map(str, have))} is older than {'.'.join(map(str, OLDEST))}",
                "Update Antigravity: older builds load plugin hooks in part or not at all.",
            )
        )
    else:
        shown = f"agy {'.'.join(map(str, have))}" if have else "found by its folders"
        found.append(Finding("ok", f"{HOST}.version", shown, where=host.client or str(host.base)))
    found += _broken_files(host)
    enabled = [plugin for plugin in installed if plugin.enabled]
    if not installed:
        found.append(
            Finding(
                "warning",
                f"{HOST}.plugin",
                "the plugin is not installed here",
                "Run: context-anchor install --host antigravity",
            )
        )
    elif not enabled:
        found.append(
            Finding(
                "warning",
                f"{HOST}.plugin",
                "the plugin is switched off",
                "Switch it on with /plugin, or in "
                f"{host.config / 'config.json'}: plugins.{installed[0].root.name}.enabled",
                str(installed[0].root),
            )
        )
    else:
        found.append(Finding("ok", f"{HOST}.plugin", "the plugin's folder is in place", where=str(enabled[0].root)))
        found += _form(enabled[0].root)
    for other in enabled[1:]:
        found.append(
            Finding(
                "error",
                f"{HOST}.twice",
                "the plugin lies in a second folder: one of them is ignored, or every hook runs twice",
                f"Remove {other.root}",
                str(other.root),
            )
        )
    for path in (host.config / "hooks.json", host.base / "antigravity-cli" / "hooks.json"):
        if path.is_file() and "hook.py antigravity" in path.read_text(encoding="utf-8", errors="replace"):
            found.append(
                Finding(
                    "error",
                    f"{HOST}.twice",
                    "our hooks are registered here as well as by the plugin",
                    "Remove our entries from this file.",
                    str(path),
                )
            )
    servers = _quiet(host.config / "mcp_config.json").get("mcpServers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if "serve.py" in str(server) and "context" in str(server) and enabled:
            found.append(
                Finding(
                    "warning",
                    f"{HOST}.twice",
                    f"the server stands here too, as {name!r}: its tools are listed twice",
                    "Remove that entry.",
                    str(host.config / "mcp_config.json"),
                )
            )
    found += _permission(host) if enabled else []
    return tuple(found)


def _permission(host: Antigravity) -> list[Finding]:
    try:
        allowed = host_settings.allowed(host.settings)
    except HostConfigError:
        return []  # reported with the broken files
    missing = [entry for entry in PERMISSIONS if entry not in allowed]
    if not missing or "mcp(*)" in allowed:
        return []
    return [
        Finding(
            "warning",
            f"{HOST}.permission",
            f"permissions.allow lacks {' and '.join(missing)}: each use of a tool asks "
            "the user, and `agy -p` ends the turn instead",
            "Run: context-anchor install --allow-mcp",
            str(host.settings),
        )
    ]


def _form(root: Path) -> list[Finding]:
    found = []
    if (root / "plugin.json").read_bytes().startswith(b"\xef\xbb\xbf"):
        found.append(
            Finding(
                "error",
                f"{HOST}.plugin",
                "plugin.json begins with a byte order mark, so the host ignores the folder",
                "Install again.",
                str(root),
            )
        )
    if (root / ".claude-plugin").is_dir() and (root / ".git").exists():
        found.append(
            Finding(
                "info",
                f"{HOST}.plugin",
                "this is a clone with a .claude-plugin in it, which some builds take instead of plugin.json",
                "If hooks do not run, remove the clone and run its scripts/install.py from elsewhere.",
                str(root),
            )
        )
    links = [path for path in root.rglob("*") if path.is_symlink()]
    if links:
        found.append(
            Finding(
                "warning",
                f"{HOST}.plugin",
                "the folder holds links, which some builds do not follow",
                "Use real files.",
                str(links[0]),
            )
        )
    return found


def _broken_files(host: Antigravity) -> list[Finding]:
    found = []
    for path, harm in (
        (host.config / "mcp_config.json", "agy does not start with it"),
        (host.config / "config.json", "whether the plugin is on can't be told"),
        (host.settings, "permissions can't be read"),
    ):
        try:
            host_settings.read_object(path)
        except HostConfigError as problem:
            found.append(
                Finding(
                    "error",
                    f"{HOST}.settings",
                    f"{problem.message}; {harm}",
                    problem.hint or "Repair the file.",
                    code=problem.code,
                )
            )
    return found


def _quiet(path: Path) -> dict[str, Any]:
    try:
        return host_settings.read_object(path) or {}
    except HostConfigError:
        return {}

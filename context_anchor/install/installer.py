"""Install and uninstall on this machine: the environment, each host found, then the proof by doctor and demo."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from context_anchor.errors import ContextAnchorError, HostConfigError, HostNotFoundError, InstallError
from context_anchor.install import (
    antigravity,
    claude_code,
    demo,
    doctor,
    environment,
    host_settings,
    interpreter,
    mirror,
    record,
    render,
)
from context_anchor.install.findings import Finding, Outcome, from_error, worst
from context_anchor.install.source import Source, find
from context_anchor.wire import paths

# What we keep below the data folder. Uninstalling never touches any other name: the folder may be a shared one.
_DERIVED: Final = ("env", "plugins", "pycache", "calls")
_KEPT: Final = ("anchors", "registry", "marks", "workspaces", "log", "backups", "install.json")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where things are on this machine, as values so that tests can name others."""

    data: Path
    home: Path
    env: Mapping[str, str]
    log: TextIO | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What the person asked for. `hosts` empty means every host found."""

    hosts: tuple[str, ...] = ()
    dry_run: bool = False
    allow_mcp: bool = False
    purge: bool = False
    prove: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """What was done: per host, what doctor found, what the demo proved."""

    action: str
    version: str
    data: Path
    environment: str = ""
    outcomes: tuple[Outcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    proofs: tuple[demo.Result, ...] = ()
    kept: tuple[str, ...] = ()
    command: str = ""

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Findings of the hosts and of doctor."""
        return tuple(finding for outcome in self.outcomes for finding in outcome.findings) + self.findings

    @property
    def ok(self) -> bool:
        """Whether nothing is in error."""
        return worst(self.all_findings) != "error"

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "format": "context-anchor-report/1",
            "action": self.action,
            "ok": self.ok,
            "version": self.version,
            "data_dir": str(self.data),
            "environment": self.environment,
            "hosts": [outcome.to_json() for outcome in self.outcomes],
            "findings": [finding.to_json() for finding in self.findings],
            "demo": [proof.to_json() for proof in self.proofs],
            "kept": list(self.kept),
            "command": self.command,
        }


def machine(log: TextIO | None = None) -> Machine:
    """Return this machine as the process's environment describes it."""
    return Machine(Path(paths.data_dir()), Path.home(), dict(os.environ), log)


def install(where: Machine, choice: Choice, say: Callable[[str], None]) -> Report:
    """Install for the hosts chosen, or those found, and prove it.

    A host that can't be installed for is reported and the others go on. Raises EnvironmentSetupError when there
    is no Python to run on, or the environment can't be made.
    """
    source = find()
    base = interpreter.find()
    folder = environment.folder_of(where.data)
    hosts = _hosts(where, choice.hosts)
    if choice.dry_run:
        have = environment.read_ready(folder) is not None
        planned = f"would {'check' if have else 'make'} the private environment {folder} with {base.path}"
        place = render.Place(base.path, str(environment.python_of(folder)), where.data)
        outcomes = _each(hosts, lambda name, host: _install_one(name, host, source, place, choice, where))
        return Report("dry-run", source.version, where.data, planned, outcomes)
    paths.ensure_folder(str(where.data))
    first = not environment.python_of(environment.folder_of(where.data)).exists()
    say("preparing the private environment" + (" (it takes a minute or so)" if first else "") + " ...")
    package_root = source.package.parent
    python = environment.ensure(where.data, package_root, where.log, package=True, base=base)
    place = render.Place(base.path, str(python), where.data)
    if source.kind == "bundle":
        outcomes = tuple(_left_alone(name, source) for name, _ in hosts)
    else:
        outcomes = _each(hosts, lambda name, host: _install_one(name, host, source, place, choice, where))
    findings = _command_note(source, folder)
    proofs: tuple[demo.Result, ...] = ()
    if choice.prove:
        say("looking everything over (doctor) ...")
        # Only what is installed here is looked over: a host found but not chosen is not this run's business.
        named = tuple(name for name, host in hosts if host is not None)
        findings += doctor.examine(where.data, where.env, where.home, named)
        say("playing a recorded session (demo) ...")
        try:
            proofs = demo.run(tuple(demo.RECORDINGS), where.data, lambda text: None)
        except (ContextAnchorError, OSError) as problem:
            error = problem if isinstance(problem, ContextAnchorError) else InstallError(str(problem))
            findings = (*findings, from_error("demo", error))
    command = environment.command_of(folder)
    return Report(
        "install",
        source.version,
        where.data,
        str(folder),
        outcomes,
        findings,
        proofs,
        command=str(command) if command.is_file() else "",
    )


def _left_alone(name: str, source: Source) -> Outcome:
    """Return the outcome where this code runs from what was installed: it can repair the environment alone."""
    title = claude_code.TITLE if name == claude_code.HOST else antigravity.TITLE
    return Outcome(name, title, (f"left as it is, since {source.assets} is an installed copy itself",))


def _command_note(source: Source, folder: Path) -> tuple[Finding, ...]:
    if source.kind != "clone":
        return ()
    if environment.has_command(folder, source):
        return (Finding("ok", "command", "context-anchor", where=str(environment.command_of(folder))),)
    return (
        Finding(
            "warning",
            "command",
            "the command `context-anchor` could not be installed; hosts do not need it",
            f"Use: python3 {source.assets / 'scripts' / 'cli.py'}",
        ),
    )


def uninstall(where: Machine, choice: Choice) -> Report:
    """Remove what install made. Anchors, sessions and backups stay unless `purge`."""
    version = find().version  # read now: this code may run from the environment that goes
    found: dict[str, Any] = {
        claude_code.HOST: claude_code.detect(where.env, where.home),
        antigravity.HOST: antigravity.detect(where.env, where.home),
    }
    names = choice.hosts or tuple(found)
    outcomes = _each(
        [(name, found[name]) for name in names], lambda name, host: _uninstall_one(name, host, choice, where)
    )
    gone: list[str] = []
    if not choice.hosts and all(worst(outcome.findings) != "error" for outcome in outcomes):
        for name in (*_DERIVED, *(_KEPT if choice.purge else ())):
            if (where.data / name).exists():
                gone.append(name)
                if not choice.dry_run:
                    _remove(where.data / name)
        if not choice.dry_run and where.data.is_dir() and not any(where.data.iterdir()):
            where.data.rmdir()
    verb = "would be removed" if choice.dry_run else "removed"
    removed = f"{verb} below {where.data}: {', '.join(gone)}" if gone else ""
    left = [name for name in gone if (where.data / name).exists()] if not choice.dry_run else []
    findings = tuple(
        Finding(
            "warning",
            "data",
            "it is in use and could not be removed whole",
            "Close the hosts and delete it.",
            str(where.data / name),
        )
        for name in left
    )
    kept = tuple(name for name in _KEPT if (where.data / name).exists() and not choice.purge)
    return Report("uninstall", version, where.data, removed, outcomes, findings, kept=kept)


def render_to(where: Machine, host: render.HostName, target: Path, dry_run: bool) -> Outcome:
    """Write a host's bundle into a folder, for its own way of installing.

    The Antigravity client copies the folder to the plugins folder, so that is what its server command names,
    unless the folder lies in a plugins folder already. Raises InstallError where the target holds other files.
    """
    source = find()
    base = interpreter.find()
    target = target.absolute()
    if target.is_dir() and any(target.iterdir()) and mirror.recorded(target) is None:
        raise InstallError(f"{target} is not empty and was not rendered before", hint="Name another folder.")
    if dry_run:
        python = environment.python_of(environment.folder_of(where.data))
    else:
        paths.ensure_folder(str(where.data))
        python = environment.ensure(where.data, source.package.parent, where.log, package=True, base=base)
    root = target
    if host == antigravity.HOST and target.parent.name != "plugins":
        root = where.home / ".gemini" / "config" / "plugins" / render.PLUGIN
    bundle = render.render(host, source, render.Place(base.path, str(python), where.data), root)
    notes = tuple(Finding("warning", f"{host}.render", note) for note in bundle.notes)
    if dry_run:
        changes = mirror.plan(target, bundle.files)
        return Outcome(host, host, (f"would write {len(changes.written)} files to {target}",), findings=notes)
    changes = mirror.write(target, bundle.files)
    render.compile_byte_code(target, base.path)
    todo: tuple[str, ...] = ()
    if host == antigravity.HOST:
        todo = () if root == target else (f"Run: {interpreter.shown('agy', 'plugin', 'install', target)}",)
    else:
        todo = (
            f"Run: {interpreter.shown('claude', 'plugin', 'marketplace', 'add', target)}",
            "Run: claude plugin install context-anchor@context-anchor",
        )
    return Outcome(host, host, (f"bundle of {len(bundle.files)} files in {target}",), todo, notes, changes.any)


def write_in_place(where: Machine, dry_run: bool) -> Outcome:
    """Write this machine's paths into the clone that this code runs from."""
    source = find()
    base = interpreter.find()
    if dry_run:
        return Outcome("clone", "Clone", (f"would write this machine's paths into {source.assets}",))
    paths.ensure_folder(str(where.data))
    python = environment.ensure(where.data, source.package.parent, where.log, base=base)
    changed, notes = render.in_place(source, render.Place(base.path, str(python), where.data))
    did = f"{source.assets}: {', '.join(changed) or 'nothing to change'}"
    tracked = [name for name in changed if name != render.POINTER]
    todo = ("Before pulling updates: " + interpreter.shown("git", "-C", source.assets, "checkout", "--", *tracked),)
    findings = tuple(Finding("warning", "clone", note) for note in notes)
    return Outcome("clone", "Clone", (did,), todo if tracked else (), findings, bool(changed))


def _hosts(where: Machine, named: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Return the hosts to work on as (name, host); a named one that is not there is None."""
    found: dict[str, Any] = {
        claude_code.HOST: claude_code.detect(where.env, where.home),
        antigravity.HOST: antigravity.detect(where.env, where.home),
    }
    if named:
        return [(name, found[name]) for name in named]
    return [(name, host) for name, host in found.items() if host is not None]


def _each(hosts: list[tuple[str, Any]], work: Callable[[str, Any], Outcome]) -> tuple[Outcome, ...]:
    """Do the work for each host; what fails for one is reported and keeps the others going."""
    outcomes = []
    for name, host in hosts:
        title = claude_code.TITLE if name == claude_code.HOST else antigravity.TITLE
        try:
            outcomes.append(work(name, host))
        except (ContextAnchorError, OSError) as problem:
            error = problem if isinstance(problem, ContextAnchorError) else InstallError(str(problem))
            outcomes.append(Outcome(name, title, findings=(from_error(name, error),)))
    return tuple(outcomes)


def _install_one(
    name: str, host: Any, source: Source, place: render.Place, choice: Choice, where: Machine
) -> Outcome:
    if host is None:
        raise HostNotFoundError(f"{name} was asked for and is not on this machine", hint="Install it first.")
    if name == claude_code.HOST:
        done = claude_code.install(host, source, place, dry_run=choice.dry_run)
        entries: tuple[str, ...] = (claude_code.PERMISSION,)
    else:
        done = antigravity.install(host, source, place, dry_run=choice.dry_run)
        entries = antigravity.PERMISSIONS
    return _permissions(done, host.settings, entries, choice, where)


def _permissions(
    done: Outcome, settings: Path, entries: tuple[str, ...], choice: Choice, where: Machine
) -> Outcome:
    """Write the permission entries when asked to, else say which are missing."""
    findings = done.findings
    did, todo = done.did, done.todo
    try:
        missing = [entry for entry in entries if entry not in host_settings.allowed(settings)]
        if not missing:
            return done
        if not choice.allow_mcp:
            names = ", ".join(missing)
            where_to = f"permissions.allow in {settings}"
            todo = (*todo, f"To allow our tools without a question: --allow-mcp, or add {names} to {where_to}")
        elif choice.dry_run:
            did = (*did, f"would add {', '.join(missing)} to permissions.allow in {settings}")
        else:
            added = host_settings.allow(settings, missing, where.data / "backups")
            record.note_permissions(where.data, settings, added)
            did = (*did, f"allowed {', '.join(added)} in {settings}")
    except (HostConfigError, OSError) as problem:
        if choice.allow_mcp:
            error = problem if isinstance(problem, ContextAnchorError) else InstallError(str(problem))
            findings = (*findings, from_error(f"{done.host}.permission", error))
    return Outcome(done.host, done.title, did, todo, findings, done.changed)


def _uninstall_one(name: str, host: Any, choice: Choice, where: Machine) -> Outcome:
    if name == claude_code.HOST:
        done = claude_code.uninstall(host, where.data, dry_run=choice.dry_run)
    elif host is None:
        done = Outcome(name, antigravity.TITLE)
    else:
        done = antigravity.uninstall(host, dry_run=choice.dry_run)
    if host is None:
        return done
    mine = record.permissions(where.data).get(str(host.settings), [])
    if not mine:
        return done
    if choice.dry_run:
        return Outcome(
            name,
            done.title,
            (*done.did, f"would take {', '.join(mine)} out of {host.settings}"),
            done.todo,
            done.findings,
            True,
        )
    gone = host_settings.disallow(host.settings, mine, where.data / "backups")
    record.forget_permissions(where.data, host.settings)
    did = (*done.did, f"took {', '.join(gone)} out of {host.settings}") if gone else done.did
    return Outcome(name, done.title, did, done.todo, done.findings, True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)  # what stays is reported by the caller
    else:
        path.unlink(missing_ok=True)

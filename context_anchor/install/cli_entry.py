"""The commands install, uninstall, doctor and demo: arguments, output for people and scripts, exit codes.

Exit codes: 0 all well (also with warnings, and where no host was found but the demo passed), 1 something is in
error, 2 the words were not understood.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from context_anchor.errors import ContextAnchorError, InstallError
from context_anchor.install import demo, doctor, findings, installer
from context_anchor.install.findings import Outcome

COMMANDS: Final = ("install", "uninstall", "doctor", "demo")
HOSTS: Final = ("claude-code", "antigravity")


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add a command's options to its parser; one that is there already (such as `--json`) is left as it is."""
    _add(parser, "--json", action="store_true", help="write one JSON document instead of text")
    if command in ("install", "uninstall"):
        parser.add_argument("--host", choices=(*HOSTS, "all"), default="all", help="one host instead of all found")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done and change nothing")
    if command == "install":
        parser.add_argument("--allow-mcp", action="store_true", help="allow our MCP tools in the hosts' settings")
        parser.add_argument("--in-place", action="store_true", help="write this machine's paths into this clone")
        parser.add_argument(
            "--render", nargs=2, metavar=("HOST", "DIR"), help="only write a host's bundle to a folder"
        )
        parser.add_argument("--no-proof", action="store_true", help="leave out doctor and demo at the end")
    if command == "uninstall":
        parser.add_argument("--purge-anchors", action="store_true", help="delete pinned anchors and sessions too")
    if command in ("doctor", "demo"):
        parser.add_argument("--host", choices=(*HOSTS, "all"), default="all", help="one host instead of both")
    if command == "demo":
        _add(parser, "--quiet", action="store_true", help="say only whether it passed")


def _add(parser: argparse.ArgumentParser, name: str, **options: object) -> None:
    with contextlib.suppress(argparse.ArgumentError):
        parser.add_argument(name, **options)  # type: ignore[arg-type]


def run(command: str, options: argparse.Namespace) -> int:
    """Run one of COMMANDS and return its exit code; problems are written to standard error."""
    _speak_anything()
    try:
        if command == "install":
            return _install(options)
        if command == "uninstall":
            return _uninstall(options)
        return _doctor(options) if command == "doctor" else _demo(options)
    except (ContextAnchorError, OSError) as problem:
        error = problem if isinstance(problem, ContextAnchorError) else InstallError(str(problem))
        if options.json:
            _print_json({"ok": False, "error": {"code": error.code, "message": error.message, "hint": error.hint}})
        print(f"context-anchor: {error}", file=sys.stderr)
        return 1


def main(words: Sequence[str] | None = None) -> int:
    """Entry of scripts/install.py: options of install, `--uninstall`, or doctor or demo as the first word."""
    words = list(sys.argv[1:] if words is None else words)
    command = words.pop(0) if words and words[0] in COMMANDS else "install"
    if "--uninstall" in words:
        command = "uninstall"
        words.remove("--uninstall")
    program = "install.py" if command == "install" else f"install.py {command}"
    parser = argparse.ArgumentParser(prog=program, description=_DESCRIPTIONS[command])
    add_arguments(parser, command)
    if command == "install":
        parser.epilog = "Besides: --uninstall [--purge-anchors], or `doctor` or `demo` as the first word."
    return run(command, parser.parse_args(words))


_DESCRIPTIONS: Final = {
    "install": "Install context-anchor for every host found, and prove that it works.",
    "uninstall": "Remove context-anchor from its hosts; pinned anchors stay.",
    "doctor": "Look everything over: hosts, hooks, server, data; each finding with its cure.",
    "demo": "Play a recorded session through the real hooks and the real server.",
}


def _hosts(options: argparse.Namespace) -> tuple[str, ...]:
    return () if options.host == "all" else (options.host,)


def _install(options: argparse.Namespace) -> int:
    where = installer.machine(sys.stderr)
    if options.render or options.in_place:
        if options.render:
            host, target = options.render
            if host not in HOSTS:
                print(f"install: --render takes one of {', '.join(HOSTS)}, not {host!r}", file=sys.stderr)
                return 2
            outcome = installer.render_to(where, host, Path(target).expanduser(), options.dry_run)
        else:
            outcome = installer.write_in_place(where, options.dry_run)
        if options.json:
            _print_json(outcome.to_json())
        else:
            _print_outcome(outcome)
        return 1 if findings.worst(outcome.findings) == "error" else 0
    choice = installer.Choice(_hosts(options), options.dry_run, options.allow_mcp, prove=not options.no_proof)
    quiet = options.json or options.dry_run
    report = installer.install(where, choice, lambda text: None if quiet else print(text, flush=True))
    if options.json:
        _print_json(report.to_json())
    else:
        _print_installed(report)
    return 0 if report.ok else 1


def _print_installed(report: installer.Report) -> None:
    dry = report.action == "dry-run"
    print(f"\ncontext-anchor {report.version}{' (dry run: nothing was changed)' if dry else ''}")
    print(f"  environment: {report.environment}")
    print(f"  data folder: {report.data}")
    for outcome in report.outcomes:
        _print_outcome(outcome)
    if not report.outcomes:
        print("  no host was found on this machine (neither Claude Code nor Antigravity)")
        print("    -> Install one, then run this again. Any other MCP host can start the server meanwhile, by")
        print(f"       {report.command or 'context-anchor'} serve")
    if dry:
        return
    # A missing permission stands among the host's own lines already.
    troubles = [f for f in report.findings if f.level in ("warning", "error") and ".permission" not in f.check]
    if any(finding.check != "command" for finding in report.findings):
        print(
            f"  doctor: {len(report.findings)} checks, {len(troubles)} with something to do"
            if troubles
            else f"  doctor: {len(report.findings)} checks, all well"
        )
        for line in findings.lines(troubles):
            print(f"    {line}")
    if report.command:
        print(f"  command: {report.command}")
    for proof in report.proofs:
        print(f"  demo: {proof.host}: {len(proof.pinned)} anchors pinned, lost in a compaction, and back after it")
    if any(findings.worst(outcome.findings) != "error" for outcome in report.outcomes):
        print("\nOpen a new conversation: those that are open now do not load the plugin.")


def _print_outcome(outcome: Outcome) -> None:
    failed = findings.worst(outcome.findings) == "error" and not outcome.did
    done = "not installed; the reason:" if failed else "; ".join(outcome.did) or "nothing to do"
    print(f"  {outcome.title}: {done}")
    for line in findings.lines(outcome.findings):
        print(f"    {line}")
    for line in outcome.todo:
        print(f"    -> {line}")


def _uninstall(options: argparse.Namespace) -> int:
    where = installer.machine(sys.stderr)
    choice = installer.Choice(_hosts(options), options.dry_run, purge=options.purge_anchors)
    report = installer.uninstall(where, choice)
    if options.json:
        _print_json(report.to_json())
        return 0 if report.ok else 1
    print(f"context-anchor {report.version}{' (dry run: nothing was changed)' if options.dry_run else ''}")
    for outcome in report.outcomes:
        _print_outcome(outcome)
    if report.environment:
        print(f"  {report.environment}")
    for line in findings.lines(report.findings):
        print(f"  {line}")
    if report.kept:
        print(f"  kept in {report.data}: {', '.join(report.kept)} (--purge-anchors deletes them)")
    return 0 if report.ok else 1


def _doctor(options: argparse.Namespace) -> int:
    where = installer.machine(sys.stderr)
    found = doctor.examine(where.data, where.env, where.home, _hosts(options) or HOSTS, Path.cwd())
    level = findings.worst(found)
    if options.json:
        _print_json(
            {
                "format": "context-anchor-doctor/1",
                "ok": level != "error",
                "level": level,
                "data_dir": str(where.data),
                "findings": [finding.to_json() for finding in found],
            }
        )
    else:
        for line in findings.lines(found):
            print(line)
        count = {name: sum(1 for f in found if f.level == name) for name in ("error", "warning")}
        print(f"\n{len(found)} checks: {count['error']} errors, {count['warning']} warnings")
    return 1 if level == "error" else 0


def _demo(options: argparse.Namespace) -> int:
    where = installer.machine(sys.stderr)
    quiet = options.json or options.quiet
    results = demo.run(
        _hosts(options) or HOSTS, where.data, lambda text: None if quiet else print(text, flush=True)
    )
    if options.json:
        _print_json({"format": "context-anchor-demo/1", "ok": True, "results": [r.to_json() for r in results]})
    elif options.quiet:
        print(f"passed: {', '.join(result.host for result in results)}")
    return 0


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1))


def _speak_anything() -> None:
    """Let a console with a small code page show what it can instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

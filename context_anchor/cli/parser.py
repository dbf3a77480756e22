"""The words of the command line: commands, options, and which file runs each command.

Imports nothing of the other rooms but `errors`, so that `--help` is quick and works on any Python.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from context_anchor.cli import terminal
from context_anchor.errors import UsageError

PRIORITIES = "critical|high|normal"
CATEGORIES = "decision|constraint|state|file_map|pitfall|task"
SETUP_COMMANDS = ("install", "uninstall", "doctor", "demo")

_PURPOSE = "Pinned anchors that outlive a coding agent's context window."
_EPILOG = """\
Which anchors: --scope says session or workspace. Without it, --session means that session, --workspace
that workspace alone, and neither means both: the session named by the host's environment, or the only
live one of this folder's workspace, and the workspace itself.

Exit codes: 0 done, 1 finding, 2 usage, 3 not found, 4 refused, 5 conflict, 6 unavailable, 70 internal.
With --json every command prints one JSON document, also for errors: {"error": {"code", "message", "hint"}}.
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """A parsed command: the module and function of this package that run it, and their options.

    `library` is one that it can't do without and that a plain Python may lack, or "".
    """

    family: str
    function: str
    library: str
    options: argparse.Namespace


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are ours and whose help is written as everything else is."""

    def __init__(self, *args: object, **options: object) -> None:
        options.setdefault("allow_abbrev", False)  # an abbreviation would break with the next new option
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"See: {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            terminal.write(message, sys.stdout if file is None else file)


def parse(words: Sequence[str]) -> Choice:
    """Return the command that the words name.

    Raises UsageError; SystemExit with code 0 after --help and --version have been printed.
    """
    parser = _build(words)
    options = parser.parse_args(words)
    if not getattr(options, "family", ""):
        raise UsageError("no command was given", hint=f"See: {parser.prog} --help")
    return Choice(options.family, options.function, options.library, options)


def _build(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="context-anchor", description=_PURPOSE, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=_version())
    _json(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=_Parser)
    _anchor_commands(commands)
    _journal_commands(commands)
    _folder_commands(commands)
    chosen = next((word for word in words if not word.startswith("-")), "")
    for name, purpose in zip(SETUP_COMMANDS, _SETUP_PURPOSES, strict=True):
        made = _command(commands, name, "setup", "setup", purpose)
        made.set_defaults(setup=name)
        if name == chosen:
            from context_anchor.install import cli_entry

            cli_entry.add_arguments(made, name)
    _command(commands, "serve", "setup", "serve", "run the MCP server on standard input and output", library="mcp")
    return parser


_SETUP_PURPOSES = (
    "set up the hosts found on this machine, then check and show it",
    "take the plugin out of the hosts; anchors stay",
    "check hosts, hooks, server and data, with a cure for each finding",
    "play a recorded session through the real hooks and the real server",
)
_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


def _version() -> str:
    from context_anchor import __version__

    return f"context-anchor {__version__}"


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document, errors too"
    )


def _command(
    commands: _Commands,
    name: str,
    family: str,
    function: str,
    purpose: str,
    *,
    library: str = "",
) -> argparse.ArgumentParser:
    made = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
    made.set_defaults(family=family, function=function, library=library)
    _json(made)
    return made


def _place(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which anchors")
    group.add_argument("--scope", choices=("session", "workspace"), help="only these")
    group.add_argument("--session", metavar="ID", help="a session's id, host/id, or 6 or more characters of it")
    group.add_argument("--workspace", metavar="FOLDER", help="a folder of the workspace, or its id (w-...)")


def _one_anchor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("anchor", nargs="?", metavar="ANCHOR", help="an anchor's id or title")
    parser.add_argument("--id", metavar="ID", help="an anchor's id, or 6 or more characters of it")
    parser.add_argument("--title", metavar="TITLE")


def _anchor_commands(commands: _Commands) -> None:
    pin = _command(commands, "pin", "pinning", "pin", "pin an anchor, or change the one of that title or id",
                   library="filelock")  # fmt: skip
    pin.add_argument("--title", metavar="TITLE", help="a short name; the same title changes that anchor")
    pin.add_argument("--content", metavar="TEXT", help="what to keep; - reads standard input")
    pin.add_argument("--file", metavar="PATH", help="read the content from a file")
    pin.add_argument("--priority", metavar=PRIORITIES, help="default: normal, or as it was")
    pin.add_argument("--category", metavar=CATEGORIES, help="default: state, or as it was")
    pin.add_argument("--ref", action="append", metavar="PATH", help="a path the anchor points to; repeatable")
    pin.add_argument("--tag", action="append", metavar="TAG", help="repeatable")
    pin.add_argument("--id", metavar="ID", help="change this anchor; what is not given stays as it was")
    pin.add_argument("--expected-revision", type=_count, metavar="N", help="refuse if the anchor is at another")
    pin.add_argument("--allow-secret", action="store_true", help="pin even what looks like a secret")
    _place(pin)

    show = _command(commands, "list", "reading", "list_anchors", "list anchors, most important first")
    show.add_argument("--priority", metavar=PRIORITIES)
    show.add_argument("--category", metavar=CATEGORIES)
    show.add_argument("--tag", metavar="TAG")
    show.add_argument("--id", metavar="ID")
    show.add_argument("--title", metavar="TEXT", help="only titles that hold this text")
    show.add_argument("--all", action="store_true", help="of every session and workspace")
    _place(show)

    get = _command(commands, "get", "reading", "get", "print an anchor in full")
    _one_anchor(get)
    get.add_argument("--all", action="store_true", help="print all anchors in full")
    get.add_argument("--content-only", action="store_true", help="print nothing but the content")
    _place(get)

    unpin = _command(commands, "unpin", "pinning", "unpin", "take an anchor out; undo brings it back",
                     library="filelock")  # fmt: skip
    _one_anchor(unpin)
    unpin.add_argument("--all", action="store_true", help="take out all anchors of one scope")
    _place(unpin)

    replace = _command(commands, "replace", "pinning", "replace",
                       "make a scope hold exactly the anchors of a JSON list", library="filelock")  # fmt: skip
    replace.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: standard input")
    replace.add_argument("--expected-revision", type=_count, metavar="N", help="refuse if the scope is at another")
    replace.add_argument("--allow-secret", action="store_true", help="pin even what looks like a secret")
    _place(replace)

    edit = _command(commands, "edit", "editing", "edit", "change an anchor in $VISUAL or $EDITOR",
                    library="filelock")  # fmt: skip
    _one_anchor(edit)
    edit.add_argument("--allow-secret", action="store_true", help="pin even what looks like a secret")
    _place(edit)


def _journal_commands(commands: _Commands) -> None:
    history = _command(commands, "history", "changes", "history", "show what was changed, newest first")
    history.add_argument("--id", metavar="ID", help="only changes of this anchor, also of one no longer there")
    history.add_argument("--title", metavar="TITLE", help="only changes of the anchor of this title")
    history.add_argument("--limit", type=_count, default=50, metavar="N", help="default: 50")
    history.add_argument("--all", action="store_true", help="of every session and workspace")
    _place(history)
    undo = _command(commands, "undo", "changes", "undo", "take back the newest change, or a numbered one",
                    library="filelock")  # fmt: skip
    undo.add_argument("--entry", type=_count, metavar="N", help="the number that history shows")
    _place(undo)
    export = _command(commands, "export", "carrying", "export", "write anchors as one JSON document")
    export.add_argument("--output", metavar="FILE", help="default: standard output")
    export.add_argument("--all", action="store_true", help="of every session and workspace")
    _place(export)
    bring = _command(commands, "import", "carrying", "import_anchors", "bring in what export wrote",
                     library="filelock")  # fmt: skip
    bring.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: standard input")
    bring.add_argument("--mode", choices=("merge", "replace"), default="merge",
                       help="merge adds and changes; replace makes each scope hold exactly this")  # fmt: skip
    bring.add_argument("--allow-secret", action="store_true", help="bring in even what looks like a secret")
    _place(bring)


def _folder_commands(commands: _Commands) -> None:
    sessions = _command(commands, "sessions", "registered", "sessions", "list the sessions that hosts have opened")
    sessions.add_argument("--all", action="store_true", help="of every workspace")
    sessions.add_argument("--workspace", metavar="FOLDER", help="a folder of the workspace, or its id (w-...)")
    workspaces = _command(commands, "workspaces", "registered", "workspaces", "list workspaces, re-attach one")
    actions = workspaces.add_subparsers(dest="action", metavar="ACTION", parser_class=_Parser)
    attach = actions.add_parser("attach", help="let a folder use the anchors of a workspace that has moved to it")
    attach.add_argument("old", metavar="OLD", help="the former folder, or the workspace's id")
    attach.add_argument("new", metavar="NEW", help="the folder it has become")
    attach.add_argument("--merge", action="store_true", help="also bring over what is pinned in NEW already")
    detach = actions.add_parser("detach", help="let a folder have anchors of its own again")
    detach.add_argument("new", metavar="FOLDER")
    for made in (attach, detach):
        _json(made)
        made.set_defaults(library="filelock")


def _count(text: str) -> int:
    """Return a whole number from 0 on; argparse shows this function's name for what is none."""
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no whole number")
    return int(text)

"""The entry of the command line: words in, one result and one exit code out."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from context_anchor.cli import exit_codes, terminal
from context_anchor.cli.outcome import Outcome
from context_anchor.errors import ContextAnchorError

DEBUG = "CONTEXT_ANCHOR_DEBUG"
"""When set, an internal error is shown with its traceback."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (see `exit_codes`); never raises for bad input."""
    words = terminal.words_of_process() if argv is None else list(argv)
    as_json = "--json" in _before_dashes(words)
    try:
        return _run(words, as_json)
    except ContextAnchorError as error:
        # Every command that can meet a secret has the option; the store's advice is for all its callers.
        more = " Or add --allow-secret." if error.code == "secret_refused" else ""
        return _tell(error.code, error.message, error.hint + more, exit_codes.exit_code(error), as_json)
    except BrokenPipeError:
        terminal.give_up_output()
        return exit_codes.READER_GONE
    except terminal.OutputFailedError as problem:
        return _output_failed(problem)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except Exception as problem:  # noqa: BLE001 - a defect must end with its own code and one document
        if os.environ.get(DEBUG):
            import traceback

            terminal.say(traceback.format_exc())
        message = f"internal error: {type(problem).__name__}: {problem}"
        return _tell("internal", message, f"Set {DEBUG}=1 to see where.", exit_codes.INTERNAL, as_json)


def _before_dashes(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index("--")] if "--" in words else words


def _run(words: list[str], as_json: bool) -> int:
    from context_anchor.cli.parser import parse

    try:
        choice = parse(words)
    except SystemExit as stop:  # --help and --version
        return stop.code if isinstance(stop.code, int) else exit_codes.OK
    if choice.library:
        from context_anchor.cli.interpreter import go_on_in_environment, lacks

        if lacks(choice.library):
            return go_on_in_environment(words, choice.library)
    run = getattr(importlib.import_module(f"context_anchor.cli.{choice.family}"), choice.function)
    try:
        result = run(choice.options)
    except ModuleNotFoundError as problem:
        # Reading needs a lock only to finish what a crash left half done.
        if problem.name != "filelock":
            raise
        from context_anchor.cli.interpreter import go_on_in_environment

        return go_on_in_environment(words, "filelock")
    return _show(result, as_json) if isinstance(result, Outcome) else int(result)


def _show(outcome: Outcome, as_json: bool) -> int:
    if as_json:
        document = dict(outcome.document)
        if outcome.notes:
            document["notices"] = list(outcome.notes)
        terminal.write_json(document)
        return outcome.code
    for note in outcome.notes:
        terminal.say(f"note: {terminal.one_line(note)}")
    for_pipe = outcome.plain is not None and not terminal.is_terminal(sys.stdout)
    terminal.write_lines(outcome.plain or "" if for_pipe else outcome.text)
    return outcome.code


def _tell(code: str, message: str, hint: str, exit_code: int, as_json: bool) -> int:
    """Say what went wrong: on standard output as JSON, else in a line on standard error."""
    try:
        if as_json:
            terminal.write_json({"error": {"code": code, "message": message, "hint": hint}})
        else:
            separator = "" if not hint else " " if message.endswith((".", "!", "?")) else ". "
            terminal.say(f"context-anchor: {message}{separator}{hint}")
    except BrokenPipeError:
        terminal.give_up_output()
    except terminal.OutputFailedError as problem:
        return _output_failed(problem)
    return exit_code


def _output_failed(problem: OSError) -> int:
    """Say on standard error that standard output takes nothing more, and end with `UNAVAILABLE`."""
    terminal.give_up_output()
    try:
        terminal.say(f"context-anchor: the command was done, and its output can't be written: {problem.strerror}")
    except OSError:
        return exit_codes.UNAVAILABLE  # standard error is no better off
    return exit_codes.UNAVAILABLE

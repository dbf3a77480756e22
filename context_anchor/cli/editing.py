"""`edit`: an anchor in the person's own editor."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from context_anchor.anchors.anchor import Anchor, Draft
from context_anchor.anchors.text import shorten
from context_anchor.cli import places, terminal, views
from context_anchor.cli.outcome import Outcome
from context_anchor.errors import ContextAnchorError, InvalidAnchorError, UsageError

_LINE = "---"
_HELP = (
    "# The lines above the first --- are the anchor's fields; `ref` and `tag` may stand several times.",
    "# Below it is the content, as it will be kept. Leave the file unchanged to cancel.",
)
_SINGLE = ("title", "priority", "category")
_REPEATED = {"ref": "refs", "tag": "tags"}


def edit(options: argparse.Namespace) -> Outcome:
    """Open an anchor in $VISUAL or $EDITOR and keep what was saved.

    Raises StaleRevisionError if the anchor was changed meanwhile; the edited text then stays in its
    file, as after any other failure to save it.
    """
    counter = places.open_counter()
    place = places.find_place(counter, options)
    scope, anchor = places.chosen_anchor(counter, place, options, partial=True)
    command = editor_command(os.environ)
    # Made by the owner for the owner alone; the name ends in .md so that editors colour it.
    folder = Path(tempfile.mkdtemp(prefix="context-anchor-"))
    path = folder / f"{anchor.id}.md"
    before = render(anchor)
    try:
        _write(path, before)
        _run_editor(command, path)
        after = _read(path)
    except ContextAnchorError as problem:
        raise _with_path(problem, path, before) from problem
    if after == before:
        _remove(folder)
        text = "Nothing was changed. (An editor that returns at once needs its wait option, as in `code --wait`.)"
        same = {"changed": False, "anchor": views.anchor_json(anchor, scope)}
        return Outcome(same, text, notes=places.notes_of(counter, place))
    try:
        draft = Draft.checked(**parse(after), origin="user")
        result = counter.store.pin(
            scope,
            draft,
            actor=places.ACTOR,
            anchor_id=anchor.id,
            expected_revision=anchor.revision,
            allow_secret=options.allow_secret,
        )
    except ContextAnchorError as problem:
        raise _with_path(problem, path, before) from problem
    _remove(folder)
    document = {
        "changed": True,
        "anchor": views.anchor_json(result.anchor, scope),
        "superseded": views.anchor_json(anchor, scope),
        "scope": views.scope_json(scope, result.revision, place.how),
    }
    text = f"Changed {anchor.id} in {places.said(place, scope)}: {terminal.one_line(result.anchor.title)}"
    return Outcome(document, text, notes=places.notes_of(counter, place, result.notices))


def editor_command(env: Mapping[str, str]) -> list[str]:
    """Return the editor's command as words; raises UsageError where there is none."""
    for name in ("VISUAL", "EDITOR"):
        value = env.get(name, "").strip()
        if not value:
            continue
        if Path(value).is_file():
            return [value]  # a path with spaces, unquoted
        try:
            words = shlex.split(value, posix=os.name != "nt")
        except ValueError as problem:
            raise UsageError(f"{name} can't be read as a command: {problem}", hint=f"Check {name}.") from None
        return [word.strip('"') for word in words]
    if os.name != "nt" and not (terminal.is_terminal(sys.stdin) and terminal.is_terminal(sys.stdout)):
        raise UsageError("there is no terminal for an editor", hint="Set EDITOR, or use pin --id with --content -.")
    for name in ("notepad",) if os.name == "nt" else ("sensible-editor", "nano", "vi"):
        found = shutil.which(name)
        if found:
            return [found]
    raise UsageError("there is no editor", hint="Set EDITOR to the command of your editor.")


def render(anchor: Anchor) -> str:
    """Return an anchor as the text that is edited; `parse` gives the same fields back."""
    lines = [*_HELP, *(f"{name}: {getattr(anchor, name)}" for name in _SINGLE)]
    for name, field in _REPEATED.items():
        lines += [f"{name}: {value}" for value in getattr(anchor, field)]
    return "\n".join([*lines, _LINE, anchor.content, ""])


def parse(text: str) -> dict[str, object]:
    """Return the fields of edited text; raises InvalidAnchorError naming the line."""
    head, found, content = text.replace("\r\n", "\n").partition(f"\n{_LINE}\n")
    if not found:
        raise InvalidAnchorError(
            "the line --- between the fields and the content is missing", hint="Put it back on a line of its own."
        )
    fields: dict[str, object] = {"content": content}
    lists: dict[str, list[str]] = {field: [] for field in _REPEATED.values()}
    for number, line in enumerate(head.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if colon and name in _REPEATED:
            lists[_REPEATED[name]].append(value.strip())
        elif colon and name in _SINGLE and name not in fields:
            fields[name] = value.strip()
        else:
            raise InvalidAnchorError(
                f"line {number} is no field of an anchor: {shorten(line)}",
                hint="Use title, priority, category, ref and tag, each as `name: value`.",
            )
    return {**fields, **lists}


def _write(path: Path, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as problem:
        raise UsageError(f"the text can't be written to {path}: {problem.strerror}") from problem


def _run_editor(command: list[str], path: Path) -> None:
    try:
        code = subprocess.call([*command, str(path)])
    except (OSError, ValueError) as problem:
        raise UsageError(
            f"the editor {shorten(command[0])} does not start: {getattr(problem, 'strerror', None) or problem}",
            hint="Set EDITOR to the command of your editor.",
        ) from problem
    if code != 0:
        raise UsageError(f"the editor {shorten(command[0])} ended with code {code}, so nothing was changed")


def _read(path: Path) -> str:
    text = terminal.read_text(str(path), "the edited text")
    return text.replace("\r\n", "\n")


def _with_path(problem: ContextAnchorError, path: Path, before: str) -> ContextAnchorError:
    """Return the error with the place where the edited text is; a file that holds nothing new is removed."""
    try:
        kept = path.read_bytes() != before.encode("utf-8")
    except OSError:
        kept = False
    if not kept:
        _remove(path.parent)
        return problem
    hint = f"{problem.hint} Your text is kept in {path}".strip()
    return type(problem)(problem.message, hint=hint)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):  # an editor may still hold a file of it on Windows
        shutil.rmtree(folder)

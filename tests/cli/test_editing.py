"""Edit: a private file, a stale edit refused, and no typed text lost."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.conftest import Desk
from context_anchor.anchors.anchor import Draft
from context_anchor.cli import editing
from context_anchor.errors import ContextAnchorError, InvalidAnchorError


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Make `EDITOR` a script of Python lines, in which `path` is the file and `text` its text."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def write(code: str) -> None:
        script = tmp_path / "an editor.py"
        script.write_text(
            "import os, pathlib, subprocess, sys\npath = pathlib.Path(sys.argv[-1])\n"
            f"text = path.read_text(encoding='utf-8')\n{code}\n",
            encoding="utf-8",
        )
        quote = json.dumps if os.name == "nt" else __import__("shlex").quote
        monkeypatch.setenv("EDITOR", f"{quote(sys.executable)} {quote(str(script))} --wait")

    return write


def left_over(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("context-anchor-*/*"))


def test_what_is_saved_is_kept(ca: Desk, editor: object, tmp_path: Path) -> None:
    first = ca.pin("Old", "one", "--priority", "high", "--ref", "a.py", "--tag", "x")
    editor(  # type: ignore[operator]
        "new = text.replace('title: Old', 'title: Neu ü').replace('ref: a.py', 'ref: a.py\\nref: b.py')"
        ".replace('---\\none', '---\\ntwo\\r\\n---\\nthree')\n"
        "path.write_bytes(new.encode())"
    )
    answer = ca("edit", "old")
    assert answer.code == 0, answer
    anchor = ca("get", first, "--json").json["anchor"]
    assert (anchor["title"], anchor["content"], anchor["priority"]) == ("Neu ü", "two\n---\nthree", "high")
    assert (anchor["refs"], anchor["tags"], anchor["origin"]) == (["a.py", "b.py"], ["x"], "user")
    assert left_over(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_the_file_is_the_owners_alone(ca: Desk, editor: object, tmp_path: Path) -> None:
    ca.pin("t")
    seen = tmp_path / "modes"
    editor(  # type: ignore[operator]
        f"pathlib.Path({str(seen)!r}).write_text(oct(path.stat().st_mode) + oct(path.parent.stat().st_mode))"
    )
    ca("edit", "t")
    assert seen.read_text() == "0o1006000o40700"


def test_an_unchanged_file_changes_nothing(ca: Desk, editor: object, tmp_path: Path) -> None:
    ca.pin("t")
    before = ca.files()
    editor("path.write_text(text, encoding='utf-8')")  # type: ignore[operator]
    answer = ca("edit", "t", "--json")
    assert (answer.code, answer.json["changed"]) == (0, False)
    assert ca.files() == before
    assert left_over(tmp_path) == []


def test_an_edit_that_has_been_overtaken_is_refused_and_its_text_kept(
    ca: Desk, editor: object, tmp_path: Path
) -> None:
    first = ca.pin("t", "one")
    editor(  # type: ignore[operator]
        "subprocess.run([sys.executable, '-m', 'context_anchor', 'pin', '--id', "
        f"{first!r}, '--content', 'theirs'], check=True, stdout=subprocess.DEVNULL)\n"
        "path.write_text(text.replace('one', 'mine'), encoding='utf-8')"
    )
    answer = ca("edit", "t", "--json")
    assert (answer.code, answer.json["error"]["code"]) == (5, "stale_revision")
    (kept,) = left_over(tmp_path)
    assert "mine" in kept.read_text(encoding="utf-8")
    assert str(kept) in answer.json["error"]["hint"]
    assert ca("get", "t", "--content-only").out == "theirs\n"


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("path.write_text('no line at all', encoding='utf-8')", 4),
        ("path.write_text(text.replace('priority: normal', 'priority: urgent'), encoding='utf-8')", 4),
        ("path.write_text(text.replace('title: t', 'titel: t'), encoding='utf-8')", 4),
        ("path.write_text(text + 'x' * 5000, encoding='utf-8')", 4),
        ("path.write_text(text + 'gh' + 'p_R9x2Kd71LmQ0pWz8VbN5cTy3HsGf6JaE4uXo', encoding='utf-8')", 4),
        ("path.write_bytes(b'title: \\xff\\xff\\n---\\nx')", 2),
        ("path.write_text(text + 'more', encoding='utf-8'); sys.exit(3)", 2),
    ],
)
def test_a_text_that_can_not_be_saved_is_kept(
    ca: Desk, editor: object, tmp_path: Path, code: str, exit_code: int
) -> None:
    ca.pin("t", "one")
    before = ca.files()
    editor(code)  # type: ignore[operator]
    answer = ca("edit", "t")
    assert answer.code == exit_code, answer
    (kept,) = left_over(tmp_path)
    assert str(kept) in answer.err
    assert ca.files() == before


def test_an_editor_that_fails_or_takes_the_file_away_leaves_the_anchor(
    ca: Desk, editor: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca.pin("t", "one")
    for code in ("sys.exit(1)", "path.unlink()"):
        editor(code)  # type: ignore[operator]
        assert ca("edit", "t").code == 2
        assert left_over(tmp_path) == []
    monkeypatch.setenv("EDITOR", str(tmp_path / "no such editor"))
    assert "does not start" in ca("edit", "t").err
    monkeypatch.setenv("EDITOR", "an 'unclosed quote")
    assert ca("edit", "t").code == 2
    assert ca("get", "t", "--content-only").out == "one\n"


def test_visual_comes_before_editor_and_a_path_with_spaces_is_one_word(tmp_path: Path) -> None:
    tool = tmp_path / "my editor"
    tool.touch()
    assert editing.editor_command({"VISUAL": str(tool), "EDITOR": "vi"}) == [str(tool)]
    assert editing.editor_command({"VISUAL": " ", "EDITOR": "code --wait"}) == ["code", "--wait"]


def test_without_any_editor_the_person_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ContextAnchorError, match="EDITOR"):
        editing.editor_command({})


_line = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=30)
_block = st.lists(st.one_of(st.sampled_from(["---", "# x", ""]), _line), min_size=1, max_size=5).map("\n".join)


@given(_line, _block, st.lists(_line, max_size=3), st.lists(_line, max_size=3))
def test_what_is_rendered_for_the_editor_parses_back(
    title: str, content: str, refs: list[str], tags: list[str]
) -> None:
    from datetime import datetime, timezone

    from context_anchor.anchors.anchor import Anchor

    try:
        draft = Draft.checked(title=title, content=content, refs=refs, tags=tags)
    except InvalidAnchorError:
        return
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    anchor = Anchor(
        "a-0123456789", draft.title, draft.content, draft.priority, draft.category, "session", draft.refs,
        draft.tags, now, now, "user", 1,
    )  # fmt: skip
    assert Draft.checked(**editing.parse(editing.render(anchor))) == draft

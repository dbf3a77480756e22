"""File names made from ids, and the data folder."""

from __future__ import annotations

import os
import stat
import string
from pathlib import Path

import platformdirs
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from context_anchor.wire import paths

IDS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=512)
TRICKS = [
    "../../etc/passwd", "..", ".", "a/b", "a\\b", "C:\\x", "con", "NUL", "a\x00b", "a\nb", " ", "a:b", "~", "%2e",
    "\ud800", "ü", "Ü", "u\u0308", "🙂", "A" * 512, "x.json", "-rf", "$HOME", "`id`", "*", "_2e", "s-a",
]  # fmt: skip


@given(IDS)
def test_a_key_is_safe_on_every_file_system_and_short(text: str) -> None:
    key = paths.file_key(text)
    assert set(key) <= set(string.ascii_lowercase + string.digits + "-_")
    assert key.startswith("s-")
    assert len(key) <= 120


@given(IDS, IDS)
@example("a", "A")
@example("_2e", ".")
@example("ü", "u\u0308")
@example("A" * 512, "A" * 511)
@example("A" * 39 + "B", "A" * 40)
def test_different_ids_have_different_keys(one: str, other: str) -> None:
    assume(one != other)
    assert paths.file_key(one) != paths.file_key(other)


@given(st.text("aA_h.", min_size=30, max_size=60), st.integers(0, 59), st.sampled_from("aA_h.b"))
def test_long_ids_that_differ_in_one_place_have_different_keys(text: str, at: int, char: str) -> None:
    assume(at < len(text) and text[at] != char)
    assert paths.file_key(text) != paths.file_key(text[:at] + char + text[at + 1 :])


def test_path_tricks_stay_inside_their_folder(tmp_path: Path) -> None:
    keys = {paths.session_path(str(tmp_path), "marks", "claude-code", text) for text in TRICKS}
    assert len(keys) == len(TRICKS)
    for key in keys:
        assert os.path.dirname(key) == str(tmp_path / "marks" / "claude-code")
        assert os.path.normpath(key) == key
        Path(key + ".lock").parent.mkdir(parents=True, exist_ok=True)
        Path(key + ".lock").write_bytes(b"")


@pytest.mark.parametrize("text", ["", "x" * 513, None, 5, b"x"])
def test_an_id_that_cannot_be_one_is_refused(text: object) -> None:
    with pytest.raises(ValueError):
        paths.file_key(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "6c62272e07bb014262b821756295c58d"),
        (b"a", "d228cb696f1a8caf78912b704e4a8964"),
        (b"foobar", "343e1662793c64bf6f0d3597ba446f18"),
    ],
)
def test_the_hash_is_fnv_1a_by_its_published_vectors(data: bytes, digest: str) -> None:
    assert paths.fnv1a_128(data) == digest


def test_the_named_data_folder_comes_first_then_the_pointer_then_the_default(tmp_path: Path) -> None:
    plain = {"HOME": str(tmp_path)}
    named = {**plain, "CONTEXT_ANCHOR_DATA_DIR": str(tmp_path / "named ü")}
    root = tmp_path / "root"
    root.mkdir()
    default = paths.data_dir(plain, str(root))
    (root / "data-dir.txt").write_text(str(tmp_path / "pointed ü") + "\r\n", encoding="utf-8")
    assert paths.data_dir(named, str(root)) == str(tmp_path / "named ü")
    assert paths.data_dir(plain, str(root)) == str(tmp_path / "pointed ü")
    assert default == paths.default_data_dir(plain)
    assert paths.data_dir({**plain, "CONTEXT_ANCHOR_DATA_DIR": "  "}, str(root)) == str(tmp_path / "pointed ü")


@pytest.mark.parametrize("content", [b"", b"relative/folder", b"\xff\xfe", b"\n"])
def test_a_pointer_that_names_no_absolute_folder_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data-dir.txt").write_bytes(content)
    env = {"HOME": str(tmp_path)}
    assert paths.data_dir(env, str(tmp_path)) == paths.default_data_dir(env)


def test_a_relative_or_home_folder_in_the_variable_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    assert paths.data_dir({"CONTEXT_ANCHOR_DATA_DIR": "here"}) == str(tmp_path / "here")
    assert paths.data_dir({"CONTEXT_ANCHOR_DATA_DIR": "~/x"}) == str(tmp_path / "home" / "x")


@pytest.mark.parametrize("xdg", [None, "share", "", "  "])
def test_the_default_is_the_one_of_platformdirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xdg: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if xdg is not None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / xdg) if xdg.strip() else xdg)
    assert paths.default_data_dir() == platformdirs.user_data_dir("context-anchor", appauthor=False)
    if os.name != "nt":
        unix = Unix("context-anchor", appauthor=False).user_data_dir
        mac = MacOS("context-anchor", appauthor=False).user_data_dir
        assert paths.default_data_dir(platform="linux") == unix
        assert paths.default_data_dir(platform="darwin") == mac


def test_on_windows_the_default_is_below_local_app_data() -> None:
    env = {"USERPROFILE": "P", "LOCALAPPDATA": "L", "XDG_DATA_HOME": "X"}
    assert paths.default_data_dir(env, "win32") == os.path.join("L", "context-anchor")
    del env["LOCALAPPDATA"]
    assert paths.default_data_dir(env, "win32") == os.path.join("P", "AppData", "Local", "context-anchor")


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_new_folders_are_the_owners_alone_and_old_ones_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    (tmp_path / "old").chmod(0o755)
    paths.ensure_folder(str(tmp_path / "old" / "a" / "b"))
    paths.ensure_folder(str(tmp_path / "old" / "a" / "b"))
    modes = [stat.S_IMODE((tmp_path / p).stat().st_mode) for p in ("old", "old/a", "old/a/b")]
    assert modes == [0o755, 0o700, 0o700]


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(OSError):
        paths.ensure_folder(str(tmp_path / "x"))

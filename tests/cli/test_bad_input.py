"""Bad input of every kind: a clear error with its code, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Answer, Desk
from context_anchor.cli import exit_codes

NO_ROOT = pytest.mark.skipif(
    os.name == "nt" or getattr(os, "geteuid", lambda: 1)() == 0, reason="modes do not bind the superuser"
)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("pin",), 2), (("pin", "--title"), 2), (("pin", "--title", "t"), 2), (("pin", "--content", "c"), 2),
        (("pin", "--title", "", "--content", "c"), 4), (("pin", "--title", " \t\n", "--content", "c"), 4),
        (("pin", "--title", "t", "--content", ""), 4), (("pin", "--title", "t", "--content", " \n"), 4),
        (("pin", "--title", "x" * 201, "--content", "c"), 4), (("pin", "--title", "t", "--content", "x" * 4001), 4),
        (("pin", "--title", "t", "--content", "c", "--priority", "urgent"), 4),
        (("pin", "--title", "t", "--content", "c", "--priority", ""), 4),
        (("pin", "--title", "t", "--content", "c", "--category", "DECISION"), 4),
        (("pin", "--title", "t", "--content", "c", "--scope", "both"), 2),
        (("pin", "--title", "t", "--content", "c", "--file", "f"), 2), (("pin", "--title", "t", "--file", "no"), 2),
        (("pin", "--title", "t", "--content", "c", *("--ref", "r") * 1, "--ref", "x" * 1025), 4),
        (("pin", "--title", "t", "--content", "c", *[w for n in range(21) for w in ("--tag", str(n))]), 4),
        (("pin", "--title", "t", "--content", "c", "--tag", "x" * 41), 4),
        (("pin", "--title", "a\u202eb", "--content", "c"), 4), (("pin", "--title", "t", "--content", "\u2066"), 4),
        (("pin", "--title", "t", "--content", "c", "--expected-revision", "one"), 2),
        (("pin", "--title", "t", "--content", "c", "--expected-revision", "9" * 30), 2),
        (("pin", "--title", "t", "--content", "c", "--session", ""), 2),
        (("pin", "--title", "t", "--content", "c", "--session", "../../../etc/passwd"), 3),
        (("pin", "--title", "t", "--content", "c", "--session", "x" * 600), 2),
        (("pin", "--title", "t", "--content", "c", "--workspace", ""), 3),
        (("pin", "--id", "../../x", "--content", "c"), 3), (("pin", "--id", "", "--content", "c"), 3),
        (("pin", "--tit", "t", "--content", "c"), 2), (("pin", "extra", "--title", "t", "--content", "c"), 2),
        (("get", "--id", "../../../etc/passwd"), 3), (("get", "--id", "nul\0"), 3), (("get", "\0"), 3),
        (("get", "--title", ""), 3), (("get", "--title", "x" * 100_000), 3), (("unpin", "--id", "a-"), 3),
        (("unpin",), 2), (("unpin", "--title", "none"), 3), (("history", "--limit", "many"), 2),
        (("undo", "--entry", "-1"), 2), (("undo", "--entry", "0"), 3), (("list", "--session", "no-such-one"), 3),
        (("list", "--nope"), 2), (("",), 2), (("--",), 2), (("pin --title",), 2), (("edit", "none"), 3),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else str(value),
)  # fmt: skip
def test_bad_words_end_with_their_code_and_change_nothing(ca: Desk, words: tuple[str, ...], code: int) -> None:
    ca.pin("one", "kept")
    before = ca.files()
    answer = ca(*words, "--json") if "--" not in words else ca("--json", *words)
    assert answer.code == code, answer
    assert answer.json["error"]["message"]
    assert ca.files() == before
    plain = ca(*words)
    assert (plain.code, plain.out) == (code, "")
    assert plain.err.startswith("context-anchor: ")
    assert len(plain.err.strip().splitlines()) == 1


def test_a_wrong_number_of_anything_is_no_defect(ca: Desk) -> None:
    answer = ca("undo", "--entry", "1")
    assert answer.code == 3


@pytest.mark.parametrize("size", [4_001, 10_000_000])
def test_content_of_any_size_is_refused_quickly_and_in_a_short_message(ca: Desk, size: int) -> None:
    answer = ca("pin", "--title", "t", "--content", "-", stdin=b"x" * size)
    assert answer.code == exit_codes.REFUSED
    assert f"{size:,}" in answer.err
    assert len(answer.err) < 400
    assert ca.titles() == []


@pytest.mark.skipif(os.name == "nt", reason="arguments are text on Windows")
def test_bytes_that_are_no_text_are_cleaned_and_stored_as_utf8(ca: Desk) -> None:
    answer = ca.process("pin", "--title", b"bad \xff\xfe title", "--content", b"a \xed\xa0\x80 surrogate", "--json")
    assert answer.code == 0, answer
    assert "\ufffd" in answer.json["anchor"]["title"]
    for data in ca.files().values():
        data.decode("utf-8")
    assert ca.process("list").code == 0
    assert ca.process("get", b"\xff\xff").code == 3
    assert ca.process("list", "--workspace", b"/tmp/\xff").code == 3
    assert ca.process("list", "--session", b"\xff\xff\xff\xff\xff\xff\xff").code == 3


def test_standard_input_that_is_no_text_is_refused(ca: Desk) -> None:
    for data in (b"\xff\xff", b"caf\xe9", bytes(range(256))):
        answer = ca("pin", "--title", "t", "--content", "-", stdin=data)
        assert answer.code == 2
        assert "UTF-8" in answer.err
    assert ca.titles() == []


def test_a_closed_standard_input_is_an_empty_one(ca: Desk) -> None:
    again = "[sys.executable, '-m', 'context_anchor', *sys.argv[1:]]"
    code = f"import os, sys; os.close(0); os.execv(sys.executable, {again})"
    if os.name == "nt":
        pytest.skip("streams are not inherited by number")
    answer = ca.process("pin", "--title", "t", "--content", "-", command=(sys.executable, "-c", code))
    assert answer.code == exit_codes.REFUSED
    assert "Traceback" not in answer.err


def test_a_data_folder_that_is_a_file_is_reported(ca: Desk, tmp_path: Path) -> None:
    ca.data.write_text("I am a file", encoding="utf-8")
    answer = ca("pin", "--title", "t", "--content", "c", "--json")
    assert (answer.code, answer.json["error"]["code"]) == (exit_codes.UNAVAILABLE, "store_unavailable")
    assert ca("list").code == 0
    assert ca.data.read_text(encoding="utf-8") == "I am a file"


@NO_ROOT
def test_a_data_folder_that_can_not_be_written_is_reported_and_still_read(ca: Desk) -> None:
    ca.pin("one")
    folders = [p for p in (ca.data, *ca.data.rglob("*")) if p.is_dir()]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert ca.titles() == ["one"]
        answer = ca("pin", "--title", "t", "--content", "c", "--json")
        assert (answer.code, answer.json["error"]["code"]) == (exit_codes.UNAVAILABLE, "store_unavailable")
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert ca.titles() == ["one"]


def test_a_damaged_file_is_set_aside_restored_and_reported(ca: Desk) -> None:
    ca.pin("one")
    path = next(p for p in ca.data.rglob("*.json") if "anchors" in p.parts)
    path.write_bytes(path.read_bytes()[:40])
    answer = ca("list", "--json")
    assert [a["title"] for a in answer.json["anchors"]] == ["one"]
    assert any(p.name.startswith(path.name + ".corrupt-") for p in path.parent.iterdir())


def test_a_file_of_a_newer_version_is_shown_and_not_changed(ca: Desk) -> None:
    ca.pin("one")
    path = next(p for p in ca.data.rglob("*.json") if "anchors" in p.parts)
    path.write_bytes(path.read_bytes().replace(b"context-anchor-anchors/1", b"context-anchor-anchors/9"))
    before = ca.files()
    assert ca.titles() == ["one"]
    for words in (("pin", "--title", "t", "--content", "c"), ("unpin", "one"), ("undo", "--scope", "workspace")):
        answer = ca(*words, "--json")
        assert (answer.code, answer.json["error"]["code"]) == (exit_codes.UNAVAILABLE, "store_newer")
    assert ca.files() == before


def test_a_lock_that_is_held_ends_with_a_conflict(ca: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    from context_anchor.anchors import store
    from context_anchor.cli import places

    ca.pin("one")
    lock = next(p for p in ca.data.rglob("*.json.lock"))
    monkeypatch.setattr(places, "AnchorStore", lambda data: store.AnchorStore(data, lock_wait_s=0.2))
    with FileLock(lock):
        answer = ca("pin", "--title", "t", "--content", "c", "--json")
        assert (answer.code, answer.json["error"]["code"]) == (exit_codes.CONFLICT, "lock_timeout")
        assert ca.titles() == ["one"]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB; skipped where mounting is not permitted."""
    if sys.platform != "linux" or not shutil.which("mount"):
        pytest.skip("needs a tmpfs")
    folder = tmp_path / "small disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", str(folder)]
    done = subprocess.run(mount, capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"mounting is not permitted: {done.stderr.decode(errors='replace').strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_became_read_only_is_reported_and_still_read(ca: Desk, full_disk: Path) -> None:
    def run(*words: str) -> Answer:
        return ca.process(*words, CONTEXT_ANCHOR_DATA_DIR=str(full_disk / "data"))

    assert run("pin", "--title", "first", "--content", "c").code == 0
    subprocess.run(["mount", "-o", "remount,ro", str(full_disk)], check=True, capture_output=True)
    assert run("list").out.endswith("\tfirst\n")
    for words in (("pin", "--title", "t", "--content", "c"), ("unpin", "first"), ("undo",)):
        refused = run(*words, "--json")
        assert (refused.code, refused.json["error"]["code"]) == (exit_codes.UNAVAILABLE, "store_unavailable")


def test_a_full_disk_is_reported_and_loses_nothing_acknowledged(ca: Desk, full_disk: Path) -> None:
    def run(*words: str) -> Answer:
        return ca.process(*words, CONTEXT_ANCHOR_DATA_DIR=str(full_disk / "data"))

    for title in ("first", "second"):
        assert run("pin", "--title", title, "--content", "c" * 3000).code == 0
    with (full_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(b"x" * 4096)
    refused = run("pin", "--title", "third", "--content", "c" * 3000, "--json")
    assert (refused.code, refused.json["error"]["code"]) == (exit_codes.UNAVAILABLE, "store_unavailable")
    assert "space" in refused.json["error"]["message"] + refused.json["error"]["hint"]
    titles = [line.split("\t")[-1] for line in run("list").out.splitlines()]
    assert sorted(titles) == ["first", "second"]
    (full_disk / "filler").unlink()
    assert run("pin", "--title", "third", "--content", "c").code == 0
    assert len(run("list").out.splitlines()) == 3

"""Judging hooks: the files' form, a real run of each command, and documents that a host would drop."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from context_anchor.errors import HostConfigError
from context_anchor.install import hook_check, mirror, render
from context_anchor.install.findings import worst
from context_anchor.install.source import Source

HOSTS = ("claude-code", "antigravity")


@pytest.fixture
def bundles(source: Source, place: render.Place, tmp_path: Path) -> dict[str, Path]:
    """Both hosts' bundles in folders with a space and a letter that is not ASCII."""
    made = {}
    for host in HOSTS:
        made[host] = tmp_path / "plügins here" / host
        mirror.write(made[host], render.render(host, source, place, made[host]).files)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("host", HOSTS)
def test_the_rendered_hooks_run_and_every_document_is_sound(host: str, bundles: dict[str, Path]) -> None:
    findings = hook_check.check(host, bundles[host])
    assert worst(findings) in ("ok", "warning"), findings  # a warning only where this machine is slow
    assert any("hooks ran and answered" in finding.what for finding in findings)


def test_real_state_is_not_touched_by_a_look(
    bundles: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXT_ANCHOR_DATA_DIR", str(tmp_path / "real"))
    hook_check.check("claude-code", bundles["claude-code"])
    assert not (tmp_path / "real").exists()
    assert not (tmp_path / "dätä folder").exists()


def rewrite(path: Path, change: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    changed = change(document)
    path.write_text(json.dumps(document if changed is None else changed), encoding="utf-8")


def set_handler(document: dict[str, Any], event: str, **fields: Any) -> None:
    document["context-anchor"][event][0].update(fields)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: {"hooks": d["context-anchor"]}, "top level must map"),
        (lambda d: set_handler(d, "Stop", timeout=0), "timeout must be"),
        (lambda d: set_handler(d, "Stop", timeout=1.5), "timeout must be"),
        (lambda d: set_handler(d, "Stop", type="prompt"), "flat list of commands"),
        (
            lambda d: set_handler(d, "PreInvocation", command='"/py" scripts/hook.py antigravity PreInvocation'),
            "double quote",
        ),
        (lambda d: d["context-anchor"].update(Stop=[{"hooks": [{"command": "x"}]}]), "flat list of commands"),
        (lambda d: d["context-anchor"].update(enabled="yes"), "neither true nor false"),
        (lambda d: d["context-anchor"].pop("PreInvocation") and None, "no hook for PreInvocation"),
        (lambda d: set_handler(d, "Stop", command="rm -rf something"), "starts something else"),
    ],
)
def test_an_antigravity_file_that_the_host_would_drop_is_an_error(
    bundles: dict[str, Path], change: Any, words: str
) -> None:
    rewrite(bundles["antigravity"] / "hooks.json", change)
    findings = hook_check.check("antigravity", bundles["antigravity"])
    assert worst(findings) == "error"
    assert any(words in finding.what for finding in findings), findings


def first_hook(document: dict[str, Any], event: str) -> dict[str, Any]:
    handler: dict[str, Any] = document["hooks"][event][0]["hooks"][0]
    return handler


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["hooks"].update(NewEvent=d["hooks"]["Stop"]), "NewEvent is none of our events"),
        (lambda d: d.update(hooks=[]), "holds no `hooks` object"),
        (lambda d: first_hook(d, "Stop").pop("args") and None, "with `args`"),
        (lambda d: d["hooks"].pop("SessionStart") and None, "no hook for SessionStart"),
        (lambda d: first_hook(d, "Stop").update(command="/gone/python3"), "which is gone"),
        (lambda d: first_hook(d, "Stop").update(args=["-c", "print(1)"]), "starts something else"),
    ],
)
def test_a_claude_code_file_that_does_not_work_is_an_error(
    bundles: dict[str, Path], change: Any, words: str
) -> None:
    rewrite(bundles["claude-code"] / "hooks" / "claude-code.json", change)
    findings = hook_check.check("claude-code", bundles["claude-code"])
    assert worst(findings) == "error"
    assert any(words in finding.what for finding in findings), findings


def test_a_second_hooks_file_is_an_error(bundles: dict[str, Path]) -> None:
    (bundles["claude-code"] / "hooks" / "hooks.json").write_text("{}")
    assert worst(hook_check.check("claude-code", bundles["claude-code"])) == "error"


def test_broken_json_is_one_finding_with_its_code(bundles: dict[str, Path]) -> None:
    (bundles["antigravity"] / "hooks.json").write_text("{,}")
    (finding,) = hook_check.check("antigravity", bundles["antigravity"])
    assert (finding.level, finding.code) == ("error", "host_config")
    with pytest.raises(HostConfigError):
        hook_check.read_handlers("antigravity", bundles["antigravity"])


@pytest.mark.skipif(os.name == "nt", reason="a shell script as a shim")
def test_a_shim_is_named_with_its_cure(bundles: dict[str, Path], place: render.Place, tmp_path: Path) -> None:
    shim = tmp_path / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{place.hook_python}" "$@"\n')
    shim.chmod(0o755)

    def change(document: dict[str, Any]) -> None:
        for groups in document["hooks"].values():
            groups[0]["hooks"][0]["command"] = str(shim)

    rewrite(bundles["claude-code"] / "hooks" / "claude-code.json", change)
    findings = hook_check.check("claude-code", bundles["claude-code"])
    assert any(f.level == "warning" and "shim" in f.what and "Install again" in f.cure for f in findings)


@pytest.mark.skipif(os.name == "nt", reason="a shell script as a shim")
def test_a_plain_clone_whose_python3_is_a_shim_or_missing_is_told(
    bundles: dict[str, Path], place: render.Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shims").mkdir()
    shim = tmp_path / "shims" / "python3"
    shim.write_text(f'#!/bin/sh\nexec "{place.hook_python}" "$@"\n')
    shim.chmod(0o755)
    root = bundles["claude-code"]
    path = root / "hooks" / "claude-code.json"
    path.write_text(path.read_text().replace(json.dumps(place.hook_python), '"python3"'))
    monkeypatch.setenv("PATH", str(shim.parent))
    assert [f.level for f in hook_check.check("claude-code", root) if f.check == "claude-code.python"] == [
        "warning"
    ]
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert [f.level for f in hook_check.check("claude-code", root) if f.check == "claude-code.python"] == ["error"]


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.exit(3)",
        "print('not json')",
        "print('{}{}')",
        'print(\'{"decision": "block"}\')',
        "import sys; sys.stderr.buffer.write(b'\\xff')",
        'import sys; sys.stdout.buffer.write(\'{"a":"é"}\'.encode())',
    ],
)
@pytest.mark.parametrize("host", HOSTS)
def test_a_hook_that_answers_wrongly_is_an_error(host: str, body: str, bundles: dict[str, Path]) -> None:
    (bundles[host] / "scripts" / "hook.py").write_text(body + "\n", encoding="utf-8")
    findings = hook_check.check(host, bundles[host])
    if host == "antigravity" and "sys.exit(3)" in body:
        # The line's own `|| echo {}` answers in its place, which is what it is there for.
        assert worst(findings) != "error"
    else:
        assert worst(findings) == "error", findings


@pytest.mark.parametrize(
    ("host", "event", "out", "sound"),
    [
        ("claude-code", "Stop", b"{}", True),
        ("claude-code", "SessionStart", b"{}", False),
        ("claude-code", "UserPromptSubmit", b'{"additionalContext": "x"}', False),
        ("claude-code", "UserPromptSubmit",
         b'{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"x"}}', False),
        ("claude-code", "PostToolBatch",
         b'{"hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"x"}}', True),
        ("claude-code", "PreCompact", b"", True),
        ("claude-code", "PreCompact", b"Keep these", True),
        ("claude-code", "PreCompact", b"{}", False),
        ("claude-code", "PostCompact", b"x", False),
        ("antigravity", "Stop", b"{}", True),
        ("antigravity", "PreInvocation", b'{"injectSteps":[{"ephemeralMessage":"x"}]}', True),
        ("antigravity", "PreInvocation", b'{"injectSteps":[{"systemMessage":{"systemMessage":"x"}}]}', True),
        ("antigravity", "PreInvocation", b'{"injectSteps":[{"systemMessage":"x"}]}', False),
        ("antigravity", "PreInvocation",
         b'{"injectSteps":[{"systemMessage":{"systemMessage":"x","metadata":{}}}]}', False),
        ("antigravity", "PreInvocation", b'{"injectSteps":[{"userMessage":"x","ephemeralMessage":"y"}]}', False),
        ("antigravity", "PreInvocation", b'{"injectSteps":[],"decision":""}', False),
        ("antigravity", "PreInvocation", b"", False),
    ],
)  # fmt: skip
def test_documents_are_judged_as_the_hosts_judge_them(host: str, event: str, out: bytes, sound: bool) -> None:
    assert (hook_check.judge(host, event, out) == "") is sound


def test_a_text_above_the_hosts_cap_is_refused_and_emoji_count_twice() -> None:
    def document(text: str) -> bytes:
        inner = {"hookEventName": "SessionStart", "additionalContext": text}
        return json.dumps({"hookSpecificOutput": inner}).encode("ascii")

    assert hook_check.judge("claude-code", "SessionStart", document("é" * 10000)) == ""
    assert hook_check.judge("claude-code", "SessionStart", document("é" * 10001)) != ""
    assert hook_check.judge("claude-code", "SessionStart", document("\U0001f600" * 5001)) != ""

"""Sessions in a real Claude Code client: several at once, the size cap, a lost answer, the skill."""

from __future__ import annotations

import json
import time
from pathlib import Path

from .claude_code import anchors
from .claude_code.anchors import ALLOWED, PREFIX, blocks, pin, pinning_chat, receipts
from .claude_code.client import WINDOW_MODEL, ClaudeCode
from .claude_code.model import Call, Reply
from .test_claude_code import NOTE, RULE, both


def test_two_sessions_in_one_workspace_mix_nothing(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        left, right = host.chat(*ALLOWED), host.chat(*ALLOWED)
        host.model.plan(Reply("ok", tokens=20_000), Reply("ok", tokens=20_000))
        ids = [chat.say("Hello.").session_id for chat in (left, right)]
        names = ("LEFT", "RIGHT")
        for number in range(2):
            for name, chat in zip(names, (left, right), strict=True):
                host.model.plan(
                    Reply("pin", (pin(f"{name} note {number}", f"{name}-FACT-{number}"),)),
                    Reply("pinned", tokens=30_000),
                )
                anchors.assert_sound(host, chat.say(f"Pin for {name}."))
        shared = pin("Both know", "SHARED-FACT", scope="workspace")
        host.model.plan(Reply("pin", (shared,)), Reply("pinned", tokens=31_000))
        left.say("Pin for the workspace.")
        for name, session_id in zip(names, ids, strict=True):
            assert anchors.titles(host, session_id) == {f"{name} note 0", f"{name} note 1"}
        for chat in (left, right):
            assert chat.say("/compact").compacted
        for name, other, chat in (("LEFT", "RIGHT", left), ("RIGHT", "LEFT", right)):
            chat.say("Go on.")
            restored = host.model.main[-1]
            assert len(receipts(restored)) == 1
            assert [blocks(restored, f"{name}-FACT-{n}") for n in (0, 1)] == [1, 1]
            assert blocks(restored, f"{other}-FACT") == 0
            assert blocks(restored, "SHARED-FACT") == 1
        assert left.close() == right.close() == 0


def test_a_bundle_stays_under_the_clients_cap_with_whole_notes_and_names_the_rest(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    # Emoji count two UTF-16 units each, as the client counts.
    drafts = [
        {
            "title": f"Fact {n:02d}",
            "content": f"BEGIN-{n:02d} " + "\U0001f9ed" * 300 + f" END-{n:02d}",
            "priority": "critical" if n < 3 else "normal",
        }
        for n in range(25)
    ]
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, Call(PREFIX + "replace_session_anchors", {"anchors": drafts}))
        assert len(anchors.session_anchors(host, first.session_id)) == 25
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        time.sleep(0.5)
        restored = host.model.main[-1]
        assert "persisted-output" not in restored.text
        (text,) = [text for text in anchors.handed_over(host, first.session_id) if "BEGIN-00" in text]
        assert 8_000 < anchors.utf16_units(text) <= 10_000
        whole = [n for n in range(25) if f"| BEGIN-{n:02d}" in restored.text]
        assert [n for n in range(25) if f"END-{n:02d}" in restored.text] == whole, "no note is cut"
        assert {0, 1, 2} <= set(whole)
        left_out = set(range(25)) - set(whole)
        assert left_out
        assert all(f"Fact {n:02d}" in text for n in left_out), "what did not fit is named"
        assert "get_pinned_context" in text
        assert chat.close() == 0


def swallow_first_recovery(plugin: Path, folder: Path) -> Path:
    """A copy of the plugin whose first SessionStart(compact) answer is lost on its way to the client."""
    import shutil

    copied = folder / "plugin with a leak"
    shutil.copytree(plugin, copied)
    (copied / "leak.py").write_text(
        "import pathlib, subprocess, sys\n"
        "payload = sys.stdin.buffer.read()\n"
        "done = subprocess.run([sys.executable, *sys.argv[1:]], input=payload, capture_output=True)\n"
        "mark = pathlib.Path(__file__).with_name('lost')\n"
        "if b'\"compact\"' in payload and not mark.exists():\n"
        "    mark.write_bytes(done.stdout)\n"
        "else:\n"
        "    sys.stdout.buffer.write(done.stdout)\n",
        encoding="utf-8",
    )
    declared = copied / "hooks" / "claude-code.json"
    hooks = json.loads(declared.read_text(encoding="utf-8"))
    for group in hooks["hooks"]["SessionStart"]:
        for handler in group["hooks"]:
            handler["args"].insert(0, "${CLAUDE_PLUGIN_ROOT}/leak.py")
    declared.write_text(json.dumps(hooks), encoding="utf-8")
    return copied


@both
def test_a_recovery_that_got_lost_is_given_once_more(client: Path, plugin: Path, tmp_path: Path) -> None:
    leaky = swallow_first_recovery(plugin, tmp_path)
    with ClaudeCode(client, tmp_path / "host", leaky) as host:
        chat, _ = pinning_chat(host, RULE)
        assert chat.say("/compact").compacted
        assert b"BILLING-RULE" in (leaky / "lost").read_bytes()
        counts = []
        for prompt in ("Go on.", "On.", "And on.", "Once more."):
            chat.say(prompt)
            counts.append(blocks(host.model.main[-1], "BILLING-RULE"))
            time.sleep(0.4)  # a person types slower than the client flushes its transcript
        assert counts[0] == 0, "the answer was lost"
        assert counts[1:] == [1, 1, 1], "given with the prompt after the one that showed the loss, once"
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        assert blocks(host.model.main[-1], "BILLING-RULE") == 1, "the next compaction is as usual"
        time.sleep(0.4)
        chat.say("On.")
        assert blocks(host.model.main[-1], "BILLING-RULE") == 1
        assert chat.close() == 0


def test_the_skill_then_compact_then_continue_brings_the_saved_context_back(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, NOTE)
        saved = [
            {
                "title": "Never touch billing",
                "content": "BILLING-RULE: leave src/billing alone",
                "priority": "critical",
            },
            {"title": "Next step", "content": "NEXT-STEP: finish parse_header", "priority": "high"},
        ]
        host.model.plan(
            Reply("I save.", (Call(PREFIX + "replace_session_anchors", {"anchors": saved}),), tokens=60_000),
            Reply("Saved. Type /compact now.", tokens=61_000),
        )
        turn = chat.say("/context-anchor:context-anchor")
        anchors.assert_sound(host, turn)
        asked = host.model.main[-2]
        assert "replace_session_anchors" in asked.last_user, "the skill's body reached the model"
        assert anchors.titles(host, first.session_id) == {"Never touch billing", "Next step"}
        assert chat.say("/compact").compacted
        chat.say("continue")
        restored = host.model.main[-1]
        assert len(receipts(restored)) == 1
        assert blocks(restored, "BILLING-RULE") == blocks(restored, "NEXT-STEP") == 1
        assert blocks(restored, "PARSER-NOTE") == 0
        assert "recap" in anchors.restored(restored)
        assert chat.close() == 0


def test_recovery_without_the_recap_when_it_is_switched_off(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path, plugin, env={"CONTEXT_ANCHOR_POST_COMPACT_RECAP": "false"}) as host:
        chat, _ = pinning_chat(host, RULE)
        assert chat.say("/compact").compacted
        chat.say("Go on.")
        text = anchors.restored(host.model.main[-1])
        assert "| BILLING-RULE" in text
        assert "recap" not in text
        assert chat.close() == 0


def test_an_overlong_prompt_that_the_client_compacts_and_sends_again_holds_the_pins(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, RULE)
        host.model.plan(Reply(too_long=True), Reply("fits now"))
        turn = chat.say("Read everything.")
        anchors.assert_sound(host, first, turn)
        assert turn.result["result"] == "fits now"
        assert len(receipts(host.model.main[-1])) == 1
        assert blocks(host.model.main[-1], "BILLING-RULE") == 1
        assert chat.close() == 0


def test_two_projects_with_two_sessions_each_keep_to_their_own(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        other = host.folder / "other project"
        other.mkdir()
        chats = {
            f"{place}-{n}": host.chat(*ALLOWED, cwd=folder)
            for place, folder in (("HERE", host.project), ("THERE", other))
            for n in (1, 2)
        }
        ids = {}
        for name, chat in chats.items():
            ids[name] = chat.say("Hello.").session_id
        for name, chat in chats.items():
            scope = "workspace" if name.endswith("1") else "session"
            host.model.plan(Reply("pin", (pin(f"From {name}", f"FACT-OF-{name}", scope=scope),)), Reply("pinned"))
            chat.say("Pin.")
        for name in ("HERE-2", "THERE-2"):
            assert anchors.titles(host, ids[name]) == {f"From {name}"}
        for name in ("HERE-1", "THERE-1"):
            assert anchors.titles(host, ids[name]) == set()
        for place, elsewhere in (("HERE", "THERE"), ("THERE", "HERE")):
            chat = chats[f"{place}-2"]
            assert chat.say("/compact").compacted
            chat.say("Go on.")
            restored = host.model.main[-1]
            assert blocks(restored, f"FACT-OF-{place}-1") == 1, "the workspace's note"
            assert blocks(restored, f"FACT-OF-{place}-2") == 1, "its own note"
            assert blocks(restored, f"FACT-OF-{elsewhere}") == 0
        for chat in chats.values():
            assert chat.close() == 0


def test_a_model_without_proactive_compaction_is_still_served(client: Path, plugin: Path, tmp_path: Path) -> None:
    assert WINDOW_MODEL != "claude-sonnet-4-5"
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat = host.chat(*ALLOWED, model="claude-sonnet-4-5")
        host.model.plan(Reply("pin", (RULE,), tokens=30_000), Reply("pinned", tokens=130_000))
        anchors.assert_sound(host, chat.say("Pin."))
        host.model.plan(Reply("ok", tokens=131_000))
        chat.say("Go on.")
        assert "context holds 130,005 tokens" in host.model.main[-1].text
        assert "200,000" in host.model.main[-1].text
        assert chat.close() == 0

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


def test_two_projects_with_two_sessions_each_mix_nothing(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        folders = {"HERE": host.project, "THERE": host.folder / "other project"}
        folders["THERE"].mkdir()
        chats = {f"{place}-{n}": host.chat(*ALLOWED, cwd=folders[place]) for place in folders for n in (1, 2)}
        ids = {name: chat.say("Hello.").session_id for name, chat in chats.items()}
        for number in (1, 2):
            for name, chat in chats.items():
                host.model.plan(
                    Reply("pin", (pin(f"{name} note {number}", f"FACT-{number}-OF-{name}"),)), Reply("pinned")
                )
                anchors.assert_sound(host, chat.say("Pin."))
        for place in folders:
            shared = pin(f"All of {place}", f"SHARED-{place}", scope="workspace")
            host.model.plan(Reply("pin", (shared,)), Reply("pinned"))
            chats[f"{place}-1"].say("Pin for the workspace.")
        for name, session_id in ids.items():
            assert anchors.titles(host, session_id) == {f"{name} note 1", f"{name} note 2"}
        for chat in chats.values():
            assert chat.say("/compact").compacted
        for name, chat in chats.items():
            chat.say("Go on.")
            place, elsewhere = ("HERE", "THERE") if name.startswith("HERE") else ("THERE", "HERE")
            text = anchors.restored(host.model.main[-1])
            assert text.count("| FACT-") == 2, "its own notes and no other session's"
            assert f"| FACT-1-OF-{name}" in text
            assert f"| FACT-2-OF-{name}" in text
            assert f"| SHARED-{place}" in text
            assert f"SHARED-{elsewhere}" not in text
        for chat in chats.values():
            assert chat.close() == 0
        later = host.chat(*ALLOWED)
        later.say("A new day.")
        text = anchors.restored(host.model.main[-1])
        assert "| SHARED-HERE" in text, "a new session is given its workspace's notes"
        assert "FACT-" not in text
        assert "SHARED-THERE" not in text
        assert later.close() == 0


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
        turn = chat.say("/context-anchor")
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


def test_a_compaction_with_nothing_pinned_adds_nothing_but_the_sessions_id(
    client: Path, plugin: Path, tmp_path: Path
) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat = host.chat(*ALLOWED)
        session_id = chat.say("One.").session_id
        chat.say("Two.")
        compaction = chat.say("/compact keep it short")
        assert compaction.compacted
        (summary,) = host.model.of_kind("summary")
        added = summary.last_user.partition("keep it short")[2].partition("REMINDER")[0]
        assert added.strip() == "", "nothing is added to the instructions"
        chat.say("Go on.")
        after = host.model.main[-1]
        assert "\n| " not in after.text.split("Go on.")[0]
        assert after.count(f"session {session_id}") == 1
        assert "completed successfully:" not in after.text, "there the client shows what such a hook prints"
        assert chat.close() == 0


def test_an_unusable_data_folder_costs_no_turn(client: Path, plugin: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "not a folder"
    blocked.write_text("a file", encoding="utf-8")
    with ClaudeCode(client, tmp_path / "host", plugin, env={"CONTEXT_ANCHOR_DATA_DIR": str(blocked)}) as host:
        chat = host.chat(*ALLOWED)
        host.model.plan(Reply("pin", (RULE,)), Reply("could not", tokens=30_000))
        turn = chat.say("Pin.")
        assert turn.result["result"] == "could not"
        assert "[store_unavailable]" in host.model.main[-1].last_user, "the agent is told why"
        assert len(receipts(host.model.main[-1])) <= 1, "first sight is not told with each event"
        assert chat.say("/compact").compacted
        assert chat.say("Go on.").result["result"] == "ok"
        for response in turn.of("system", "hook_response"):
            assert response["outcome"] == "success", response
        assert blocked.read_text(encoding="utf-8") == "a file"
        assert chat.close() == 0


def test_a_fork_of_a_fork_carries_its_own_parents_pins(client: Path, plugin: Path, tmp_path: Path) -> None:
    with ClaudeCode(client, tmp_path, plugin) as host:
        chat, first = pinning_chat(host, RULE)
        chat.close()
        ids = [first.session_id]
        for name in ("Child", "Grandchild"):
            fork = host.chat(*ALLOWED, "--resume", ids[-1], "--fork-session")
            fork.say("Another way.")
            host.model.plan(Reply("pin", (pin(f"{name} note", f"{name.upper()}-FACT"),)), Reply("pinned"))
            ids.append(fork.say("Pin.").session_id)
            fork.close()
        assert len(set(ids)) == 3
        assert [anchors.titles(host, session_id) for session_id in ids] == [
            {"Never touch billing"},
            {"Never touch billing", "Child note"},
            {"Never touch billing", "Child note", "Grandchild note"},
        ]

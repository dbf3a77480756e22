"""What is new in a session's transcript, taken into its marks."""

from __future__ import annotations

from context_anchor.watch import compaction, pressure
from context_anchor.wire.tail import Tail

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_COMPACTIONS = ("boundary", "summary", "checkpoint", "drop")
_UNREAD_TOKENS = 120000  # most that an unread beginning is taken for


def drop_ratio(env: Mapping[str, str]) -> float:
    """Return CONTEXT_ANCHOR_DROP_RATIO as a number between 0 and 1, 0.65 by default."""
    try:
        value = float((env.get("CONTEXT_ANCHOR_DROP_RATIO") or "").strip())
    except ValueError:
        return compaction.DEFAULT_DROP_RATIO
    return value if 0 < value < 1 else compaction.DEFAULT_DROP_RATIO


def observe(
    host: Any, ev: dict[str, Any], marks: dict[str, Any], record: dict[str, Any], env: Mapping[str, str]
) -> None:
    """Read the transcript's new lines and bring marks (and the record's model, version) up to date."""
    path = ev["transcript"] or record["transcript_path"]
    if not path:
        return
    new = marks["cursor"] is None and bool(marks.get("absent"))
    tail = Tail(host.transcript_files(path), marks["cursor"], whole=new)
    scan = compaction.resumed(marks["scan"])
    previous = scan["last"]
    # What a session holds when it is first seen is history; a file that was not there before is not.
    history = marks["cursor"] is None and not new
    ratio = drop_ratio(env)
    found = ""
    answered = False  # an answer of the model after the newest compaction
    traces: list[str] = []
    since = marks["recovery"].get("since", "")
    count = several = unreadable = 0
    for line in tail.lines():
        if count == 0:
            _begin(scan, tail)
        at_start = tail.from_start and count == 0
        count += 1
        try:
            signals = list(host.read_line(line, at_start))
        except Exception:  # a line of the future must not end a turn; it is counted below
            unreadable += 1
            continue
        for signal in signals:
            kind = signal[0]
            if kind == "trace":
                traces.append(signal[1])
            elif kind == "subagent":
                record["subagent"] = True
            elif kind in ("model", "version"):
                record[kind] = signal[1]
            else:
                verdict = compaction.advance(scan, signal, ratio, host.DROPS_ARE_COMPACTIONS)
                if verdict in _COMPACTIONS:
                    found, answered, since = verdict, False, ""
                    marks["tokens"] = None
                    several += 1
                elif verdict == "lower":
                    marks["nudged"] = pressure.rearmed(
                        signal[2], marks["window_threshold"], env, marks["nudged"]
                    )
                elif verdict == "rewind":
                    marks["tokens"] = None
                    marks["nudged"] = 0
                if verdict == "stale":
                    continue
                if kind == "assistant":
                    answered = len(signal) < 2 or not signal[1] or signal[1] >= since
                elif kind == "sample":
                    scan["measured"] = True
                    marks["tokens"], marks["tokens_measured"] = signal[2], True
    if tail.missing:
        # A fork's file comes with its parent's lines; any other file that is not there yet is all new.
        if ev["source"] not in ("fork", "resume") and not marks.get("fork_open"):
            marks["absent"] = True
    else:
        marks["cursor"] = tail.cursor
        marks["absent"] = False
        if count == 0:
            _begin(scan, tail)
    marks["scan"] = scan
    marks["skipped_lines"] += tail.skipped + unreadable
    if not scan.get("measured") and not tail.missing and host.DROPS_ARE_COMPACTIONS:
        marks["tokens"], marks["tokens_measured"] = int(scan["estimate"]), False
    if tail.reset not in ("", "first") and previous and scan["last"] == previous:
        found = ""  # the file was read anew and ends with the compaction that is known already
    if found and not history:
        marks["compactions"] += several - 1
    _settle(marks, "" if history else found, answered, traces, host.RECORDS_INJECTIONS)


def _begin(scan: dict[str, Any], tail: Tail) -> None:
    """Prepare for a reading that does not go on where the last one ended."""
    if tail.reset:
        unread = min(tail.unread_bytes // 5, _UNREAD_TOKENS)
        scan["estimate"] = compaction.BASELINE_TOKENS + unread
    if tail.reset not in ("", "first"):
        compaction.reread(scan)


def _settle(
    marks: dict[str, Any], found: str, answered: bool, traces: list[str], recorded: bool
) -> None:
    """Bring the recovery's state up to date: "", provisional, handed, due, again, done.

    `recorded` tells that the host's transcript shows what hooks added, so that a missing trace says something.
    """
    recovery = marks["recovery"]
    if traces:
        marks["traced"] = True
        for receipt in (marks["last_receipt"], marks.get("last_nudge")):
            if receipt and receipt["id"] in traces:
                receipt["delivered"] = "yes"
                receipt["delivered_at"] = receipt.get("delivered_at") or marks.get("now") or 0
        if recovery.get("receipt") in traces:
            recovery["traced"] = True
    if found:
        marks["compactions"] += 1
        marks["nudged"] = marks["nudges"] = 0
        if recovery.get("state") == "provisional":
            given = "due" if recovery.get("told") else "done"
            recovery["state"] = "handed" if recovery.get("receipt") else given
            marks["shown"] = recovery.pop("shown", [])
        else:
            marks["shown"] = []
            recovery = marks["recovery"] = {"state": "due", "receipt": "", "tries": 0}
        recovery["signal"] = found
    elif recovery.get("state") == "provisional" and answered:
        # The model answered and no boundary stands before that: it was a subagent that compacted.
        marks["recovery"] = recovery = {}
    state = recovery.get("state")
    if state == "handed" and recovery.get("traced"):
        recovery["state"] = "done"
    elif state == "handed" and answered and recorded and marks.get("traced") and recovery.get("tries", 0) < 2:
        # This host records what hooks added, the model has answered, and ours is not there.
        recovery["state"] = "again"
        if marks["last_receipt"] and marks["last_receipt"]["id"] == recovery.get("receipt"):
            marks["last_receipt"]["delivered"] = "no"

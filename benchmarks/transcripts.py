"""Judge the transcript readers on recorded sessions: every compaction once, nothing else.

    python benchmarks/transcripts.py FOLDER [--held-out NAME,NAME] [--only-held-out] [--json]

FOLDER holds `claude-code/*.jsonl[.gz]` and `antigravity/*.jsonl[.gz]`. What a file records is counted apart
from our readers, with the json module: `compact_boundary` lines, and CHECKPOINT lines of a number not seen
before and above 0, or an unnumbered resumption after the first tenth of the file. Sets are split by the part
of a file's name before the first `_` (its repository). Prints one line a file that differs, then
`N missed, N false` a set, and exits with 1 when anything differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from context_anchor.hosts import antigravity, claude_code
from context_anchor.watch import compaction
from context_anchor.wire.tail import Tail

COMPACTIONS = ("boundary", "summary", "checkpoint", "drop")


def recorded(host: ModuleType, raw: bytes) -> int:
    """Count what the file itself says, in a way of its own."""
    if host is claude_code:
        found: set[str] = set()
        for line in raw.splitlines():
            if b"compact_boundary" not in line:
                continue
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if value.get("type") == "system" and value.get("subtype") == "compact_boundary":
                found.add(value.get("uuid") or str(len(found)))
        return len(found)
    texts: set[str] = set()
    for line in raw.splitlines():
        if b'"CHECKPOINT"' not in line:
            continue
        try:
            value = json.loads(line.decode("utf-8", "replace"), strict=False)
        except ValueError:
            continue
        match = re.match(r"\s*\{\{ CHECKPOINT (\d+) \}\}", value.get("content") or "")
        if match and int(match[1]) > 0:
            texts.add(value["content"])
    return len(texts)


def verdicts(host: ModuleType, path: Path, sizes: random.Random | None) -> list[str]:
    """Return the verdicts over a file: read whole, or as it grows by random steps."""
    state = compaction.start()
    found: list[str] = []
    first = True

    def take(tail: Tail) -> None:
        nonlocal first
        for line in tail.lines():
            for signal in host.read_line(line, first):
                if signal[0] not in ("trace", "subagent", "model", "version"):
                    verdict = compaction.advance(state, signal, drops=host.DROPS_ARE_COMPACTIONS)
                    if verdict in COMPACTIONS:
                        found.append(verdict)
            first = False

    raw = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        grown = Path(folder, "grown.jsonl")
        cursor: dict[str, object] | None = {"dev": 0}
        at = 0
        with grown.open("wb") as out:
            while True:
                # A first reading begins at the tail, so every file is grown from nothing.
                step = sizes.randint(1, 60000) if sizes else 120000
                out.write(raw[at : at + step])
                out.flush()
                at += step
                tail = Tail(str(grown), cursor, final=at >= len(raw))
                take(tail)
                cursor = tail.cursor
                if at >= len(raw):
                    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--held-out", default="", help="comma-separated repositories judged apart")
    parser.add_argument("--only-held-out", action="store_true")
    parser.add_argument("--skip-held-out", action="store_true")
    parser.add_argument("--rounds", type=int, default=2, help="random chunkings a file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    held = set(filter(None, options.held_out.split(",")))
    totals: dict[str, dict[str, int]] = {}
    for host in (claude_code, antigravity):
        for path in sorted((options.folder / host.HOST).glob("*.jsonl*")):
            kind = "held out" if path.name.split("_")[0] in held else "development"
            if (kind == "held out" and options.skip_held_out) or (kind != "held out" and options.only_held_out):
                continue
            row = totals.setdefault(
                f"{host.HOST}, {kind}", {"files": 0, "recorded": 0, "missed": 0, "false": 0, "unstable": 0}
            )
            with tempfile.TemporaryDirectory() as folder:
                plain = Path(folder, "plain.jsonl")
                raw = path.read_bytes()
                if path.suffix == ".gz":
                    raw = gzip.decompress(raw)
                plain.write_bytes(raw)
                whole = verdicts(host, plain, None)
                want = recorded(host, raw)
                unstable = any(
                    verdicts(host, plain, random.Random(seed)) != whole for seed in range(options.rounds)
                )
            row["files"] += 1
            row["recorded"] += want
            row["missed"] += max(0, want - len(whole))
            row["false"] += max(0, len(whole) - want)
            row["unstable"] += unstable
            if len(whole) != want or unstable:
                print(f"{path.name}: recorded {want}, found {whole}{', unstable' if unstable else ''}")
    if options.json:
        print(json.dumps(totals, indent=1))
    for name, row in totals.items():
        print(
            f"{name}: {row['files']} files, {row['recorded']} compactions, {row['missed']} missed,"
            f" {row['false']} false, {row['unstable']} that depend on how the file is cut"
        )
    return 1 if any(r["missed"] or r["false"] or r["unstable"] for r in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

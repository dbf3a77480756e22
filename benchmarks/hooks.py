"""Time the hooks as whole processes against `node -e 0` of the same run, and weigh their memory.

    python benchmarks/hooks.py [--runs 30] [--megabytes 200] [--python PATH] [--growth 10000] [--check]

Rows: a hook with nothing to say, one that hands over a recovery of 9,900 characters, each on a transcript of
the given size, in exec form with byte code cached; then the uncached case. Ratios are medians over the median
of `node -e 0` (node 20 is the reference); without node the bare interpreter is the base and says so. `--check`
exits with 1 above the targets: 0.6, 0.75, and 16 MB. `--growth N` runs N hooks on a growing transcript and
prints the first and last tenth's medians and the state's size.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from context_anchor.wire import bundle, paths, quickjson, workspace  # noqa: E402

SESSION = "0b1f6f3e-5a0b-4f0a-9a3e-000000000001"
CALM_TOKENS = 40000


def assistant_line(number: int, tokens: int = CALM_TOKENS, body: int = 1500) -> bytes:
    value = {
        "parentUuid": f"u{number - 1}", "isSidechain": False, "type": "assistant", "uuid": f"u{number}",
        "timestamp": "2026-11-30T10:00:00.000Z", "sessionId": SESSION, "version": "2.1.332",
        "message": {
            "id": f"msg_{number}", "model": "claude-opus-4-6", "role": "assistant",
            "content": [{"type": "text", "text": "x" * body}],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": tokens - 10, "output_tokens": 1},
        },
    }
    return json.dumps(value).encode() + b"\n"


def write_transcript(path: Path, megabytes: int) -> None:
    block = b"".join(assistant_line(n, body=2000 if n % 7 else 60000) for n in range(200))
    with path.open("wb") as out:
        while out.tell() < megabytes * 1_000_000:
            out.write(block)


def write_anchors(data: Path, count: int) -> None:
    """Write a bundle part by the documented format: `count` anchors of about 500 characters."""
    entries, body = [], b""
    for n in range(count):
        text = f"## [high] Benchmark note {n} {{a-{n:010d}}} (state, session)\n| " + "m" * 420 + "\n\n"
        raw = text.encode()
        entries.append(
            {"id": f"a-{n:010d}", "title": f"Benchmark note {n}", "priority": "high", "category": "state",
             "scope": "session", "order": [1, 3, -n], "at": len(body), "bytes": len(raw),
             "units": bundle.units(text), "revision": 1, "refs": []}
        )
        body += raw
    part = Path(paths.anchors_path(str(data), "session", "claude-code", SESSION, ".bundle"))
    part.parent.mkdir(parents=True, exist_ok=True)
    head = {"format": bundle.FORMAT, "scope": "session", "revision": 1, "anchors": entries}
    part.write_bytes(quickjson.dumps(head).encode() + b"\n" + body)


class Bench:
    def __init__(self, python: str, root: Path, data: Path, project: Path, transcript: Path) -> None:
        self.python, self.root, self.data, self.transcript = python, root, data, transcript
        self.project = project
        self.env = {"PATH": os.environ.get("PATH", ""), "HOME": str(data), "LANG": "C.UTF-8",
                    "CONTEXT_ANCHOR_DATA_DIR": str(data)}

    def command(self, event: str) -> list[str]:
        return [self.python, "-I", "-S", str(self.root / "scripts" / "hook.py"), "claude-code", event]

    def payload(self, event: str, **more: str) -> bytes:
        value = {"session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.project),
                 "hook_event_name": event, **more}
        return json.dumps(value).encode()

    def once(self, argv: list[str], stdin: bytes) -> tuple[float, bytes]:
        """Return milliseconds and stdout of one process."""
        before = time.perf_counter()
        done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, env=self.env, cwd="/", check=True)
        return (time.perf_counter() - before) * 1000, done.stdout

    def peak_kb(self, argv: list[str], stdin: bytes) -> int:
        """Return a process's peak memory in KB, 0 where the system can't tell.

        A child is charged with what its parent held at the fork, so a bare interpreter starts it.
        """
        if not hasattr(os, "wait4"):
            return 0
        starter = (
            "import os,sys\npid=os.fork()\nif pid==0: os.execv(sys.argv[1],sys.argv[1:])\n"
            "u=os.wait4(pid,0)[2]\nos.write(2,str(u.ru_maxrss).encode())"
        )
        done = subprocess.run(
            [self.python, "-I", "-S", "-c", starter, *argv], input=stdin, capture_output=True, env=self.env,
            cwd="/", check=True,
        )
        peak = int(done.stderr or b"0")
        return peak // 1024 if sys.platform == "darwin" else peak


def growth(bench: Bench, runs: int) -> None:
    bench.transcript = bench.data / "growing.jsonl"
    marks = Path(paths.session_path(str(bench.data), "marks", "claude-code", SESSION))
    marks.unlink(missing_ok=True)
    times = []
    with bench.transcript.open("ab") as out:
        for n in range(runs):
            out.write(assistant_line(n, body=300))
            out.flush()
            took, document = bench.once(bench.command("PostToolBatch"), bench.payload("PostToolBatch"))
            assert n == 0 or document == b"{}", document
            times.append(took)
    tenth = max(1, runs // 10)
    first, last = statistics.median(times[1 : tenth + 1]), statistics.median(times[-tenth:])
    print(
        f"growth over {runs} runs: first tenth {first:.2f} ms, last tenth {last:.2f} ms, ratio {last / first:.2f};"
        f" state {marks.stat().st_size} bytes"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--python", default="")
    parser.add_argument("--growth", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    distribution = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(p, os.X_OK)), None)
    python = options.python or distribution or sys.executable
    node = shutil.which("node")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root, data, project = folder / "plugin", folder / "data", folder / "project"
        for part in ("context_anchor", "scripts"):
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        data.mkdir()
        project.mkdir()
        transcript = folder / "transcript.jsonl"
        write_transcript(transcript, options.megabytes)
        bench = Bench(python, root, data, project, transcript)
        write_anchors(data, 60)
        workspace.identify(str(project))
        bench.once(bench.command("SessionStart"), bench.payload("SessionStart", source="startup"))
        bench.once(bench.command("PostToolBatch"), bench.payload("PostToolBatch"))
        rows: dict[str, list[float]] = {"bare": [], "node": [], "quiet": [], "recovery": []}
        peaks = {"quiet": 0, "recovery": 0}
        size = 0
        for _ in range(options.runs + 2):
            rows["bare"].append(bench.once([python, "-I", "-S", "-c", "pass"], b"")[0])
            if node:
                rows["node"].append(bench.once([node, "-e", "0"], b"")[0])
            with transcript.open("ab") as out:
                out.write(assistant_line(1))
            took, document = bench.once(bench.command("PostToolBatch"), bench.payload("PostToolBatch"))
            assert document == b"{}", document[:200]
            rows["quiet"].append(took)
            # Each compaction has a PreCompact; without it a second SessionStart(compact) is an echo.
            bench.once(bench.command("PreCompact"), bench.payload("PreCompact", trigger="auto"))
            took, document = bench.once(
                bench.command("SessionStart"), bench.payload("SessionStart", source="compact")
            )
            text = json.loads(document)["hookSpecificOutput"]["additionalContext"]
            size = bundle.units(text)
            rows["recovery"].append(took)
        peaks["quiet"] = bench.peak_kb(bench.command("PostToolBatch"), bench.payload("PostToolBatch"))
        bench.once(bench.command("PreCompact"), bench.payload("PreCompact", trigger="auto"))
        peaks["recovery"] = bench.peak_kb(
            bench.command("SessionStart"), bench.payload("SessionStart", source="compact")
        )
        medians = {k: statistics.median(v[2:]) for k, v in rows.items() if v}
        base_name = "node" if node else "bare"
        base = medians[base_name]
        version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
        named = ""
        if node:
            named = subprocess.run([node, "-v"], capture_output=True, text=True, check=True).stdout.strip()
        print(
            f"{version}; base {base_name} {named} {base:.2f} ms; transcript {options.megabytes} MB;"
            f" recovery {size} units"
        )
        limits = {"quiet": 0.6, "recovery": 0.75}
        failed = False
        for row in ("bare", "quiet", "recovery"):
            ratio = medians[row] / base
            note = f" (target {limits[row]})" if row in limits else ""
            peak_note = f", peak {peaks[row] / 1024:.1f} MB (target 16)" if row in peaks else ""
            print(f"{row:9} {medians[row]:6.2f} ms  ratio {ratio:.2f}{note}{peak_note}")
            if node and row in limits and (ratio > limits[row] or peaks[row] > 16 * 1024):
                failed = True
        uncached = []
        for _ in range(8):
            for cache in root.rglob("__pycache__"):
                shutil.rmtree(cache)
            uncached.append(bench.once(bench.command("PostToolBatch"), bench.payload("PostToolBatch"))[0])
        print(f"uncached  {statistics.median(uncached):6.2f} ms  ratio {statistics.median(uncached) / base:.2f}")
        if options.growth:
            growth(bench, options.growth)
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Pin from eight processes at once and count what is there afterwards.

    python benchmarks/store.py [--pins 1000] [--processes 8]

Prints pins a second (each one durable before it is acknowledged) and exits with 1 when one is lost. Scopes hold
at most 200 anchors, so the processes share several sessions; each session is written by all of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKER = """
import sys
from context_anchor.anchors.anchor import Draft
from context_anchor.anchors.store import AnchorStore, SessionScope
data, worker, first, last, scopes = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
store = AnchorStore(data, lock_wait_s=60)
for number in range(first, last):
    draft = Draft.checked(title=f"pin {number}", content=f"by process {worker}", priority="normal")
    store.pin(SessionScope("claude-code", f"bench-{number % scopes}"), draft, actor="agent")
    print(number, flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pins", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args()
    scopes = -(-options.pins // 200)
    with tempfile.TemporaryDirectory() as data:
        share = -(-options.pins // options.processes)
        started = time.perf_counter()
        workers = []
        for worker in range(options.processes):
            first, last = worker * share, min((worker + 1) * share, options.pins)
            argv = [sys.executable, "-c", WORKER, data, str(worker), str(first), str(last), str(scopes)]
            workers.append(subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        acknowledged = set()
        for process in workers:
            out, _ = process.communicate()
            acknowledged.update(int(line) for line in out.split())
        took = time.perf_counter() - started
        sys.path.insert(0, str(ROOT))
        from context_anchor.anchors.store import AnchorStore, SessionScope

        store = AnchorStore(data)
        found = set()
        for scope in range(scopes):
            for anchor in store.read(SessionScope("claude-code", f"bench-{scope}")).anchors:
                found.add(int(anchor.title.split()[1]))
        lost = acknowledged - found
        print(
            f"{len(acknowledged)} pins by {options.processes} processes in {took:.1f} s:"
            f" {len(acknowledged) / took:.0f} pins a second, {len(lost)} lost"
        )
        return 1 if lost or len(acknowledged) != options.pins else 0


if __name__ == "__main__":
    sys.exit(main())

"""Many processes pinning at once, some of them killed at random moments.

CONTEXT_ANCHOR_TEST_PINS sets the pins of each of the eight processes (25; the long run takes 200).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from context_anchor.anchors.anchor import MAX_ANCHORS
from context_anchor.anchors.scope import ScopeFiles, SessionScope
from context_anchor.anchors.store import AnchorStore
from context_anchor.errors import StaleRevisionError
from context_anchor.wire import bundle

from .conftest import SESSION, draft

WORKERS = 8
PINS = int(os.environ.get("CONTEXT_ANCHOR_TEST_PINS", "25"))
KILLS = 2
ROOT = str(Path(__file__).parents[2])


class Worker(threading.Thread):
    """Keeps one pinning process going until all its pins are acknowledged; kills it now and then."""

    def __init__(self, data: str, name: str, scopes: int) -> None:
        super().__init__()
        self.data, self.label, self.scopes = data, name, scopes
        self.acknowledged: dict[int, str] = {}
        self.kills = 0
        self.errors = ""
        self.random = random.Random(f"seed {name}")

    def run(self) -> None:
        while len(self.acknowledged) < PINS and not self.errors:
            first = len(self.acknowledged)
            stop_at = self.random.randrange(first + 1, PINS + 1) if self.kills < KILLS else PINS + 1
            self.one_process(first, stop_at)

    def one_process(self, first: int, stop_at: int) -> None:
        command = [sys.executable, "-m", "tests.anchors.pinning_worker", self.data, self.label]
        with subprocess.Popen(
            [*command, str(first), str(PINS), str(self.scopes)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                number, anchor_id = line.split()
                self.acknowledged[int(number)] = anchor_id
                if len(self.acknowledged) == stop_at:
                    time.sleep(self.random.random() * 0.02)  # into the midst of the next pin
                    process.kill()
                    self.kills += 1
            errors = process.stderr.read()
            if process.wait() not in (0, -9, 1) or "Error" in errors:
                self.errors = errors


def test_eight_processes_with_kills_lose_nothing_acknowledged(data: str) -> None:
    scopes = -(-WORKERS * PINS // MAX_ANCHORS)
    workers = [Worker(data, str(number), scopes) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(600)
    assert [worker.errors for worker in workers] == [""] * WORKERS
    assert sum(worker.kills for worker in workers) >= WORKERS
    store = AnchorStore(data)
    seen: dict[str, str] = {}
    for number in range(scopes):
        scope = SessionScope("claude-code", f"session-{number}")
        snapshot = store.read(scope)
        assert snapshot.notices == ()
        for anchor in snapshot.anchors:
            assert anchor.content == f"content of {anchor.title}"
            seen[anchor.title] = anchor.id
        revision, entries = bundle.load_part(ScopeFiles.of(data, scope).bundle)
        assert (revision, len(entries)) == (snapshot.revision, len(snapshot.anchors))
        numbers = [entry.entry for entry in store.history(scope, limit=100_000)]
        assert numbers == list(range(snapshot.revision, 0, -1))
    wanted = {
        f"worker {worker.label} pin {number}": anchor_id
        for worker in workers
        for number, anchor_id in worker.acknowledged.items()
    }
    assert seen == wanted and len(wanted) == WORKERS * PINS
    assert len(set(seen.values())) == WORKERS * PINS
    assert [finding for finding in store.check() if finding.level != "info"] == []


def test_of_replaces_at_the_same_revision_one_wins(data: str) -> None:
    store = AnchorStore(data)
    start = store.pin(SESSION, draft("start"), actor="a").revision
    outcomes: list[str] = []

    def replace(number: int) -> None:
        try:
            AnchorStore(data).replace(SESSION, [draft(f"T{number}")], actor="a", expected_revision=start)
            outcomes.append(f"T{number}")
        except StaleRevisionError:
            outcomes.append("stale")

    threads = [threading.Thread(target=replace, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outcomes.count("stale") == 7 and len(outcomes) == 8
    assert [a.title for a in store.read(SESSION).anchors] == [o for o in outcomes if o != "stale"]


def test_readers_see_only_whole_states_while_a_writer_works(data: str) -> None:
    store = AnchorStore(data)
    store.replace(SESSION, [draft(f"T{n}", "0") for n in range(20)], actor="a")
    done = threading.Event()
    torn: list[object] = []

    def look() -> None:
        reader = AnchorStore(data)
        while not done.is_set():
            snapshot = reader.read(SESSION)
            if len({a.content for a in snapshot.anchors}) != 1 or snapshot.notices:
                torn.append(snapshot)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(1, 25):
        store.replace(SESSION, [draft(f"T{n}", str(number)) for n in range(20)], actor="a")
    done.set()
    for reader in readers:
        reader.join(60)
    assert torn == []

"""A process that pins numbered anchors and says after each that it was acknowledged."""

from __future__ import annotations

import sys

from context_anchor.anchors.anchor import Draft
from context_anchor.anchors.scope import SessionScope
from context_anchor.anchors.store import AnchorStore


def main(data: str, worker: str, first: str, last: str, scopes: str) -> None:
    """Pin `worker`'s anchors from `first` up to `last`, spread over a number of scopes."""
    store = AnchorStore(data, lock_wait_s=60)
    for number in range(int(first), int(last)):
        scope = SessionScope("claude-code", f"session-{number % int(scopes)}")
        title = f"worker {worker} pin {number}"
        anchor = store.pin(scope, Draft.checked(title=title, content=f"content of {title}"), actor="test").anchor
        sys.stdout.write(f"{number} {anchor.id}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

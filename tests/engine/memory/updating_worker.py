"""A process that updates one field of a working state again and again, and says whether it was ever lost.

Arguments: project root, field (empty for updates of no field), how many updates.
"""

from __future__ import annotations

import sys
from pathlib import Path

from context_anchor.engine.memory.store import open_memory

root, field, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
state = open_memory(root).state
sys.stdin.readline()
value = state.read()[field] if field else None
for number in range(count):
    assert not field or state.read()[field] == value, f"{field} was lost before update {number}"
    value = [str(number)] if isinstance(value, list) else str(number)
    returned = state.update({field: value} if field else {})
    assert not field or returned[field] == value == state.read()[field], f"{field} was lost in update {number}"
print("kept")

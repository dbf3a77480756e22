"""The data files taken unchanged from the project whose formats the engine keeps (see fixtures/NOTICE)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "fixtures"


def fixture(name: str) -> Any:
    """Return a fixture's JSON value."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))

"""Signals of a transcript, one by one, to verdicts: the host compacted, once, or it did not.

Signals are tuples that the host modules make, in file order:

    ("boundary", id[, ids of lines that were kept])     Claude Code says that it compacted
    ("summary", parent id[, id])        the summary line that follows it
    ("sample", message id, tokens[, step index or line id])    measured size of one request, tokens
    ("assistant"[, time, line id])      a main-chain answer of the model
    ("text", tokens)                    estimated size of one line, tokens
    ("checkpoint", number, digest, characters, step index)    number is None when the text has none
    ("user", step index, digest)        a request of the user, where rewinds show by a lower index
    ("step", step index)                any other line that carries an index
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from typing import Any

DEFAULT_DROP_RATIO = 0.65
DROP_TOKENS = 10000
# Measured: 28 full logs hold 154,762 characters or more between two compactions; routine checkpoints
# without a number stand at index 3 to 5, with a few thousand characters before them.
UNNUMBERED_CHARS = 40000
UNNUMBERED_TOKENS = 10000
LATE_LINES = 8  # measured: a checkpoint stands one to eight lines after steps with a higher index
BASELINE_TOKENS = 11000  # measured: a one-line first turn (system prompt, tools) reports 11,336
CHARS_PER_TOKEN = 4
_KEPT_DIGESTS = 12
_KEPT_IDS = 24  # boundaries and summaries remembered: old lines are copied in at a resume


def start() -> dict[str, Any]:
    """Return the state before the first line: a small JSON object."""
    return {
        "open": "",
        "last": "",
        "ids": [],
        "kept": [],
        "base": None,
        "key": "",
        "estimate": BASELINE_TOKENS,
        "chars": 0,
        "peak": 0,
        "top": -1,
        "user": None,
        "number": 0,
        "digests": [],
        "rewound": False,
        "line": 0,
        "dropped_at": None,
        "floor": -1,
    }


def resumed(saved: Any) -> dict[str, Any]:
    """Return a state that was kept on disk, with what is damaged or was not known then as at the start."""
    state = start()
    if isinstance(saved, dict):
        for key, default in start().items():
            have = saved.get(key)
            if type(have) is type(default) or (default is None and isinstance(have, (int, list))):
                state[key] = have
        if isinstance(saved.get("measured"), bool):
            state["measured"] = saved["measured"]
    if isinstance(state["base"], list):
        state["base"] = None
    if isinstance(state["dropped_at"], list):
        state["dropped_at"] = None
    return state


def advance(
    state: dict[str, Any], signal: tuple[Any, ...], ratio: float = DEFAULT_DROP_RATIO, drops: bool = False
) -> str:
    """Take one signal into the state; return what was found.

    "boundary", "summary", "checkpoint" and "drop" are compactions. "lower" is a context that got smaller
    without one (a resume, a clear, a microcompact): only the baseline moves. "rewind" is an edit by the
    user, "stale" a line from before the newest compaction that the file holds after it: it counts for
    nothing. "" is everything else. `drops` lets a fall of measured tokens stand for a compaction, where the
    host logs none: to at most `ratio` of before and by at least 10,000 tokens.
    """
    kind = signal[0]
    if kind == "sample":
        if len(signal) > 3 and _stale(state, signal[3]):
            return "stale"
        verdict = _sample(state, signal[1], signal[2], ratio, drops)
        if verdict == "drop" and len(signal) > 3 and isinstance(signal[3], int):
            state["floor"] = signal[3]  # what was asked before that and is written late is of before
        return verdict
    if kind == "assistant":
        if len(signal) > 2 and _stale(state, signal[2]):
            return "stale"
        state["open"] = ""
        return ""
    if kind == "boundary":
        return _boundary(state, *signal[1:])
    if kind == "summary":
        return _summary(state, *signal[1:])
    if kind == "checkpoint":
        return _checkpoint(state, *signal[1:])
    if kind == "user":
        return _user(state, signal[1], signal[2])
    if kind == "text":
        state["estimate"] += signal[1]
        state["chars"] += signal[1] * CHARS_PER_TOKEN
    elif kind == "step":
        state["line"] += 1
        state["top"] = max(state["top"], signal[1])
    return ""


def _fresh_baseline(state: dict[str, Any]) -> None:
    state["base"] = None
    state["key"] = ""
    state["chars"] = 0
    state["peak"] = 0


def _stale(state: dict[str, Any], place: int | str) -> bool:
    """Tell whether a line belongs before the newest compaction: kept and copied, or written late."""
    return place in state["kept"] if isinstance(place, str) else place < state["floor"]


def _remember(state: dict[str, Any], *identities: str) -> None:
    fresh = [i for i in identities if i and i not in state["ids"]]
    if fresh:
        state["ids"] = [*state["ids"], *fresh][-_KEPT_IDS:]


def reread(state: dict[str, Any]) -> None:
    """Forget what a line would be compared with, before a file is read anew: its lines were seen before."""
    _fresh_baseline(state)
    state["top"], state["user"], state["dropped_at"] = -1, None, None


def _boundary(state: dict[str, Any], identity: str, kept: Any = ()) -> str:
    if identity and identity in state["ids"]:
        if identity == state["last"]:
            state["kept"] = list(kept)
        return ""  # the same line again: copied at a resume, or named by its summary already
    joined = state["open"] == "summary"  # the summary of this boundary came first
    _remember(state, identity)
    state["last"] = identity
    state["kept"] = list(kept)
    state["open"] = "boundary"
    _fresh_baseline(state)
    return "" if joined else "boundary"


def _summary(state: dict[str, Any], parent: str, identity: str = "") -> str:
    known = state["open"] or any(i and i in state["ids"] for i in (parent, identity))
    _remember(state, parent, identity)
    if known:
        return ""
    state["open"] = "summary"
    state["last"] = parent
    state["kept"] = []
    _fresh_baseline(state)
    return "summary"


def _sample(state: dict[str, Any], key: str, tokens: int, ratio: float, drops: bool) -> str:
    if key and key == state["key"]:
        state["base"] = tokens  # another line of the same message
        return ""
    base = state["base"]
    state["key"] = key
    state["base"] = tokens
    state["peak"] = max(state["peak"], tokens)
    state["open"] = ""
    if base is None or tokens >= base:
        return ""
    if tokens <= ratio * base and base - tokens >= DROP_TOKENS:
        if not drops:
            return "lower"
        state["dropped_at"] = state["line"]
        state["chars"] = 0
        state["peak"] = tokens
        state["estimate"] = BASELINE_TOKENS
        return "drop"
    return ""


def _user(state: dict[str, Any], index: int, digest: str) -> str:
    state["line"] += 1
    again = state["user"] == [index, digest]
    state["user"] = [index, digest]
    if index >= state["top"] or again:
        state["top"] = max(state["top"], index)
        return ""
    state["top"] = index
    state["floor"] = -1
    state["rewound"] = True
    _fresh_baseline(state)
    return "rewind"


def _checkpoint(state: dict[str, Any], number: int | None, digest: str, characters: int, index: int) -> str:
    state["line"] += 1
    before = max(state["top"], -1)
    state["top"] = max(state["top"], index)
    tokens = characters // CHARS_PER_TOKEN
    seen = [number, digest] in state["digests"]
    if not seen:
        state["digests"] = [*state["digests"], [number, digest]][-_KEPT_DIGESTS:]
    if number == 0 or seen or not _counts(state, number):
        state["estimate"] += 0 if seen else tokens
        return ""
    if number is not None:
        state["number"] = number
    state["rewound"] = False
    state["floor"] = index
    state["estimate"] = BASELINE_TOKENS + tokens
    dropped, state["dropped_at"] = state["dropped_at"], None
    late = dropped is not None and state["line"] - dropped <= LATE_LINES and index <= before
    if late:
        return ""  # the fall that this checkpoint caused was seen before the line itself
    _fresh_baseline(state)
    return "checkpoint"


def _counts(state: dict[str, Any], number: int | None) -> bool:
    if number is None:
        return bool(state["chars"] >= UNNUMBERED_CHARS or state["peak"] >= UNNUMBERED_TOKENS)
    return bool(number > state["number"] or state["rewound"])

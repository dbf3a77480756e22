"""From tokens in use to the nudge that is due."""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would cost a hook 14 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

START_TOKENS = 80000
INTERVAL_TOKENS = 40000
SHARES = (60, 80, 92)  # percent of the threshold at which the host compacts
MOST_UNKNOWN = 5  # nudges between two compactions where that threshold is not known
_START = "CONTEXT_ANCHOR_NUDGE_START_TOKENS"
_INTERVAL = "CONTEXT_ANCHOR_NUDGE_INTERVAL_TOKENS"


def _setting(env: Mapping[str, str], name: str) -> int | None:
    text = (env.get(name) or "").strip().replace("_", "").replace(",", "")
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) > 0 else None


def level(tokens: int, threshold: int | None, env: Mapping[str, str]) -> int:
    """Return the highest nudge level at or below `tokens`, itself in tokens; 0 where none is reached.

    Levels are 60, 80 and 92 % of `threshold` (tokens at which the host compacts by itself). Without one, or
    where the user set either variable, they are a start and every further interval.
    """
    start, step = _setting(env, _START), _setting(env, _INTERVAL)
    if threshold and start is None and step is None:
        reached = [threshold * share // 100 for share in SHARES if tokens >= threshold * share // 100]
        return reached[-1] if reached else 0
    first = start or START_TOKENS
    interval = step or INTERVAL_TOKENS
    if tokens < first:
        return 0
    return first + (tokens - first) // interval * interval


def due(
    tokens: int, threshold: int | None, env: Mapping[str, str], nudged: int, nudges: int
) -> int:
    """Return the level to nudge at now, 0 for none.

    `nudged` is the highest level nudged at since the last compaction, `nudges` how many there were.
    """
    if threshold and tokens >= threshold:
        return 0  # the host compacts before the next request: the reminder would arrive after that
    reached = level(tokens, threshold, env)
    if reached <= nudged:
        return 0
    if not threshold and nudges >= MOST_UNKNOWN:
        return 0
    return reached


def rearmed(tokens: int, threshold: int | None, env: Mapping[str, str], nudged: int) -> int:
    """Return what `nudged` becomes when the context got smaller without a compaction: never higher."""
    return min(nudged, level(tokens, threshold, env))

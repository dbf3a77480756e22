"""Episodes: short records of finished work, one file each, newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from context_anchor.engine.ids import Clock, generated_id, iso_stamp, random_suffix, utc_now
from context_anchor.engine.memory import files
from context_anchor.engine.memory.layout import Layout, contained
from context_anchor.engine.messages import clone
from context_anchor.engine.text import unit_key
from context_anchor.errors import EngineError, MemoryUnavailableError

_DRAWS = 6


class Episodes:
    """The folder of episodes."""

    def __init__(
        self, layout: Layout, now: Clock = utc_now, suffix: Callable[[], str] = random_suffix
    ) -> None:
        self._layout = layout
        self._now = now
        self._suffix = suffix

    def save(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Store an episode and return it; `id` and `createdAt` are the engine's whatever was given.

        Raises NotJsonError (nothing is written), ProjectEscapeError, MemoryUnavailableError.
        """
        self._layout.require_writable()
        self._layout.to_read(self._layout.episodes)
        given = clone(dict(fields))
        moment = self._now()
        for _ in range(_DRAWS):
            own = {"id": generated_id("episode", moment, self._suffix), "createdAt": iso_stamp(moment)}
            episode: dict[str, Any] = {**own, **{key: given[key] for key in given if key not in own}}
            try:
                files.create_json(self._layout.episodes / f"{own['id']}.json", episode)
            except FileExistsError:
                continue
            return episode
        raise MemoryUnavailableError(f"no free name for an episode in {self._layout.episodes}")

    def newest(self, count: int) -> list[dict[str, Any]]:
        """Return at most `count` good episodes, newest first; damaged files are passed over.

        Raises MemoryUnavailableError where the folder can't be read.
        """
        return list(islice(self._good(), max(0, count)))

    def _good(self) -> Iterator[dict[str, Any]]:
        folder = self._layout.episodes
        try:
            names = [path.name for path in folder.iterdir() if path.name.endswith(".json")]
        except FileNotFoundError:
            return
        except OSError as problem:
            raise files.unavailable(problem, folder) from problem
        for name in sorted(names, key=unit_key, reverse=True):
            try:
                episode = files.read_object(contained(folder / name, self._layout.root, "an episode"))
            except (EngineError, OSError):
                continue  # one damaged record must not hide the others
            if episode is not None and isinstance(episode.get("id"), str):
                yield episode

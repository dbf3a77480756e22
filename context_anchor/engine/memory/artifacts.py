"""Artifacts: exact texts of tool results, each under its own id, equal texts stored once.

An artifact is `<id>.txt` and `<id>.json`. The text is a second name (a hard link) of `objects/<sha256>.txt`;
where the file system has no hard links it is a file of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from context_anchor.engine.canonical import bare_digest, is_safe_integer
from context_anchor.engine.ids import Clock, generated_id, iso_stamp, random_suffix, utc_now
from context_anchor.engine.memory import artifact_text, files
from context_anchor.engine.memory.artifact_order import newest_first
from context_anchor.engine.memory.layout import Layout, contained
from context_anchor.engine.messages import FrozenDict, clone, freeze
from context_anchor.errors import (
    ArtifactIntegrityError,
    ArtifactNotFoundError,
    EngineError,
    InvalidArtifactIdError,
    MemoryDamagedError,
    MemoryUnavailableError,
)

DEFAULT_LINES = 300
MAX_LINES = 500

_ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,159}")
_NOT_IN_ID = re.compile("[^A-Za-z0-9._-]")
_MAX_KIND_CHARS = 120
_DRAWS = 6


def is_artifact_id(value: object) -> bool:
    """Return whether a value has the form of an artifact id; such a text is never a path."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _id_prefix(kind: str) -> str:
    """Return a tool's name as an id can begin with it."""
    name = _NOT_IN_ID.sub("_", kind)[:_MAX_KIND_CHARS]
    if not name:
        return "tool"
    return name if name[0].isalnum() else f"t{name}"


@dataclass(frozen=True, slots=True)
class ArtifactRange:
    """Some lines of an artifact; `end_line` below `start_line` where the start is beyond the last line."""

    artifact_id: str
    metadata: FrozenDict
    start_line: int
    end_line: int
    total_lines: int
    content: str

    def to_json(self) -> dict[str, Any]:
        """Return `{artifactId, metadata, startLine, endLine, totalLines, content}`."""
        return {
            "artifactId": self.artifact_id,
            "metadata": clone(self.metadata),
            "startLine": self.start_line,
            "endLine": self.end_line,
            "totalLines": self.total_lines,
            "content": self.content,
        }


class Artifacts:
    """The folder of artifacts."""

    def __init__(
        self, layout: Layout, now: Clock = utc_now, suffix: Callable[[], str] = random_suffix
    ) -> None:
        self._layout = layout
        self._now = now
        self._suffix = suffix

    # Writing

    def save(
        self, content: str | Iterable[str], kind: str = "tool", metadata: Mapping[str, Any] | None = None
    ) -> FrozenDict:
        """Store a text, given whole or in pieces, and return its metadata.

        To `metadata` come `id`, `createdAt`, `file` (from the project root), `chars` (UTF-16 code units),
        `bytes` (UTF-8) and `sha256` (bare hex); these win. An artifact is never overwritten. Raises
        NotJsonError, ProjectEscapeError, MemoryUnavailableError; then no artifact is there.
        """
        self._layout.require_writable()
        given = clone(dict(metadata or {}))
        folder = self._folder()
        with files.reported(folder):
            files.make_folder(self._layout.objects)
            objects = contained(self._layout.objects, self._layout.root, "the artifact directory")
            with files.Staged(objects, "text") as staged:
                measure = artifact_text.write_text(staged, content)
                moment = self._now()
                stored = objects / f"{measure.sha256}.txt"
                artifact_id = self._place(staged, stored, folder, lambda: self._draw(kind, moment))
        own = {
            "id": artifact_id,
            "createdAt": iso_stamp(moment),
            "file": f"{self._layout.name}/artifacts/{artifact_id}.txt",
            "chars": measure.chars,
            "bytes": measure.bytes,
            "sha256": measure.sha256,
        }
        record = {**{key: given[key] for key in given if key not in own}, **own}
        try:
            files.replace_json(folder / f"{artifact_id}.json", record)
        except BaseException:
            (folder / f"{artifact_id}.txt").unlink(missing_ok=True)
            raise
        return FrozenDict(freeze(record))

    def _draw(self, kind: str, moment: datetime) -> str:
        return generated_id(_id_prefix(kind), moment, self._suffix)

    def _place(self, staged: files.Staged, stored: Path, folder: Path, draw: Callable[[], str]) -> str:
        """Give a text the name of a new artifact and return the artifact's id.

        The stored text of the same digest is used where there is an undamaged one, else the staged one, which
        then takes its place.
        """
        whole = _is_whole(stored)
        for _ in range(_DRAWS):
            artifact_id = draw()
            target = folder / f"{artifact_id}.txt"
            if os.path.lexists(folder / f"{artifact_id}.json"):
                continue
            try:
                if not (whole and _linked(stored, target)) and staged.create(target):
                    staged.replace(stored)
            except FileExistsError:
                continue
            except BaseException:
                target.unlink(missing_ok=True)
                raise
            files.sync_folder(folder)
            return artifact_id
        raise MemoryUnavailableError(f"no free name for an artifact in {folder}")

    # Reading

    def read(self, artifact_id: str, start_line: object = 1, end_line: object = None) -> ArtifactRange:
        """Return lines of an artifact, counted from 1: 300 unless asked otherwise, at most 500.

        The whole text's SHA-256 is verified on each call. Raises InvalidArtifactIdError,
        ArtifactNotFoundError, ArtifactIntegrityError, MemoryDamagedError, ProjectEscapeError,
        MemoryUnavailableError.
        """
        record, path = self._find(artifact_id)
        start = max(1, _whole(start_line, 1))
        end = min(max(start, _whole(end_line, start + DEFAULT_LINES - 1)), start + MAX_LINES - 1)
        with files.reported(path):
            found = artifact_text.read_lines(path, start, end)
        self._verify(artifact_id, record, found.sha256)
        return ArtifactRange(
            artifact_id=artifact_id,
            metadata=freeze(record),
            start_line=start,
            end_line=min(found.total_lines, end),
            total_lines=found.total_lines,
            content="\n".join(found.lines),
        )

    def text(self, artifact_id: str) -> Iterator[str]:
        """Yield an artifact's whole text in pieces, verified before the first and after the last.

        Raises as `read` does.
        """
        record, path = self._find(artifact_id)
        with files.reported(path):
            self._verify(artifact_id, record, artifact_text.text_digest(path))
            digest = hashlib.sha256()
            for piece in artifact_text.read_pieces(path):
                digest.update(piece.encode("utf-8"))
                yield piece
        self._verify(artifact_id, record, digest.hexdigest())

    def metadata(self, artifact_id: str) -> FrozenDict:
        """Return an artifact's metadata; the text must be there and is not read. Raises as `read` does."""
        record, _ = self._find(artifact_id)
        return FrozenDict(freeze(record))

    def newest(self, count: int) -> list[FrozenDict]:
        """Return the metadata of at most `count` artifacts, newest first; damaged ones are passed over.

        Raises ProjectEscapeError, MemoryUnavailableError.
        """
        return list(islice(self.walk(), count)) if count > 0 else []

    def walk(self) -> Iterator[FrozenDict]:
        """Yield the metadata of the artifacts by `createdAt`, newest first, reading as few as asked for."""
        folder = self._layout.artifacts
        try:
            real = self._folder()
            names = [entry.name[:-5] for entry in os.scandir(real) if entry.name.endswith(".json")]
        except ArtifactNotFoundError:
            return
        except OSError as problem:
            raise files.unavailable(problem, folder) from problem
        for record in newest_first(filter(is_artifact_id, names), self._listed):
            yield FrozenDict(freeze(record))

    def _listed(self, artifact_id: str) -> dict[str, Any] | None:
        try:
            record, _ = self._find(artifact_id)
        except EngineError:
            return None  # one damaged record must not hide the others
        return record

    def _folder(self) -> Path:
        try:
            return self._layout.real_artifacts()
        except FileNotFoundError as problem:
            raise ArtifactNotFoundError(f"there is no artifact directory {self._layout.artifacts}") from problem
        except OSError as problem:
            raise files.unavailable(problem, self._layout.artifacts) from problem

    def _find(self, artifact_id: str) -> tuple[dict[str, Any], Path]:
        """Return an artifact's metadata and the real path of its text."""
        if not is_artifact_id(artifact_id):
            raise InvalidArtifactIdError(
                f"Invalid artifact ID {str(artifact_id)[:200]!r}",
                hint="An id is what a tool result or the list of artifacts names.",
            )
        folder = self._folder()
        record = files.read_object(self._part(folder, f"{artifact_id}.json"))
        path = self._part(folder, f"{artifact_id}.txt")
        if record is None or record.get("id") != artifact_id:
            raise MemoryDamagedError(f"{folder / artifact_id}.json is not the metadata of artifact {artifact_id}")
        return record, path

    def _part(self, folder: Path, name: str) -> Path:
        try:
            return contained(folder / name, folder, "the artifact directory")
        except FileNotFoundError as problem:
            raise ArtifactNotFoundError(f"no such artifact: there is no file {folder / name}") from problem
        except OSError as problem:
            raise files.unavailable(problem, folder / name) from problem

    @staticmethod
    def _verify(artifact_id: str, record: Mapping[str, Any], sha256: str) -> None:
        wanted = record.get("sha256")
        if not wanted:
            return
        if not isinstance(wanted, str) or bare_digest(wanted) != sha256:
            raise ArtifactIntegrityError(
                f"artifact {artifact_id}: integrity check failed, its text is not the one that was stored",
                hint="Run the tool again; the file was left as it is.",
            )


def _is_whole(stored: Path) -> bool:
    """Return whether a shared text is there and is the one that its name says."""
    try:
        return not stored.is_symlink() and artifact_text.text_digest(stored) == stored.stem
    except OSError:  # none, or none that can be read
        return False


def _linked(stored: Path, target: Path) -> bool:
    try:
        return files.link(stored, target)
    except FileNotFoundError:  # the shared text was removed meanwhile
        return False


def _whole(value: object, default: int) -> int:
    return int(value) if isinstance(value, (int, float)) and is_safe_integer(value) else default

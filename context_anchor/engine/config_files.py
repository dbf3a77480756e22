"""Configuration files: where they are found, how one is read and how one is merged over another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from context_anchor.engine.config import AgentConfig, normalize_agent_config
from context_anchor.errors import InvalidConfigError


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; a byte order mark is passed over.

    Raises InvalidConfigError naming the file where it can't be read or holds anything else.
    """
    try:
        text = path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError as problem:
        raise InvalidConfigError(
            f"the configuration file {path} can't be read: {problem.strerror or problem}"
        ) from problem
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise InvalidConfigError(f"the configuration file {path} is not valid JSON: {problem}") from problem
    if not isinstance(value, dict):
        raise InvalidConfigError(
            f"the configuration file {path} must hold a JSON object; it holds {_kind(value)}"
        )
    return value


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, list):
        return "an array"
    return "a string" if isinstance(value, str) else "a number"


def merge_config(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `over`.

    An object in `over` is merged into what stands there where that is neither null, false, 0 nor empty text;
    every other value, arrays and null too, takes its place.
    """
    merged = dict(base)
    for key, value in over.items():
        present = merged.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            merged[key] = merge_config(present, value)
        else:
            merged[key] = value
    return merged


def find_config(folders: Iterable[Path], name: str = "agent") -> Path | None:
    """Return `<name>.json`, else `<name>.example.json`, of the first folder that has either; None for none."""
    for folder in folders:
        for candidate in (folder / f"{name}.json", folder / f"{name}.example.json"):
            if candidate.is_file():
                return candidate
    return None


def _holds(values: Mapping[str, Any], dotted: str) -> bool:
    inner: Any = values
    for key in dotted.split("."):
        if not isinstance(inner, Mapping) or key not in inner:
            return False
        inner = inner[key]
    return True


def load_agent_config(path: Path, over: Path | None = None) -> AgentConfig:
    """Return the configuration of a file, with another file's keys over it.

    Raises InvalidConfigError; it names the key and the file that it stands in.
    """
    files = [(path, read_json_object(path))]
    if over is not None:
        files.append((over, read_json_object(over)))
    merged: dict[str, Any] = {}
    for _, values in files:
        merged = merge_config(merged, values)

    def origin(dotted: str) -> str:
        holding = [str(file) for file, values in files if _holds(values, dotted)]
        return holding[-1] if holding else str(files[-1][0])

    return normalize_agent_config(merged, origin=origin)

"""Finding, reading and merging configuration files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_anchor.engine.config_files import find_config, load_agent_config, merge_config, read_json_object
from context_anchor.errors import InvalidConfigError


def put(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"a": {"x": {"p": 1}}}, {"a": {"x": {"q": 2}}}, {"a": {"x": {"p": 1, "q": 2}}}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": {"x": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": None}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": 5}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
        ({}, {"b": 1}, {"b": 1}),
    ],
)
def test_objects_merge_and_everything_else_is_replaced(base: Any, over: Any, merged: Any) -> None:
    before = json.dumps(base)
    assert merge_config(base, over) == merged
    assert json.dumps(base) == before


def test_the_own_file_wins_over_the_example_and_the_first_folder_over_the_next(tmp_path: Path) -> None:
    assert find_config([tmp_path / "none"]) is None
    example = put(tmp_path / "b" / "agent.example.json", {})
    assert find_config([tmp_path / "a", tmp_path / "b"]) == example
    own = put(tmp_path / "b" / "agent.json", {})
    assert find_config([tmp_path / "a", tmp_path / "b"]) == own
    first = put(tmp_path / "a" / "agent.example.json", {})
    assert find_config([tmp_path / "a", tmp_path / "b"]) == first
    assert find_config([tmp_path / "b"], "bridge") is None


def test_a_second_file_is_merged_over_the_first(tmp_path: Path) -> None:
    base = {"model": "a", "security": {"allowCommands": True}, "planner": {"maxAttempts": 1}}
    first = put(tmp_path / "agent.json", base)
    over = put(tmp_path / "mine.json", "\ufeff" + json.dumps({"security": {"approvalMode": "never"}, "model": "b"}))
    config = load_agent_config(first, over)
    assert (config.model, config.security.approval_mode, config.planner.max_attempts) == ("b", "never", 1)
    assert config.security.allow_commands


NO_OBJECTS = ["", "{", "[]", '"x"', "5", "null", "true", '{"a": NaN}', '{"a": Infinity}', "[" * 99999]


@pytest.mark.parametrize("text", NO_OBJECTS, ids=range(len(NO_OBJECTS)))
def test_a_file_that_holds_no_object_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = put(tmp_path / "agent é.json", text)
    with pytest.raises(InvalidConfigError) as raised:
        read_json_object(path)
    assert str(path) in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"none\.json"):
        load_agent_config(tmp_path / "none.json")


def test_an_error_names_the_file_that_the_key_stands_in(tmp_path: Path) -> None:
    base = put(tmp_path / "base.json", {"planner": {"maxAttempts": 3}, "model": "a"})
    over = put(tmp_path / "over.json", {"planner": {"maxInputTokens": 5}})
    with pytest.raises(InvalidConfigError, match=r"over\.json: planner\.maxInputTokens"):
        load_agent_config(base, over)
    put(over, {"planner": {"temperature": 1}})
    with pytest.raises(InvalidConfigError, match=r"base\.json: planner\.maxAttempts"):
        load_agent_config(base, over)

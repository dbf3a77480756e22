"""Defaults, bounds and start-up rules of an agent's configuration."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from context_anchor.engine.config import PlannerBudget, normalize_agent_config, normalize_call_budget
from context_anchor.errors import InvalidConfigError

from .fixture_files import fixture

EXAMPLE = fixture("config/agent.example.json")


def test_the_example_file_is_taken_as_it_is() -> None:
    config = normalize_agent_config(EXAMPLE)
    assert config.document == EXAMPLE
    assert config.usable_input_tokens == 49152
    assert (config.llama_base_url, config.model) == ("http://127.0.0.1:8080", "local-model")
    assert config.max_output_tokens == 16384 and config.max_tool_iterations == 20
    assert config.request_timeout_s == 3600 and config.temperature == 0.2
    assert config.thresholds.garbage_collect == 0.55 and config.thresholds.failure == 0.9
    assert config.security.approval_mode == "writes" and config.security.allow_commands
    assert config.security.command_timeout_s == 120


def test_an_empty_configuration_has_the_defaults() -> None:
    config = normalize_agent_config({})
    assert config.artifact_persistence_chars == config.stale_tool_compression_chars == 800
    assert (config.stale_tool_preview_chars, config.max_tool_output_chars) == (500, 12000)
    assert config.fixed_prompt_overhead_tokens == 512
    planner = config.planner
    assert (planner.max_input_tokens, planner.max_output_tokens, planner.temperature) == (12000, 2048, 0.1)
    assert (planner.max_visible_units, planner.full_unit_chars) == (64, 600)
    assert (planner.max_unit_chars, planner.max_task_chars, planner.max_attempts) == (1000, 1000, 2)
    assert (config.transformer.max_input_tokens, config.transformer.max_output_tokens) == (12000, 2048)
    validator = config.transform_validator
    assert (validator.max_input_tokens, validator.max_output_tokens, validator.temperature) == (24000, 512, 0)
    assert not config.security.allow_commands and config.model is None
    assert list(config.document) == [
        "artifactPersistenceChars", "staleToolCompressionChars", "staleToolPreviewChars", "maxToolOutputChars",
        "planner", "transformer", "transformValidator",
    ]  # fmt: skip


def test_unknown_keys_are_kept_at_every_level() -> None:
    config = normalize_agent_config({"x": [1], "planner": {"y": 2}, "thresholds": {"z": 3}})
    assert config.document["x"] == [1] and config.document["thresholds"] == {"z": 3}
    assert config.planner.document["y"] == 2


def test_the_result_is_frozen_and_apart_from_what_was_given() -> None:
    given: dict[str, Any] = {"planner": {"y": [1]}}
    config = normalize_agent_config(given)
    given["planner"]["y"].append(2)
    assert config.planner.document["y"] == [1]
    with pytest.raises(TypeError):
        config.document["model"] = "other"
    with pytest.raises(FrozenInstanceError):
        config.model = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"artifactPersistenceChars": 801}, "artifactPersistenceChars <= staleToolCompressionChars"),
        ({"staleToolPreviewChars": 801}, "staleToolPreviewChars <= staleToolCompressionChars"),
        ({"staleToolCompressionChars": 12001}, "staleToolCompressionChars <= maxToolOutputChars"),
        (
            {"artifactPersistenceChars": 0, "staleToolCompressionChars": 0, "staleToolPreviewChars": 0,
             "maxToolOutputChars": 255},
            "maxToolOutputChars must be at least 256",
        ),
    ],
)  # fmt: skip
def test_each_durability_rule_names_what_is_violated(values: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidConfigError, match="invalid agent config") as raised:
        normalize_agent_config(values)
    assert words in str(raised.value)


@pytest.mark.parametrize("key", ["artifactPersistenceChars", "staleToolCompressionChars", "staleToolPreviewChars",
                                 "maxToolOutputChars"])  # fmt: skip
@pytest.mark.parametrize("value", [-1, 1.5, True, "800", None, 2**53])
def test_durability_keys_are_whole_numbers(key: str, value: Any) -> None:
    with pytest.raises(InvalidConfigError, match=key):
        normalize_agent_config({key: value})


def test_errors_come_in_the_fixed_order() -> None:
    broken: dict[str, Any] = {
        "contextWindow": -1,
        "maxToolOutputChars": 100,
        "staleToolPreviewChars": "x",
        "transformValidator": {"maxAttempts": 3},
        "transformer": {"maxAttempts": 3},
        "planner": {"maxAttempts": 3},
    }
    for key in ("planner.maxAttempts", "transformer.maxAttempts", "transformValidator.maxAttempts"):
        with pytest.raises(InvalidConfigError, match=key):
            normalize_agent_config(broken)
        del broken[key.split(".")[0]]
    with pytest.raises(InvalidConfigError, match="staleToolPreviewChars"):
        normalize_agent_config(broken)
    del broken["staleToolPreviewChars"]
    with pytest.raises(InvalidConfigError, match="staleToolCompressionChars <= maxToolOutputChars"):
        normalize_agent_config(broken)


@pytest.mark.parametrize(
    ("name", "key", "least"),
    [
        ("planner", "maxInputTokens", 1024), ("planner", "maxOutputTokens", 128),
        ("planner", "maxVisibleUnits", 1), ("planner", "fullUnitChars", 1), ("planner", "maxTaskChars", 1),
        ("planner", "maxAttempts", 1),
        ("transformer", "maxInputTokens", 256), ("transformer", "maxOutputTokens", 1),
        ("transformValidator", "maxInputTokens", 256), ("transformValidator", "maxOutputTokens", 1),
    ],
)  # fmt: skip
def test_each_budget_has_its_least_value(name: str, key: str, least: int) -> None:
    assert normalize_call_budget(name, {key: least}).document[key] == least
    for bad in (least - 1, True, str(least), None, least + 0.5):
        with pytest.raises(InvalidConfigError, match=rf"{name}\.{key}"):
            normalize_call_budget(name, {key: bad})


def test_attempts_temperatures_and_unit_lengths_are_bounded() -> None:
    for name in ("planner", "transformer", "transformValidator"):
        with pytest.raises(InvalidConfigError, match="maxAttempts"):
            normalize_call_budget(name, {"maxAttempts": 3})
        for bad in (-0.1, 2.1, math.nan, "0", True, 10**400):
            with pytest.raises(InvalidConfigError, match="temperature"):
                normalize_call_budget(name, {"temperature": bad})
        assert normalize_call_budget(name, {"temperature": 2}).temperature == 2
        assert normalize_call_budget(name, None) == normalize_call_budget(name, {})
        with pytest.raises(InvalidConfigError, match=name):
            normalize_agent_config({name: [1]})
    with pytest.raises(InvalidConfigError, match="fullUnitChars"):
        normalize_call_budget("planner", {"fullUnitChars": 1001})
    assert isinstance(normalize_call_budget("planner", {"fullUnitChars": 1000}), PlannerBudget)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"contextWindow": 100, "reservedOutputTokens": 100}, "contextWindow"),
        ({"reservedOutputTokens": -1}, "reservedOutputTokens"),
        ({"contextWindow": "64k"}, "contextWindow"),
        ({"fixedPromptOverheadTokens": 0.5}, "fixedPromptOverheadTokens"),
        ({"maxToolIterations": 0}, "maxToolIterations"),
        ({"requestTimeoutSeconds": 0}, "requestTimeoutSeconds"),
        ({"security": {"commandTimeoutSeconds": 901}}, "security.commandTimeoutSeconds"),
        ({"security": {"commandTimeoutSeconds": 0}}, "security.commandTimeoutSeconds"),
        ({"security": {"commandTimeoutSeconds": True}}, "security.commandTimeoutSeconds"),
        ({"thresholds": {"prune": 0}}, "thresholds.prune"),
        ({"thresholds": {"garbageCollect": 0.7, "prune": 0.6}}, "thresholds.prune"),
        ({"thresholds": {"garbageCollect": 0.7, "failure": 0.6}}, "thresholds.failure"),
        ({"thresholds": {"failure": math.inf}}, "thresholds.failure"),
        ({"thresholds": []}, "thresholds"),
        ({"model": 5}, "model"),
        ({"temperature": "hot"}, "temperature"),
    ],
)
def test_values_that_no_agent_could_run_with_are_refused(values: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"invalid agent config: {key} must"):
        normalize_agent_config(values)


def test_thresholds_may_be_partial_equal_or_above_one() -> None:
    assert normalize_agent_config({"thresholds": {}}).thresholds.failure is None
    config = normalize_agent_config({"thresholds": {"garbageCollect": 0.5, "prune": 0.5, "failure": 2}})
    assert config.thresholds.failure == 2 and config.thresholds.semantic_compact is None


@pytest.mark.parametrize(
    ("value", "allowed"),
    [(True, True), (1, True), ("no", True), ([], True), ({}, True), (False, False), (0, False), ("", False),
     (None, False), (math.nan, False)],
)  # fmt: skip
def test_commands_are_allowed_by_truth_as_ecmascript_sees_it(value: Any, allowed: bool) -> None:
    assert normalize_agent_config({"security": {"allowCommands": value}}).security.allow_commands is allowed


def test_a_base_url_loses_one_slash() -> None:
    assert normalize_agent_config({"llamaBaseUrl": "http://h/v1//"}).llama_base_url == "http://h/v1/"


def test_a_missing_window_is_named_when_it_is_needed() -> None:
    with pytest.raises(InvalidConfigError, match="contextWindow"):
        _ = normalize_agent_config({}).usable_input_tokens
    with pytest.raises(InvalidConfigError, match="reservedOutputTokens"):
        _ = normalize_agent_config({"contextWindow": 5}).usable_input_tokens


def test_a_configuration_that_is_not_json_data_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="JSON"):
        normalize_agent_config({"model": object()})

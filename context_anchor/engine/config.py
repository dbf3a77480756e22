"""The configuration of an agent: every key, its default and bound, checked once into a frozen value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from context_anchor.engine.canonical import is_safe_integer
from context_anchor.engine.messages import FrozenDict, freeze
from context_anchor.engine.tokens import DEFAULT_PROMPT_OVERHEAD_TOKENS
from context_anchor.errors import InvalidConfigError, NotJsonError

Origin = Callable[[str], str]
"""Returns the file that a dotted key stands in, empty where the configuration came from no file."""

DURABILITY_DEFAULTS = {
    "artifactPersistenceChars": 800,
    "staleToolCompressionChars": 800,
    "staleToolPreviewChars": 500,
    "maxToolOutputChars": 12000,
}
MIN_TOOL_OUTPUT_CHARS = 256
MAX_COMMAND_TIMEOUT_S = 900
THRESHOLD_KEYS = ("garbageCollect", "prune", "semanticCompact", "hardTransfer", "failure")

# Per call: key -> (default, least), in the order in which a normalised object has them.
_INTEGERS: dict[str, dict[str, tuple[int, int]]] = {
    "planner": {
        "maxInputTokens": (12000, 1024),
        "maxOutputTokens": (2048, 128),
        "maxVisibleUnits": (64, 1),
        "fullUnitChars": (600, 1),
        "maxUnitChars": (1000, 1),
        "maxTaskChars": (1000, 1),
    },
    "transformer": {"maxInputTokens": (12000, 256), "maxOutputTokens": (2048, 1)},
    "transformValidator": {"maxInputTokens": (24000, 256), "maxOutputTokens": (512, 1)},
}
_TEMPERATURES: dict[str, int | float] = {"planner": 0.1, "transformer": 0.1, "transformValidator": 0}
_DEFAULT_ATTEMPTS = 2
_MAX_ATTEMPTS = 2

_Budget = TypeVar("_Budget", bound="CallBudget")


@dataclass(frozen=True, slots=True)
class CallBudget:
    """What one kind of model call may cost; sizes in estimated tokens."""

    max_input_tokens: int
    max_output_tokens: int
    temperature: float
    max_attempts: int
    document: FrozenDict
    """The whole object under its names on disk, unknown keys too."""


@dataclass(frozen=True, slots=True)
class PlannerBudget(CallBudget):
    """What a planner's call may cost and show; lengths in UTF-16 code units."""

    max_visible_units: int
    full_unit_chars: int
    max_unit_chars: int
    max_task_chars: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares of the usable input at which a stage begins; None where the configuration has none."""

    garbage_collect: float | None = None
    prune: float | None = None
    semantic_compact: float | None = None
    hard_transfer: float | None = None
    failure: float | None = None


@dataclass(frozen=True, slots=True)
class Security:
    """What an agent may do without asking."""

    approval_mode: str | None
    """`never` switches the questions off; any other value asks before writes."""
    allow_commands: bool
    command_timeout_s: float | None


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """A checked configuration; None where a key without default is absent. Lengths in UTF-16 code units."""

    document: FrozenDict
    """The whole configuration under its names on disk, unknown keys too."""
    llama_base_url: str | None
    model: str | None
    context_window_tokens: int | None
    reserved_output_tokens: int | None
    fixed_prompt_overhead_tokens: int
    max_output_tokens: int | None
    artifact_persistence_chars: int
    stale_tool_compression_chars: int
    stale_tool_preview_chars: int
    max_tool_output_chars: int
    max_tool_iterations: int | None
    request_timeout_s: float | None
    temperature: float | None
    thresholds: Thresholds
    security: Security
    planner: PlannerBudget
    transformer: CallBudget
    transform_validator: CallBudget

    @property
    def usable_input_tokens(self) -> int:
        """The window less what is reserved for output, at least 1; raises InvalidConfigError without either."""
        if self.context_window_tokens is None or self.reserved_output_tokens is None:
            missing = "contextWindow" if self.context_window_tokens is None else "reservedOutputTokens"
            raise InvalidConfigError(f"invalid agent config: {missing} is missing", hint="Give it in tokens.")
        return max(1, self.context_window_tokens - self.reserved_output_tokens)


def _nowhere(_: str) -> str:
    return ""


class _Checker:
    """Reads keys of one object; every error names the dotted key, its file and the value."""

    def __init__(self, values: Mapping[str, Any], origin: Origin, prefix: str = "") -> None:
        self.values = values
        self._origin = origin
        self._prefix = prefix

    def error(self, key: str, must: str) -> InvalidConfigError:
        dotted = self._prefix + key
        file = self._origin(dotted)
        where = f" in {file}" if file else ""
        found = f"; it is {self.values[key]!r}" if key in self.values else ""
        return InvalidConfigError(f"invalid agent config{where}: {dotted} must {must}{found}")

    def integer(self, key: str, least: int) -> int | None:
        if key not in self.values:
            return None
        value = self.values[key]
        if not is_safe_integer(value) or value < least:
            raise self.error(key, f"be a whole number of at least {least}")
        return int(value)

    def required(self, key: str, least: int) -> int:
        value = self.integer(key, least)
        if value is None:
            raise self.error(key, f"be a whole number of at least {least}")
        return value

    def number(self, key: str, must: str, fits: Callable[[float], bool]) -> float | None:
        if key not in self.values:
            return None
        value = self.values[key]
        finite = is_safe_integer(value) or (isinstance(value, float) and math.isfinite(value))
        if not finite or not fits(value):
            raise self.error(key, must)
        return float(value)

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        if key in self.values and not isinstance(value, str):
            raise self.error(key, "be text")
        return value

    def inner(self, key: str) -> _Checker:
        value = self.values.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.error(key, "be an object")
        return _Checker(value, self._origin, f"{self._prefix}{key}.")


def _normal_budget(outer: _Checker, name: str) -> _Checker:
    """Return a call's object with its defaults first, checked."""
    given = outer.inner(name).values
    defaults: dict[str, Any] = {key: default for key, (default, _) in _INTEGERS[name].items()}
    defaults |= {"temperature": _TEMPERATURES[name], "maxAttempts": _DEFAULT_ATTEMPTS}
    checker = _Checker({**defaults, **given}, outer._origin, f"{name}.")
    for key, (_, least) in _INTEGERS[name].items():
        checker.required(key, least)
    checker.number("temperature", "be a number from 0 to 2", lambda value: 0 <= value <= 2)
    if checker.required("maxAttempts", 1) > _MAX_ATTEMPTS:
        raise checker.error("maxAttempts", f"be 1 or {_MAX_ATTEMPTS}")
    if name == "planner" and checker.values["fullUnitChars"] > checker.values["maxUnitChars"]:
        limit = checker.values["maxUnitChars"]
        raise checker.error("fullUnitChars", f"be at most planner.maxUnitChars ({limit})")
    return checker


def _budget(kind: type[_Budget], values: Mapping[str, Any], **more: int) -> _Budget:
    return kind(
        max_input_tokens=int(values["maxInputTokens"]),
        max_output_tokens=int(values["maxOutputTokens"]),
        temperature=float(values["temperature"]),
        max_attempts=int(values["maxAttempts"]),
        document=freeze(dict(values)),
        **more,
    )


def _check_durability(checker: _Checker) -> None:
    """Check the rules that keep every compressible output recoverable, in their fixed order."""
    for key in DURABILITY_DEFAULTS:
        checker.required(key, 0)
    for low, high in (
        ("artifactPersistenceChars", "staleToolCompressionChars"),
        ("staleToolPreviewChars", "staleToolCompressionChars"),
        ("staleToolCompressionChars", "maxToolOutputChars"),
    ):
        if checker.values[low] > checker.values[high]:
            raise checker.error(low, f"be at most {high} ({low} <= {high}), which is {checker.values[high]}")
    if checker.values["maxToolOutputChars"] < MIN_TOOL_OUTPUT_CHARS:
        raise checker.error("maxToolOutputChars", f"be at least {MIN_TOOL_OUTPUT_CHARS}")


def _thresholds(outer: _Checker) -> Thresholds:
    checker = outer.inner("thresholds")
    values = [checker.number(key, "be a number above 0", lambda value: value > 0) for key in THRESHOLD_KEYS]
    last, last_key = 0.0, ""
    for key, value in zip(THRESHOLD_KEYS, values, strict=True):
        if value is None:
            continue
        if value < last:
            raise checker.error(key, f"be at least thresholds.{last_key} ({last:g})")
        last, last_key = value, key
    return Thresholds(*values)


def _truthy(value: object) -> bool:
    """Return whether ECMAScript takes a value for true; an empty list or object is."""
    if isinstance(value, float) and math.isnan(value):
        return False
    return bool(value) or isinstance(value, (list, dict))


def _security(outer: _Checker) -> Security:
    checker = outer.inner("security")
    bound = f"be a number of seconds from 1 to {MAX_COMMAND_TIMEOUT_S}"
    return Security(
        approval_mode=checker.text("approvalMode"),
        allow_commands=_truthy(checker.values.get("allowCommands")),
        command_timeout_s=checker.number(
            "commandTimeoutSeconds", bound, lambda value: 1 <= value <= MAX_COMMAND_TIMEOUT_S
        ),
    )


def normalize_agent_config(values: Mapping[str, Any], *, origin: Origin = _nowhere) -> AgentConfig:
    """Return a configuration with its defaults, checked and frozen.

    The calls' budgets are checked first, then the durability rules in their order, then the rest. Raises
    InvalidConfigError naming the key and, by `origin`, the file.
    """
    try:
        given = freeze(dict(values))
    except NotJsonError as problem:
        raise InvalidConfigError(f"invalid agent config: {problem.message}") from problem
    outer = _Checker({**DURABILITY_DEFAULTS, **given}, origin)
    calls = {name: _normal_budget(outer, name).values for name in _INTEGERS}
    checker = _Checker({**outer.values, **calls}, origin)
    _check_durability(checker)
    window = checker.integer("contextWindow", 1)
    reserved = checker.integer("reservedOutputTokens", 0)
    if window is not None and reserved is not None and window <= reserved:
        raise checker.error("contextWindow", f"be above reservedOutputTokens ({reserved})")
    overhead = checker.integer("fixedPromptOverheadTokens", 0)
    url = checker.text("llamaBaseUrl")
    planner = calls["planner"]
    return AgentConfig(
        document=freeze(dict(checker.values)),
        llama_base_url=None if url is None else url.removesuffix("/"),
        model=checker.text("model"),
        context_window_tokens=window,
        reserved_output_tokens=reserved,
        fixed_prompt_overhead_tokens=DEFAULT_PROMPT_OVERHEAD_TOKENS if overhead is None else overhead,
        max_output_tokens=checker.integer("maxOutputTokens", 1),
        artifact_persistence_chars=checker.required("artifactPersistenceChars", 0),
        stale_tool_compression_chars=checker.required("staleToolCompressionChars", 0),
        stale_tool_preview_chars=checker.required("staleToolPreviewChars", 0),
        max_tool_output_chars=checker.required("maxToolOutputChars", 0),
        max_tool_iterations=checker.integer("maxToolIterations", 1),
        request_timeout_s=checker.number(
            "requestTimeoutSeconds", "be a number of seconds above 0", lambda value: value > 0
        ),
        temperature=checker.number("temperature", "be a finite number", lambda _: True),
        thresholds=_thresholds(checker),
        security=_security(checker),
        planner=_budget(
            PlannerBudget,
            planner,
            max_visible_units=int(planner["maxVisibleUnits"]),
            full_unit_chars=int(planner["fullUnitChars"]),
            max_unit_chars=int(planner["maxUnitChars"]),
            max_task_chars=int(planner["maxTaskChars"]),
        ),
        transformer=_budget(CallBudget, calls["transformer"]),
        transform_validator=_budget(CallBudget, calls["transformValidator"]),
    )


def normalize_call_budget(name: str, values: Mapping[str, Any] | None) -> CallBudget:
    """Return the budget of `planner`, `transformer` or `transformValidator`; None means its defaults.

    A planner's is a PlannerBudget. Raises InvalidConfigError.
    """
    config = normalize_agent_config({name: None if values is None else dict(values)})
    return {
        "planner": config.planner,
        "transformer": config.transformer,
        "transformValidator": config.transform_validator,
    }[name]

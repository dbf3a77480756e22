"""What doctor and the installer have to say: one finding each, with its cure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from context_anchor.errors import ContextAnchorError

Level = Literal["ok", "info", "warning", "error"]
_RANK: Final[dict[str, int]] = {"ok": 0, "info": 1, "warning": 2, "error": 3}


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check.

    `check` is a stable name of what was looked at (`claude-code.hooks`, `data.store`, ...); `cure` says what to
    do and is empty where nothing is wrong; `code` is the error's code where one was raised.
    """

    level: Level
    check: str
    what: str
    cure: str = ""
    where: str = ""
    code: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the finding as a JSON object; empty fields are left out."""
        fields = {
            "level": self.level,
            "check": self.check,
            "what": self.what,
            "cure": self.cure,
            "where": self.where,
            "code": self.code,
        }
        return {name: text for name, text in fields.items() if text}


def from_error(check: str, problem: ContextAnchorError, level: Level = "error") -> Finding:
    """Return an error of the tree as a finding."""
    return Finding(level, check, problem.message, problem.hint, code=problem.code)


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level among findings, `ok` for none."""
    return max((f.level for f in findings), key=lambda level: _RANK[level], default="ok")


def lines(findings: Sequence[Finding], *, least: Level = "ok") -> list[str]:
    """Return findings as lines for a person, in the order of the checks, with the cure below each."""
    out = []
    for finding in findings:
        if _RANK[finding.level] < _RANK[least]:
            continue
        where = f" ({finding.where})" if finding.where else ""
        out.append(f"{finding.level:<8}{finding.check}: {finding.what}{where}")
        if finding.cure:
            out.append(f"{'':<8}-> {finding.cure}")
    return out


@dataclass(frozen=True, slots=True)
class Outcome:
    """What installing or removing did for one host: sentences of what was done and what the person must do."""

    host: str
    title: str
    did: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    changed: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the outcome as a JSON object."""
        return {
            "host": self.host,
            "changed": self.changed,
            "did": list(self.did),
            "todo": list(self.todo),
            "findings": [finding.to_json() for finding in self.findings],
        }

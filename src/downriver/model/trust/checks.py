"""The answer of `downriver check`: the rules that ran, and what violates them."""

from __future__ import annotations

from enum import Enum

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct


class CheckSeverity(str, Enum):
    """The severity of a violation, in increasing order."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Return the position in the order."""
        return list(CheckSeverity).index(self)


class CheckViolation(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """An entity that violates a rule. `related` are the other entities that prove it.

    `path` and `line` are the code of the job, or of a job that writes the dataset. For an expected
    edge, `path` is the file that states it.
    """

    rule: str
    severity: CheckSeverity
    entity: str
    message: str
    related: list[str] = []
    owners: list[str] = []
    path: str | None = None
    line: int | None = None


class CheckedRule(msgspec.Struct, kw_only=True, frozen=True):
    """A rule that ran, its meaning, and the number of its violations."""

    rule: str
    meaning: str
    severity: CheckSeverity
    violations: int


class LineageChecks(MappingStruct, kw_only=True):
    """The result of all rules. `passed`: no violation has the severity `fail_on` or a higher one.

    It is complete if no expected edge depends on unknown lineage. Other rules skip what they cannot
    decide, such as columns of a dataset whose readers have no column lineage.
    """

    passed: bool
    fail_on: CheckSeverity
    datasets: int
    jobs: int
    rules: list[CheckedRule]
    violations: list[CheckViolation]
    ignored: int
    complete: bool
    blind_spots: list[BlindSpot]

"""Findings of the monitor: an unexpected change, or an event that did not happen."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Literal

import msgspec


class Severity(str, Enum):
    """The severity of a finding, in increasing order."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Return the position in the order."""
        return list(Severity).index(self)


class FindingKind(str, Enum):
    """The kind of a finding."""

    COLUMN_ADDED = "column_added"
    COLUMN_DROPPED = "column_dropped"
    COLUMN_RENAMED = "column_renamed"
    COLUMN_RETYPED = "column_retyped"
    EDGE_APPEARED = "edge_appeared"
    EDGE_VANISHED = "edge_vanished"
    ROW_COUNT_SHIFT = "row_count_shift"
    NULL_RATE_SHIFT = "null_rate_shift"
    DISTRIBUTION_SHIFT = "distribution_shift"
    QUALITY_FAILED = "quality_failed"
    RUN_FAILED = "run_failed"
    RUN_LATE = "run_late"


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """An event that proves a finding: its SHA-256, its time, its job and run."""

    event: str
    at: str
    job: str | None = None
    run: str | None = None


class Affected(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """An entity downstream of a finding; `depth` counts the jobs between."""

    id: str
    kind: str
    depth: int
    owners: list[str] = []
    tags: list[str] = []


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One finding, with everything that its owner needs to act.

    `first_seen` is the time of the first event that shows it, `opened_at` the time when the monitor
    found it. A new alert is sent when `state` changes.
    """

    kind: FindingKind
    entity: str
    subject: str = ""  # the part of the entity: a column, the other end of an edge, a metric
    severity: Severity
    message: str
    first_seen: str
    state: str = ""
    expected: str | None = None
    actual: str | None = None
    confidence: float | None = None
    why: list[str] = []
    evidence: list[Evidence] = []
    owners: list[str] = []
    affected_count: int = 0
    affected: list[Affected] = []
    status: Literal["open", "resolved"] = "open"
    revision: int = 1
    opened_at: str | None = None
    changed_at: str | None = None
    resolved_at: str | None = None
    resolution: str | None = None
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            self.id = finding_id(self.kind, self.entity, self.subject)

    @property
    def fingerprint(self) -> tuple[str, str]:
        """Return the values whose change leads to a new alert."""
        return (self.severity.value, self.state)


class Findings(msgspec.Struct, kw_only=True):
    """Recorded findings, the latest first; `total` includes those not shown."""

    findings: list[Finding]
    total: int
    complete: bool


def finding_id(kind: FindingKind, entity: str, subject: str) -> str:
    """Return an id that is the same for the same finding."""
    text = "\n".join((kind.value, entity, subject))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

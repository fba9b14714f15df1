"""What a monitor finds: something changed, or did not happen, that someone should know of."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Literal

import msgspec


class Severity(str, Enum):
    """How much a finding matters; each is worse than those before it."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Return its place in the order."""
        return list(Severity).index(self)


class FindingKind(str, Enum):
    """What was found."""

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
    """An event that a finding rests on: its SHA-256, when it happened, and the run it told of."""

    event: str
    at: str
    job: str | None = None
    run: str | None = None


class Affected(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Something downstream of a finding; `depth` counts the jobs between."""

    id: str
    kind: str
    depth: int
    owners: list[str] = []
    tags: list[str] = []


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing found, and all that whoever is told of it needs to act.

    `first_seen` is when it began, by the events; `opened_at` when the monitor noticed. `state` is
    what would have to differ for it to be news again.
    """

    kind: FindingKind
    entity: str
    subject: str = ""  # what of the entity: a column, an edge's other end, a metric
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
        """Return what makes a finding news again when it differs."""
        return (self.severity.value, self.state)


class Findings(msgspec.Struct, kw_only=True):
    """Recorded findings, the latest first; `total` counts those that were not shown too."""

    findings: list[Finding]
    total: int
    complete: bool


def finding_id(kind: FindingKind, entity: str, subject: str) -> str:
    """Return the name by which the same finding is known again."""
    text = "\n".join((kind.value, entity, subject))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

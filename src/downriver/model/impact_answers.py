"""What a change does, asked and answered in the words of `analyze_impact`."""

from __future__ import annotations

from typing import Any

from downriver.model.answers import BlindSpot
from downriver.model.readable import Readable
from downriver.model.verdicts import Finding


class ImpactRequest(Readable, kw_only=True, omit_defaults=True):
    """A change someone thinks of. `changes` says it in full, in place of the other fields."""

    entity_id: str
    change_type: str = "schema_change"
    column: str | None = None
    to: str | None = None
    data_type: str | None = None
    required: bool = False
    nullable: bool | None = None
    changes: list[dict[str, Any]] | None = None


class AffectedEntity(Readable, kw_only=True):
    """Who is hurt, how, and by which way. `depth` counts the steps from the change."""

    entity_id: str
    id: str
    name: str
    type: str
    depth: int
    severity: str
    outcome: str
    reason: str
    references: list[str]
    path: list[str]
    writes: list[str]
    owners: list[str]


class ImpactAnswer(Readable, kw_only=True):
    """What a change does to everyone downstream, and what the policy says of it."""

    entity_id: str
    change_type: str
    changes: list[str]
    directly_affected_count: int
    total_affected_count: int
    untouched_count: int
    affected_entities: list[AffectedEntity]
    risk_level: str
    verdict: str
    reason: str
    recommendation: str
    findings: list[Finding]
    ask: list[str]
    complete: bool
    blind_spots: list[BlindSpot]

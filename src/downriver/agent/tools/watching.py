"""Tools about how things are going: figures of the whole graph, incidents, wrong numbers."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec

from downriver.agent.tools.desk import Desk
from downriver.agent.tools.paging import Answer, first_spots, page
from downriver.model.governance import Kpis


class KpisArgs(msgspec.Struct, kw_only=True):
    """Nothing needs to be said."""


class KpisAnswer(msgspec.Struct, kw_only=True):
    """The health of the whole graph; lists are examples beside their counts."""

    kpis: Kpis


class IncidentArgs(msgspec.Struct, kw_only=True):
    """What went wrong, and when."""

    entity_id: Annotated[str, msgspec.Meta(description="A dataset, column or job.")]
    at: Annotated[
        str | None, msgspec.Meta(description="Look from this ISO 8601 moment; now if absent.")
    ] = None


class SuspectTold(msgspec.Struct, kw_only=True):
    """Something upstream that may be the cause, and why."""

    id: str
    kind: str
    distance: int
    score: float
    since: str
    reasons: list[str]
    owners: list[str]


class IncidentAnswer(Answer, kw_only=True):
    """What is wrong with an entity, since when, where it may come from and whom it concerns."""

    entity: str
    status: str
    summary: str
    since: str | None
    last_success: str | None
    last_written: str | None
    failures: list[str]
    failure_count: int
    suspects: list[SuspectTold]
    suspect_count: int
    affected: list[str]
    affected_count: int
    owners: list[str]
    owners_to_tell: list[str]


async def kpis(desk: Desk, args: KpisArgs) -> KpisAnswer:
    """Tell how healthy the lineage is: coverage, blast radius, failures, orphans, PII reach."""
    del args
    return KpisAnswer(kpis=await asyncio.to_thread(desk.local("kpis").kpis))


async def incident_report(desk: Desk, args: IncidentArgs) -> IncidentAnswer:
    """Report on an incident: what is wrong, suspects upstream, who is affected, whom to tell."""
    lineage = desk.local("incident_report")
    found = await asyncio.to_thread(lineage.incident_report, args.entity_id, args.at)
    suspects = [
        SuspectTold(
            id=suspect.id,
            kind=suspect.kind,
            distance=suspect.distance,
            score=suspect.score,
            since=suspect.since,
            reasons=suspect.reasons[:5],
            owners=suspect.owners,
        )
        for suspect in found.suspects
    ]
    return IncidentAnswer(
        entity=found.entity,
        status=found.status,
        summary=found.summary,
        since=found.since,
        last_success=found.last_success,
        last_written=found.last_written,
        failures=page([failure.message for failure in found.failures], None, 20).items,
        failure_count=len(found.failures),
        suspects=page(suspects, None, 20).items,
        suspect_count=len(suspects),
        affected=page([affected.id for affected in found.affected], None, 50).items,
        affected_count=found.affected_count,
        owners=found.owners,
        owners_to_tell=found.owners_to_tell,
        complete=found.complete,
        blind_spots=first_spots(found.blind_spots),
        blind_spot_count=len(found.blind_spots),
    )

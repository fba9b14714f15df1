"""Tools about health: KPIs, incident reports, and the diagnosis of wrong metrics."""

from __future__ import annotations

from typing import Annotated

import msgspec

from downriver.agent.tools.paging import ToolAnswer, first_blind_spots, page
from downriver.agent.tools.tool import ToolContext
from downriver.model.flows import LastRun
from downriver.model.governance import Kpis, MetricSuspect, QualityResult, SourceFreshness


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


class SuspectSummary(msgspec.Struct, kw_only=True):
    """Something upstream that may be the cause, and why."""

    id: str
    kind: str
    distance: int
    score: float
    since: str
    reasons: list[str]
    owners: list[str]


class IncidentAnswer(ToolAnswer, kw_only=True):
    """What is wrong with an entity, since when, where it may come from and whom it concerns."""

    entity: str
    status: str
    summary: str
    since: str | None
    last_success: str | None
    last_written: str | None
    failures: list[str]
    failure_count: int
    suspects: list[SuspectSummary]
    suspect_count: int
    affected: list[str]
    affected_count: int
    owners: list[str]
    owners_to_tell: list[str]


class DiagnoseArgs(msgspec.Struct, kw_only=True):
    """Which metric looks wrong."""

    dataset: Annotated[str, msgspec.Meta(description="The dataset that holds the metric.")]
    column: Annotated[str, msgspec.Meta(description="The column that looks wrong.")]


class DiagnoseAnswer(ToolAnswer, kw_only=True):
    """A metric traced back: how it is made, how fresh its sources are, where to look first."""

    metric: str
    direct_sources: list[str]
    transformations: list[str]
    freshness: list[SourceFreshness]
    source_count: int
    recent_failures: list[LastRun]
    failure_count: int
    quality: list[QualityResult]
    quality_count: int
    look_first: list[MetricSuspect]
    suspect_count: int


async def diagnose_metric(desk: ToolContext, args: DiagnoseArgs) -> DiagnoseAnswer:
    """Trace a number that looks wrong: sources, freshness, failures, checks, where to look."""
    found = await desk.tracker.diagnose_metric(args.dataset, args.column)
    return DiagnoseAnswer(
        metric=found.metric,
        direct_sources=page(found.direct_sources, None, 50).items,
        transformations=page(found.transformations, None, 20).items,
        freshness=page(found.freshness, None, 30).items,
        source_count=len(found.freshness),
        recent_failures=page(found.recent_failures, None, 10).items,
        failure_count=len(found.recent_failures),
        quality=page(found.quality, None, 20).items,
        quality_count=len(found.quality),
        look_first=page(found.look_first, None, 10).items,
        suspect_count=len(found.look_first),
        complete=found.complete,
        blind_spots=first_blind_spots(found.blind_spots),
        blind_spot_count=len(found.blind_spots),
    )


async def kpis(desk: ToolContext, args: KpisArgs) -> KpisAnswer:
    """Tell how healthy the lineage is: coverage, blast radius, failures, orphans, PII reach."""
    del args
    return KpisAnswer(kpis=await desk.tracker.kpis())


async def incident_report(desk: ToolContext, args: IncidentArgs) -> IncidentAnswer:
    """Report on an incident: what is wrong, suspects upstream, who is affected, whom to tell."""
    found = await desk.tracker.incident_report(args.entity_id, args.at)
    suspects = [
        SuspectSummary(
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
        blind_spots=first_blind_spots(found.blind_spots),
        blind_spot_count=len(found.blind_spots),
    )

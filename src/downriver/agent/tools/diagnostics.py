"""Tools about health: KPIs, tags, incident reports, and the diagnosis of wrong metrics."""

from __future__ import annotations

from typing import Annotated

import msgspec

from downriver.agent.tools.tool import ToolAnswer, ToolContext, first_blind_spots, page
from downriver.model.flows import LastRun
from downriver.model.governance import PII_TAG, Kpis, MetricSuspect, QualityResult, SourceFreshness


class KpisArgs(msgspec.Struct, kw_only=True):
    """No arguments."""


class KpisAnswer(msgspec.Struct, kw_only=True):
    """The health of the whole graph; lists are examples with total counts."""

    kpis: Kpis


class TagArgs(msgspec.Struct, kw_only=True):
    """The tag."""

    tag: Annotated[str, msgspec.Meta(description="A tag of columns, as in pii.")] = PII_TAG


class TagAnswer(ToolAnswer, kw_only=True):
    """Where a tag was set, the columns that it reaches, and where masking stops it."""

    tag: str
    tagged: list[str]
    tagged_count: int
    reached: list[str]
    reached_count: int
    masked: list[str]
    masked_count: int


class IncidentArgs(msgspec.Struct, kw_only=True):
    """The entity with the incident, and the time."""

    entity_id: Annotated[str, msgspec.Meta(description="A dataset, column or job.")]
    at: Annotated[
        str | None, msgspec.Meta(description="Time of the report in ISO 8601; now if absent.")
    ] = None


class SuspectSummary(msgspec.Struct, kw_only=True):
    """An upstream entity that may be the cause, with reasons."""

    id: str
    kind: str
    distance: int
    score: float
    since: str
    reasons: list[str]
    owners: list[str]


class IncidentAnswer(ToolAnswer, kw_only=True):
    """An incident: status, start, suspects upstream, and affected consumers."""

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

    dataset: Annotated[str, msgspec.Meta(description="The dataset of the metric.")]
    column: Annotated[str, msgspec.Meta(description="The column that looks wrong.")]


class DiagnoseAnswer(ToolAnswer, kw_only=True):
    """The derivation of a metric, the freshness of its sources, and suspects."""

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


async def diagnose_metric(context: ToolContext, args: DiagnoseArgs) -> DiagnoseAnswer:
    """Diagnose a metric that looks wrong: sources, freshness, failures, checks and suspects."""
    answer = await context.tracker.diagnose_metric(args.dataset, args.column)
    return DiagnoseAnswer(
        metric=answer.metric,
        direct_sources=page(answer.direct_sources, None, 50).items,
        transformations=page(answer.transformations, None, 20).items,
        freshness=page(answer.freshness, None, 30).items,
        source_count=len(answer.freshness),
        recent_failures=page(answer.recent_failures, None, 10).items,
        failure_count=len(answer.recent_failures),
        quality=page(answer.quality, None, 20).items,
        quality_count=len(answer.quality),
        look_first=page(answer.look_first, None, 10).items,
        suspect_count=len(answer.look_first),
        complete=answer.complete,
        blind_spots=first_blind_spots(answer.blind_spots),
        blind_spot_count=len(answer.blind_spots),
    )


async def kpis(context: ToolContext, args: KpisArgs) -> KpisAnswer:
    """Report the health of the lineage: coverage, blast radius, failures, orphans, PII reach."""
    del args
    return KpisAnswer(kpis=await context.tracker.kpis())


async def tag_reach(context: ToolContext, args: TagArgs) -> TagAnswer:
    """Find where a tag such as pii is set, and the columns that the data with it reaches."""
    reach = await context.tracker.tag_reach(args.tag)
    tagged = [*reach.datasets, *reach.tagged]
    reached = [column.column for column in reach.reached]
    masked = [column.column for column in reach.stopped]
    return TagAnswer(
        tag=reach.tag,
        tagged=page(tagged, None, 50).items,
        tagged_count=len(tagged),
        reached=page(reached, None, 50).items,
        reached_count=len(reached),
        masked=page(masked, None, 50).items,
        masked_count=len(masked),
        complete=reach.complete,
        blind_spots=first_blind_spots(reach.blind_spots),
        blind_spot_count=len(reach.blind_spots),
    )


async def incident_report(context: ToolContext, args: IncidentArgs) -> IncidentAnswer:
    """Report on an incident: status, suspects upstream, affected consumers, owners to notify."""
    answer = await context.tracker.incident_report(args.entity_id, args.at)
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
        for suspect in answer.suspects
    ]
    return IncidentAnswer(
        entity=answer.entity,
        status=answer.status,
        summary=answer.summary,
        since=answer.since,
        last_success=answer.last_success,
        last_written=answer.last_written,
        failures=page([failure.message for failure in answer.failures], None, 20).items,
        failure_count=len(answer.failures),
        suspects=page(suspects, None, 20).items,
        suspect_count=len(suspects),
        affected=page([affected.id for affected in answer.affected], None, 50).items,
        affected_count=answer.affected_count,
        owners=answer.owners,
        owners_to_tell=answer.owners_to_tell,
        complete=answer.complete,
        blind_spots=first_blind_spots(answer.blind_spots),
        blind_spot_count=len(answer.blind_spots),
    )

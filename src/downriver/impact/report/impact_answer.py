"""A verdict as the answer of `analyze_impact`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.graph.names.entity_ids import short_id
from downriver.impact.report.text import describe_unread
from downriver.model.answers import BlindSpot
from downriver.model.verdicts import AffectedEntity, ImpactAnswer

if TYPE_CHECKING:
    from downriver.model.unread import Unread
    from downriver.model.verdicts import Effect, ImpactRequest, Verdict


def answer_impact(request: ImpactRequest, verdict: Verdict, namespace: str) -> ImpactAnswer:
    """Return a verdict with counts and all affected consumers."""
    impact = verdict.impact
    affected = [_affected(effect, namespace) for effect in impact.effects]
    return ImpactAnswer(
        entity_id=request.entity_id,
        change_type=request.change_type,
        changes=impact.changes,
        directly_affected_count=sum(entity.depth == 1 for entity in affected),
        total_affected_count=len(affected),
        untouched_count=impact.untouched,
        affected_entities=affected,
        risk_level=verdict.risk.value,
        verdict=verdict.decision.value,
        reason=verdict.reason,
        recommendation=verdict.recommendation,
        findings=verdict.findings,
        ask=verdict.ask,
        complete=impact.complete,
        blind_spots=[*impact.blind_spots, *map(_blind_spot, impact.unread)],
    )


def _blind_spot(unread: Unread) -> BlindSpot:
    return BlindSpot(kind="unread", entity=unread.path, message=describe_unread(unread))


def _affected(effect: Effect, namespace: str) -> AffectedEntity:
    return AffectedEntity(
        entity_id=short_id(effect.consumer, namespace),
        id=effect.consumer,
        name=effect.name,
        type=effect.asset_type,
        depth=effect.hops,
        severity=effect.severity.value,
        outcome=effect.outcome.value,
        reason=effect.reason,
        references=effect.affected_references,
        path=effect.path,
        writes=effect.writes,
        owners=effect.owners,
    )

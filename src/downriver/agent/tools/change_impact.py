"""Tools about proposed changes: impact analysis, the gate, and the patch."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec

from downriver.agent.grammar.change_requests import parse_change
from downriver.agent.tools.entity_names import resolve_entity
from downriver.agent.tools.tool import (
    Cursor,
    Limit,
    ToolAnswer,
    ToolContext,
    first_blind_spots,
    page,
    page_text,
    shortened,
)
from downriver.impact.fix.suggested_fix import ManualStep
from downriver.impact.report.text import format_location
from downriver.model.verdicts import AffectedEntity, ImpactAnswer, ImpactRequest, RuleFinding

_ENTITIES_SHOWN = 10


class ChangeArgs(msgspec.Struct, kw_only=True):
    """A change: in words, or in full as `changes`."""

    entity_id: Annotated[
        str,
        msgspec.Meta(
            description="The entity that changes: a dataset, or a column as in orders.amount."
        ),
    ]
    change_type: Annotated[
        str,
        msgspec.Meta(
            description="schema_change, column_rename, column_drop, column_add, type_change, "
            "nullability_change, table_rename, table_drop, deprecation, deletion or logic_change."
        ),
    ] = ""
    description: Annotated[
        str,
        msgspec.Meta(
            description="The change in words, as in: rename column customer_id to cust_id."
        ),
    ] = ""
    changes: Annotated[
        list[dict[str, Any]] | None,
        msgspec.Meta(
            description='The changes in full, as in [{"type": "column_rename", "from": "a", '
            '"to": "b"}]; in place of change_type and description.'
        ),
    ] = None
    limit: Limit = 50
    cursor: Cursor = None


class ChangeImpactAnswer(ToolAnswer, kw_only=True):
    """The consumers affected by a change, most severe first: a page of the total."""

    entity_id: str
    changes: list[str]
    note: str
    directly_affected_count: int
    total_affected_count: int
    untouched_count: int
    affected_entities: list[AffectedEntity]
    risk_level: str
    verdict: str
    reason: str
    recommendation: str
    next_cursor: str | None


class RuleOutcome(msgspec.Struct, kw_only=True):
    """The finding of one policy rule; `entities` are the first of `entity_count`."""

    rule: str
    decision: str
    risk: str
    message: str
    entities: list[str]
    entity_count: int
    waived: str


class GateAnswer(ToolAnswer, kw_only=True):
    """The decision of the policy about a change. It is final: explain it, do not revise it."""

    entity_id: str
    changes: list[str]
    note: str
    decision: str
    risk: str
    affected_systems: int
    reason: str
    recommendation: str
    affected: list[str]
    findings: list[RuleOutcome]
    ask: list[str]


class FixArgs(ChangeArgs, kw_only=True):
    """The change to prepare the code for."""


class FixAnswer(msgspec.Struct, kw_only=True):
    """A patch, and the steps of a change that breaks nothing. Nothing is applied."""

    changes: list[str]
    diff: str
    diff_characters: int
    next_cursor: str | None
    verified: bool
    plan: list[str]
    left_to_people: list[str]
    left_count: int
    remaining: list[str]
    remaining_count: int


async def analyze_impact(context: ToolContext, args: ChangeArgs) -> ChangeImpactAnswer:
    """Simulate a change: which consumers break, change or stay the same, and the risk."""
    request, note = await read_request(context, args)
    answer = await _analyze(context, request)
    shown = page(answer.affected_entities, args.cursor, args.limit)
    return ChangeImpactAnswer(
        entity_id=answer.entity_id,
        changes=answer.changes,
        note=note,
        directly_affected_count=answer.directly_affected_count,
        total_affected_count=answer.total_affected_count,
        untouched_count=answer.untouched_count,
        affected_entities=shown.items,
        risk_level=answer.risk_level,
        verdict=answer.verdict,
        reason=answer.reason,
        recommendation=answer.recommendation,
        next_cursor=shown.next_cursor,
        complete=answer.complete,
        blind_spots=first_blind_spots(answer.blind_spots),
        blind_spot_count=len(answer.blind_spots),
    )


async def gate_change(context: ToolContext, args: ChangeArgs) -> GateAnswer:
    """Decide by policy whether a change may be deployed: APPROVED, CAUTION or BLOCKED, and why."""
    request, note = await read_request(context, args)
    answer = await _analyze(context, request)
    return GateAnswer(
        entity_id=answer.entity_id,
        changes=answer.changes,
        note=note,
        decision=answer.verdict,
        risk=answer.risk_level,
        affected_systems=answer.total_affected_count,
        reason=answer.reason,
        recommendation=answer.recommendation,
        affected=page([entity.name for entity in answer.affected_entities], None, 50).items,
        findings=[_rule_outcome(finding) for finding in answer.findings],
        ask=answer.ask,
        complete=answer.complete,
        blind_spots=first_blind_spots(answer.blind_spots),
        blind_spot_count=len(answer.blind_spots),
    )


def _rule_outcome(finding: RuleFinding) -> RuleOutcome:
    return RuleOutcome(
        rule=finding.rule,
        decision=finding.decision.value,
        risk=finding.risk.value,
        message=shortened(finding.message),
        entities=finding.entities[:_ENTITIES_SHOWN],
        entity_count=len(finding.entities),
        waived=finding.waived,
    )


async def suggest_fix(context: ToolContext, args: FixArgs) -> FixAnswer:
    """Write a patch that prepares the code for a change, and a plan. Nothing is applied."""
    request, _ = await read_request(context, args)
    backend = context.tracker.sync.backend
    fix = await asyncio.to_thread(backend.suggest_fix, request, context.code)
    diff, following = page_text(fix.diff, args.cursor)
    return FixAnswer(
        changes=fix.changes,
        diff=diff,
        diff_characters=len(fix.diff),
        next_cursor=following,
        verified=fix.verified,
        plan=[shortened(step) for step in fix.plan],
        left_to_people=page([_open_decision(left) for left in fix.to_decide], None, 20).items,
        left_count=len(fix.to_decide),
        remaining=page(fix.remaining, None, 50).items,
        remaining_count=len(fix.remaining),
    )


def _open_decision(left: ManualStep) -> str:
    place = format_location(left.reference) if left.reference else ""
    return f"{left.consumer}: {left.reason}" + (f" ({place})" if place else "")


async def _analyze(context: ToolContext, request: ImpactRequest) -> ImpactAnswer:
    backend = context.tracker.sync.backend
    return await asyncio.to_thread(backend.analyze_impact, request, context.policy)


async def read_request(context: ToolContext, args: ChangeArgs) -> tuple[ImpactRequest, str]:
    """Return the requested change, and a note about assumptions."""
    named = await resolve_entity(args.entity_id, context)
    if args.changes:
        return ImpactRequest(entity_id=str(named), changes=args.changes), ""
    kind = args.change_type or "schema_change"
    proposed = parse_change(args.description, named.entity_id, kind, named.column or "")
    if proposed is None:
        return ImpactRequest(entity_id=str(named), change_type=kind), ""
    request = ImpactRequest(entity_id=named.entity_id, change_type=kind, changes=proposed.changes)
    return request, proposed.note

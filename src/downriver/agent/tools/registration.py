"""Tools that register lineage. They are available only where writes are allowed."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec

from downriver.agent.grammar import (
    Description,
    DescriptionLine,
    FlowDraft,
    PipelineDraft,
    parse_description,
)
from downriver.agent.grammar.limits import check_text
from downriver.agent.grammar.typing_errors import Correction, correct
from downriver.agent.tools.entity_names import known_names, match_flows
from downriver.agent.tools.tool import ToolContext, page
from downriver.model.flows import RegisteredFlow
from downriver.sdk.tracker import make_flow

_SHOWN = 100

_End = Annotated[
    str,
    msgspec.Meta(description="table:name, api:name, model:name …, or the id of a known entity."),
]


class FlowArgs(msgspec.Struct, kw_only=True):
    """A flow of data."""

    source_id: _End
    target_id: _End
    transformation: Annotated[str, msgspec.Meta(description="The transformation, in words.")] = ""
    flow_type: Annotated[str, msgspec.Meta(description="batch, stream, …")] = "batch"
    schedule: Annotated[str | None, msgspec.Meta(description="The schedule, in words or cron.")] = (
        None
    )


class FlowAnswer(msgspec.Struct, kw_only=True):
    """The registered flow."""

    flow: RegisteredFlow


class StepArgs(msgspec.Struct, kw_only=True):
    """One step of a pipeline."""

    source_id: _End
    target_id: _End
    transformation: str = ""
    flow_type: str = "batch"
    schedule: str | None = None


class PipelineArgs(msgspec.Struct, kw_only=True):
    """A pipeline and its steps."""

    name: str
    steps: Annotated[list[StepArgs], msgspec.Meta(min_length=1, max_length=1000)]
    schedule: str | None = None
    description: str = ""


class PipelineAnswer(msgspec.Struct, kw_only=True):
    """The registered pipeline; `flows` are the first of `steps_registered`."""

    pipeline_name: str
    steps_registered: int
    schedule: str | None
    flows: list[RegisteredFlow]


class DescribeArgs(msgspec.Struct, kw_only=True):
    """A description in plain English."""

    text: Annotated[
        str,
        msgspec.Meta(
            max_length=100_000,
            description="One flow for each line or sentence, as in: raw_orders is cleaned into "
            "orders_clean; a -> b -> c. A heading with a colon starts a pipeline.",
        ),
    ]
    dry_run: Annotated[bool, msgspec.Meta(description="Parse only; register nothing.")] = False


class DescriptionAnswer(msgspec.Struct, kw_only=True):
    """The flows of a description, and the lines that were not understood.

    `refused` are flows that were not registered because a name is ambiguous. `corrections` are
    misspelt words, and the words that they were read as.
    """

    pipelines: list[PipelineDraft]
    flow_count: int
    not_understood: list[DescriptionLine]
    refused: list[str]
    corrections: list[Correction]
    registered: bool
    omitted_flow_count: int


class SqlArgs(msgspec.Struct, kw_only=True):
    """A SQL statement."""

    sql: Annotated[str, msgspec.Meta(max_length=1_000_000)]
    transformation: Annotated[str, msgspec.Meta(description="The purpose of the statement.")] = ""
    dialect: Annotated[
        str | None, msgspec.Meta(description="The SQL dialect, as in snowflake or spark.")
    ] = None


class SqlAnswer(msgspec.Struct, kw_only=True):
    """The registered inputs, outputs and column edges of a statement."""

    source_tables: list[str]
    target_tables: list[str]
    flow_count: int
    column_count: int
    columns: list[str]
    complete: bool
    blind_spots: list[str]


async def register_flow(context: ToolContext, args: FlowArgs) -> FlowAnswer:
    """Register a flow of data from one entity to another."""
    flow = await context.tracker.register_flow(
        args.source_id,
        args.target_id,
        args.flow_type,
        args.transformation or None,
        args.schedule,
    )
    return FlowAnswer(flow=flow)


async def register_pipeline(context: ToolContext, args: PipelineArgs) -> PipelineAnswer:
    """Register a named pipeline with all its steps."""
    steps = [make_flow(msgspec.to_builtins(step)) for step in args.steps]
    result = await context.tracker.register_pipeline(
        args.name, steps, args.schedule, args.description
    )
    return PipelineAnswer(
        pipeline_name=result.pipeline_name,
        steps_registered=result.steps_registered,
        schedule=result.schedule,
        flows=page(result.flows, None, _SHOWN).items,
    )


async def describe_pipeline(context: ToolContext, args: DescribeArgs) -> DescriptionAnswer:
    """Read pipelines from a description in plain English and register their flows.

    Lines that cannot be read are returned in not_understood: rephrase them.
    """
    check_text(args.text, "text")
    corrected = await asyncio.to_thread(correct, args.text)  # a server has other requests meanwhile
    known = await known_names((c.written for c in corrected.corrections), context)
    result = await asyncio.to_thread(parse_description, args.text, known)
    refused = await match_flows(result.pipelines, context)
    if not args.dry_run:
        for pipeline in result.pipelines:
            await _register(context, pipeline)
    return _description_answer(result, refused, registered=not args.dry_run and bool(result.flows))


async def _register(context: ToolContext, pipeline: PipelineDraft) -> None:
    steps = [make_flow(_as_flow(flow, pipeline)) for flow in pipeline.flows]
    if pipeline.name and steps:
        await context.tracker.register_pipeline(pipeline.name, steps, pipeline.schedule or None)
    elif steps:
        await context.tracker.register_flows(steps)


def _as_flow(flow: FlowDraft, pipeline: PipelineDraft) -> dict[str, Any]:
    return {
        "source_id": flow.source,
        "target_id": flow.target,
        "flow_type": "stream" if "stream" in flow.transformation.casefold() else "batch",
        "transformation": flow.transformation,
        "schedule": flow.schedule or pipeline.schedule or None,
        "metadata": {"confidence": flow.confidence, "described_in_line": flow.line},
    }


def _description_answer(
    result: Description, refused: list[str], *, registered: bool
) -> DescriptionAnswer:
    room = _SHOWN
    shown = []
    for pipeline in result.pipelines:
        flows = pipeline.flows[: max(room, 0)]
        room -= len(flows)
        shown.append(msgspec.structs.replace(pipeline, flows=flows))
    return DescriptionAnswer(
        pipelines=shown,
        flow_count=len(result.flows),
        not_understood=result.not_understood[:_SHOWN],
        refused=refused,
        corrections=result.corrections,
        registered=registered,
        omitted_flow_count=max(0, len(result.flows) - _SHOWN),
    )


async def capture_sql_lineage(context: ToolContext, args: SqlArgs) -> SqlAnswer:
    """Register the lineage of a SQL statement, including columns."""
    result = await context.tracker.capture_sql_lineage(
        args.sql, transformation=args.transformation or None, dialect=args.dialect
    )
    columns = [f"{edge.source} → {edge.target}" for edge in result.columns]
    return SqlAnswer(
        source_tables=result.source_tables,
        target_tables=result.target_tables,
        flow_count=result.flow_count,
        column_count=len(columns),
        columns=page(columns, None, _SHOWN).items,
        complete=result.complete,
        blind_spots=result.blind_spots[:20],
    )

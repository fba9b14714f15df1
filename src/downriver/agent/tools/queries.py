"""Tools that query the graph: search, entities, traces, column lineage, paths and exports."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from downriver.agent.tools.paging import (
    Cursor,
    Limit,
    ToolAnswer,
    first_blind_spots,
    page,
    page_text,
    parse_cursor,
)
from downriver.agent.tools.tool import ToolContext
from downriver.model.answers import Trace
from downriver.model.flows import (
    ColumnDerivation,
    ColumnInfo,
    EntitySummary,
    LastRun,
    Related,
)

_EntityId = Annotated[
    str,
    msgspec.Meta(
        description="A dataset, job or column: orders, table:orders, api:stripe, model:churn_v3, "
        "orders.amount, or a full id from another answer."
    ),
]
_Depth = Annotated[
    Annotated[int, msgspec.Meta(ge=1, le=1000)] | None,
    msgspec.Meta(description="How many steps to follow; all if absent."),
]
_TRACE_LIMIT = 100_000
_MAX_END_CANDIDATES = 2_000


class SearchArgs(msgspec.Struct, kw_only=True):
    """What to look for."""

    text: Annotated[
        str, msgspec.Meta(description="Words that the names must hold; empty for all.")
    ] = ""
    limit: Limit = 20
    cursor: Cursor = None


class SearchAnswer(msgspec.Struct, kw_only=True):
    """Entities found, of `total`."""

    entities: list[EntitySummary]
    total: int
    next_cursor: str | None


class EntityArgs(msgspec.Struct, kw_only=True):
    """Which entity."""

    entity_id: _EntityId


class EntityAnswer(ToolAnswer, kw_only=True):
    """What is known of one entity; neighbours and columns beyond the first are counted."""

    entity_id: str
    id: str
    name: str
    kind: str
    type: str
    namespace: str
    description: str
    owners: list[str]
    tags: list[str]
    aliases: list[str]
    columns: list[ColumnInfo]
    column_count: int
    upstream: list[Related]
    upstream_count: int
    downstream: list[Related]
    downstream_count: int
    last_runs: list[LastRun]
    first_seen: str
    last_seen: str


class TraceArgs(msgspec.Struct, kw_only=True):
    """What to trace, how far, and which page."""

    entity_id: _EntityId
    max_depth: _Depth = None
    limit: Limit = 50
    cursor: Cursor = None


class TraceAnswer(ToolAnswer, kw_only=True):
    """What lies on one side of an entity, nearest first: `entities` are some of `total`.

    `ends` are those furthest away: original sources upstream, last consumers downstream.
    """

    entity_id: str
    direction: str
    entities: list[Related]
    total: int
    deepest: int
    ends: list[str]
    end_count: int
    next_cursor: str | None


class ColumnArgs(msgspec.Struct, kw_only=True):
    """Which column."""

    dataset: Annotated[str, msgspec.Meta(description="The dataset, as for other tools.")]
    column: Annotated[str, msgspec.Meta(description="The name of the column.")]
    limit: Limit = 50
    cursor: Cursor = None


class ColumnAnswer(msgspec.Struct, kw_only=True):
    """How a column is made, once for each job that makes it."""

    dataset: str
    column: str
    derivations: list[ColumnDerivation]
    total: int
    next_cursor: str | None


class PathsArgs(msgspec.Struct, kw_only=True):
    """From where to where."""

    source_id: _EntityId
    target_id: _EntityId
    limit: Annotated[int, msgspec.Meta(ge=1, le=50, description="How many routes at most.")] = 10


class RoutesAnswer(ToolAnswer, kw_only=True):
    """The shortest routes, each a list of entity ids."""

    source_id: str
    target_id: str
    paths: list[list[str]]
    path_count: int
    omitted_count: int


class ExportArgs(msgspec.Struct, kw_only=True):
    """What to draw, and how."""

    entity_id: _EntityId
    format: Annotated[
        str, msgspec.Meta(description="mermaid, dot, svg or json; others as the guide lists.")
    ] = "mermaid"
    direction: Literal["upstream", "downstream", "both"] = "both"
    max_depth: _Depth = None
    cursor: Cursor = None


class DiagramAnswer(ToolAnswer, kw_only=True):
    """The drawing; a long one comes in parts, to be put together in order."""

    entity_id: str
    format: str
    text: str
    node_count: int
    edge_count: int
    total_characters: int
    next_cursor: str | None


async def search_entities(desk: ToolContext, args: SearchArgs) -> SearchAnswer:
    """Find datasets and jobs by words in their names. Use it when a name is not known exactly."""
    found = await desk.tracker.search_entities(args.text, args.limit, args.cursor or None)
    shown = page(found.entities, None, args.limit).items
    end = parse_cursor(args.cursor) + len(shown)
    following = str(end) if end < found.total else None
    return SearchAnswer(entities=shown, total=found.total, next_cursor=following)


async def get_entity(desk: ToolContext, args: EntityArgs) -> EntityAnswer:
    """Tell what is known of one dataset or job: columns, owners, tags, neighbours, last runs."""
    found = await desk.tracker.get_entity(args.entity_id)
    return EntityAnswer(
        entity_id=found.entity_id,
        id=found.id,
        name=found.name,
        kind=found.kind,
        type=found.type,
        namespace=found.namespace,
        description=found.description[:2000],
        owners=found.owners,
        tags=found.tags,
        aliases=found.aliases,
        columns=page(found.columns, None, 100).items,
        column_count=len(found.columns),
        upstream=page(found.upstream, None, 20).items,
        upstream_count=len(found.upstream),
        downstream=page(found.downstream, None, 20).items,
        downstream_count=len(found.downstream),
        last_runs=found.runs,
        first_seen=found.first_seen,
        last_seen=found.last_seen,
        complete=found.complete,
        blind_spots=first_blind_spots(found.blind_spots),
        blind_spot_count=len(found.blind_spots),
    )


async def trace_upstream(desk: ToolContext, args: TraceArgs) -> TraceAnswer:
    """Tell where the data of an entity comes from, back to the original sources."""
    return await _trace(desk, args, "upstream")


async def trace_downstream(desk: ToolContext, args: TraceArgs) -> TraceAnswer:
    """Tell where the data of an entity goes to: everything that depends on it."""
    return await _trace(desk, args, "downstream")


async def _trace(desk: ToolContext, args: TraceArgs, direction: str) -> TraceAnswer:
    answer = await desk.tracker.trace_lineage(
        args.entity_id, direction, args.max_depth, limit=_TRACE_LIMIT
    )
    found = answer.lineage
    side = found.upstream if direction == "upstream" else found.downstream
    shown = page(side, args.cursor, args.limit)
    ends = await _ends(desk, side, args, direction)
    return TraceAnswer(
        entity_id=found.entity_id,
        direction=direction,
        entities=shown.items,
        total=len(side) + answer.omitted_count,
        deepest=max((entity.depth for entity in side), default=0),
        ends=page(ends, None, 50).items,
        end_count=len(ends),
        next_cursor=shown.next_cursor,
        complete=answer.complete,
        blind_spots=first_blind_spots(answer.blind_spots),
        blind_spot_count=len(answer.blind_spots),
    )


async def _ends(
    desk: ToolContext, side: list[Related], args: TraceArgs, direction: str
) -> list[str]:
    """Return the datasets beyond which there is nothing; none where that would cost too much."""
    names = {entity.id: entity.entity_id for entity in side if entity.kind == "dataset"}
    if args.max_depth is not None or not names or len(names) > _MAX_END_CANDIDATES:
        return []
    drawn = await desk.tracker.export_lineage(args.entity_id, "json", direction)
    edges = msgspec.json.decode(drawn.diagram, type=Trace).edges
    upstream = direction == "upstream"
    passed = {edge.target if upstream else edge.source for edge in edges}
    return [name for full, name in names.items() if full not in passed]


async def get_column_lineage(desk: ToolContext, args: ColumnArgs) -> ColumnAnswer:
    """Tell from which columns a column is made, and which only filter, join or group it."""
    found = await desk.tracker.get_column_lineage(args.dataset, args.column)
    shown = page(found, args.cursor, args.limit)
    return ColumnAnswer(
        dataset=args.dataset,
        column=args.column,
        derivations=shown.items,
        total=len(found),
        next_cursor=shown.next_cursor,
    )


async def find_paths(desk: ToolContext, args: PathsArgs) -> RoutesAnswer:
    """Find by which routes data gets from one entity to another, shortest first."""
    found = await desk.tracker.find_lineage_paths(args.source_id, args.target_id, args.limit)
    shown = page(found.paths, None, args.limit).items
    return RoutesAnswer(
        source_id=found.source_id,
        target_id=found.target_id,
        paths=shown,
        path_count=found.path_count,
        omitted_count=found.path_count - len(shown),
        complete=found.complete,
        blind_spots=first_blind_spots(found.blind_spots),
        blind_spot_count=len(found.blind_spots),
    )


async def export_lineage(desk: ToolContext, args: ExportArgs) -> DiagramAnswer:
    """Draw the graph around an entity as Mermaid, DOT, SVG or JSON. Show the text as it is."""
    found = await desk.tracker.export_lineage(
        args.entity_id, args.format, args.direction, args.max_depth
    )
    text, following = page_text(found.diagram, args.cursor)
    return DiagramAnswer(
        entity_id=args.entity_id,
        format=found.format,
        text=text,
        node_count=found.node_count,
        edge_count=found.edge_count,
        total_characters=len(found.diagram),
        next_cursor=following,
        complete=found.complete,
        blind_spots=first_blind_spots(found.blind_spots),
        blind_spot_count=len(found.blind_spots),
    )

"""Tools that query the graph: search, entities, traces, column lineage, paths and exports."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from downriver.agent.tools.tool import (
    Cursor,
    Limit,
    ToolAnswer,
    ToolContext,
    first_blind_spots,
    page,
    page_text,
    parse_cursor,
)
from downriver.model.flows import (
    ColumnDerivation,
    ColumnInfo,
    EntitySummary,
    LastRun,
    Related,
)
from downriver.model.governance import CERTIFIED_TAGS

_EntityId = Annotated[
    str,
    msgspec.Meta(
        description="A dataset, job or column: orders, table:orders, api:stripe, model:churn_v3, "
        "orders.amount, or a full id from another answer."
    ),
]
_Depth = Annotated[
    Annotated[int, msgspec.Meta(ge=1, le=1000)] | None,
    msgspec.Meta(description="Maximum number of steps; all if absent."),
]
_AsOf = Annotated[
    str | None, msgspec.Meta(description="A time in ISO 8601: the lineage as known then.")
]
_TRACE_LIMIT = 100_000


class SearchArgs(msgspec.Struct, kw_only=True):
    """Arguments of a search."""

    text: Annotated[
        str, msgspec.Meta(description="Words that names must contain; empty for all.")
    ] = ""
    limit: Limit = 20
    cursor: Cursor = None


class SearchAnswer(msgspec.Struct, kw_only=True):
    """A page of the `total` entities found."""

    entities: list[EntitySummary]
    total: int
    next_cursor: str | None


class EntityArgs(msgspec.Struct, kw_only=True):
    """The entity."""

    entity_id: _EntityId


class EntityAnswer(ToolAnswer, kw_only=True):
    """An entity: the first columns and neighbours, with their total numbers."""

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
    last_updated: str | None
    certified: bool
    first_seen: str
    last_seen: str


class TraceArgs(msgspec.Struct, kw_only=True):
    """Arguments of a trace."""

    entity_id: _EntityId
    max_depth: _Depth = None
    as_of: _AsOf = None
    limit: Limit = 50
    cursor: Cursor = None


class TraceAnswer(ToolAnswer, kw_only=True):
    """The upstream or downstream of an entity, nearest first: a page of `total` entities.

    With a depth, `total` includes the entities one step beyond it and none further away. `ends` are
    original sources (upstream) or final consumers (downstream).
    """

    entity_id: str
    direction: str
    as_of: str | None
    entities: list[Related]
    total: int
    deepest: int
    ends: list[str]
    end_count: int
    next_cursor: str | None


class SharedArgs(msgspec.Struct, kw_only=True):
    """The two entities."""

    entity_id: _EntityId
    other_id: _EntityId


class SharedAnswer(ToolAnswer, kw_only=True):
    """What two entities share: the first entities upstream and downstream of both."""

    entity_id: str
    other_id: str
    upstream: list[str]
    upstream_count: int
    downstream: list[str]
    downstream_count: int


class ColumnArgs(msgspec.Struct, kw_only=True):
    """The column."""

    dataset: Annotated[str, msgspec.Meta(description="The dataset: a name or id.")]
    column: Annotated[str, msgspec.Meta(description="The name of the column.")]
    limit: Limit = 50
    cursor: Cursor = None


class ColumnAnswer(ToolAnswer, kw_only=True):
    """The derivations of a column, one for each job."""

    dataset: str
    column: str
    derivations: list[ColumnDerivation]
    total: int
    next_cursor: str | None


class PathsArgs(msgspec.Struct, kw_only=True):
    """The start and end of the paths."""

    source_id: _EntityId
    target_id: _EntityId
    limit: Annotated[int, msgspec.Meta(ge=1, le=50, description="Maximum number of paths.")] = 10


class RoutesAnswer(ToolAnswer, kw_only=True):
    """The shortest paths, each a list of entity ids."""

    source_id: str
    target_id: str
    paths: list[list[str]]
    path_count: int
    omitted_count: int


class ExportArgs(msgspec.Struct, kw_only=True):
    """Arguments of an export."""

    entity_id: _EntityId
    format: Annotated[
        str,
        msgspec.Meta(
            description="mermaid, dot, svg, json, csv, cypher, openlineage, datahub or atlas."
        ),
    ] = "mermaid"
    direction: Literal["upstream", "downstream", "both"] = "both"
    max_depth: _Depth = None
    as_of: _AsOf = None
    cursor: Cursor = None


class DiagramAnswer(ToolAnswer, kw_only=True):
    """The diagram. A long one comes in parts; concatenate them in order."""

    entity_id: str
    format: str
    text: str
    node_count: int
    edge_count: int
    total_characters: int
    next_cursor: str | None


async def search_entities(context: ToolContext, args: SearchArgs) -> SearchAnswer:
    """Find datasets and jobs by words in their names. Use it when the exact name is unknown."""
    found = await context.tracker.search_entities(args.text, args.limit, args.cursor or None)
    shown = page(found.entities, None, args.limit).items
    end = parse_cursor(args.cursor) + len(shown)
    following = str(end) if end < found.total else None
    return SearchAnswer(entities=shown, total=found.total, next_cursor=following)


async def get_entity(context: ToolContext, args: EntityArgs) -> EntityAnswer:
    """Get a dataset or job: columns, owners, tags, neighbours and last runs."""
    details = await context.tracker.get_entity(args.entity_id)
    return EntityAnswer(
        entity_id=details.entity_id,
        id=details.id,
        name=details.name,
        kind=details.kind,
        type=details.type,
        namespace=details.namespace,
        description=details.description[:2000],
        owners=details.owners,
        tags=details.tags,
        aliases=details.aliases,
        columns=page(details.columns, None, 100).items,
        column_count=len(details.columns),
        upstream=page(details.upstream, None, 20).items,
        upstream_count=len(details.upstream),
        downstream=page(details.downstream, None, 20).items,
        downstream_count=len(details.downstream),
        last_runs=details.runs,
        last_updated=details.last_updated,
        certified=any(tag in CERTIFIED_TAGS for tag in details.tags),
        first_seen=details.first_seen,
        last_seen=details.last_seen,
        complete=details.complete,
        blind_spots=first_blind_spots(details.blind_spots),
        blind_spot_count=len(details.blind_spots),
    )


async def trace_upstream(context: ToolContext, args: TraceArgs) -> TraceAnswer:
    """Trace where the data of an entity comes from, back to the original sources."""
    return await _trace(context, args, "upstream")


async def trace_downstream(context: ToolContext, args: TraceArgs) -> TraceAnswer:
    """Trace where the data of an entity goes: everything that depends on it."""
    return await _trace(context, args, "downstream")


async def _trace(context: ToolContext, args: TraceArgs, direction: str) -> TraceAnswer:
    answer = await context.tracker.trace_lineage(
        args.entity_id, direction, args.max_depth, limit=_TRACE_LIMIT, as_of=args.as_of
    )
    trace = answer.lineage
    side = trace.upstream if direction == "upstream" else trace.downstream
    shown = page(side, args.cursor, args.limit)
    ends = [] if args.max_depth is not None else _ends(side)
    return TraceAnswer(
        entity_id=trace.entity_id,
        direction=direction,
        as_of=args.as_of,
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


def _ends(side: list[Related]) -> list[str]:
    """Return the datasets where the trace ends."""
    inner = {parent for entity in side if entity.kind != "job" for parent in entity.parents}
    return [e.entity_id for e in side if e.kind == "dataset" and e.id not in inner]


async def shared_lineage(context: ToolContext, args: SharedArgs) -> SharedAnswer:
    """Find what two entities share: the entities that feed both, and those that both feed."""
    tracker = context.tracker
    one = await tracker.trace_lineage(args.entity_id, "both", limit=_TRACE_LIMIT)
    other = await tracker.trace_lineage(args.other_id, "both", limit=_TRACE_LIMIT)
    upstream = _shared(one.lineage.upstream, other.lineage.upstream)
    downstream = _shared(one.lineage.downstream, other.lineage.downstream)
    spots = [*one.blind_spots, *(s for s in other.blind_spots if s not in one.blind_spots)]
    return SharedAnswer(
        entity_id=one.lineage.entity_id,
        other_id=other.lineage.entity_id,
        upstream=page(upstream, None, 50).items,
        upstream_count=len(upstream),
        downstream=page(downstream, None, 50).items,
        downstream_count=len(downstream),
        complete=one.complete and other.complete,
        blind_spots=first_blind_spots(spots),
        blind_spot_count=len(spots),
    )


def _shared(one: list[Related], other: list[Related]) -> list[str]:
    ids = {entity.id for entity in other}
    return [entity.entity_id for entity in one if entity.id in ids]


async def get_column_lineage(context: ToolContext, args: ColumnArgs) -> ColumnAnswer:
    """Get the source columns of a column, and the columns that only filter, join or group it."""
    derivations = await context.tracker.get_column_lineage(args.dataset, args.column)
    shown = page(derivations, args.cursor, args.limit)
    return ColumnAnswer(
        dataset=args.dataset,
        column=args.column,
        derivations=shown.items,
        total=len(derivations),
        next_cursor=shown.next_cursor,
        complete=derivations.complete,
        blind_spots=first_blind_spots(derivations.blind_spots),
        blind_spot_count=len(derivations.blind_spots),
    )


async def find_paths(context: ToolContext, args: PathsArgs) -> RoutesAnswer:
    """Find the paths of data from one entity to another, shortest first."""
    paths_answer = await context.tracker.find_lineage_paths(
        args.source_id, args.target_id, args.limit
    )
    shown = page(paths_answer.paths, None, args.limit).items
    return RoutesAnswer(
        source_id=paths_answer.source_id,
        target_id=paths_answer.target_id,
        paths=shown,
        path_count=paths_answer.path_count,
        omitted_count=paths_answer.path_count - len(shown),
        complete=paths_answer.complete,
        blind_spots=first_blind_spots(paths_answer.blind_spots),
        blind_spot_count=len(paths_answer.blind_spots),
    )


async def export_lineage(context: ToolContext, args: ExportArgs) -> DiagramAnswer:
    """Export the graph around an entity as Mermaid, DOT, SVG or JSON. Show the text unchanged."""
    export = await context.tracker.export_lineage(
        args.entity_id, args.format, args.direction, args.max_depth, as_of=args.as_of
    )
    text, following = page_text(export.diagram, args.cursor)
    return DiagramAnswer(
        entity_id=args.entity_id,
        format=export.format,
        text=text,
        node_count=export.node_count,
        edge_count=export.edge_count,
        total_characters=len(export.diagram),
        next_cursor=following,
        complete=export.complete,
        blind_spots=first_blind_spots(export.blind_spots),
        blind_spot_count=len(export.blind_spots),
    )

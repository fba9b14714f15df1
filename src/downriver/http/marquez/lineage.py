"""`GET /api/v1/lineage`: the graph around a dataset or a job."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal

import msgspec

from downriver.http.endpoint import NAMED, Endpoint, answers
from downriver.http.request import context_of, json_response, query_number, query_text, run_read
from downriver.model.answers import Direction
from downriver.model.facts import EdgeKind, RunState
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.openlineage.facets.dataset import (
    DATA_SOURCE,
    LIFECYCLE,
    SCHEMA,
    parse_data_source_name,
    parse_lifecycle,
    schema_columns,
)
from downriver.openlineage.facets.description import DOCUMENTATION, parse_description
from downriver.openlineage.facets.job import JOB_TYPE, parse_job_type, parse_source_code_location
from downriver.openlineage.wire import render_time
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from downriver.graph import CatalogSnapshot
    from downriver.model.answers import Trace, TraceNode
    from downriver.model.facts import Span
    from downriver.model.ids import NodeId
    from downriver.service import Lineage
    from downriver.store import Run

OMITTED = "Downriver-Omitted"  # a response header: how many nodes the answer omits
_DEFAULT_DEPTH = 20
_MOST_NODES = 10_000
_STATES = {
    RunState.OTHER: "NEW",
    RunState.START: "RUNNING",
    RunState.RUNNING: "RUNNING",
    RunState.COMPLETE: "COMPLETED",
    RunState.ABORT: "ABORTED",
    RunState.FAIL: "FAILED",
}


class MarquezEdge(msgspec.Struct):
    """An edge, by the ids of its ends."""

    origin: str
    destination: str


class MarquezName(msgspec.Struct):
    """A dataset or job by namespace and name."""

    namespace: str
    name: str


class MarquezField(msgspec.Struct):
    """A column of a dataset."""

    name: str
    type: str
    tags: list[str]
    description: str | None


class DatasetData(msgspec.Struct, rename="camel", tag_field="entity", tag="dataset"):
    """A dataset, as Marquez describes it."""

    id: MarquezName
    type: str
    name: str
    physical_name: str
    namespace: str
    source_name: str
    created_at: str
    updated_at: str
    fields: list[MarquezField]
    tags: list[str]
    description: str | None
    last_lifecycle_state: str | None
    facets: dict[str, msgspec.Raw]


class RunData(msgspec.Struct, rename="camel"):
    """A run, as Marquez describes it."""

    id: str
    state: str
    created_at: str
    updated_at: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None


class JobData(msgspec.Struct, rename="camel", tag_field="entity", tag="job"):
    """A job, as Marquez describes it."""

    id: MarquezName
    type: str
    name: str
    simple_name: str
    namespace: str
    created_at: str
    updated_at: str
    inputs: list[MarquezName]
    outputs: list[MarquezName]
    location: str | None
    description: str | None
    latest_run: RunData | None
    facets: dict[str, msgspec.Raw]


class MarquezNode(msgspec.Struct, rename="camel"):
    """A node of the graph with its edges."""

    id: str
    type: Literal["DATASET", "JOB"]
    data: DatasetData | JobData
    in_edges: list[MarquezEdge]
    out_edges: list[MarquezEdge]


class LineageGraph(msgspec.Struct, rename="camel", omit_defaults=True):
    """The answer of `GET /api/v1/lineage`.

    `truncated` and `omittedCount` are additions to Marquez. They are present only if nodes are
    omitted because of the depth or the limit.
    """

    graph: list[MarquezNode]
    truncated: bool = False
    omitted_count: int = 0


async def get_lineage(request: Request) -> Response:
    """Return the graph upstream and downstream of `nodeId`, in the format of Marquez."""
    node_id = query_text(request, "nodeId")
    depth = query_number(request, "depth", _DEFAULT_DEPTH, 10_000)
    lineage = context_of(request).lineage
    found = await run_read(request, _lineage_graph, lineage, node_id, depth)
    response = json_response(found)
    response.headers[OMITTED] = str(found.omitted_count)
    return response


def _lineage_graph(lineage: Lineage, node_id: str, depth: int | None) -> LineageGraph:
    with lineage.session.reading() as view:
        entity = lineage.session.resolve(node_id, view).id
        root = entity.dataset if isinstance(entity, ColumnId) else entity
        trace = lineage.trace(
            str(root), Direction.BOTH, depth=depth, limit=_MOST_NODES, readers=True
        )
        facts = _NodeFacts(trace, view)
        incoming: defaultdict[str, list[MarquezEdge]] = defaultdict(list)
        outgoing: defaultdict[str, list[MarquezEdge]] = defaultdict(list)
        for edge in trace.edges:
            incoming[edge.target].append(MarquezEdge(edge.source, edge.target))
            outgoing[edge.source].append(MarquezEdge(edge.source, edge.target))
        nodes = [_node(node, incoming[node.id], outgoing[node.id], facts) for node in trace.nodes]
    omitted = trace.omitted_count
    return LineageGraph(sorted(nodes, key=lambda node: node.id), omitted > 0, omitted)


class _NodeFacts:
    """What the answer shows of its nodes, read at once."""

    def __init__(self, trace: Trace, view: CatalogSnapshot) -> None:
        reader, graph = view.reader, view.graph.nodes
        ids = {node.id: _identity(node) for node in trace.nodes}
        found = reader.nodes.find_each(ids.values())
        self._numbers = {key: found[node] for key, node in ids.items()}
        jobs = [self._numbers[node.id] for node in trace.nodes if node.kind == "job"]
        self._inputs = graph.neighbours(jobs, EdgeKind.READS, downstream=False)
        self._outputs = graph.neighbours(jobs, EdgeKind.WRITES, downstream=True)
        around = (other for side in (self._inputs, self._outputs) for other in side.values())
        self._names = reader.nodes.by_ids({number for numbers in around for number in numbers})
        self._spans = reader.nodes.spans(self._numbers.values())
        self._facets = reader.facets.of_each(self._numbers.values())
        self._runs = reader.runs.latest_of_each(jobs, 1)

    def span(self, node: TraceNode) -> Span:
        return self._spans[self._numbers[node.id]]

    def facets(self, node: TraceNode) -> dict[str, bytes]:
        return self._facets.get(self._numbers[node.id], {})

    def last_run(self, node: TraceNode) -> Run | None:
        return next(iter(self._runs.get(self._numbers[node.id], ())), None)

    def inputs(self, node: TraceNode) -> list[MarquezName]:
        return self._named(self._inputs.get(self._numbers[node.id], ()))

    def outputs(self, node: TraceNode) -> list[MarquezName]:
        return self._named(self._outputs.get(self._numbers[node.id], ()))

    def _named(self, numbers: Iterable[int]) -> list[MarquezName]:
        names = sorted((self._names[number] for number in numbers), key=str)
        return [MarquezName(name.namespace, name.name) for name in names]


def _identity(node: TraceNode) -> NodeId:
    return (JobId if node.kind == "job" else DatasetId)(node.namespace, node.name)


def _node(
    node: TraceNode, incoming: list[MarquezEdge], outgoing: list[MarquezEdge], facts: _NodeFacts
) -> MarquezNode:
    if node.kind == "job":
        return MarquezNode(node.id, "JOB", _job(node, facts), incoming, outgoing)
    return MarquezNode(node.id, "DATASET", _dataset(node, facts), incoming, outgoing)


def _dataset(node: TraceNode, facts: _NodeFacts) -> DatasetData:
    span, facets = facts.span(node), facts.facets(node)
    return DatasetData(
        id=MarquezName(node.namespace, node.name),
        type="DB_TABLE",
        name=node.name,
        physical_name=node.name,
        namespace=node.namespace,
        source_name=parse_data_source_name(facets.get(DATA_SOURCE)) or node.namespace,
        created_at=render_time(span.first.at),
        updated_at=render_time(span.last.at),
        fields=[
            MarquezField(column.path, column.type, [], column.description or None)
            for column in (schema_columns(facets[SCHEMA]) if SCHEMA in facets else ())
        ],
        tags=[],
        description=parse_description(facets.get(DOCUMENTATION)) or None,
        last_lifecycle_state=parse_lifecycle(facets.get(LIFECYCLE)) or None,
        facets={name: msgspec.Raw(body) for name, body in facets.items()},
    )


def _job(node: TraceNode, facts: _NodeFacts) -> JobData:
    span, facets, run = facts.span(node), facts.facets(node), facts.last_run(node)
    return JobData(
        id=MarquezName(node.namespace, node.name),
        type=parse_job_type(facets.get(JOB_TYPE)).processingType or "BATCH",
        name=node.name,
        simple_name=node.name.rpartition(".")[2],
        namespace=node.namespace,
        created_at=render_time(span.first.at),
        updated_at=render_time(span.last.at),
        inputs=facts.inputs(node),
        outputs=facts.outputs(node),
        location=parse_source_code_location(facets).url or None,
        description=parse_description(facets.get(DOCUMENTATION)) or None,
        latest_run=None if run is None else _run(run),
        facets={name: msgspec.Raw(body) for name, body in facets.items()},
    )


def _run(run: Run) -> RunData:
    started, ended = run.started_at, run.ended_at
    lasted = None if started is None or ended is None else (ended - started) // 1000
    return RunData(
        id=run.run,
        state=_STATES[run.state],
        created_at=render_time(run.first_at),
        updated_at=render_time(run.last_at),
        started_at=None if started is None else render_time(started),
        ended_at=None if ended is None else render_time(ended),
        duration_ms=lasted,
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET",
        "/api/v1/lineage",
        get_lineage,
        KeyRole.READER,
        answers(LineageGraph, *NAMED),
        query=("nodeId", "depth"),
    ),
)

"""Parts of the graph as a screen shows them: nodes with their labels, columns and runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from downriver.export import compare_traces
from downriver.graph import FOREVER, Entity, count_reached, trace_numbered
from downriver.graph.answers.node_facts import (
    NodeFactsReader,
    count_neighbours,
    find_stale,
    mark_tags,
)
from downriver.graph.names.short_names import ShortNames
from downriver.model.answers import LIMITS, Direction
from downriver.model.governance import CERTIFIED_TAGS
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.model.views.graph_view import Graph, GraphColumn, GraphEdge, GraphNode, RunSummary
from downriver.openlineage.wire import render_time
from downriver.service.limits import GRAPH_NODES
from downriver.service.trace import parse_as_of, parse_question
from downriver.service.views.selection import SelectionApi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.graph import CatalogSnapshot, Question
    from downriver.graph.answers.node_facts import NodeFacts, NodeRun
    from downriver.model.answers import BlindSpot, Trace, TraceEdge, TraceNode
    from downriver.model.ids import NodeId
    from downriver.model.views.graph_view import Change
    from downriver.openlineage.facets.dataset import SchemaColumn
    from downriver.service.session import StoreSession


class GraphParts(NamedTuple):
    """What to add to the nodes of a graph.

    With `statements`, statements of a task are separate jobs.
    """

    columns: bool = False
    runs: bool = False
    statements: bool = False


NO_PARTS = GraphParts()


class _Moment(NamedTuple):
    """A trace at one moment, the store's number of each node, and the question.

    `total` counts the nodes at any depth.
    """

    found: Trace
    numbers: dict[str, int]
    question: Question
    total: int


class GraphApi:
    """The graph around an entity. Call it to get nodes with labels, columns, runs and counts."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self,
        entity: str,
        direction: Direction | str = Direction.BOTH,
        *,
        depth: int | None = 1,
        as_of: str | None = None,
        diff: str | None = None,
        limit: int = GRAPH_NODES,
        include: GraphParts = NO_PARTS,
    ) -> Graph:
        """Return the graph around an entity; around a column, the graph of its dataset.

        `diff` is an earlier moment: additions, removals and changes since then are marked.
        """
        with self._session.reading(parse_as_of(as_of)) as view:
            found = self._session.resolve(entity, view)
            if isinstance(found.id, ColumnId):
                found = Entity(found.id.dataset, found.node)
            asked = (direction, depth)
            limits = (limit, include.statements)
            now = self._trace(view, found, *asked, as_of, *limits)
            before = None if diff is None else self._trace(view, found, *asked, diff, *limits)
            return _GraphBuilder(view, include).build(now, before)

    def select(
        self,
        q: str,
        *,
        as_of: str | None = None,
        diff: str | None = None,
        limit: int = GRAPH_NODES,
        include: GraphParts = NO_PARTS,
    ) -> Graph:
        """Return the selection of a selector, with the edges and jobs between."""
        with self._session.reading(parse_as_of(as_of)) as view:
            now = self._selected(q, as_of, limit)
            before = None if diff is None else self._selected(q, diff, limit)
            return msgspec.structs.replace(
                _GraphBuilder(view, include).build(now, before), root=None
            )

    def _selected(self, q: str, as_of: str | None, limit: int) -> _Moment:
        found, numbers, question = SelectionApi(self._session).subgraph(q, as_of=as_of, limit=limit)
        return _Moment(found, numbers, question, len(found.nodes) + found.omitted_count)

    def _trace(
        self,
        view: CatalogSnapshot,
        entity: Entity,
        direction: Direction | str,
        depth: int | None,
        as_of: str | None,
        limit: int,
        statements: bool,
    ) -> _Moment:
        question = parse_question(
            direction, depth, as_of, limit, readers=True, statements=statements
        )
        answer, numbers = trace_numbered(view.graph, view.reader, entity, question)
        total = count_reached(view.graph, view.reader, entity, question)
        total -= sum(len(node.statements) for node in answer.nodes)
        return _Moment(answer, numbers, question, total)


class _GraphBuilder:
    """Adds labels, columns and runs from the catalog to the nodes of a trace."""

    def __init__(self, view: CatalogSnapshot, include: GraphParts) -> None:
        self._view = view
        self._include = include

    def build(self, now: _Moment, before: _Moment | None) -> Graph:
        trace = now.found
        numbers, facts = now.numbers, self._facts(now)
        facts_before: dict[str, NodeFacts] = {}
        changes: dict[str, Change] = {}
        if before is not None:
            trace = compare_traces(before.found, trace)
            facts_before = self._facts(before)
            facts = {**facts_before, **facts}
            numbers = {**before.numbers, **numbers}
            changes = _node_changes(trace, before, facts, facts_before)
        return Graph(
            root=trace.root.id,
            nodes=self._nodes(trace, numbers, facts, facts_before, changes, now.question),
            edges=[graph_edge(edge) for edge in trace.edges],
            complete=trace.complete,
            blind_spots=_unknown(trace),
            shown=len(trace.nodes),
            total=max(now.total, len(trace.nodes)),
            as_of=None if now.question.as_of == FOREVER else render_time(now.question.as_of),
        )

    def _facts(self, moment: _Moment) -> dict[str, NodeFacts]:
        names = {moment.numbers[node.id]: _identity(node) for node in moment.found.nodes}
        reader = NodeFactsReader(self._view.graph, self._view.reader, moment.question.as_of)
        facts = reader.read(names)
        return {node.id: facts[moment.numbers[node.id]] for node in moment.found.nodes}

    def _nodes(
        self,
        trace: Trace,
        numbers: Mapping[str, int],
        facts: Mapping[str, NodeFacts],
        facts_before: Mapping[str, NodeFacts],
        changes: Mapping[str, Change],
        question: Question,
    ) -> list[GraphNode]:
        graph = self._view.graph.nodes
        shown = np.array([numbers[node.id] for node in trace.nodes], np.int32)
        counts = count_neighbours(graph, shown, question.as_of)
        stale = find_stale(graph, shown, question)
        labels = ShortNames({node.id: _identity(node) for node in trace.nodes})
        jobs = self._view.reader.nodes.by_ids(
            {of.last_run.job for of in facts.values() if of.last_run is not None}
        )
        spots = Counter(spot.entity for spot in _unknown(trace))
        return [
            GraphNode(
                id=node.id,
                kind="job" if node.kind == "job" else "dataset",
                type=facts[node.id].type,
                namespace=node.namespace,
                name=node.name,
                label=labels[node.id],
                depth=node.depth,
                owners=list(facts[node.id].owners),
                tags=sorted(facts[node.id].tags.whole),
                marks=_marks(node, facts[node.id], stale=numbers[node.id] in stale),
                aliases=node.aliases,
                statements=node.statements,
                column_total=len(facts[node.id].columns),
                upstream_total=upstream,
                downstream_total=downstream,
                blind_spot_count=max(spots[node.id], facts[node.id].blind_spot_count),
                description=facts[node.id].description or None,
                integration=facts[node.id].integration or None,
                columns=self._columns(facts[node.id], facts_before.get(node.id)),
                last_run=self._last_run(facts[node.id].last_run, jobs),
                change=changes.get(node.id),
            )
            for node, upstream, downstream in zip(
                trace.nodes, counts.upstream, counts.downstream, strict=True
            )
        ]

    def _columns(self, facts: NodeFacts, before: NodeFacts | None) -> list[GraphColumn] | None:
        if not self._include.columns:
            return None
        listed = [graph_column(column, facts) for column in facts.columns]
        return listed if before is None else _compare_columns(listed, before)

    def _last_run(self, last: NodeRun | None, jobs: Mapping[int, NodeId]) -> RunSummary | None:
        if last is None or not self._include.runs:
            return None
        return summarize_run(last, jobs[last.job])


def summarize_run(last: NodeRun, job: NodeId) -> RunSummary:
    """Return the state of a run of a job."""
    run = last.run
    seconds = None
    if run.ended_at is not None and run.started_at is not None:
        seconds = (run.ended_at - run.started_at) / 1e6
    return RunSummary(
        id=run.run,
        job=str(job),
        state=run.state.name,
        started_at=None if run.started_at is None else render_time(run.started_at),
        ended_at=None if run.ended_at is None else render_time(run.ended_at),
        duration_seconds=seconds,
    )


def graph_edge(edge: TraceEdge) -> GraphEdge:
    """Return an edge of a trace as a graph shows it."""
    return GraphEdge(
        source=edge.source,
        target=edge.target,
        kind=edge.kind,
        confidence=edge.confidence,
        status=edge.status,
        first_seen=edge.first_seen,
        last_seen=edge.last_seen,
        first_event=edge.first_event,
        last_event=edge.last_event,
        job=edge.job,
        change=edge.change,
    )


def graph_column(column: SchemaColumn, facts: NodeFacts) -> GraphColumn:
    """Return a column of a schema with its tags."""
    tags = sorted(facts.tags.by_column.get(column.path.casefold(), ()))
    return GraphColumn(
        name=column.path,
        tags=tags,
        marks=mark_tags(tags),
        type=column.type or None,
        description=column.description or None,
    )


def _marks(node: TraceNode, facts: NodeFacts, *, stale: bool) -> list[str]:
    of_columns = {tag for tags in facts.tags.by_column.values() for tag in tags}
    marks = mark_tags([*facts.tags.whole, *(of_columns - set(CERTIFIED_TAGS))])
    if stale:
        marks.append("stale")
    if facts.failed:
        marks.append("failed" if node.kind == "job" else "broken")
    if facts.dropped:
        marks.append("dropped")
    return marks


def _identity(node: TraceNode) -> NodeId:
    return (JobId if node.kind == "job" else DatasetId)(node.namespace, node.name)


def _unknown(trace: Trace) -> list[BlindSpot]:
    """Return the blind spots, without those that `shown` and `total` of a graph state already."""
    return [spot for spot in trace.blind_spots if spot.kind not in LIMITS]


def _node_changes(
    trace: Trace,
    before: _Moment,
    facts: Mapping[str, NodeFacts],
    facts_before: Mapping[str, NodeFacts],
) -> dict[str, Change]:
    """Return how each node differs from the earlier moment."""
    changes: dict[str, Change] = {}
    new = {spot.entity for spot in before.found.blind_spots if spot.kind == "not_seen_yet"}
    for node in trace.nodes:
        if "added" in node.marks or node.id in new:
            changes[node.id] = "added"
        elif "removed" in node.marks:
            changes[node.id] = "removed"
        elif node.id in facts_before and _shape(facts_before[node.id]) != _shape(facts[node.id]):
            changes[node.id] = "changed"
    return changes


def _shape(facts: NodeFacts) -> list[tuple[str, str]]:
    return sorted((column.path, column.type) for column in facts.columns)


def _compare_columns(listed: list[GraphColumn], before: NodeFacts) -> list[GraphColumn]:
    """Mark the columns that were added or retyped, and append those that were removed."""
    old = {column.path: column for column in before.columns}
    for column in listed:
        known = old.pop(column.name, None)
        if known is None:
            column.change = "added"
        elif known.type != (column.type or ""):
            column.change = "changed"
    removed = [graph_column(column, before) for column in old.values()]
    return [*listed, *(msgspec.structs.replace(c, change="removed") for c in removed)]

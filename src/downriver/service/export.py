"""Exports parts of the graph for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.export import (
    DerivedColumn,
    ExportedGraph,
    compare_traces,
    push_cypher,
    render,
    render_view,
)
from downriver.graph import trace
from downriver.graph.answers.entity_lists import list_derivations
from downriver.graph.answers.node_facts import mark_tags
from downriver.graph.names.assets import Assets
from downriver.graph.names.resolution import find_entity
from downriver.model.answers import Direction
from downriver.model.facts import EdgeKind, RunState
from downriver.model.flows import ExportAnswer
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.openlineage.facets.description import TAGS, parse_tags
from downriver.service.limits import MOST_EXPORTED
from downriver.service.trace import TraceApi, parse_question
from downriver.service.views.graph_sync import GraphSync
from downriver.service.views.selection import SelectionApi

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from downriver.export.cypher import CypherDriver
    from downriver.graph import CatalogSnapshot
    from downriver.model.answers import Trace, TraceNode
    from downriver.model.ids import NodeId
    from downriver.model.views.drawn_view import DrawnView
    from downriver.service.session import StoreSession

_FAILED = frozenset({RunState.FAIL, RunState.ABORT})


class ExportApi:
    """Parts of the graph as pictures and in the formats of other tools."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session
        self._trace = TraceApi(session)
        self._selection = SelectionApi(session)

    def __call__(
        self,
        entity: str,
        output_format: str = "mermaid",
        direction: Direction | str = Direction.BOTH,
        *,
        depth: int | None = None,
        as_of: str | None = None,
        focus: str | None = None,
        diff: str | None = None,
        limit: int = MOST_EXPORTED,
        readers: bool = False,
    ) -> ExportAnswer:
        """Return the graph around an entity in a format.

        `focus` is a column of the entity: only its lineage is shown. `diff` is a moment to compare
        with: what was added or removed since is marked.
        """
        with self._session.reading():
            graph = self.subgraph(
                entity,
                direction,
                depth=depth,
                as_of=as_of,
                focus=focus,
                diff=diff,
                limit=limit,
                readers=readers,
            )
            return self._rendered(graph, entity, output_format)

    def _rendered(self, graph: Trace, entity: str, output_format: str) -> ExportAnswer:
        exported = self.piece(graph)
        return ExportAnswer(
            entity_id=entity,
            format=output_format,
            diagram=render(exported, output_format),
            node_count=len(graph.nodes),
            edge_count=len(graph.edges),
            complete=graph.complete,
            blind_spots=graph.blind_spots,
        )

    @staticmethod
    def view(shown: DrawnView) -> ExportAnswer:
        """Return what a screen shows as a picture or a diagram."""
        return ExportAnswer(
            entity_id=shown.root or shown.title,
            format=shown.format,
            diagram=render_view(shown),
            node_count=len(shown.nodes),
            edge_count=len(shown.edges),
            complete=not shown.blind_spots,
            blind_spots=shown.blind_spots,
        )

    def selection(
        self,
        q: str | None = None,
        output_format: str = "mermaid",
        *,
        ids: Sequence[str] = (),
        as_of: str | None = None,
        diff: str | None = None,
        limit: int = MOST_EXPORTED,
    ) -> ExportAnswer:
        """Return the selection of a selector, or exactly the nodes with these ids, in a format."""
        with self._session.reading():
            graph = self.selected_subgraph(q, ids=ids, as_of=as_of, diff=diff, limit=limit)
            return self._rendered(graph, q or ", ".join(ids), output_format)

    def selected_subgraph(
        self,
        q: str | None = None,
        *,
        ids: Sequence[str] = (),
        as_of: str | None = None,
        diff: str | None = None,
        limit: int = MOST_EXPORTED,
    ) -> Trace:
        """Return the nodes of a selector or of ids, with the marks that exports show."""
        with self._session.reading() as view:
            graph, *_ = self._selection.subgraph(q, ids=ids, as_of=as_of, limit=limit)
            if diff is not None:
                before, *_ = self._selection.subgraph(q, ids=ids, as_of=diff, limit=limit)
                graph = compare_traces(before, graph)
            return self.marked(graph, view)

    def push_to_neo4j(
        self, selected: Trace, driver: CypherDriver, database: str | None = None
    ) -> int:
        """Write a part of the graph into a Neo4j database; return how many nodes it has."""
        return push_cypher(self.piece(selected), driver, database)[0]

    def sync_to(self, target: str) -> GraphSync:
        """Return the synchronizer of a graph copy in a Neo4j database."""
        return GraphSync(self._session, self, target)

    def piece(self, selected: Trace) -> ExportedGraph:
        """Return a trace with the data that export formats need."""
        with self._session.reading() as view:
            types = _asset_types(selected, view)
        return ExportedGraph(selected, self._trace.find_event, self._columns_of, types)

    def subgraph(
        self,
        entity: str,
        direction: Direction | str = Direction.BOTH,
        *,
        depth: int | None = None,
        as_of: str | None = None,
        focus: str | None = None,
        diff: str | None = None,
        limit: int = MOST_EXPORTED,
        readers: bool = False,
    ) -> Trace:
        """Return the graph around an entity, with the marks that exports show."""
        with self._session.reading() as view:
            if focus is not None:
                entity = str(self._session.resolve_column(entity, focus, view).id)
            graph = self._trace(
                entity, direction, depth=depth, as_of=as_of, limit=limit, readers=readers
            )
            if diff is not None:
                before = self._trace(
                    entity, direction, depth=depth, as_of=diff, limit=limit, readers=readers
                )
                graph = compare_traces(before, graph)
            return self.marked(graph, view)

    def marked(self, graph: Trace, view: CatalogSnapshot) -> Trace:
        """Return a trace with the marks that exports show."""
        marks = _Marks(graph, view)
        marked = {
            node.id: msgspec.structs.replace(node, marks=[*node.marks, *marks.of(node)])
            for node in graph.nodes
        }
        nodes = list(marked.values())
        return msgspec.structs.replace(graph, nodes=nodes, root=marked[graph.root.id])

    def _columns_of(self, node: TraceNode) -> list[DerivedColumn]:
        """Return how each column of a dataset is computed."""
        dataset = DatasetId(node.namespace, node.name)
        with self._session.reading() as view:
            fields = view.reader.columns.list_names(view.reader.nodes.get(dataset))
            return [
                derived_column
                for field in fields
                for derived_column in self._derived(dataset, field, view)
            ]

    def _derived(
        self, dataset: DatasetId, field: str, view: CatalogSnapshot
    ) -> list[DerivedColumn]:
        identities = view.graph.nodes.identities
        column = find_entity(str(ColumnId(dataset, field)), view.reader, identities)
        if column is None:
            return []
        near = trace(
            view.graph, view.reader, column, parse_question(Direction.UPSTREAM, 1, None, 10_000)
        )
        direct = {
            (edge.job, edge.source)
            for edge in near.edges
            if edge.target == near.root.id and edge.type != "INDIRECT"
        }
        places = {n.id: (DatasetId(n.namespace, n.name), n.field or "") for n in near.nodes}
        return [
            DerivedColumn(
                field,
                derivation,
                sorted(places[source] for job, source in direct if job == derivation.job),
            )
            for derivation in list_derivations(near)
        ]


class _Marks:
    """The tags of datasets and columns, and whether the last run of a job failed."""

    def __init__(self, graph: Trace, view: CatalogSnapshot) -> None:
        ids = {_node_of(node) for node in graph.nodes}
        self._numbers = view.reader.nodes.find_each(ids)
        datasets = [n for node, n in self._numbers.items() if isinstance(node, DatasetId)]
        jobs = [n for node, n in self._numbers.items() if isinstance(node, JobId)]
        self._writers = view.graph.nodes.neighbours(datasets, EdgeKind.WRITES, downstream=False)
        every_job = {*jobs, *(job for writers in self._writers.values() for job in writers)}
        last = view.reader.runs.latest_of_each(every_job, 1)
        self._broken = {job for job, (run, *_) in last.items() if run.state in _FAILED}
        self._facets = view.reader.facets.of_each(datasets, (TAGS,))

    def of(self, node: TraceNode) -> list[str]:
        """Return the marks of a node."""
        number = self._numbers[_node_of(node)]
        jobs = [number] if node.kind == "job" else self._writers.get(number, [])
        failed = node.kind != "column" and not self._broken.isdisjoint(jobs)
        tags = self._tags(number, node.field) if node.kind != "job" else ()
        return [*mark_tags(tags), *(["broken"] if failed else [])]

    def _tags(self, dataset: int, field: str | None) -> Collection[str]:
        whole, by_column = parse_tags(self._facets.get(dataset, {}).get(TAGS))
        return whole if field is None else by_column.get(field.casefold(), frozenset())


def _node_of(node: TraceNode) -> NodeId:
    return (JobId if node.kind == "job" else DatasetId)(node.namespace, node.name)


def _asset_types(graph: Trace, view: CatalogSnapshot) -> dict[str, str]:
    """Return the asset type of the datasets and jobs of a trace, by id."""
    nodes = {node.id: _node_of(node) for node in graph.nodes if node.kind != "column"}
    numbers = view.reader.nodes.find_each(nodes.values())
    assets = Assets(view.reader, view.graph.nodes)
    assets.load(numbers.values())
    return {
        name: assets.type_of(node, numbers[node]) for name, node in nodes.items() if node in numbers
    }

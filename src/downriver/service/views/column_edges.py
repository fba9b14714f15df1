"""Column edges as a screen shows them: between datasets, and along the path of one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from downriver.graph import trace
from downriver.graph.answers.column_edges import ColumnEdgeView
from downriver.graph.answers.view import WalkedEdges
from downriver.graph.walk.node_walk import NodeWalk
from downriver.model.answers import Direction, is_complete
from downriver.model.ids import ColumnId, DatasetId
from downriver.model.views.graph_view import ColumnEdges, ColumnPlace, GraphColumnEdge
from downriver.openlineage.facets.custom import CODE, parse_code
from downriver.openlineage.facets.job import SOURCE_CODE_LOCATION, parse_source_code_location
from downriver.service.limits import COLUMN_EDGES, DEFAULT_LIMIT
from downriver.service.trace import parse_question

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.graph import CatalogSnapshot, Question
    from downriver.graph.index.vectors import Ints
    from downriver.model.answers import BlindSpot, TraceEdge, TraceNode
    from downriver.model.ids import NodeId
    from downriver.openlineage.facets.custom import CodeFacet
    from downriver.service.session import StoreSession

_PATH_COLUMNS = 5_000


class _RenderedEdges(NamedTuple):
    edges: list[GraphColumnEdge]
    omitted_count: int


class ColumnEdgeApi:
    """Edges between columns, with evidence and the line of code behind them."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def among(
        self, datasets: Sequence[str], *, as_of: str | None = None, diff: str | None = None
    ) -> ColumnEdges:
        """Return the column edges between datasets.

        With `diff`, mark the changes since that moment.
        """
        question = parse_question(Direction.BOTH, None, as_of, DEFAULT_LIMIT)
        with self._session.reading(question.as_of) as view:
            numbers = self._numbers(datasets, view)
            now = _render_among(numbers, question, view)
            if diff is not None:
                earlier = parse_question(Direction.BOTH, None, diff, DEFAULT_LIMIT)
                now = _compare(_render_among(numbers, earlier, view), now)
            spots = _without_columns(numbers, question, view)
        return _answer(now.edges, spots, now.omitted_count)

    def path(self, dataset: str, column: str, *, as_of: str | None = None) -> ColumnEdges:
        """Return every column edge upstream and downstream of one column."""
        question = parse_question(Direction.BOTH, None, as_of, _PATH_COLUMNS)
        with self._session.reading(question.as_of) as view:
            entity = self._session.resolve_column(dataset, column, view)
            answer = trace(view.graph, view.reader, entity, question)
            columns = {node.id: node for node in answer.nodes}
            names = {str(DatasetId(n.namespace, n.name)) for n in answer.nodes}
            steps = ColumnEdgeView(view.graph, view.reader, question).among(
                self._numbers(sorted(names), view)
            )
            edges = _render(answer.edges, columns, _jobs_of(steps, question, view), view)
        return _answer(edges, answer.blind_spots, answer.omitted_count)

    def _numbers(self, datasets: Sequence[str], view: CatalogSnapshot) -> Ints:
        """Return the canonical numbers of datasets, each once. A column counts as its dataset."""
        numbers = {self._dataset(name, view) for name in datasets}
        identities = view.graph.nodes.identities
        return np.array(sorted({identities.canonical(node) for node in numbers if node}), np.int32)

    def _dataset(self, name: str, view: CatalogSnapshot) -> int:
        resolved = self._session.resolve(name, view)
        return resolved.node if isinstance(resolved.id, DatasetId | ColumnId) else 0


def _render_among(numbers: Ints, question: Question, view: CatalogSnapshot) -> _RenderedEdges:
    edge_view = ColumnEdgeView(view.graph, view.reader, question)
    every = edge_view.among(numbers)
    steps = WalkedEdges(*(part[:COLUMN_EDGES] for part in every))
    columns = edge_view.columns({*steps.source.tolist(), *steps.target.tolist()})
    edges = edge_view.edges(steps, columns)
    by_id = {node.id: node for node in columns.values()}
    jobs = _jobs_of(steps, question, view)
    return _RenderedEdges(_render(edges, by_id, jobs, view), len(every.edges) - len(steps.edges))


def _jobs_of(steps: WalkedEdges, question: Question, view: CatalogSnapshot) -> dict[int, NodeId]:
    return ColumnEdgeView(view.graph, view.reader, question).jobs(steps)


def _without_columns(numbers: Ints, question: Question, view: CatalogSnapshot) -> list[BlindSpot]:
    """List the jobs without column lineage that fill one of the datasets from another."""
    walk = NodeWalk(view.graph.nodes, downstream=True, as_of=question.as_of)
    fillings = walk.fillings(numbers)
    inside = np.isin(walk.far(fillings), numbers)
    edge_view = ColumnEdgeView(view.graph, view.reader, question)
    return edge_view.without_columns(fillings[inside])


def _render(
    edges: Iterable[TraceEdge],
    columns: Mapping[str, TraceNode],
    jobs: Mapping[int, NodeId],
    view: CatalogSnapshot,
) -> list[GraphColumnEdge]:
    facets = view.reader.facets.of_each(jobs, (CODE, SOURCE_CODE_LOCATION))
    code = {str(job): _JobCode(facets.get(number, {})) for number, job in jobs.items()}
    rendered = [
        GraphColumnEdge(
            source=_column_place(columns[edge.source]),
            target=_column_place(columns[edge.target]),
            type=edge.type or "DIRECT",
            subtype="CONTAINS" if edge.kind == "contains" else edge.subtype or "TRANSFORMATION",
            masking=edge.masking,
            confidence=edge.confidence,
            status=edge.status,
            first_seen=edge.first_seen,
            last_seen=edge.last_seen,
            first_event=edge.first_event,
            last_event=edge.last_event,
            job=edge.job,
            description=edge.description,
            location=code[edge.job].location(columns[edge.source]) if edge.job in code else None,
        )
        for edge in edges
    ]
    return sorted(rendered, key=_order)


class _JobCode:
    """The file of a job, and the lines at which it names columns."""

    def __init__(self, facets: Mapping[str, bytes]) -> None:
        code: CodeFacet | None = parse_code(facets)
        self._path = (code.path if code else "") or parse_source_code_location(facets).path
        self._line = code.line if code else 0
        self._lines: dict[tuple[str, str, str], int] = {}
        for reference in (code.references if code else None) or ():
            key = (reference.namespace, reference.name, reference.field.casefold())
            self._lines.setdefault(key, reference.line)

    def location(self, column: TraceNode) -> str | None:
        """Return the file and line at which the job names a column, or where its code starts."""
        if not self._path:
            return None
        key = (column.namespace, column.name, (column.field or "").casefold())
        line = self._lines.get(key, 0) or self._line
        return f"{self._path}:{line}" if line else self._path


def _column_place(column: TraceNode) -> ColumnPlace:
    dataset = DatasetId(column.namespace, column.name)
    return ColumnPlace(dataset=str(dataset), column=column.field or "*")


def _order(edge: GraphColumnEdge) -> tuple[str, ...]:
    return (
        edge.source.dataset,
        edge.source.column,
        edge.target.dataset,
        edge.target.column,
        edge.job or "",
        edge.type,
        edge.subtype,
    )


def _compare(before: _RenderedEdges, after: _RenderedEdges) -> _RenderedEdges:
    """Return the edges of both moments. An edge is removed when it is no longer active."""
    old = {_order(edge): edge for edge in before.edges}
    new = {_order(edge): edge for edge in after.edges}
    merged = []
    for key in sorted({*old, *new}):
        edge = new.get(key) or old[key]
        was = key in old and old[key].status == "active"
        remains = key in new and new[key].status == "active"
        if was != remains:
            edge = msgspec.structs.replace(edge, change="added" if remains else "removed")
        merged.append(edge)
    return _RenderedEdges(merged, max(before.omitted_count, after.omitted_count))


def _answer(
    edges: list[GraphColumnEdge], spots: list[BlindSpot], omitted_count: int
) -> ColumnEdges:
    datasets = {place.dataset for edge in edges for place in (edge.source, edge.target)}
    return ColumnEdges(
        edges=edges,
        datasets=sorted(datasets),
        complete=is_complete(spots) and not omitted_count,
        blind_spots=spots,
        omitted_count=omitted_count,
    )

"""The graph at two moments, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.errors import InvalidRequestError
from downriver.govern.graph_diff import GraphState, compare_states
from downriver.graph.answers.column_edges import ColumnEdgeView
from downriver.graph.answers.subgraph import trace_subgraph
from downriver.graph.answers.view import WalkedEdges
from downriver.model.answers import BlindSpot, Direction
from downriver.openlineage.facets.dataset import SCHEMA, schema_columns
from downriver.openlineage.wire import render_time
from downriver.service.govern import parse_since
from downriver.service.limits import MOST_EXPORTED
from downriver.service.session import now
from downriver.service.trace import parse_question

if TYPE_CHECKING:
    from collections.abc import Collection

    from downriver.govern.graph_diff import GraphDiff
    from downriver.graph import CatalogSnapshot, Question
    from downriver.graph.index.vectors import Ints
    from downriver.model.answers import TraceEdge
    from downriver.service.session import StoreSession

_COLUMN_EDGES = 500_000


class GraphDiffApi:
    """Compares the whole graph at two moments. Call it."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, start: str, end: str | None = None) -> GraphDiff:
        """Return what differs between two moments: times, or periods such as `7d` before now."""
        moment = now()
        first = parse_since(start, moment)
        last = moment if end is None else parse_since(end, moment)
        if first > last:
            raise InvalidRequestError("from", f"{start} is later than {end or 'now'}")
        return compare_states(self._state(first), self._state(last))

    def _state(self, moment: int) -> GraphState:
        at = render_time(moment)
        question = parse_question(Direction.BOTH, None, at, MOST_EXPORTED, readers=True)
        with self._session.reading(moment) as view:
            nodes = _nodes_at(view, moment)
            if not len(nodes):
                return GraphState(at, {}, frozenset(), {}, [], [], [])
            found, numbers = trace_subgraph(view.graph, view.reader, nodes, question)
            datasets = {n.id: numbers[n.id] for n in found.nodes if n.kind == "dataset"}
            column_edges, spots = _column_edges(view, datasets, question)
            return GraphState(
                at=at,
                names={name: n.id for n in found.nodes for name in (n.id, *n.aliases)},
                renamed=_renamed(view, numbers.values()),
                columns=_columns(view, datasets, moment),
                edges=[edge for edge in found.edges if edge.status == "active"],
                column_edges=[edge for edge in column_edges if edge.status == "active"],
                blind_spots=[*found.blind_spots, *spots],
            )


def _nodes_at(view: CatalogSnapshot, moment: int) -> Ints:
    """Return the datasets and jobs that were mentioned before a moment and not retired then."""
    seen = view.reader.retirement.first_mentions()
    wanted = [n for n, at in seen.items() if at <= moment and n not in view.graph.retired]
    canonical = view.graph.nodes.identities.canonicals(np.array(sorted(wanted), np.int32))
    distinct: Ints = np.unique(canonical).astype(np.int32)
    return distinct


def _renamed(view: CatalogSnapshot, nodes: Collection[int]) -> frozenset[str]:
    """Return the names of nodes that were replaced by other ones."""
    identities = view.graph.nodes.identities
    names, _ = identities.every_name(np.fromiter(nodes, np.int32, len(nodes)))
    renamed = names[identities.renamed(names)].tolist() if identities else []
    return frozenset(map(str, view.reader.nodes.by_ids(renamed).values()))


def _columns(
    view: CatalogSnapshot, datasets: dict[str, int], moment: int
) -> dict[str, dict[str, str]]:
    """Return the types of columns by name, of each dataset with a schema."""
    groups = {name: view.graph.nodes.identities.group(n) for name, n in datasets.items()}
    every = [number for group in groups.values() for number in group]
    facets = view.reader.facets.of_each(every, (SCHEMA,), moment)
    columns: dict[str, dict[str, str]] = {}
    for name, group in groups.items():
        for number in group:
            body = facets.get(number, {}).get(SCHEMA)
            if body is not None:
                types = {column.path: column.type for column in schema_columns(body)}
                columns.setdefault(name, {}).update(types)
    return columns


def _column_edges(
    view: CatalogSnapshot, datasets: dict[str, int], question: Question
) -> tuple[list[TraceEdge], list[BlindSpot]]:
    edge_view = ColumnEdgeView(view.graph, view.reader, question)
    every = edge_view.among(np.array(sorted(datasets.values()), np.int32))
    steps = WalkedEdges(*(part[:_COLUMN_EDGES] for part in every))
    columns = edge_view.columns({*steps.source.tolist(), *steps.target.tolist()})
    spots = []
    if len(every.edges) > len(steps.edges):
        message = f"{len(every.edges) - len(steps.edges)} column edges were not compared"
        spots = [BlindSpot(kind="edge_limit", entity="graph", message=message)]
    return edge_view.edges(steps, columns), spots

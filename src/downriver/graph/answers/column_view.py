"""Columns, as answers show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from downriver.graph.answers.column_edges import ColumnEdgeView
from downriver.graph.answers.cuts import CutDetector
from downriver.graph.answers.view import limit_blind_spots
from downriver.graph.index.column_graph import INDIRECT
from downriver.graph.walk.column_walk import (
    IMPLIED,
    ColumnReach,
    canonical_column,
    compose_ranks,
    reach_columns,
)
from downriver.graph.walk.node_walk import NodeWalk
from downriver.graph.walk.paths import Routes, find_routes
from downriver.graph.walk.result import WalkResult
from downriver.model.answers import BlindSpot, TraceEdge, TraceNode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from downriver.graph.answers.view import Question, WalkedEdges
    from downriver.graph.index.vectors import Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.store import CatalogReader

_TRANSFORMATIONS = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


class ColumnView:
    """The graph around a column."""

    def __init__(
        self, index: GraphSnapshot, reader: CatalogReader, column: int, question: Question
    ) -> None:
        self._index = index
        self._graph = index.nodes
        self._columns = index.columns
        self._reader = reader
        self._question = question
        self._edges = ColumnEdgeView(index, reader, question)
        self._sides: dict[
            bool, tuple[WalkResult, Ints]
        ] = {}  # downstream -> reach, rank of each node
        self.root = canonical_column(index.columns, index.nodes.identities, column)

    def reach(self, *, downstream: bool) -> WalkResult:
        """Return the columns on one side of the root, and keep how each derives from it."""
        result = self._reach(downstream=downstream)
        reach = result.between_columns()
        ranks = np.full(len(reach.nodes), INDIRECT, np.int32)
        places = reach.places(result.columns(result.states.nodes))
        composed = compose_ranks(result.states, self._rank_of(result.states.edges))
        np.minimum.at(ranks, places, composed)
        self._sides[downstream] = (reach, ranks)
        return reach

    def routes(self, end: int, limit: int) -> Routes:
        """Return the routes from the root to another column."""
        result = self._reach(downstream=True, wanted=end)
        paths, cut, reached = find_routes(result.states, end, limit)
        distinct = dict.fromkeys(
            tuple(result.columns(np.array(path, np.int32)).tolist()) for path in paths
        )
        return Routes([list(path) for path in distinct], cut, result.columns(reached))

    def _reach(self, *, downstream: bool, wanted: int = 0) -> ColumnReach:
        return reach_columns(
            self._columns,
            self._graph.identities,
            self.root,
            downstream=downstream,
            depth=self._question.depth,
            as_of=self._question.as_of,
            wanted=wanted,
        )

    def _rank_of(self, edges: Ints) -> Ints:
        is_stated = edges != IMPLIED
        ranks = np.zeros(len(edges), np.int32)
        ranks[is_stated] = self._columns.rank[edges[is_stated]]
        return ranks

    def nodes(self, depths: Mapping[int, int]) -> dict[int, TraceNode]:
        """Return columns under the display name of their dataset."""
        ranks = self._ranks(depths)
        nodes = self._edges.columns(depths)
        return {
            column: _at_depth(node, depths[column], ranks.get(column))
            for column, node in nodes.items()
        }

    def _ranks(self, depths: Mapping[int, int]) -> dict[int, int]:
        """Return how each column derives from the root, on the side it is shown on."""
        rank_of: dict[int, int] = {}
        for downstream, (reach, ranks) in self._sides.items():
            columns = [c for c, depth in depths.items() if depth and (depth > 0) == downstream]
            places = reach.places(np.array(columns, np.int32))
            rank_of.update(zip(columns, ranks[places].tolist(), strict=True))
        return rank_of

    def edges(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges with their evidence: one for all claims that make the same statement."""
        return sorted(self._edges.edges(steps, nodes), key=_edge_order)

    # Blind spots

    def join_statements(self, depths: dict[int, int]) -> dict[int, int]:
        """Return the columns as they are: a trace of columns lists no jobs."""
        return depths

    def readers(self, steps: WalkedEdges) -> set[int]:
        """Return nothing: a trace of columns lists no jobs."""
        del steps
        return set()

    def datasets_and_jobs(self, shown: Collection[int]) -> Ints:
        """Return the datasets of columns."""
        columns = np.fromiter(shown, np.int32, len(shown))
        return self._graph.identities.canonicals(np.unique(self._columns.dataset[columns]))

    def blind_spots(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        """List possible cuts, and the jobs that read these datasets without column lineage."""
        datasets = self._graph.identities.canonicals(np.unique(self._columns.dataset[reached]))
        cuts = CutDetector(self._index, self._reader)
        return [
            *cuts.blind_spots(datasets, downstream=downstream),
            *self._other_spellings(reached),
            *self._without_columns(reached, downstream=downstream),
        ]

    def _other_spellings(self, reached: Ints) -> list[BlindSpot]:
        """List the columns that another name of their dataset has in another letter case.

        The names of a dataset are joined, but its columns are joined only if they are spelled
        alike.
        """
        identities = self._graph.identities
        joined = reached[identities.joined(self._columns.dataset[reached])]
        if not len(joined):
            return []
        places = self._reader.columns.by_ids(self._columns.places(joined.tolist()))
        spots = []
        for dataset, field in places.values():
            group = identities.group(dataset)
            names = {name for same in group for name in self._reader.columns.list_names(same)}
            others = sorted(n for n in names if n != field and n.casefold() == field.casefold())
            if others:
                shown = identities.display_names([dataset], self._reader)[dataset].id
                spots.append(
                    BlindSpot(
                        kind="possible_cut",
                        entity=f"column:{shown.namespace}:{shown.name}:{field}",
                        message=f"another name of this dataset has the column as {others[0]}; "
                        "columns in different letter case are not joined",
                    )
                )
        return limit_blind_spots(sorted(spots, key=lambda spot: spot.entity), len(spots))

    def _without_columns(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        walk = NodeWalk(self._graph, downstream=downstream, as_of=self._question.as_of)
        fillings = walk.fillings(np.unique(self._columns.dataset[reached]))
        return self._edges.without_columns(fillings)


def _edge_order(edge: TraceEdge) -> tuple[str, ...]:
    return (
        edge.source,
        edge.target,
        edge.kind,
        edge.job or "",
        edge.type or "",
        edge.subtype or "",
    )


def _at_depth(node: TraceNode, depth: int, rank: int | None) -> TraceNode:
    """Return a column at its depth, with how it derives from the root."""
    if rank is None:
        return msgspec.structs.replace(node, depth=depth)
    if rank == INDIRECT:
        return msgspec.structs.replace(node, depth=depth, derivation="INDIRECT")
    return msgspec.structs.replace(
        node, depth=depth, derivation="DIRECT", transformation=_TRANSFORMATIONS[rank]
    )

"""Columns, as answers show them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from downriver.graph.answers.cuts import CutDetector
from downriver.graph.answers.view import (
    BLIND_SPOTS_SHOWN,
    WalkedEdges,
    is_stale,
    limit_blind_spots,
    merge_spans,
    render_evidence,
)
from downriver.graph.index.column_graph import INDIRECT
from downriver.graph.index.sorted_keys import pairs
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
    from collections.abc import Mapping

    from downriver.graph.answers.view import Question
    from downriver.graph.index.vectors import Flags, Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.model.facts import ColumnTransformation, Span
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader

_TRANSFORMATIONS = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


class _Statement(NamedTuple):
    """A column edge, whichever claim states it. Job 0: a dataset event stated it without a job."""

    source: int
    target: int
    job: int
    direct: bool
    subtype: str


class _Sighting(NamedTuple):
    """A claim that states an edge: when it was seen, and its details."""

    span: Span
    claim: int
    place: int
    said: ColumnTransformation


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
        self._sides: dict[
            bool, tuple[WalkResult, Ints]
        ] = {}  # downstream -> reach, rank of each node
        self.root = canonical_column(index.columns, index.nodes.identities, column)

    def reach(self, *, downstream: bool) -> WalkResult:
        """Return the columns on one side of the root, and keep how each derives from it."""
        found = self._reach(downstream=downstream)
        reach = found.between_columns()
        ranks = np.full(len(reach.nodes), INDIRECT, np.int32)
        places = reach.places(found.columns(found.states.nodes))
        composed = compose_ranks(found.states, self._rank_of(found.states.edges))
        np.minimum.at(ranks, places, composed)
        self._sides[downstream] = (reach, ranks)
        return reach

    def routes(self, end: int, limit: int) -> Routes:
        """Return the routes from the root to another column."""
        found = self._reach(downstream=True, wanted=end)
        paths, cut, reached = find_routes(found.states, end, limit)
        distinct = dict.fromkeys(
            tuple(found.columns(np.array(path, np.int32)).tolist()) for path in paths
        )
        return Routes([list(path) for path in distinct], cut, found.columns(reached))

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
        stated = edges != IMPLIED
        ranks = np.zeros(len(edges), np.int32)
        ranks[stated] = self._columns.rank[edges[stated]]
        return ranks

    def nodes(self, depths: Mapping[int, int]) -> dict[int, TraceNode]:
        """Return columns under the display name of their dataset."""
        places = self._reader.columns.by_ids(self._columns.places(depths))
        names_shown = self._graph.identities.display_names(
            {d for d, _ in places.values()}, self._reader
        )
        ranks = self._ranks(depths)
        return {
            column: _node(names_shown[dataset].id, field, depths[column], ranks.get(column))
            for column, (dataset, field) in places.items()
        }

    def _ranks(self, depths: Mapping[int, int]) -> dict[int, int]:
        """Return how each column derives from the root, on the side it is shown on."""
        found: dict[int, int] = {}
        for downstream, (reach, ranks) in self._sides.items():
            columns = [c for c, depth in depths.items() if depth and (depth > 0) == downstream]
            places = reach.places(np.array(columns, np.int32))
            found.update(zip(columns, ranks[places].tolist(), strict=True))
        return found

    # Edges

    def edges(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges with their evidence: one for all claims that make the same statement."""
        implied = steps.edges == IMPLIED
        contained = zip(steps.source[implied].tolist(), steps.target[implied].tolist(), strict=True)
        sightings = self._sightings(WalkedEdges(*(part[~implied] for part in steps)))
        jobs = self._reader.nodes.by_ids({statement.job for statement in sightings})
        return [
            *(self._derives(said, seen, nodes, jobs) for said, seen in sightings.items()),
            *(_contains(nodes[star].id, nodes[column].id) for star, column in set(contained)),
        ]

    def _sightings(self, steps: WalkedEdges) -> dict[_Statement, list[_Sighting]]:
        columns = self._columns
        claims = columns.claim[steps.edges]
        details = self._reader.evidence.transformations(set(claims.tolist()))
        spans = self._reader.evidence.claims(set(claims.tolist()))
        sightings: dict[_Statement, list[_Sighting]] = defaultdict(list)
        for source, target, job, rank, place, claim in zip(
            steps.source.tolist(),
            steps.target.tolist(),
            columns.claim_job[claims].tolist(),
            columns.rank[steps.edges].tolist(),
            columns.said[steps.edges].tolist(),
            claims.tolist(),
            strict=True,
        ):
            said = details[claim][place]
            statement = _Statement(source, target, job, rank != INDIRECT, said.subtype)
            sightings[statement].append(_Sighting(spans[claim], claim, place, said))
        return sightings

    def _derives(
        self,
        statement: _Statement,
        sightings: list[_Sighting],
        nodes: Mapping[int, TraceNode],
        jobs: Mapping[int, NodeId],
    ) -> TraceEdge:
        latest = max(sightings, key=lambda seen: (seen.span.last, seen.claim, seen.place))
        span = merge_spans(sighting.span for sighting in sightings)
        evidence = render_evidence(span, stale=self._is_stale(span, statement.job))
        evidence["confidence"] = latest.said.confidence or evidence["confidence"]
        return TraceEdge(
            source=nodes[statement.source].id,
            target=nodes[statement.target].id,
            kind="derives",
            job=str(jobs[statement.job]) if statement.job else None,
            type="DIRECT" if statement.direct else "INDIRECT",
            subtype=statement.subtype or None,
            description=latest.said.description or None,
            masking=latest.said.masking,
            **evidence,
        )

    def _is_stale(self, span: Span, job: int) -> bool:
        return is_stale(
            span,
            self._graph.job_last_seen(job),
            days=self._question.stale_days,
            as_of=self._question.as_of,
        )

    # Blind spots

    def readers(self, steps: WalkedEdges) -> set[int]:
        """Return nothing: a trace of columns lists no jobs."""
        del steps
        return set()

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

        Names of a dataset are joined, but only columns that are spelled alike.
        """
        identities = self._graph.identities
        joined = reached[identities.joined(self._columns.dataset[reached])]
        if not len(joined):
            return []
        places = self._reader.columns.by_ids(self._columns.places(joined.tolist()))
        spots = []
        for dataset, field in places.values():
            group = identities.group(dataset)
            known = {name for same in group for name in self._reader.columns.list_names(same)}
            others = sorted(n for n in known if n != field and n.casefold() == field.casefold())
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
        jobs, filled = self._graph.jobs(fillings), self._graph.flow.ends.target[fillings]
        unknown = ~self._is_claimed(jobs, filled)
        distinct = np.unique(pairs(jobs[unknown], filled[unknown]))
        shown = distinct[:BLIND_SPOTS_SHOWN]
        spots = self._no_column_lineage((shown >> 32).tolist(), (shown & 0xFFFF_FFFF).tolist())
        return limit_blind_spots(spots, len(distinct))

    def _is_claimed(self, jobs: Ints, datasets: Ints) -> Flags:
        """Tell of which datasets it is known, under any name, how a job fills their columns."""
        names, at = self._graph.identities.every_name(datasets)
        as_of = self._question.as_of
        by_itself = self._columns.claimed(np.zeros_like(names), names, as_of)
        claimed = np.zeros(len(datasets), np.bool_)
        claimed[at[by_itself | self._columns.claimed(jobs[at], names, as_of)]] = True
        return claimed

    def _no_column_lineage(self, jobs: list[int], datasets: list[int]) -> list[BlindSpot]:
        names = self._graph.identities.display_names({*jobs, *datasets} - {0}, self._reader)
        spots = []
        for job, dataset in zip(jobs, datasets, strict=True):
            filled = str(names[dataset].id)
            entity, does = (
                (str(names[job].id), f"writes {filled}") if job else (filled, "is derived")
            )
            message = f"{does}, but which columns it uses is unknown"
            spots.append(BlindSpot(kind="no_column_lineage", entity=entity, message=message))
        return sorted(spots, key=lambda spot: (spot.entity, spot.message))


def _node(dataset: NodeId, field: str, depth: int, rank: int | None) -> TraceNode:
    node = TraceNode(
        id=f"column:{dataset.namespace}:{dataset.name}:{field}",
        kind="column",
        namespace=dataset.namespace,
        name=dataset.name,
        field=field,
        depth=depth,
    )
    if rank is not None:
        node.derivation = "INDIRECT" if rank == INDIRECT else "DIRECT"
        node.transformation = None if rank == INDIRECT else _TRANSFORMATIONS[rank]
    return node


def _contains(star: str, column: str) -> TraceEdge:
    unstated: Any = {"first_seen": "", "last_seen": "", "first_event": "", "last_event": ""}
    return TraceEdge(
        source=star, target=column, kind="contains", status="active", confidence="exact", **unstated
    )

"""Edges between columns with their evidence, and the jobs whose column lineage is unknown."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from downriver.graph.answers.job_roles import find_loaders
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
from downriver.graph.walk.column_walk import IMPLIED
from downriver.model.answers import BlindSpot, TraceEdge, TraceNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.graph.answers.view import Question
    from downriver.graph.index.vectors import Flags, Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.model.facts import ColumnTransformation, Span
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader


_NO_JOB = 0


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
    transformation: ColumnTransformation


class ColumnEdgeView:
    """Renders edges between columns, given by number."""

    def __init__(self, index: GraphSnapshot, reader: CatalogReader, question: Question) -> None:
        self._graph = index.nodes
        self._columns = index.columns
        self._reader = reader
        self._question = question

    def among(self, datasets: Ints) -> WalkedEdges:
        """Return the edges between the columns of these datasets under any of their names.

        One column stands for all columns of one name that a dataset has under its names.
        """
        names, _ = self._graph.identities.every_name(datasets)
        columns = [self._columns.of(name) for name in names.tolist()]
        members = np.concatenate([np.empty(0, np.int32), *columns]).astype(np.int32)
        edges = self._columns.flow.leaving.of(members)
        edges = edges[np.isin(self._columns.flow.target[edges], members)]
        edges = edges[self._columns.known_by(edges, self._question.as_of)]
        flow = self._columns.flow
        return WalkedEdges(
            edges, self._one_for_each(flow.source[edges]), self._one_for_each(flow.target[edges])
        )

    def _one_for_each(self, columns: Ints) -> Ints:
        datasets = self._graph.identities.canonicals(self._columns.dataset[columns])
        keys = pairs(datasets, self._columns.field[columns])
        distinct, inverse = np.unique(keys, return_inverse=True)
        smallest = np.full(len(distinct), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(smallest, inverse, columns)
        chosen: Ints = smallest[inverse]
        return chosen

    def columns(self, columns: Iterable[int]) -> dict[int, TraceNode]:
        """Return columns under the display name of their dataset, at depth 0."""
        places = self._reader.columns.by_ids(self._columns.places(columns))
        names_shown = self._graph.identities.display_names(
            {dataset for dataset, _ in places.values()}, self._reader
        )
        return {
            column: _node(names_shown[dataset].id, field)
            for column, (dataset, field) in places.items()
        }

    def jobs(self, steps: WalkedEdges) -> dict[int, NodeId]:
        """Return the jobs that state these edges."""
        stated_edges = steps.edges[steps.edges != IMPLIED]
        jobs = np.unique(self._columns.claim_job[self._columns.claim[stated_edges]])
        return self._reader.nodes.by_ids(jobs[jobs > 0].tolist())

    def edges(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges with their evidence: one for all claims that make the same statement."""
        implied = steps.edges == IMPLIED
        contained = zip(steps.source[implied].tolist(), steps.target[implied].tolist(), strict=True)
        sightings = self._sightings(WalkedEdges(*(part[~implied] for part in steps)))
        jobs = self._reader.nodes.by_ids({statement.job for statement in sightings})
        return [
            *(self._derives(claim, seen, nodes, jobs) for claim, seen in sightings.items()),
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
            columns.transformation[steps.edges].tolist(),
            claims.tolist(),
            strict=True,
        ):
            transformation = details[claim][place]
            statement = _Statement(source, target, job, rank != INDIRECT, transformation.subtype)
            sightings[statement].append(_Sighting(spans[claim], claim, place, transformation))
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
        evidence["confidence"] = latest.transformation.confidence or evidence["confidence"]
        return TraceEdge(
            source=nodes[statement.source].id,
            target=nodes[statement.target].id,
            kind="derives",
            job=str(jobs[statement.job]) if statement.job else None,
            type="DIRECT" if statement.direct else "INDIRECT",
            subtype=statement.subtype or None,
            description=latest.transformation.description or None,
            masking=latest.transformation.masking,
            **evidence,
        )

    def _is_stale(self, span: Span, job: int) -> bool:
        return is_stale(
            span,
            self._graph.job_last_seen(job),
            days=self._question.stale_days,
            as_of=self._question.as_of,
        )

    def without_columns(self, fillings: Ints) -> list[BlindSpot]:
        """Return a blind spot for each of these edges whose column lineage is unknown.

        Each edge writes a dataset: by a job, or because the dataset derives from another one. A job
        that loads data from its own code is left out: its columns have no source columns.
        """
        jobs, filled = self._graph.jobs(fillings), self._graph.flow.ends.target[fillings]
        unknown = ~self._is_claimed(jobs, filled)
        loaders = find_loaders(self._reader, np.setdiff1d(jobs[unknown], [_NO_JOB]))
        unknown &= ~np.isin(jobs, list(loaders))
        distinct = np.unique(pairs(jobs[unknown], filled[unknown]))
        shown = distinct[:BLIND_SPOTS_SHOWN]
        spots = self._no_column_lineage((shown >> 32).tolist(), (shown & 0xFFFF_FFFF).tolist())
        return limit_blind_spots(spots, len(distinct))

    def _is_claimed(self, jobs: Ints, datasets: Ints) -> Flags:
        """Return the datasets, under any name, for which column lineage by a job is known."""
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
            message = f"{does}, but the columns that it uses are unknown"
            spots.append(BlindSpot(kind="no_column_lineage", entity=entity, message=message))
        return sorted(spots, key=lambda spot: (spot.entity, spot.message))


def _node(dataset: NodeId, field: str) -> TraceNode:
    return TraceNode(
        id=f"column:{dataset.namespace}:{dataset.name}:{field}",
        kind="column",
        namespace=dataset.namespace,
        name=dataset.name,
        field=field,
        depth=0,
    )


def _contains(star: str, column: str) -> TraceEdge:
    unstated: Any = {"first_seen": "", "last_seen": "", "first_event": "", "last_event": ""}
    return TraceEdge(
        source=star, target=column, kind="contains", status="active", confidence="exact", **unstated
    )

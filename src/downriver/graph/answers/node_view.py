"""Datasets and jobs, as answers show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from downriver.graph.answers.cuts import CutDetector
from downriver.graph.answers.readers import find_loaders, find_readers
from downriver.graph.answers.view import (
    limit_blind_spots,
    render_evidence,
    reported_blind_spots,
    stale_after,
)
from downriver.graph.index.vectors import NO_INTS
from downriver.graph.walk.node_walk import NodeWalk, reach_nodes
from downriver.graph.walk.paths import Routes, find_routes
from downriver.model.answers import BlindSpot, TraceEdge, TraceNode
from downriver.model.facts import EdgeKind
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from downriver.graph.answers.view import Question, WalkedEdges
    from downriver.graph.index.vectors import Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.graph.walk.result import WalkResult
    from downriver.model.facts import Span
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader


# What makes two edges the same in an answer: source, target, kind, the job behind it or 0.
_Key: TypeAlias = tuple[int, int, int, int]
_KIND_NAMES = {int(kind): kind.name.lower() for kind in EdgeKind}


class NodeView:
    """The graph around a dataset or a job."""

    def __init__(
        self, index: GraphSnapshot, reader: CatalogReader, node: int, question: Question
    ) -> None:
        self._index = index
        self._graph = index.nodes
        self._reader = reader
        self._question = question
        self._names: dict[int, NodeId] = {}  # fetched so far, by canonical id
        self._bodies: dict[int, bytes] = {}  # blind spots facets fetched so far
        self._asked: set[int] = set()  # nodes whose blind spots facets were fetched
        self.root = index.nodes.identities.canonical(node)

    def reach(self, *, downstream: bool) -> WalkResult:
        """Return the datasets and jobs on one side of the root."""
        return reach_nodes(
            self._graph,
            self.root,
            downstream=downstream,
            depth=self._question.depth,
            as_of=self._question.as_of,
        )

    def routes(self, end: int, limit: int) -> Routes:
        """Return the routes from the root to another node."""
        return find_routes(self.reach(downstream=True), end, limit)

    def nodes(self, depths: Mapping[int, int]) -> dict[int, TraceNode]:
        """Return nodes under their display names, with their aliases."""
        names_shown = self._graph.identities.display_names(depths, self._reader)
        self._names.update((node, name) for node, (name, _) in names_shown.items())
        return {
            node: TraceNode(
                id=str(name),
                kind="job" if isinstance(name, JobId) else "dataset",
                namespace=name.namespace,
                name=name.name,
                depth=depths[node],
                aliases=[str(alias) for alias in aliases],
            )
            for node, (name, aliases) in names_shown.items()
        }

    def edges(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges with their evidence: one for all names under which it was seen."""
        sightings = self._sightings(steps)
        jobs = self._names_of({key[3] for key in sightings if key[2] == EdgeKind.DERIVES} - {0})
        stale = self._stale_before([key[3] for key in sightings])
        return [
            self._edge(key, span, nodes, jobs, stale=span.last.at < before)
            for (key, span), before in zip(sightings.items(), stale, strict=True)
        ]

    def _stale_before(self, jobs: list[int]) -> list[int]:
        """Return for each job the moment before which an edge of it was last seen if it is stale.

        A job ran for days, until `as_of`, without such an edge.
        """
        seen = self._graph.jobs_last_seen(np.array(jobs, np.int32))
        until = np.minimum(seen, self._question.as_of)
        before: list[int] = (until - stale_after(self._question.stale_days)).tolist()
        return before

    def _names_of(self, nodes: Collection[int]) -> Mapping[int, NodeId]:
        """Return the names of nodes. Those that are shown already are not fetched again."""
        missing = [node for node in nodes if node not in self._names]
        if missing:
            self._names.update(self._reader.nodes.by_ids(missing))
        return self._names

    def _sightings(self, steps: WalkedEdges) -> dict[_Key, Span]:
        flow = self._graph.flow
        ids = flow.id[steps.edges].tolist()
        spans = self._reader.evidence.edges(set(ids))
        keys = zip(
            steps.source.tolist(),
            steps.target.tolist(),
            flow.kind[steps.edges].tolist(),
            self._graph.jobs(steps.edges).tolist(),
            strict=True,
        )
        sightings: dict[_Key, Span] = {}
        for key, number in zip(keys, ids, strict=True):
            span = spans[number]
            sightings[key] = sightings.get(key, span).merge(span)
        return sightings

    def _edge(
        self,
        key: _Key,
        span: Span,
        nodes: Mapping[int, TraceNode],
        jobs: Mapping[int, NodeId],
        *,
        stale: bool,
    ) -> TraceEdge:
        source, target, kind, job = key
        stated_by_job = kind == EdgeKind.DERIVES and job != 0
        return TraceEdge(
            source=nodes[source].id,
            target=nodes[target].id,
            kind=_KIND_NAMES[kind],
            job=str(jobs[job]) if stated_by_job else None,
            **render_evidence(span, stale=stale),
        )

    def readers(self, steps: WalkedEdges) -> set[int]:
        """Return the jobs among the edges' ends that only read."""
        reads = self._graph.flow.kind[steps.edges] == EdgeKind.READS
        ends = np.setdiff1d(steps.target[reads], steps.source)
        return find_readers(self._graph, self._reader, ends) if len(ends) else set()

    def carriers(self, shown: Collection[int]) -> Ints:
        """Return the nodes themselves."""
        return np.fromiter(shown, np.int32, len(shown))

    def blind_spots(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        """List the blind spots that jobs report, and the jobs whose inputs are unknown."""
        stated = [
            *self._unfollowed(reached),
            *reported_blind_spots(self._reported(reached.tolist()), self._names_of),
            *CutDetector(self._index, self._reader).blind_spots(reached, downstream=downstream),
        ]
        return stated if downstream else [*stated, *self._unfed(reached)]

    def _reported(self, nodes: list[int]) -> dict[int, bytes]:
        """Return the blind spots facets of nodes. One query reads those of both sides."""
        missing = {*nodes, *self._names} - self._asked
        if missing:
            self._asked |= missing
            self._bodies |= self._reader.facets.blind_spots(missing)
        return {node: self._bodies[node] for node in nodes if node in self._bodies}

    def _unfollowed(self, reached: Ints) -> list[BlindSpot]:
        """Name the jobs a root runs when it moves no data itself: an orchestrator's DAG."""
        if len(reached) > 1:
            return []
        ends, root = self._graph.flow.ends, np.array([self.root], np.int32)
        if len(ends.leaving.of(root)) or len(ends.entering.of(root)):
            return []
        children = [str(child) for child in self._reader.nodes.children_of(self.root)]
        if not children:
            return []
        listed = ", ".join(children[:5]) + (", …" if len(children) > 5 else "")
        return [
            BlindSpot(
                kind="child_jobs",
                entity=str(self._reader.nodes.by_ids([self.root])[self.root]),
                message=f"moves no data itself but runs {len(children)} jobs: {listed}",
            )
        ]

    def _unfed(self, reached: Ints) -> list[BlindSpot]:
        walk = NodeWalk(self._graph, downstream=False, as_of=self._question.as_of)
        # Jobs have one name each, so the far ends of their edges need no canonical ids.
        without = np.setdiff1d(reached, self._graph.flow.ends.target[walk.edges(reached)])
        names = self._names_of(without.tolist())
        jobs = [node for node in without.tolist() if isinstance(names[node], JobId)]
        if not jobs:
            return []
        unknown = np.setdiff1d(jobs, list(find_loaders(self._reader, np.array(jobs, np.int32))))
        spots = [
            BlindSpot(
                kind="job_without_inputs",
                entity=str(names[node]),
                message="no event of this job names an input, so its upstreams are unknown",
            )
            for node in np.setdiff1d(unknown, self._with_stated_inputs(unknown)).tolist()
        ]
        return limit_blind_spots(sorted(spots, key=lambda spot: spot.entity), len(spots))

    def _with_stated_inputs(self, jobs: Ints) -> Ints:
        """Return the jobs without inputs that name the inputs of each output explicitly."""
        if self._graph.all_to_all:
            return NO_INTS
        writes, places = self._graph.flow.ends.leaving.of_each(jobs)
        explicit = self._graph.explicit(writes, self._question.as_of)
        return np.setdiff1d(jobs[places[explicit]], jobs[places[~explicit]])

"""Datasets and jobs, as answers show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from downriver.graph.answers.cuts import CutDetector
from downriver.graph.answers.readers import find_readers
from downriver.graph.answers.view import (
    is_stale,
    limit_blind_spots,
    render_evidence,
    reported_blind_spots,
)
from downriver.graph.walk.node_walk import NodeWalk, reach_nodes
from downriver.graph.walk.paths import Routes, find_routes
from downriver.model.answers import BlindSpot, TraceEdge, TraceNode
from downriver.model.facts import EdgeKind
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        jobs = self._reader.nodes.by_ids({job for *_, job in sightings})
        return [self._edge(key, span, nodes, jobs) for key, span in sightings.items()]

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
        self, key: _Key, span: Span, nodes: Mapping[int, TraceNode], jobs: Mapping[int, NodeId]
    ) -> TraceEdge:
        source, target, kind, job = key
        stated_by_job = kind == EdgeKind.DERIVES and job != 0
        return TraceEdge(
            source=nodes[source].id,
            target=nodes[target].id,
            kind=_KIND_NAMES[kind],
            job=str(jobs[job]) if stated_by_job else None,
            **render_evidence(span, stale=self._is_stale(span, job)),
        )

    def _is_stale(self, span: Span, job: int) -> bool:
        return is_stale(
            span,
            self._graph.job_last_seen(job),
            days=self._question.stale_days,
            as_of=self._question.as_of,
        )

    def readers(self, steps: WalkedEdges) -> set[int]:
        """Return the jobs among the edges' ends that only read."""
        reads = self._graph.flow.kind[steps.edges] == EdgeKind.READS
        ends = np.setdiff1d(steps.target[reads], steps.source)
        return find_readers(self._graph, self._reader, ends) if len(ends) else set()

    def blind_spots(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        """List the blind spots that jobs report, and the jobs whose inputs are unknown."""
        stated = [
            *self._unfollowed(),
            *reported_blind_spots(self._reader, reached.tolist()),
            *CutDetector(self._index, self._reader).blind_spots(reached, downstream=downstream),
        ]
        return stated if downstream else [*stated, *self._unfed(reached)]

    def _unfollowed(self) -> list[BlindSpot]:
        """Name the jobs a root runs when it moves no data itself: an orchestrator's DAG."""
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
        spots = [
            BlindSpot(
                kind="job_without_inputs",
                entity=str(name),
                message="no event of this job names an input, so its upstreams are unknown",
            )
            for node, name in self._reader.nodes.by_ids(reached.tolist()).items()
            if isinstance(name, JobId) and not self._is_fed(walk, node)
        ]
        return limit_blind_spots(sorted(spots, key=lambda spot: spot.entity), len(spots))

    def _is_fed(self, walk: NodeWalk, job: int) -> bool:
        """Return whether a job has inputs, or names the inputs of each output explicitly."""
        here = np.array([job], np.int32)
        if len(walk.edges(here)):
            return True
        writes = self._graph.flow.ends.leaving.of(here)
        return len(writes) > 0 and bool(self._graph.explicit(writes, self._question.as_of).all())

"""Datasets and jobs, as answers show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from downriver.graph.answers.cuts import CutDetector
from downriver.graph.answers.job_roles import (
    find_loaders,
    find_readers,
    find_statements,
    find_tasks,
)
from downriver.graph.answers.node_edges import NodeEdges
from downriver.graph.answers.view import (
    limit_blind_spots,
    reported_blind_spots,
)
from downriver.graph.index.vectors import NO_INTS
from downriver.graph.walk.node_walk import NodeWalk, reach_nodes
from downriver.graph.walk.paths import Routes, find_routes
from downriver.model.answers import BlindSpot
from downriver.model.facts import EdgeKind
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from downriver.graph.answers.view import Question, WalkedEdges
    from downriver.graph.index.vectors import Ints
    from downriver.graph.snapshot import GraphSnapshot
    from downriver.graph.walk.result import WalkResult
    from downriver.model.answers import TraceEdge, TraceNode
    from downriver.store import CatalogReader


class NodeView:
    """The graph around a dataset or a job."""

    def __init__(
        self, index: GraphSnapshot, reader: CatalogReader, node: int, question: Question
    ) -> None:
        self._index = index
        self._graph = index.nodes
        self._reader = reader
        self._question = question
        self._shown: dict[int, TraceNode] = {}  # by canonical id
        self._bodies: dict[int, bytes] = {}  # blind spots facets fetched so far
        self._asked: set[int] = set()  # nodes whose blind spots facets were fetched
        self._tasks: dict[int, int] = {}  # statement job -> the task to show
        self.root = index.nodes.identities.canonical(node)
        self._parts = NO_INTS if question.statements else self._statements_of_root()

    def _statements_of_root(self) -> Ints:
        """Return the statements of the root, if it is a task, that move data."""
        name = self._index.cache.names([self.root], self._reader)[self.root]
        if not isinstance(name, JobId):
            return NO_INTS
        statements = np.array(find_statements(self.root, name, self._reader), np.int32)
        if not len(statements):
            return NO_INTS
        moving = [
            len(NodeWalk(self._graph, downstream=down, as_of=self._question.as_of).edges(part))
            for part in statements.reshape(-1, 1)
            for down in (True, False)
        ]
        moves_data: Ints = statements[np.array(moving).reshape(-1, 2).any(axis=1)]
        return moves_data

    def reach(self, *, downstream: bool) -> WalkResult:
        """Return the datasets and jobs on one side of the root, and of its statements."""
        return self._reach(downstream=downstream, parts=self._parts)

    def _reach(self, *, downstream: bool, parts: Ints = NO_INTS) -> WalkResult:
        return reach_nodes(
            self._graph,
            self.root,
            downstream=downstream,
            depth=self._question.depth,
            as_of=self._question.as_of,
            parts=parts,
        )

    def routes(self, end: int, limit: int) -> Routes:
        """Return the routes from the root to another node."""
        return find_routes(self._reach(downstream=True), end, limit)

    def join_statements(self, depths: dict[int, int]) -> dict[int, int]:
        """Return the nodes to show, with their depths: tasks in place of their statements.

        The root is not replaced, because the question names it.
        """
        if self._question.statements:
            return depths
        names = self._index.cache.names(depths, self._reader)
        jobs = {node: name for node, name in names.items() if node != self.root}
        self._tasks = find_tasks(jobs, self._reader)
        joined = {node: depth for node, depth in depths.items() if node not in self._tasks}
        for statement, task in self._tasks.items():
            joined.setdefault(task, depths[statement])
        return joined

    def nodes(self, depths: Mapping[int, int]) -> dict[int, TraceNode]:
        """Return nodes under their display names, with their aliases and statements."""
        nodes = self._index.cache.nodes(depths, self._graph.identities, self._reader)
        statements: dict[int, list[str]] = {}
        for statement, name in self._index.cache.names(self._tasks, self._reader).items():
            statements.setdefault(self._tasks[statement], []).append(str(name))
        for task, names in statements.items():
            nodes[task] = msgspec.structs.replace(nodes[task], statements=sorted(names))
        self._shown.update(nodes)
        return nodes

    def edges(self, steps: WalkedEdges, nodes: Mapping[int, TraceNode]) -> list[TraceEdge]:
        """Return edges with their evidence. Edges under several names of a node are one."""
        edges = NodeEdges(self._index, self._reader, self._question, self._tasks)
        return edges.rendered(steps, nodes)

    def _ids_of(self, nodes: Collection[int]) -> Mapping[int, str]:
        """Return the full ids of nodes. Those that are shown already are not fetched again."""
        ids = {node: self._shown[node].id for node in nodes if node in self._shown}
        missing = [node for node in nodes if node not in ids]
        if missing:
            names = self._index.cache.names(missing, self._reader)
            ids.update((node, str(name)) for node, name in names.items())
        return ids

    def readers(self, steps: WalkedEdges) -> set[int]:
        """Return the jobs at the ends of these edges that only read."""
        reads = self._graph.flow.kind[steps.edges] == EdgeKind.READS
        # Sets, not setdiff1d, which takes longer for an answer of usual size.
        ends = set(steps.target[reads].tolist()) - set(steps.source.tolist())
        if not ends:
            return set()
        return find_readers(self._graph, self._reader, np.array(sorted(ends), np.int32))

    def datasets_and_jobs(self, shown: Collection[int]) -> Ints:
        """Return the nodes themselves."""
        return np.fromiter(shown, np.int32, len(shown))

    def blind_spots(self, reached: Ints, *, downstream: bool) -> list[BlindSpot]:
        """List the blind spots that jobs report, and the jobs whose inputs are unknown."""
        explicit_jobs = [
            *self._unfollowed(reached),
            *reported_blind_spots(self._reported(reached.tolist()), self._ids_of),
            *CutDetector(self._index, self._reader).blind_spots(reached, downstream=downstream),
        ]
        return explicit_jobs if downstream else [*explicit_jobs, *self._unfed(reached)]

    def _reported(self, nodes: list[int]) -> dict[int, bytes]:
        """Return the blind spots facets of nodes. One query reads those of both sides."""
        reporting = self._index.isolated_jobs.with_blind_spots(self._reader)
        missing = ({*nodes, *self._shown} & reporting) - self._asked
        if missing:
            self._asked |= missing
            self._bodies |= self._reader.facets.blind_spots(missing)
        return {node: self._bodies[node] for node in nodes if node in self._bodies}

    def _unfollowed(self, reached: Ints) -> list[BlindSpot]:
        """List the child jobs of a root that moves no data itself, such as a DAG."""
        if len(reached) > 1:
            return []
        ends, root = self._graph.flow.ends, np.array([self.root], np.int32)
        if len(ends.leaving.of(root)) or len(ends.entering.of(root)):
            return []
        children = [str(child) for child in self._reader.nodes.children_of(self.root)]
        if not children:
            return []
        listed = ", ".join(children[:5]) + (", …" if len(children) > 5 else "")
        jobs = "1 job" if len(children) == 1 else f"{len(children)} jobs"
        return [
            BlindSpot(
                kind="child_jobs",
                entity=str(self._reader.nodes.by_ids([self.root])[self.root]),
                message=f"has no inputs or outputs, but starts {jobs}: {listed}",
            )
        ]

    def _unfed(self, reached: Ints) -> list[BlindSpot]:
        walk = NodeWalk(self._graph, downstream=False, as_of=self._question.as_of)
        # Jobs have one name each, so the far ends of their edges need no canonical ids.
        without = np.setdiff1d(reached, self._graph.flow.ends.target[walk.edges(reached)])
        if len(self._parts):
            without = without[without != self.root]  # its statements have the inputs
        names = self._index.cache.names(without.tolist(), self._reader)
        jobs = [node for node, name in names.items() if isinstance(name, JobId)]
        if not jobs:
            return []
        unknown = np.setdiff1d(jobs, list(find_loaders(self._reader, np.array(jobs, np.int32))))
        spots = [
            BlindSpot(
                kind="job_without_inputs",
                entity=str(names[node]),
                message="no event of this job contains an input, so its upstream is unknown",
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

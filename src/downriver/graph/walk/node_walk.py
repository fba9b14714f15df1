"""Walks through datasets and jobs.

Breadth first, so that a depth limit cuts the same nodes whatever the order of edges. Cycles,
self-loops and diamonds are safe: a node is expanded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.graph.index.edges import FOREVER
from downriver.graph.index.node_graph import NodeGraph
from downriver.graph.index.vectors import NO_INTS, Flags, Ints
from downriver.graph.walk import compilation
from downriver.graph.walk.first_levels import EdgeLookup, FirstLevels, start_at, walk_first_levels
from downriver.graph.walk.result import (
    UNLIMITED,
    VisitMarks,
    WalkBuilder,
    WalkResult,
    borrowed_marks,
)
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from types import ModuleType


def reach_nodes(
    graph: NodeGraph,
    root: int,
    *,
    downstream: bool,
    depth: int | None = None,
    as_of: int = FOREVER,
    parts: Ints = NO_INTS,
) -> WalkResult:
    """Return the datasets and jobs on one side of `root`. Depth counts the jobs crossed.

    The walk ends one step beyond the depth limit. `parts` are jobs that belong to the root, such
    as the statements of a task: the walk also starts at them.
    """
    walk = NodeWalk(graph, downstream=downstream, as_of=as_of)
    roots = np.append(np.array([root], np.int32), parts)
    with borrowed_marks() as visited, borrowed_marks() as opened:
        return _reach(walk, roots, depth, visited, opened)


def reach_from(
    graph: NodeGraph,
    roots: Ints,
    *,
    downstream: bool,
    depth: int | None = None,
    as_of: int = FOREVER,
) -> set[int]:
    """Return all datasets and jobs on one side of any of the roots, and the roots."""
    walk = NodeWalk(graph, downstream=downstream, as_of=as_of)
    reached: set[int] = set(roots.tolist())
    with borrowed_marks() as visited, borrowed_marks() as opened:
        for marks in (visited, opened):
            marks.restart()
            marks.add(roots)
        frontier, level = roots, 0
        while len(frontier) and (depth is None or level < depth):
            level += 1
            edges = walk.edges(frontier)
            to_jobs = walk.to_jobs(edges)
            reached.update(walk.far(edges[to_jobs]).tolist())
            across = walk.across(opened.add(walk.opened_by(edges[to_jobs])))
            datasets = np.concatenate([walk.far(edges[~to_jobs]), walk.far(across)])
            frontier = visited.add(datasets)
            reached.update(frontier.tolist())
    return reached


def _reach(
    walk: NodeWalk, roots: Ints, depth: int | None, visited: VisitMarks, opened: VisitMarks
) -> WalkResult:
    deepest = UNLIMITED if depth is None else depth
    start = walk.first_levels(roots, visited, opened, deepest)
    result = WalkBuilder(start, visited, depth)
    frontier, level = start.frontier, start.level
    if len(frontier):
        opened.restart()
        opened.add(np.append(start.jobs, roots))
    while len(frontier) and level <= deepest:
        level += 1
        edges = walk.edges(frontier)
        to_jobs = walk.to_jobs(edges)
        result.add_edges(edges, walk.near(edges), walk.far(edges), level)
        result.add_nodes(walk.far(edges[to_jobs]), level)
        across = walk.across(opened.add(walk.opened_by(edges[to_jobs])))
        result.add_edges(across, walk.near(across), walk.far(across), level)
        datasets = np.concatenate([walk.far(edges[~to_jobs]), walk.far(across)])
        frontier = result.add_nodes(datasets, level)
    return result.result()


class NodeWalk:
    """One direction through the node graph at one time."""

    def __init__(self, graph: NodeGraph, *, downstream: bool, as_of: int) -> None:
        ends = graph.flow.ends
        self._graph = graph
        self._downstream = downstream
        self._as_of = as_of
        self._rows = ends.leaving if downstream else ends.entering
        self._near = (ends.source if downstream else ends.target).values
        self._far = (ends.target if downstream else ends.source).values
        self._job_kind = EdgeKind.READS if downstream else EdgeKind.WRITES

    def first_levels(
        self, roots: Ints, visited: VisitMarks, opened: VisitMarks, deepest: int
    ) -> FirstLevels:
        """Walk node by node while that is faster than arrays, if every edge may be followed."""
        if self._as_of != FOREVER or not self._graph.all_to_all or len(roots) > 1:
            return start_at(roots)
        root = int(roots[0])
        if compiled := compilation.walks():
            return self._walk_compiled(root, compiled, visited, opened, deepest)
        flow, identities = self._graph.flow, self._graph.identities
        lookup = EdgeLookup(
            self._rows.one_by_one(), self._far.data, flow.kind.values.data, int(self._job_kind)
        )
        return walk_first_levels(root, lookup, identities or None, deepest)

    def _walk_compiled(
        self,
        root: int,
        compiled: ModuleType,
        visited: VisitMarks,
        opened: VisitMarks,
        deepest: int,
    ) -> FirstLevels:
        graph, size = self._graph, max(self._graph.size, root + 1)
        *found, next_node, level = compiled.walk_nodes(
            root,
            self._rows.arrays(),
            self._far,
            graph.flow.kind.values,
            int(self._job_kind),
            *graph.identities.arrays(),
            visited.begin(size),
            opened.begin(size),
            compiled.MANY,
            deepest,
        )
        nodes: Ints = found[0]
        if next_node == len(nodes):
            return FirstLevels._make((*found, NO_INTS, NO_INTS, level))
        jobs = opened.marked(nodes)
        frontier = nodes[next_node:][~jobs[next_node:]]
        return FirstLevels._make((*found, nodes[jobs], frontier, level))

    def edges(self, nodes: Ints) -> Ints:
        """Return the next edges of nodes, under any of their names."""
        edges = self._rows.of(self._graph.identities.every_name(nodes)[0])
        if self._as_of != FOREVER:
            edges = edges[self._graph.flow.first_at.of(edges) <= self._as_of]
        return edges

    def to_jobs(self, edges: Ints) -> Flags:
        """Return which edges from datasets lead to jobs. The others lead directly to datasets."""
        flags: Flags = self._graph.flow.kind[edges] == self._job_kind
        return flags

    def opened_by(self, edges: Ints) -> Ints:
        """Return the jobs of edges that pass data to all edges on their other side.

        An upstream walk leaves out edges to a dataset whose sources in the job are explicit.
        """
        return self.far(edges if self._downstream else self._implicit(edges))

    def across(self, jobs: Ints) -> Ints:
        """Return the edges on the other side of jobs."""
        if not len(jobs):
            return NO_INTS
        edges = self.edges(jobs)
        return self._implicit(edges) if self._downstream else edges

    def near(self, edges: Ints) -> Ints:
        """Return the nodes at the near ends of edges."""
        return self._graph.identities.canonicals(self._near[edges])

    def far(self, edges: Ints) -> Ints:
        """Return the nodes at the far ends of edges."""
        return self._graph.identities.canonicals(self._far[edges])

    def fillings(self, datasets: Ints) -> Ints:
        """Return the edges through which data reaches the next datasets.

        Downstream, these are the edges into the next datasets; upstream, those into `datasets`.
        """
        edges = self.edges(datasets)
        to_jobs = self.to_jobs(edges)
        if not self._downstream:
            return np.concatenate([edges[~to_jobs], self._implicit(edges[to_jobs])])
        jobs = np.unique(self.far(edges[to_jobs]))
        return np.concatenate([edges[~to_jobs], self.across(jobs)])

    def _implicit(self, edges: Ints) -> Ints:
        return edges[~self._graph.explicit(edges, self._as_of)]

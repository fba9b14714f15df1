"""What a walk through the graph has found: nodes nearest first, and the edges between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.adjacency import NONE, Ints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.graph.marks import Marks
    from downriver.graph.narrow import Narrow


class Reach(NamedTuple):
    """All that lies on one side of a root, which is the first of `nodes`.

    Edges are three arrays: the edge's number, and the nodes at its near and far end. `beyond` are
    the nodes past the depth limit.
    """

    nodes: Ints
    depths: Ints
    beyond: Ints
    edges: Ints
    near: Ints
    far: Ints

    def places(self, nodes: Ints) -> Ints:
        """Return where in `nodes` of this reach each of these is; all of them must be."""
        # empty, not zeros: what is not written here is never read, and costs nothing.
        places = np.empty(int(self.nodes.max()) + 1, np.int32)
        places[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        found: Ints = places[nodes]
        return found


class Discovery:
    """A reach being made, level by level, after a narrow beginning."""

    def __init__(self, beginning: Narrow, reached: Marks, limit: int | None) -> None:
        self._reached = reached
        self._limit = limit
        self._nodes = [beginning.nodes]
        self._depths = [beginning.depths]
        self._edges = [(beginning.edges, beginning.near, beginning.far)]
        if len(beginning.frontier):
            reached.restart()
            reached.add(self._nodes[0])

    def add_nodes(self, nodes: Ints, depth: int) -> Ints:
        """Note nodes and return those not met before."""
        new = self._reached.add(nodes)
        self._nodes.append(new)
        self._depths.append(np.full(len(new), depth, np.int32))
        return new

    def add_edges(self, edges: Ints, near: Ints, far: Ints, depth: int) -> None:
        """Note edges that lead to `depth`. Of those past the limit, some lead back within it."""
        if self._limit is None or depth <= self._limit + 1:
            self._edges.append((edges, near, far))

    def reach(self) -> Reach:
        """Return what was found: nodes within the limit, and the edges between any two of them."""
        nodes, depths = _joined(self._nodes), _joined(self._depths)
        edges, near, far = map(_joined, zip(*self._edges, strict=True))
        if self._limit is None or not len(nodes) or depths[-1] <= self._limit:
            return Reach(nodes, depths, NONE, edges, near, far)
        inside = depths <= self._limit
        nodes, depths, beyond = nodes[inside], depths[inside], nodes[~inside]
        # A table, not isin, which sorts: no node here is past the last one of all.
        shown = np.zeros(int(max(nodes.max(), beyond.max())) + 1, np.bool_)
        shown[nodes] = True
        within = shown[near] & shown[far]
        return Reach(nodes, depths, beyond, edges[within], near[within], far[within])


def _joined(parts: Sequence[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

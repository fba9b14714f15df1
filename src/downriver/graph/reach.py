"""What a walk through the graph has found: nodes nearest first, and the edges between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.adjacency import NONE, Ints, Longs

if TYPE_CHECKING:
    from downriver.graph.marks import Marks


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

    def places(self, nodes: Ints) -> Longs:
        """Return where in `nodes` of this reach each of these is; all of them must be."""
        order = np.argsort(self.nodes)
        return order[np.searchsorted(self.nodes, nodes, sorter=order)]


class Discovery:
    """A reach being made, level by level."""

    def __init__(self, root: int, reached: Marks, limit: int | None) -> None:
        self._reached = reached
        self._limit = limit
        self._nodes: list[Ints] = []
        self._depths: list[int] = []
        self._beyond: list[Ints] = [NONE]
        self._edges: list[tuple[Ints, Ints, Ints]] = [(NONE, NONE, NONE)]
        reached.restart()
        self.add_nodes(np.array([root], np.int32), 0)

    def add_nodes(self, nodes: Ints, depth: int) -> Ints:
        """Note nodes and return those not met before."""
        new = self._reached.add(nodes)
        if self._limit is not None and depth > self._limit:
            self._beyond.append(new)
        else:
            self._nodes.append(new)
            self._depths.append(depth)
        return new

    def add_edges(self, edges: Ints, near: Ints, far: Ints, depth: int) -> None:
        """Note edges that lead to `depth`. Of those past the limit, some lead back within it."""
        if self._limit is None or depth <= self._limit + 1:
            self._edges.append((edges, near, far))

    def reach(self) -> Reach:
        """Return what was found: nodes within the limit, and the edges between any two of them."""
        nodes, beyond = np.concatenate(self._nodes), np.concatenate(self._beyond)
        depths = np.repeat(self._depths, [len(level) for level in self._nodes]).astype(np.int32)
        edges, near, far = (np.concatenate(parts) for parts in zip(*self._edges, strict=True))
        if len(beyond):
            within = np.isin(near, nodes) & np.isin(far, nodes)
            edges, near, far = edges[within], near[within], far[within]
        return Reach(nodes, depths, beyond, edges, near, far)

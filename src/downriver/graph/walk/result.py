"""What a walk through the graph has found so far: the nodes it has met, nearest first, and the
edges between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.graph.index.adjacency import NO_INTS, Flags, GrowingArray, Ints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.graph.walk.first_levels import FirstLevels

Bytes = npt.NDArray[np.uint8]

_LAST_ROUND = 255


class VisitMarks:
    """A mark on every node a walk has met; the next walk starts without clearing them.

    A node is marked with the number of the walk, so that beginning one costs nothing however large
    the graph is. Walks take turns: whoever walks holds the lock of the index.
    """

    def __init__(self) -> None:
        self._rounds: GrowingArray[np.uint8] = GrowingArray(np.uint8)
        self._places: GrowingArray[np.int32] = GrowingArray(np.int32)
        self._round = 0

    def restart(self) -> None:
        """Begin a walk: nothing is marked."""
        if self._round == _LAST_ROUND:
            self._rounds.view[:] = 0
            self._round = 0
        self._round += 1

    def lend(self, size: int) -> tuple[Bytes, int]:
        """Begin a walk that marks nodes below `size` itself; return the marks and its number."""
        self.restart()
        self._rounds.grow(size)
        return self._rounds.view, self._round

    def marked(self, nodes: Ints) -> Flags:
        """Tell which nodes have a mark."""
        flags: Flags = self._rounds.view[nodes] == self._round
        return flags

    def add(self, nodes: Ints) -> Ints:
        """Mark nodes and return those that had no mark, each once."""
        if not len(nodes):
            return NO_INTS
        self._rounds.grow(int(nodes.max()) + 1)
        new: Ints = nodes[self._rounds.view[nodes] != self._round]
        if len(new) > 1:
            new = self._each_once(new)
        self._rounds.view[new] = self._round
        return new

    def _each_once(self, nodes: Ints) -> Ints:
        # Of equal nodes the last to write its place stays: no sorting, which is half of a walk.
        self._places.grow(self._rounds.size)
        places = np.arange(len(nodes), dtype=np.int32)
        self._places.view[nodes] = places
        once: Ints = nodes[self._places.view[nodes] == places]
        return once


class WalkResult(NamedTuple):
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


class WalkBuilder:
    """A reach being made, level by level, after a narrow beginning."""

    def __init__(self, beginning: FirstLevels, reached: VisitMarks, limit: int | None) -> None:
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

    def reach(self) -> WalkResult:
        """Return what was found: nodes within the limit, and the edges between any two of them."""
        nodes, depths = _joined(self._nodes), _joined(self._depths)
        edges, near, far = map(_joined, zip(*self._edges, strict=True))
        if self._limit is None or not len(nodes) or depths[-1] <= self._limit:
            return WalkResult(nodes, depths, NO_INTS, edges, near, far)
        inside = depths <= self._limit
        nodes, depths, beyond = nodes[inside], depths[inside], nodes[~inside]
        # A table, not isin, which sorts: no node here is past the last one of all.
        shown = np.zeros(int(max(nodes.max(), beyond.max())) + 1, np.bool_)
        shown[nodes] = True
        within = shown[near] & shown[far]
        return WalkResult(nodes, depths, beyond, edges[within], near[within], far[within])


def _joined(parts: Sequence[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

"""The result of a walk through the graph: nodes, nearest first, and the edges between them.

The marks of visited nodes belong to one walk. They come from a pool, because clearing or allocating
one byte for every node of the graph takes longer than most walks.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.graph.index.vectors import NO_INTS, Flags, Ints

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.graph.walk.first_levels import FirstLevels

Bytes = npt.NDArray[np.uint8]

UNLIMITED = int(np.iinfo(np.int32).max)  # deeper than any graph
_LAST_ROUND = 255
_MOST_IDLE = 8


class WalkResult(NamedTuple):
    """Everything on one side of a root, which is the first of `nodes`.

    Edges are three arrays: the edge's number, and the nodes at its near and far end. `beyond` are
    the nodes one step past the depth limit.
    """

    nodes: Ints
    depths: Ints
    beyond: Ints
    edges: Ints
    near: Ints
    far: Ints

    def places(self, nodes: Ints) -> Ints:
        """Return the index of each of these nodes in `self.nodes`. All must be there."""
        # Use empty, not zeros: entries that are not written are never read.
        places = np.empty(int(self.nodes.max()) + 1, np.int32)
        places[self.nodes] = np.arange(len(self.nodes), dtype=np.int32)
        indexes: Ints = places[nodes]
        return indexes


class VisitMarks:
    """A mark on every node that a walk has visited.

    A node is marked with the number of the walk, so that the next walk need not clear the marks.
    """

    def __init__(self) -> None:
        self._rounds: Bytes = np.zeros(16, np.uint8)
        self._places: Ints = np.zeros(16, np.int32)
        self._round = 0

    def restart(self) -> None:
        """Begin a walk: no node is marked."""
        if self._round == _LAST_ROUND:
            self._rounds[:] = 0
            self._round = 0
        self._round += 1

    def begin(self, size: int) -> tuple[Bytes, int]:
        """Begin a walk in compiled code over nodes below `size`; return marks and its number."""
        self.restart()
        self._grow(size)
        return self._rounds, self._round

    def marked(self, nodes: Ints) -> Flags:
        """Return which nodes have a mark."""
        flags: Flags = self._rounds[nodes] == self._round
        return flags

    def add(self, nodes: Ints) -> Ints:
        """Mark nodes and return those that had no mark, each once."""
        if not len(nodes):
            return NO_INTS
        self._grow(int(nodes.max()) + 1)
        new: Ints = nodes[self._rounds[nodes] != self._round]
        if len(new) > 1:
            new = self._each_once(new)
        self._rounds[new] = self._round
        return new

    def _each_once(self, nodes: Ints) -> Ints:
        # For equal nodes, the last write remains. This avoids a sort, which takes half of a walk.
        places = np.arange(len(nodes), dtype=np.int32)
        self._places[nodes] = places
        once: Ints = nodes[self._places[nodes] == places]
        return once

    def _grow(self, size: int) -> None:
        if size > len(self._rounds):
            size = max(size, len(self._rounds) * 3 // 2)
            rounds = np.zeros(size, np.uint8)
            rounds[: len(self._rounds)] = self._rounds
            self._rounds, self._places = rounds, np.zeros(size, np.int32)


_idle_marks: list[VisitMarks] = []


@contextmanager
def borrowed_marks() -> Iterator[VisitMarks]:
    """Lend marks to one walk."""
    try:
        marks = _idle_marks.pop()
    except IndexError:
        marks = VisitMarks()
    yield marks
    # Not after an exception: the marks of an interrupted walk are not returned to the pool.
    if len(_idle_marks) < _MOST_IDLE:
        _idle_marks.append(marks)


class WalkBuilder:
    """A result under construction, level by level, after the first levels."""

    def __init__(self, start: FirstLevels, visited: VisitMarks, limit: int | None) -> None:
        self._visited = visited
        self._limit = limit
        self._nodes = [start.nodes]
        self._depths = [start.depths]
        self._edges = [(start.edges, start.near, start.far)]
        if len(start.frontier):
            visited.restart()
            visited.add(self._nodes[0])

    def add_nodes(self, nodes: Ints, depth: int) -> Ints:
        """Add nodes and return those that are new."""
        new = self._visited.add(nodes)
        self._nodes.append(new)
        self._depths.append(np.full(len(new), depth, np.int32))
        return new

    def add_edges(self, edges: Ints, near: Ints, far: Ints, depth: int) -> None:
        """Add edges that lead to `depth`. Some edges past the limit lead back within it."""
        if self._limit is None or depth <= self._limit + 1:
            self._edges.append((edges, near, far))

    def result(self) -> WalkResult:
        """Return the nodes within the depth limit, and the edges between any two of them."""
        nodes, depths = _concatenate(self._nodes), _concatenate(self._depths)
        edges, near, far = map(_concatenate, zip(*self._edges, strict=True))
        if self._limit is None or not len(nodes) or depths[-1] <= self._limit:
            return WalkResult(nodes, depths, NO_INTS, edges, near, far)
        inside = depths <= self._limit
        nodes, depths, beyond = nodes[inside], depths[inside], nodes[~inside]
        # A table, not isin, which sorts.
        shown = np.zeros(int(max(nodes.max(), beyond.max())) + 1, np.bool_)
        shown[nodes] = True
        within = shown[near] & shown[far]
        return WalkResult(nodes, depths, beyond, edges[within], near[within], far[within])


def _concatenate(parts: Sequence[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

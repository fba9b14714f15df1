"""Edges between integers: compressed rows (CSR) in both directions, and an overlay for new edges.

The cost of a lookup depends on its result, not on the size of the graph. A few new edges are
chained by node; many are merged into the compressed rows. Everything here is immutable for its
readers: adding edges returns a new object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from downriver.graph.index.vectors import (
    NO_INTS,
    SMALLEST_FOLD,
    Ints,
    Longs,
    Vector,
    ranges,
    too_many_new,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_LONGEST_CHAINS = 256  # edges


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Directed edges, numbered in the order they were added."""

    source: Vector[np.int32]
    target: Vector[np.int32]
    leaving: EdgeRows
    entering: EdgeRows

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> Adjacency:
        """Return an adjacency without edges."""
        ends: Vector[np.int32] = Vector.empty(np.int32)
        rows = EdgeRows.empty(smallest_fold)
        return cls(ends, Vector.empty(np.int32), rows, rows)

    def __len__(self) -> int:
        return len(self.source)

    def appended(self, source: npt.ArrayLike, target: npt.ArrayLike) -> Adjacency:
        """Return an adjacency with more edges, which lookups find once it is `indexed`."""
        return replace(
            self, source=self.source.extended(source), target=self.target.extended(target)
        )

    def indexed(self) -> Adjacency:
        """Return an adjacency whose lookups find every edge."""
        return replace(
            self,
            leaving=self.leaving.covering(self.source.values),
            entering=self.entering.covering(self.target.values),
        )


class RowArrays(NamedTuple):
    """The edges at each node as arrays: its row, and its chain of new edges."""

    starts: Ints
    edges: Ints
    first_new: Ints
    next_new: Ints
    new_count: int


class EdgeRows:
    """The edges that each node has at one of their ends."""

    def __init__(
        self, starts: Ints, edges: Ints, new: NewEdgeChains, smallest_fold: int = SMALLEST_FOLD
    ) -> None:
        self._starts = starts
        self._edges = edges
        self._new = new
        self._smallest_fold = smallest_fold

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> EdgeRows:
        """Return rows without edges."""
        return cls(np.zeros(1, np.int32), NO_INTS, NewEdgeChains.empty(), smallest_fold)

    @classmethod
    def of_ends(cls, nodes: Ints) -> EdgeRows:
        """Return the rows of edges, given the node at one end of each."""
        return cls.empty(smallest_fold=0).covering(nodes)

    def covering(self, nodes: Ints) -> EdgeRows:
        """Return rows that hold more edges; `nodes` is the end of every edge, old and new."""
        compressed = len(self._edges)
        if len(nodes) == compressed + len(self._new):
            return self
        # A graph with few edges is merged whenever it doubles: its chains would be long.
        smallest_fold = min(self._smallest_fold, max(compressed, _LONGEST_CHAINS))
        if too_many_new(len(nodes) - compressed, compressed, smallest_fold):
            return self._folded(nodes)
        new = self._new.covering(nodes[compressed:])
        return EdgeRows(self._starts, self._edges, new, self._smallest_fold)

    def _folded(self, nodes: Ints) -> EdgeRows:
        """Merge the new edges into the rows, each at the end of its node's row."""
        compressed = len(self._edges)
        new = nodes[compressed:]
        order = _order(new)
        size = max(len(self._starts) - 1, int(new.max()) + 1)
        starts = np.full(size + 1, compressed, np.int32)
        starts[: len(self._starts)] = self._starts
        if compressed:
            ends_of_rows = starts[new[order] + 1]
            edges = np.insert(self._edges, ends_of_rows, order + np.int32(compressed))
        else:
            edges = order
        starts[1:] += np.cumsum(np.bincount(new, minlength=size), dtype=np.int32)
        return EdgeRows(starts, edges, NewEdgeChains.empty(), self._smallest_fold)

    def arrays(self) -> RowArrays:
        """Return the arrays, for compiled code."""
        new = self._new
        return RowArrays(self._starts, self._edges, new.first, new.next, len(new))

    def of(self, nodes: Ints) -> Ints:
        """Return the numbers of the edges at any of these nodes."""
        return self.of_each(nodes)[0]

    def of_each(self, nodes: Ints) -> tuple[Ints, Longs]:
        """Return the edges at these nodes, and the position in `nodes` of the node of each edge."""
        edges, places = self._of_each_compressed(nodes)
        if not len(self._new):
            return edges, places
        new, at = self._new.of_each(nodes)
        if not len(new):
            return edges, places
        numbers = new + np.int32(len(self._edges) - 1)
        return np.concatenate([edges, numbers]), np.concatenate([places, at])

    def _of_each_compressed(self, nodes: Ints) -> tuple[Ints, Longs]:
        last = len(self._starts) - 1  # nodes past the end have no edges: their range is empty
        starts = self._starts[np.minimum(nodes, last)]
        counts = self._starts[np.minimum(nodes + 1, last)] - starts
        return self._edges[ranges(starts, counts)], np.repeat(np.arange(len(nodes)), counts)

    def one_by_one(self) -> Callable[[int], Sequence[int]]:
        """Return a function from a node to its edges. For few nodes it is faster than arrays."""
        starts, edges, first, after = (
            array.data for array in (self._starts, self._edges, self._new.first, self._new.next)
        )
        last, chained, compressed, count = len(starts) - 1, len(first), len(edges), len(self._new)

        def of(node: int) -> Sequence[int]:
            row = edges[starts[node] : starts[node + 1]] if node < last else ()
            edge = first[node] if node < chained else 0
            if not 0 < edge <= count:
                return row
            every = list(row)
            while 0 < edge <= count:
                every.append(compressed + edge - 1)
                edge = after[edge]
            return every

        return of


class NewEdgeChains:
    """New edges by node: each node has its first edge, each edge the next one at the same node.

    Edges are numbered from 1 on; 0 is none. A later object may add edges to the same memory, always
    at the end of a chain. So a chain ends at 0 or at the first number past this object's length.
    """

    def __init__(self, buffers: _ChainBuffers, count: int) -> None:
        self._buffers = buffers
        self._count = count
        self.first = buffers.first
        self.next = buffers.next

    @classmethod
    def empty(cls) -> NewEdgeChains:
        """Return chains without edges."""
        return cls(_ChainBuffers(), 0)

    def __len__(self) -> int:
        return self._count

    def covering(self, nodes: Ints) -> NewEdgeChains:
        """Return chains of more edges; `nodes` is the node of every edge, old and new."""
        buffers, known = self._buffers, self._count
        if buffers.count != known:  # a load that failed added these edges: ignore them
            buffers, known = _ChainBuffers(), 0
        buffers.append(nodes[known:])
        return NewEdgeChains(buffers, len(nodes))

    def of_each(self, nodes: Ints) -> tuple[Ints, Longs]:
        """Return the edges at nodes, and for each edge the position of its node in `nodes`."""
        places = np.flatnonzero(nodes < len(self.first))
        edges = self.first[nodes[places]]
        parts, at = [NO_INTS], [places[:0]]
        while True:
            here = (edges > 0) & (edges <= self._count)
            places, edges = places[here], edges[here]
            if not len(places):
                return np.concatenate(parts), np.concatenate(at)
            parts.append(edges)
            at.append(places)
            edges = self.next[edges]


class _ChainBuffers:
    """The memory that several chains share. Only the newest chains append to it."""

    def __init__(self) -> None:
        self.first: Ints = np.zeros(16, np.int32)  # by node
        self.next: Ints = np.zeros(16, np.int32)  # by edge
        self._last: Ints = np.zeros(16, np.int32)  # by node
        self.count = 0

    def append(self, nodes: Ints) -> None:
        """Add an edge at the end of each node's chain."""
        if not len(nodes):
            return
        size = int(nodes.max()) + 1
        self.first, self._last = _with_room(self.first, size), _with_room(self._last, size)
        self.next = _with_room(self.next, self.count + len(nodes) + 1)
        first, last, after = self.first.data, self._last.data, self.next.data
        for edge, node in enumerate(nodes.tolist(), self.count + 1):
            if before := last[node]:
                after[before] = edge
            else:
                first[node] = edge
            last[node] = edge
        self.count += len(nodes)


def _with_room(array: Ints, size: int) -> Ints:
    if size <= len(array):
        return array
    larger = np.zeros(max(size, len(array) * 3 // 2), np.int32)
    larger[: len(array)] = array
    return larger


def _order(nodes: Ints) -> Ints:
    """Return the places of nodes in ascending order of the nodes; a stable sort."""
    # Sorting node and place packed into one number takes half the time and memory of argsort.
    packed = nodes.astype(np.int64)
    packed <<= 32
    packed |= np.arange(len(nodes), dtype=np.int32)
    packed.sort()
    packed &= 0xFFFF_FFFF
    return packed.astype(np.int32)

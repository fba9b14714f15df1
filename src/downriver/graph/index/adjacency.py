"""Edges between integers: compressed rows (CSR) both ways, and an overlay for what is new.

A lookup costs what it returns, not what the graph holds. A few new edges are chained up by node;
many are left to the next lookup, which merges them into the compressed rows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

T = TypeVar("T", bound=np.generic)

SMALLEST_FOLD = 4096
NO_INTS: Ints = np.empty(0, np.int32)


def too_many_new(new: int, compressed: int, smallest_fold: int) -> bool:
    """Tell whether an overlay has grown past a hundredth of what it lies over."""
    return new > max(smallest_fold, compressed // 100)


def ranges(starts: Longs | Ints, counts: Longs | Ints) -> Longs:
    """Return `start, start + 1, …` of every range, one after the other."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def _order(nodes: Ints) -> Ints:
    """Return the places of nodes in ascending order, those of equal nodes as they come."""
    # Sorting node and place packed into one number takes half the time and memory of argsort.
    packed = nodes.astype(np.int64)
    packed <<= 32
    packed |= np.arange(len(nodes), dtype=np.int32)
    packed.sort()
    packed &= 0xFFFF_FFFF
    return packed.astype(np.int32)


class GrowingArray(Generic[T]):
    """A one-dimensional array that grows; `view` is what has been put in, 0 where nothing was."""

    def __init__(self, dtype: type[T]) -> None:
        # zeros, not empty or full: pages no one has written to cost no memory.
        self._data: npt.NDArray[T] = np.zeros(16, dtype)
        self.size = 0

    @property
    def view(self) -> npt.NDArray[T]:
        """The values so far, without a copy. Take it anew after growing."""
        return self._data[: self.size]

    def extend(self, values: npt.ArrayLike) -> None:
        """Put values at the end."""
        new = np.asarray(values, self._data.dtype)
        start = self.size
        self.grow(start + len(new))
        self._data[start : self.size] = new

    def grow(self, size: int) -> None:
        """Make room for indexes below `size`."""
        if size > len(self._data):
            larger = np.zeros(max(size, len(self._data) * 3 // 2), self._data.dtype)
            larger[: self.size] = self.view
            self._data = larger
        self.size = max(self.size, size)


class Adjacency:
    """Directed edges, numbered in the order they were added."""

    def __init__(self, smallest_fold: int = SMALLEST_FOLD) -> None:
        self.source: GrowingArray[np.int32] = GrowingArray(np.int32)
        self.target: GrowingArray[np.int32] = GrowingArray(np.int32)
        self.leaving = EdgeRows(self.source, smallest_fold)
        self.entering = EdgeRows(self.target, smallest_fold)

    def __len__(self) -> int:
        return self.source.size

    def extend(self, source: npt.ArrayLike, target: npt.ArrayLike) -> None:
        """Add edges."""
        self.source.extend(source)
        self.target.extend(target)
        self.leaving.note_new()
        self.entering.note_new()


class NewEdgeChains:
    """New edges by node: each edge knows the next one at its node, the node its first and last.

    Edges are given by number, less what is compressed, plus 1: 0 is none.
    """

    def __init__(self) -> None:
        self.first: GrowingArray[np.int32] = GrowingArray(np.int32)  # by node
        self._last: GrowingArray[np.int32] = GrowingArray(np.int32)  # by node
        self.next: GrowingArray[np.int32] = GrowingArray(np.int32)  # by edge
        self.next.grow(1)

    def __len__(self) -> int:
        return self.next.size - 1

    def extend(self, nodes: Ints) -> None:
        """Add an edge at the end of each node's chain."""
        if not len(nodes):
            return
        size, start = int(nodes.max()) + 1, self.next.size
        for array in (self.first, self._last, self.next):
            array.grow(start + len(nodes) if array is self.next else size)
        first, last, after = self.first.view.data, self._last.view.data, self.next.view.data
        for edge, node in enumerate(nodes.tolist(), start):
            if before := last[node]:
                after[before] = edge
            else:
                first[node] = edge
            last[node] = edge

    def of_each(self, nodes: Ints) -> tuple[Ints, Longs]:
        """Return the edges at nodes, and for each the place in `nodes` it belongs to."""
        places = np.flatnonzero(nodes < self.first.size)
        edges = self.first.view[nodes[places]]
        found, at = [NO_INTS], [places[:0]]
        while len(places := places[edges > 0]):
            edges = edges[edges > 0]
            found.append(edges)
            at.append(places)
            edges = self.next.view[edges]
        return np.concatenate(found), np.concatenate(at)

    def clear(self, nodes: Ints) -> None:
        """Forget all; `nodes` are those that edges were added at."""
        known = nodes[nodes < self.first.size]
        self.first.view[known] = 0
        self._last.view[known] = 0
        self.next = GrowingArray(np.int32)
        self.next.grow(1)


class RowArrays(NamedTuple):
    """The edges at each node as arrays: its row, and its chain of what came since."""

    starts: Ints
    edges: Ints
    first_new: Ints
    next_new: Ints


class EdgeRows:
    """Which edges each node has at one end: `nodes` is that end of every edge."""

    def __init__(self, nodes: GrowingArray[np.int32], smallest_fold: int = SMALLEST_FOLD) -> None:
        self._nodes = nodes
        self._smallest_fold = smallest_fold
        self._starts: Ints = np.zeros(1, np.int32)
        self._edges: Ints = NO_INTS
        self._new = NewEdgeChains()

    def note_new(self) -> None:
        """Take in the edges added since, unless they are so many that folding is cheaper."""
        if not self._must_fold():
            self._new.extend(self._nodes.view[len(self._edges) + len(self._new) :])

    def of(self, nodes: Ints) -> Ints:
        """Return the numbers of the edges at any of these nodes."""
        return self.of_each(nodes)[0]

    def arrays(self) -> RowArrays:
        """Return all of it, to be read by node."""
        if self._must_fold():
            self._fold()
        return RowArrays(self._starts, self._edges, self._new.first.view, self._new.next.view)

    def one_by_one(self) -> Callable[[int], Sequence[int]]:
        """Return a function from a node to its edges: for few nodes cheaper than arrays."""
        starts, edges, first, after = (array.data for array in self.arrays())
        last, chained, compressed = len(starts) - 1, len(first), len(edges)

        def of(node: int) -> Sequence[int]:
            row = edges[starts[node] : starts[node + 1]] if node < last else ()
            edge = first[node] if node < chained else 0
            if not edge:
                return row
            every = list(row)
            while edge:
                every.append(compressed + edge - 1)
                edge = after[edge]
            return every

        return of

    def of_each(self, nodes: Ints) -> tuple[Ints, Longs]:
        """Return the edges at these nodes, and for each the place in `nodes` it belongs to."""
        if self._must_fold():
            self._fold()
        edges, places = self._compressed(nodes)
        if not len(self._new):
            return edges, places
        new, at = self._new.of_each(nodes)
        if not len(new):
            return edges, places
        numbers = new + np.int32(len(self._edges) - 1)
        return np.concatenate([edges, numbers]), np.concatenate([places, at])

    def _compressed(self, nodes: Ints) -> tuple[Ints, Longs]:
        last = len(self._starts) - 1  # nodes past it have no edges here: start and end at the end
        starts = self._starts[np.minimum(nodes, last)]
        counts = self._starts[np.minimum(nodes + 1, last)] - starts
        return self._edges[ranges(starts, counts)], np.repeat(np.arange(len(nodes)), counts)

    def _must_fold(self) -> bool:
        compressed = len(self._edges)
        return too_many_new(self._nodes.size - compressed, compressed, self._smallest_fold)

    def _fold(self) -> None:
        """Merge what is new into the rows, each edge at the end of its node's row."""
        compressed = len(self._edges)
        new = self._nodes.view[compressed:]
        order = _order(new)
        size = max(len(self._starts) - 1, int(new.max()) + 1)
        starts = np.full(size + 1, compressed, np.int32)
        starts[: len(self._starts)] = self._starts
        if compressed:
            ends_of_rows = starts[new[order] + 1]
            self._edges = np.insert(self._edges, ends_of_rows, order + np.int32(compressed))
        else:
            self._edges = order
        starts[1:] += np.cumsum(np.bincount(new, minlength=size), dtype=np.int32)
        self._starts = starts
        self._new.clear(new)

"""Edges between integers: compressed rows (CSR) both ways, and an overlay for what is new.

A lookup costs what it returns, not what the graph holds. A few new edges go to a small dictionary;
many are left to the next lookup, which merges them into the compressed rows at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

T = TypeVar("T", bound=np.generic)

SMALLEST_FOLD = 4096
NONE: Ints = np.empty(0, np.int32)


def too_many_new(new: int, compressed: int, smallest_fold: int) -> bool:
    """Tell whether an overlay has grown past a hundredth of what it lies over."""
    return new > max(smallest_fold, compressed // 100)


def ranges(starts: Longs | Ints, counts: Longs | Ints) -> Longs:
    """Return `start, start + 1, …` of every range, one after the other."""
    before = np.cumsum(counts, dtype=np.int64) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))


def with_overlay(
    found: Ints, places: Longs, keys: Ints | Longs, overlay: Mapping[int, list[int]]
) -> tuple[Ints, Longs]:
    """Add what an overlay has for `keys`, and for each the place in `keys` it belongs to."""
    if not overlay:
        return found, places
    new = [(one, at) for at, key in enumerate(keys.tolist()) for one in overlay.get(key, ())]
    if not new:
        return found, places
    more, at = zip(*new, strict=True)
    return (
        np.concatenate([found, np.array(more, np.int32)]),
        np.concatenate([places, np.array(at, np.int64)]),
    )


def _order(nodes: Ints) -> Ints:
    """Return the places of nodes in ascending order, those of equal nodes as they come."""
    # Sorting node and place packed into one number takes half the time and memory of argsort.
    packed = nodes.astype(np.int64)
    packed <<= 32
    packed |= np.arange(len(nodes), dtype=np.int32)
    packed.sort()
    packed &= 0xFFFF_FFFF
    return packed.astype(np.int32)


class Growing(Generic[T]):
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
        self.source: Growing[np.int32] = Growing(np.int32)
        self.target: Growing[np.int32] = Growing(np.int32)
        self.leaving = Rows(self.source, smallest_fold)
        self.entering = Rows(self.target, smallest_fold)

    def __len__(self) -> int:
        return self.source.size

    def extend(self, source: npt.ArrayLike, target: npt.ArrayLike) -> None:
        """Add edges."""
        self.source.extend(source)
        self.target.extend(target)
        self.leaving.note_new()
        self.entering.note_new()


class Rows:
    """Which edges each node has at one end: `nodes` is that end of every edge."""

    def __init__(self, nodes: Growing[np.int32], smallest_fold: int = SMALLEST_FOLD) -> None:
        self._nodes = nodes
        self._smallest_fold = smallest_fold
        self._starts: Ints = np.zeros(1, np.int32)
        self._edges: Ints = NONE
        self._new: defaultdict[int, list[int]] = defaultdict(list)
        self._indexed = 0  # edges below this are in the rows or in the overlay

    def note_new(self) -> None:
        """Take in the edges added since, unless they are so many that folding is cheaper."""
        if self._must_fold():
            return
        new = self._nodes.view[self._indexed :].tolist()
        for edge, node in enumerate(new, self._indexed):
            self._new[node].append(edge)
        self._indexed = self._nodes.size

    def of(self, nodes: Ints) -> Ints:
        """Return the numbers of the edges at any of these nodes."""
        return self.of_each(nodes)[0]

    def one_by_one(self) -> Callable[[int], Sequence[int]]:
        """Return a function from a node to its edges: for few nodes cheaper than arrays."""
        if self._must_fold():
            self._fold()
        starts, edges, last = (
            self._starts.data,
            self._edges.data,
            len(self._starts) - 1,
        )
        overlay = self._new

        def of(node: int) -> Sequence[int]:
            row = edges[starts[node] : starts[node + 1]] if node < last else ()
            new = overlay.get(node)
            return row if new is None else [*row, *new]

        return of

    def of_each(self, nodes: Ints) -> tuple[Ints, Longs]:
        """Return the edges at these nodes, and for each the place in `nodes` it belongs to."""
        if self._must_fold():
            self._fold()
        edges, places = self._compressed(nodes)
        return with_overlay(edges, places, nodes, self._new)

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
        self._new.clear()
        self._indexed = self._nodes.size

"""Which nodes a walk has met."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from downriver.graph.adjacency import NONE, Flags, Growing, Ints

Bytes = npt.NDArray[np.uint8]

_LAST_ROUND = 255


class Marks:
    """A mark on every node a walk has met; the next walk starts without clearing them.

    A node is marked with the number of the walk, so that beginning one costs nothing however large
    the graph is. Walks take turns: whoever walks holds the lock of the index.
    """

    def __init__(self) -> None:
        self._rounds: Growing[np.uint8] = Growing(np.uint8)
        self._places: Growing[np.int32] = Growing(np.int32)
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
            return NONE
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

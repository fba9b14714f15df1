"""Which nodes a walk has met."""

from __future__ import annotations

import numpy as np

from downriver.graph.adjacency import NONE, Growing, Ints

_LAST_ROUND = 255


class Marks:
    """A mark on every node a walk has met; the next walk starts without clearing them.

    A node is marked with the number of the walk, so that beginning one costs nothing however large
    the graph is. Walks take turns: whoever walks holds the lock of the index.
    """

    def __init__(self) -> None:
        self._rounds: Growing[np.uint8] = Growing(np.uint8)
        self._round = 0

    def restart(self) -> None:
        """Begin a walk: nothing is marked."""
        if self._round == _LAST_ROUND:
            self._rounds.view[:] = 0
            self._round = 0
        self._round += 1

    def add(self, nodes: Ints) -> Ints:
        """Mark nodes and return those that had no mark, sorted and each once."""
        if not len(nodes):
            return NONE
        self._rounds.grow(int(nodes.max()) + 1)
        new: Ints = nodes[self._rounds.view[nodes] != self._round]
        if len(new):
            new = np.unique(new)
            self._rounds.view[new] = self._round
        return new

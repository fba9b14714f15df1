"""The graph in memory, kept in step with a store.

Node, column and claim numbers are the store's own ids. Names stay in the store: an answer fetches
the few it shows.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from downriver.graph.index.adjacency import SMALLEST_FOLD
from downriver.graph.index.column_graph import ColumnGraph
from downriver.graph.index.node_graph import NodeGraph
from downriver.store import StoreState

if TYPE_CHECKING:
    from downriver.store import CatalogReader, Store


class GraphSnapshot:
    """Datasets, jobs and columns as integers. Hold `lock` while refreshing or reading it."""

    def __init__(self, store: Store, *, smallest_fold: int = SMALLEST_FOLD) -> None:
        self._store = store
        self._smallest_fold = smallest_fold
        self.lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self._state = StoreState(0, 0)
        self.nodes = NodeGraph(self._smallest_fold)
        self.columns = ColumnGraph(self._smallest_fold)

    def refresh(self, reader: CatalogReader) -> None:
        """Take in what was written since, by this process or another, as far as `reader` sees."""
        if self._store.state() == self._state:
            return
        state = reader.state()
        if state.generation != self._state.generation:
            self._reset()
        self.nodes.load(reader, self._state.seq)
        self.columns.load(reader, self._state.seq)
        self._state = state

"""The graph in memory: immutable snapshots, and the index that replaces them as the store changes.

Node, column and claim numbers are the store's own ids. Names stay in the store: an answer fetches
the few it shows.

A question takes the current snapshot and a read transaction of the same state, and holds no lock
while it is answered. Only one thread at a time loads what is new.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.answer_cache import AnswerCache, EdgeVersion
from downriver.graph.index.column_graph import ColumnGraph
from downriver.graph.index.edges import FOREVER
from downriver.graph.index.isolated_jobs import IsolatedJobs
from downriver.graph.index.node_graph import NodeGraph
from downriver.graph.index.rendered_nodes import MOST_BYTES, RenderedNodes
from downriver.graph.index.search_index import SearchIndex
from downriver.graph.index.vectors import SMALLEST_FOLD
from downriver.graph.walk.neighbourhood import find_neighbours
from downriver.store import StoreState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.store import CatalogReader, Store


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """Datasets, jobs and columns as integers, at one state of a store. Immutable."""

    state: StoreState
    nodes: NodeGraph
    columns: ColumnGraph
    isolated_jobs: IsolatedJobs = field(default_factory=IsolatedJobs, compare=False)
    retired: frozenset[int] = frozenset()  # nodes without edges here
    cache: AnswerCache = field(default_factory=AnswerCache, compare=False)
    rendered: RenderedNodes = field(default_factory=RenderedNodes, compare=False)

    @property
    def version(self) -> EdgeVersion:
        """What edges that are rendered from this snapshot are valid for."""
        return EdgeVersion(self.state, self.nodes.identities.naming)

    @classmethod
    def empty(
        cls, smallest_fold: int = SMALLEST_FOLD, rendered_bytes: int = MOST_BYTES
    ) -> GraphSnapshot:
        """Return the graph of a store without events."""
        nodes, columns = NodeGraph.empty(smallest_fold), ColumnGraph.empty(smallest_fold)
        return cls(StoreState(0, 0), nodes, columns, rendered=RenderedNodes(rendered_bytes))

    def loaded(self, reader: CatalogReader, retired: frozenset[int] = frozenset()) -> GraphSnapshot:
        """Return the graph at the state of `reader`, which must not be older than this one.

        Nodes in `retired` have no edges; they must be those of this graph if it has any edges.
        """
        after = self.state.seq
        return GraphSnapshot(
            reader.state(),
            self.nodes.loaded(reader, after, retired),
            self.columns.loaded(reader, after, retired),
            retired=retired,
            cache=self.cache if after else AnswerCache(),
            rendered=self.rendered if after else RenderedNodes(self.rendered.most_bytes),
        )


class CatalogSnapshot(NamedTuple):
    """The data for one question: the graph, and a read transaction of the same state."""

    graph: GraphSnapshot
    reader: CatalogReader


class GraphIndex:
    """The current snapshot of a store's graph. Safe to share between threads."""

    def __init__(
        self,
        store: Store,
        *,
        smallest_fold: int = SMALLEST_FOLD,
        rendered_bytes: int = MOST_BYTES,
    ) -> None:
        self._store = store
        self._empty = GraphSnapshot.empty(smallest_fold, rendered_bytes)
        self._current = self._empty
        self._of_past = self._empty  # the last one that a question about the past needed
        self._loading = threading.Lock()
        self._search = SearchIndex()
        self._loading_search = threading.Lock()
        self._per_thread = threading.local()

    @contextmanager
    def reading(self, as_of: int = FOREVER) -> Iterator[CatalogSnapshot]:
        """Open a view of everything written so far; inside another one of this thread, the same.

        Nodes that were retired after `as_of` have their edges in it.
        """
        outer: CatalogSnapshot | None = getattr(self._per_thread, "view", None)
        if outer is not None:
            yield outer
            return
        with ExitStack() as stack:
            view = self._past(self._open(stack), as_of)
            self._per_thread.view = view
            stack.callback(setattr, self._per_thread, "view", None)
            yield view

    def search_index(self, view: CatalogSnapshot) -> SearchIndex:
        """Return the index for searches, with everything of a snapshot."""
        with self._loading_search:
            self._search = index = self._search.loaded(view)
        return index

    def _past(self, view: CatalogSnapshot, as_of: int) -> CatalogSnapshot:
        """Return a view with the nodes that were not yet retired at a time."""
        if as_of == FOREVER or not view.graph.retired:
            return view
        retired = frozenset(n for n, at in view.reader.retirement.retired().items() if at <= as_of)
        if retired == view.graph.retired:
            return view
        with self._loading:
            if (self._of_past.state, self._of_past.retired) != (view.graph.state, retired):
                self._of_past = self._empty.loaded(view.reader, retired)
            return CatalogSnapshot(self._of_past, view.reader)

    def _open(self, stack: ExitStack) -> CatalogSnapshot:
        reader = stack.enter_context(self._store.reader())
        graph = self._current
        if graph.state == reader.state():
            return CatalogSnapshot(graph, reader)
        # Another reader, opened while nothing else loads: it is never older than the snapshot.
        stack.close()
        with self._loading:
            reader = stack.enter_context(self._store.reader())
            return CatalogSnapshot(self._refreshed(reader), reader)

    def _refreshed(self, reader: CatalogReader) -> GraphSnapshot:
        state, current = reader.state(), self._current
        if state == current.state:
            return current
        # Older only if the store was restored, or this thread opened its reader long ago.
        if state.generation != current.state.generation or state.seq < current.state.seq:
            current = self._empty
        retired = frozenset(reader.retirement.retired())
        if retired != current.retired:
            current = self._empty
        loaded = current.loaded(reader, retired)
        loaded.cache.refresh(loaded.version, reader.changes.touched_edges(current.state.seq))
        loaded.rendered.refresh(state, _rendered_again(current, loaded, reader))
        self._current = loaded
        return self._current


def _rendered_again(
    before: GraphSnapshot, after: GraphSnapshot, reader: CatalogReader
) -> list[int] | None:
    """Return the nodes that events after a snapshot mention, and their neighbours. None: all."""
    if not len(before.rendered) or after.nodes.identities is not before.nodes.identities:
        return None
    touched = reader.changes.touched_nodes(before.state.seq)
    if touched is None:
        return None
    nodes = after.nodes.identities.canonicals(np.fromiter(touched, np.int32, len(touched)))
    changed: list[int] = np.union1d(nodes, find_neighbours(after.nodes, nodes)).tolist()
    return changed

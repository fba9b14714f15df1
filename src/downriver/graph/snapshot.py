"""The graph in memory: immutable snapshots, and the index that replaces them as the store changes.

Node, column and claim numbers are the store's own ids. Names are not loaded: an answer reads the
few names that it shows from the store.

A question takes the current snapshot and a read transaction of the same state, and holds no lock
while it is answered. Only one thread at a time loads what is new.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.answer_cache import AnswerCache, EdgeVersion
from downriver.graph.index.column_graph import ColumnGraph
from downriver.graph.index.edges import FOREVER, RetiredEdges
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
    retired_edges: RetiredEdges = frozenset()
    cache: AnswerCache = field(default_factory=AnswerCache, compare=False)
    rendered: RenderedNodes = field(default_factory=RenderedNodes, compare=False)

    @property
    def version(self) -> EdgeVersion:
        """The version of edges that are rendered from this snapshot."""
        return EdgeVersion(self.state, self.nodes.identities.naming)

    @classmethod
    def empty(
        cls, smallest_fold: int = SMALLEST_FOLD, rendered_bytes: int = MOST_BYTES
    ) -> GraphSnapshot:
        """Return the graph of a store without events."""
        nodes, columns = NodeGraph.empty(smallest_fold), ColumnGraph.empty(smallest_fold)
        return cls(StoreState(0, 0), nodes, columns, rendered=RenderedNodes(rendered_bytes))

    def loaded(
        self,
        reader: CatalogReader,
        retired: frozenset[int] = frozenset(),
        retired_edges: RetiredEdges = frozenset(),
    ) -> GraphSnapshot:
        """Return the graph at the state of `reader`, which must not be older than this one.

        Nodes in `retired` have no edges, and `retired_edges` are left out; they must be those of
        this graph if it has any edges.
        """
        after = self.state.seq
        return GraphSnapshot(
            reader.state(),
            self.nodes.loaded(reader, after, retired, retired_edges),
            self.columns.loaded(reader, after, retired, retired_edges),
            retired=retired,
            retired_edges=retired_edges,
            cache=self.cache if after else AnswerCache(),
            rendered=self.rendered if after else RenderedNodes(self.rendered.most_bytes),
        )

    def at(self, moment: int) -> GraphSnapshot:
        """Return the graph with the identities of its datasets at a moment."""
        nodes = self.nodes.at(moment)
        if nodes is self.nodes:
            return self
        rendered = RenderedNodes(self.rendered.most_bytes)
        return replace(self, nodes=nodes, cache=AnswerCache(), rendered=rendered)


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
        self._of_past = self._empty  # the last set for a question about the past
        # The last graph that was named as of a time: of which graph, the time, and the result.
        self._renamed: tuple[GraphSnapshot, int, GraphSnapshot] | None = None
        self._loading = threading.Lock()
        self._search = SearchIndex()
        self._loading_search = threading.Lock()
        self._per_thread = threading.local()

    @contextmanager
    def reading(self, as_of: int = FOREVER) -> Iterator[CatalogSnapshot]:
        """Open a view of everything written so far; inside another one of this thread, the same.

        Nodes that were retired after `as_of` have their edges in it, and datasets have only the
        names that were known then.
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
        """Return a view with the nodes that were not yet retired at a time, named as then."""
        if as_of == FOREVER:
            return view
        graph, kept = self._unretired(view, as_of), self._renamed
        if kept is not None and kept[0] is graph and kept[1] == as_of:
            return CatalogSnapshot(kept[2], view.reader)
        past = graph.at(as_of)
        if past is not graph:
            self._renamed = graph, as_of, past
        return CatalogSnapshot(past, view.reader)

    def _unretired(self, view: CatalogSnapshot, as_of: int) -> GraphSnapshot:
        graph, retirement = view.graph, view.reader.retirement
        if not (graph.retired or graph.retired_edges):
            return graph
        retired = frozenset(n for n, at in retirement.retired().items() if at <= as_of)
        edges = frozenset(e for e, at in retirement.retired_edges().items() if at <= as_of)
        if (retired, edges) == (graph.retired, graph.retired_edges):
            return graph
        with self._loading:
            past = self._of_past
            if (past.state, past.retired, past.retired_edges) != (graph.state, retired, edges):
                self._of_past = self._empty.loaded(view.reader, retired, edges)
            return self._of_past

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
        edges = frozenset(reader.retirement.retired_edges())
        if (retired, edges) != (current.retired, current.retired_edges):
            current = self._empty
        loaded = current.loaded(reader, retired, edges)
        loaded.cache.refresh(loaded.version, reader.changes.touched_edges(current.state.seq))
        loaded.rendered.refresh(state, _rendered_again(current, loaded, reader))
        self._current = loaded
        return self._current


def _rendered_again(
    before: GraphSnapshot, after: GraphSnapshot, reader: CatalogReader
) -> list[int] | None:
    """Return the nodes that events after a snapshot mention, and their neighbours; None for all."""
    if not len(before.rendered) or after.nodes.identities is not before.nodes.identities:
        return None
    touched = reader.changes.touched_nodes(before.state.seq)
    if touched is None:
        return None
    nodes = after.nodes.identities.canonicals(np.fromiter(touched, np.int32, len(touched)))
    changed: list[int] = np.union1d(nodes, find_neighbours(after.nodes, nodes)).tolist()
    return changed

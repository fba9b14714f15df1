"""A cache of the parts of answers: names, nodes, and edges with their evidence.

The name of a node changes only when the catalog is rebuilt. The evidence of an edge changes with
each event that shows the edge. So edges are kept for the newest snapshot only: a refresh drops
those that changed, and a question on an older snapshot reads the store.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from downriver.model.answers import TraceNode
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from downriver.graph.index.identities import DisplayName, Identities
    from downriver.model.answers import TraceEdge
    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader, StoreState

_MOST_NAMES = 200_000
_MOST_EDGES = 200_000


class EdgeVersion(NamedTuple):
    """The version of rendered edges: a state of the store, and the names of its datasets."""

    state: StoreState
    naming: object


class AnswerCache:
    """Nodes and edges as answers show them, of one generation of a catalog. Thread-safe.

    Answers share these objects, which are immutable.
    """

    def __init__(self) -> None:
        self._names: dict[int, NodeId] = {}
        self._nodes: tuple[object, dict[tuple[int, int], TraceNode]] = (None, {})
        self._edges: dict[int, TraceEdge] = {}
        self._version: EdgeVersion | None = None
        self._changing = threading.Lock()

    def names(self, nodes: Iterable[int], reader: CatalogReader) -> dict[int, NodeId]:
        """Return datasets and jobs by their ids."""
        wanted = list(nodes)
        known = self._names
        cached_names = {node: known[node] for node in wanted if node in known}
        if len(cached_names) < len(wanted):
            read = reader.nodes.by_ids([node for node in wanted if node not in cached_names])
            cached_names |= read
            with self._changing:
                # Another dictionary, because other threads read this one without the lock.
                if len(known) + len(read) > _MOST_NAMES:
                    self._names = {}
                self._names.update(read)
        return cached_names

    def nodes(
        self, depths: Mapping[int, int], identities: Identities, reader: CatalogReader
    ) -> dict[int, TraceNode]:
        """Return nodes as answers show them: under their display names, each at its depth."""
        naming, known = self._nodes
        if naming is not identities.naming:
            known = {}
        cached_nodes = {at[0]: known[at] for at in depths.items() if at in known}
        if len(cached_nodes) < len(depths):
            missing = [node for node in depths if node not in cached_nodes]
            read = {
                node: _render_node(name, depths[node])
                for node, name in identities.display_names(
                    missing, reader, known=self._names
                ).items()
            }
            cached_nodes |= read
            kept = {} if len(known) + len(read) > _MOST_NAMES else known
            kept.update(((node, depths[node]), shown) for node, shown in read.items())
            self._nodes = (identities.naming, kept)
        return cached_nodes

    def edges(
        self,
        edges: list[int],
        version: EdgeVersion,
        render: Callable[[list[int]], Mapping[int, TraceEdge]],
    ) -> list[TraceEdge]:
        """Return edges by the store's ids. Those that are not known are rendered."""
        with self._changing:
            known = self._edges if version == self._version else {}
            missing = [edge for edge in edges if edge not in known]
            if not missing:
                return [known[edge] for edge in edges]
            cached_edges = {edge: known[edge] for edge in edges if edge in known}
        rendered = render(missing)
        cached_edges.update(rendered)
        with self._changing:
            if version == self._version:
                if len(self._edges) + len(rendered) > _MOST_EDGES:
                    self._edges.clear()
                self._edges.update(rendered)
        return [cached_edges[edge] for edge in edges]

    def refresh(self, version: EdgeVersion, changed_edges: set[int] | None) -> None:
        """Keep the edges that are valid in a newer version. None: any edge may have changed."""
        with self._changing:
            renamed = self._version is None or self._version.naming is not version.naming
            if renamed or changed_edges is None:
                self._edges = {}
            else:
                for edge in changed_edges:
                    self._edges.pop(edge, None)
            self._version = version


def _render_node(name: DisplayName, depth: int) -> TraceNode:
    return TraceNode(
        id=str(name.id),
        kind="job" if isinstance(name.id, JobId) else "dataset",
        namespace=name.id.namespace,
        name=name.id.name,
        depth=depth,
        aliases=[str(alias) for alias in name.aliases],
    )

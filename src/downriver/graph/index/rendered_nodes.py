"""Nodes as JSON, kept from one answer to the next.

The JSON of a node is valid until an event mentions the node or one of its neighbours, or until a
name joins another dataset. So it is kept for the newest snapshot only: a refresh drops the nodes
that changed, and a question on an older snapshot renders its nodes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.store import StoreState

MOST_BYTES = 64 * 2**20


class RenderedNode(NamedTuple):
    """A node: its id, the id as JSON, and the JSON of everything but its edges."""

    id: str
    id_json: bytes
    json: bytes

    @property
    def size(self) -> int:
        """The bytes that the node takes in memory, roughly."""
        return len(self.id) + len(self.id_json) + len(self.json)


class RenderedNodes:
    """The nodes of one generation of a catalog that were rendered last. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._nodes: dict[int, RenderedNode] = {}
        self._bytes = 0
        self._state: StoreState | None = None  # of the snapshot that they are rendered from
        self._changing = threading.Lock()

    def __len__(self) -> int:
        """Return how many nodes are kept."""
        return len(self._nodes)

    def find(self, nodes: Iterable[int], state: StoreState) -> dict[int, RenderedNode]:
        """Return those of the nodes that are kept, as they are at the state of a snapshot."""
        with self._changing:
            if state != self._state:
                return {}
            return {node: self._nodes[node] for node in nodes if node in self._nodes}

    def add(self, rendered: dict[int, RenderedNode], state: StoreState) -> None:
        """Keep nodes that were rendered from a snapshot, unless there is a newer one."""
        size = sum(node.size for node in rendered.values())
        with self._changing:
            if state != self._state or size > self.most_bytes:
                return
            if self._bytes + size > self.most_bytes:
                self._nodes.clear()
                self._bytes = 0
            self._nodes.update(rendered)
            self._bytes += size

    def refresh(self, state: StoreState, changed: Iterable[int] | None) -> None:
        """Keep what is still valid at a newer state. None: any node may have changed."""
        with self._changing:
            self._state = state
            if changed is None:
                self._nodes.clear()
                self._bytes = 0
                return
            for node in changed:
                dropped = self._nodes.pop(node, None)
                self._bytes -= 0 if dropped is None else dropped.size

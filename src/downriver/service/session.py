"""An open store and its graph, shared by all parts of `Lineage`.

Importing this module loads neither the graph nor what reads code: a command that does not use the
graph starts without numpy.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from downriver import settings
from downriver.errors import InvalidRequestError
from downriver.fork_safety import renew_in_child
from downriver.model.assets import split_prefix
from downriver.model.ids import ColumnId, DatasetId
from downriver.openlineage.wire import parse_event
from downriver.store import GroupCommit, ScopedStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from downriver.capture.scan import Repository
    from downriver.graph import CatalogSnapshot, Entity, GraphIndex
    from downriver.graph.index.search_index import SearchIndex
    from downriver.model.access import Scope
    from downriver.openlineage import Event
    from downriver.store import Receipt, Store

_BATCH = 2000  # events written at once
_RENDERED_OF_SCOPE = 4 * 2**20  # bytes of rendered nodes that are kept for a scope


class StoreSession:
    """One open store: writes events, and opens views to answer from. Thread-safe.

    `base` is the session of the whole store if `store` is limited to namespaces. Events of both are
    written in the same batches.
    """

    def __init__(
        self,
        store: Store,
        repository: Repository | None = None,
        base: StoreSession | None = None,
    ) -> None:
        self.store = store
        self.base = base
        self.repository = repository  # in which the code of registered assets is found
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Replace the threads and locks after a fork: those of the parent do not work here."""
        self._graph: GraphIndex | None = None
        self._writer: GroupCommit | None = None
        self._starting = threading.Lock()

    @property
    def scope(self) -> Scope | None:
        """The namespaces that this session is limited to; None for the whole store."""
        return self.store.scope if isinstance(self.store, ScopedStore) else None

    def close(self) -> None:
        """Write the queued events and release the store."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.store.close()

    # Writing

    def ingest(self, events: Sequence[bytes | Event]) -> list[Receipt]:
        """Store events, all or none; they are on disk when this returns."""
        parsed = [parse_event(e) if isinstance(e, bytes) else e for e in events]
        return self.store.append(parsed)

    def ingest_many(self, events: Sequence[bytes | Event]) -> None:
        """Store any number of events, in batches."""
        for start in range(0, len(events), _BATCH):
            self.ingest(events[start : start + _BATCH])

    def submit(self, events: list[Event]) -> list[Future[Receipt]]:
        """Queue events for the group commit; a future resolves once its event is on disk."""
        return (self.base or self)._group_commit().submit(events, self.store.prepare)

    def _group_commit(self) -> GroupCommit:
        with self._starting:
            if self._writer is None:
                capacity = settings.read_number(settings.QUEUE_MB) * 2**20
                self._writer = GroupCommit(self.store, capacity)
            return self._writer

    @property
    def waiting(self) -> int:
        """How many submitted events are not yet written."""
        return 0 if self._writer is None else self._writer.waiting

    # Reading

    def reading(self, as_of: int | None = None) -> AbstractContextManager[CatalogSnapshot]:
        """Open a view of the catalog that holds everything written so far. It holds no lock.

        Nodes that were retired after `as_of` have their edges in it.
        """
        with self._starting:
            if self._graph is None:
                from downriver.graph import GraphIndex

                # A server keeps the copies of several scopes.
                limit = {} if self.scope is None else {"rendered_bytes": _RENDERED_OF_SCOPE}
                self._graph = GraphIndex(self.store, **limit)
        return self._graph.reading() if as_of is None else self._graph.reading(as_of)

    def search_index(self, view: CatalogSnapshot) -> SearchIndex:
        """Return the index to search in. It is loaded by the first search, then kept."""
        if self._graph is None:
            raise RuntimeError("a view of another session")
        return self._graph.search_index(view)

    def prepare(self) -> None:
        """Load the graph, and compiled walks if numba is installed, before the first question."""
        from downriver.graph.walk import compilation

        with self.reading() as view:
            self.search_index(view)
        compilation.load()  # last, so that the memory used for loading is free again

    def find(self, entity: str, view: CatalogSnapshot) -> list[Entity]:
        """Return every entity that a name may mean, without near matches."""
        from downriver.graph.names.resolution import find_all

        return find_all(entity, view.reader, view.graph.nodes.identities)

    def resolve(self, entity: str, view: CatalogSnapshot) -> Entity:
        """Return the entity of a name, or raise an error that lists near matches."""
        from downriver.graph.names.assets import resolve_name_or_asset

        return resolve_name_or_asset(entity, view.reader, view.graph.nodes.identities)

    def resolve_column(self, dataset: str, column: str, view: CatalogSnapshot) -> Entity:
        """Return a column of a dataset, or raise an error that lists near matches."""
        word, name = split_prefix(dataset)
        owner = self.resolve(f"{word}:{name}", view).id
        if not isinstance(owner, DatasetId):
            raise InvalidRequestError("dataset", f"{owner} is not a dataset")
        return self.resolve(str(ColumnId(owner, column)), view)


def now() -> int:
    """Return this moment in µs since the epoch."""
    return time.time_ns() // 1000

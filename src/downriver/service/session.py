"""An open store and the graph over it: what every part of the façade works with."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from downriver import settings
from downriver.capture.scan import Repository
from downriver.fork_safety import renew_in_child
from downriver.graph import GraphIndex
from downriver.graph.names.assets import resolve_name_or_asset
from downriver.graph.names.resolution import Entity, find_all
from downriver.graph.walk import compilation
from downriver.openlineage.wire import parse_event
from downriver.store import GroupCommit, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from downriver.graph import CatalogSnapshot
    from downriver.openlineage import Event
    from downriver.store import Receipt, Store

_BATCH = 2000  # events written at once


class StoreSession:
    """One store: events go in, names and views come out. Safe to share between threads."""

    def __init__(self, store: Store, repository: Repository | None = None) -> None:
        self.store = store
        self.repository = repository  # whose code registered assets are found in
        self._graph = GraphIndex(store)
        self._writer: GroupCommit | None = None
        self._starting_writer = threading.Lock()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin anew in a forked process, where no thread writes."""
        self._graph = GraphIndex(self.store)
        self._writer = None
        self._starting_writer = threading.Lock()

    @classmethod
    def open(
        cls,
        location: str | None = None,
        *,
        create: bool = True,
        repository: Path | None = None,
    ) -> Self:
        """Open the store at `location`, else DOWNRIVER_STORE, else the nearest `.downriver/`.

        The code of registered assets is found in `repository`, and nowhere else.
        """
        code = None if repository is None else Repository(repository)
        return cls(open_store(location, create=create), code)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is waiting and release the store."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.store.close()

    def ingest(self, events: Sequence[Event | bytes]) -> list[Receipt]:
        """Store events, all or none; they are on disk when this returns."""
        parsed = [parse_event(e) if isinstance(e, bytes) else e for e in events]
        return self.store.append(parsed)

    def send(self, events: Sequence[Event | bytes]) -> None:
        """Store events that were captured in this process."""
        self.ingest(events)

    def submit(self, events: list[Event]) -> list[Future[Receipt]]:
        """Queue events for the group commit; a future resolves once its event is on disk."""
        with self._starting_writer:
            if self._writer is None:
                capacity = settings.read_number(settings.QUEUE_MB) * 2**20
                self._writer = GroupCommit(self.store, capacity)
        return self._writer.submit(events)

    @property
    def waiting(self) -> int:
        """How many submitted events are not yet written."""
        return 0 if self._writer is None else self._writer.waiting

    def reading(self) -> AbstractContextManager[CatalogSnapshot]:
        """Open a view of the catalog that holds everything written so far. It holds no lock."""
        return self._graph.reading()

    def prepare(self) -> None:
        """Read the graph, and load compiled walks where numba is installed, before it is asked."""
        with self.reading():
            pass
        compilation.load()  # after, so that the memory reading takes for a while is free again

    def find(self, entity: str, view: CatalogSnapshot) -> list[Entity]:
        """Return all that a name may mean, without a look at what is spelled like it."""
        return find_all(entity, view.reader, view.graph.nodes.identities)

    def resolve(self, entity: str, view: CatalogSnapshot) -> Entity:
        """Return what a name means, or raise an error that says what it might have meant."""
        return resolve_name_or_asset(entity, view.reader, view.graph.nodes.identities)

    def _ingest_many(self, events: Sequence[Event | bytes]) -> None:
        for start in range(0, len(events), _BATCH):
            self.ingest(events[start : start + _BATCH])


def now() -> int:
    """Return this moment in µs since the epoch."""
    return time.time_ns() // 1000

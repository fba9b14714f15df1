"""A store for a key that is limited to namespaces: it reads a copy, and checks writes.

The copy is folded from the log, limited by a `Restriction`, and kept in a temporary file. What is
outside the namespaces is not in it, so no answer can contain it, whichever route computes it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn

from downriver.errors import ForbiddenError, StoreBusyError
from downriver.model.facts import EventRef, Facts, NodeSeen
from downriver.openlineage import fold, parse_event
from downriver.store.access.restriction import Restriction
from downriver.store.catalog.encoding import decompress
from downriver.store.port import StoreState
from downriver.store.sqlite import ScratchStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from downriver.model.access import Scope
    from downriver.model.verdicts import RecordedVerdict
    from downriver.openlineage import Event
    from downriver.store.access.keys import KeyRole
    from downriver.store.audit import AuditAct
    from downriver.store.catalog.reader import CatalogReader
    from downriver.store.findings import FindingsTransaction
    from downriver.store.hash_chain import Verification
    from downriver.store.port import LogEntry, PreparedEvent, Receipt, Store
    from downriver.store.redaction import RedactedLog

_BATCH = 1_000  # log entries that are added to the copy at once


def check_event(event: Event, scope: Scope) -> None:
    """Raise if an event names a dataset or job outside the namespaces, in a facet too."""
    _check(fold(event), scope)


def _check(facts: Facts, scope: Scope) -> None:
    nodes = (seen.node for seen in facts.sightings if isinstance(seen, NodeSeen))
    outside = [str(node) for node in scope.outside(nodes)]
    if outside:
        raise ForbiddenError.of_namespaces(outside, scope.patterns)


class ScopedStore:
    """One store, limited to some namespaces. Thread-safe.

    `outdated` is true after the catalog of the store was rebuilt. Then open a new scoped store.
    """

    def __init__(self, store: Store, scope: Scope) -> None:
        self.url = store.url
        self.location: str | None = None
        self.times = store.times
        self.scope = scope
        self.outdated = False
        self._store = store
        self._copy = ScratchStore()
        self._seen: StoreState | None = None
        self._restriction: Restriction | None = None
        self._refreshing = threading.Lock()

    # Writing

    def prepare(self, event: Event) -> PreparedEvent:
        """Fold an event, or raise if it names a dataset or job outside the namespaces."""
        prepared = self._store.prepare(event)
        _check(prepared.facts, self.scope)
        return prepared

    def append(self, events: Sequence[Event]) -> list[Receipt]:
        """Write events, all or none."""
        return self._store.write([self.prepare(event) for event in events])

    def write(self, events: Sequence[PreparedEvent]) -> list[Receipt]:
        """Append prepared events."""
        return self._store.write(events)

    # Reading

    def state(self) -> StoreState:
        """Return the state of the copy, with everything written so far."""
        with self.reader() as reader:
            return reader.state()

    def reader(self) -> AbstractContextManager[CatalogReader]:
        """Open a view of the copy, with everything written before the outermost view opened."""
        self._refresh()
        return self._copy.reader()

    def check(self) -> None:
        """Raise if events cannot be stored now."""
        self._store.check()

    def close(self) -> None:
        """Remove the copy. The store itself stays open."""
        self._copy.close()

    def _refresh(self) -> None:
        if self._copy.is_reading():
            return  # inside another view of this thread, which stays the same
        if self._seen is not None and self._store.state() == self._seen:
            return
        with self._refreshing, self._store.reader() as reader:
            state = reader.state()
            seen = self._seen or StoreState(state.generation, 0)
            if state.generation != seen.generation or state.seq < seen.seq:
                self.outdated = True
                raise StoreBusyError("the catalog was rebuilt")
            for last_seq, facts in self._new_facts(reader, seen.seq):
                self._copy.merge(facts, last_seq)
            self._seen = state

    def _new_facts(self, reader: CatalogReader, after: int) -> Iterable[tuple[int, Facts]]:
        limited, count, seq = Facts.empty(), 0, after
        for entry in reader.log.entries(after):
            limited.update(self._limited(entry, reader))
            count, seq = count + 1, entry.seq
            if count == _BATCH:
                yield seq, limited
                limited, count = Facts.empty(), 0
        if count:
            yield seq, limited

    def _limited(self, entry: LogEntry, reader: CatalogReader) -> Facts:
        if self._restriction is None:
            # The chain value of the first entry. Every process that opens this store can read it. A
            # client that is limited to namespaces cannot.
            first = next(iter(reader.log.entries()))
            self._restriction = Restriction(self.scope, first.chain)
        event = parse_event(decompress(entry.body) or b"")
        event.ref = EventRef(
            event.ref.at, entry.digest
        )  # of the body as received, also if redacted
        return self._restriction.apply(fold(event))

    # Methods about the whole store

    def merge(self, facts: Facts, seq: int | None = None) -> None:
        """Refuse: only administrators merge facts that have no events."""
        self._refuse("merge")

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Refuse."""
        self._refuse("rebuild")

    def restore(
        self, backup: Path, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Verification:
        """Refuse."""
        self._refuse("restore")

    def add_key(
        self,
        name: str,
        role: KeyRole,
        namespaces: tuple[str, ...] = (),
        expires_at: int | None = None,
    ) -> str:
        """Refuse."""
        self._refuse("keys")

    def revoke_key(self, name: str) -> None:
        """Refuse."""
        self._refuse("keys")

    def record(self, acts: Sequence[AuditAct]) -> None:
        """Add acts to the audit log of the store."""
        self._store.record(acts)

    def redact(
        self, name: str, record: Callable[[Mapping[int, bytes]], Event], *, done: bool
    ) -> RedactedLog:
        """Refuse."""
        self._refuse("redaction")

    def record_verdict(self, verdict: RecordedVerdict, at: int) -> None:
        """Record a verdict of the gate in the store."""
        self._store.record_verdict(verdict, at)

    def ledger(self) -> AbstractContextManager[FindingsTransaction]:
        """Refuse: findings are about the whole store."""
        self._refuse("findings")

    def _refuse(self, what: str) -> NoReturn:
        raise ForbiddenError.of_whole_store(what, self.scope.patterns)

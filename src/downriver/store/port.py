"""The interface of a store, and its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from downriver.model.access import LOCAL_ACTOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from downriver.model.facts import Facts
    from downriver.model.verdicts import RecordedVerdict
    from downriver.openlineage import Event
    from downriver.store.access.keys import KeyRole
    from downriver.store.audit import AuditAct
    from downriver.store.catalog.reader import CatalogReader
    from downriver.store.catalog.tables import CatalogTable, NaturalKey
    from downriver.store.findings import FindingsTransaction
    from downriver.store.hash_chain import Verification
    from downriver.store.redaction import RedactedLog

Row = tuple[Any, ...]


class Receipt(msgspec.Struct, frozen=True):
    """Confirms that an event is on disk. `duplicate`: the log already had the same bytes."""

    seq: int
    duplicate: bool


class LogEntry(msgspec.Struct, frozen=True):
    """One entry of the log."""

    seq: int
    digest: bytes
    received_at: int
    chain: bytes
    body: bytes


class PreparedEvent(NamedTuple):
    """An event with its facts and its compressed body, ready to be written."""

    event: Event
    facts: Facts
    body: bytes  # compressed, as the log stores it
    actor: str = LOCAL_ACTOR


class StoreState(msgspec.Struct, frozen=True):
    """The version of a store's content. Values derived from another version may be stale."""

    generation: int
    seq: int


class StepTimes(msgspec.Struct):
    """Seconds spent in each step of writing, since the store was opened."""

    fold: float = 0.0
    pack: float = 0.0
    append: float = 0.0
    project: float = 0.0
    commit: float = 0.0
    events: int = 0


class Store(Protocol):
    """A log of events and the catalog folded from it. Safe to share between threads."""

    url: str  # to show: without a password
    location: str | None  # to open in another process; None for a store in memory
    times: StepTimes

    def append(self, events: Sequence[Event]) -> list[Receipt]:
        """Write events to the log and fold them in; durable, all or none, when it returns."""

    def prepare(self, event: Event) -> PreparedEvent:
        """Fold and compress an event; this needs no lock."""

    def write(self, events: Sequence[PreparedEvent]) -> list[Receipt]:
        """Append prepared events."""

    def merge(self, facts: Facts, seq: int | None = None) -> None:
        """Merge facts of another store; a rebuild drops them, since no event has them.

        `seq` is the last log entry of the other store that they contain, if this one has no log.
        """

    def state(self) -> StoreState:
        """Return the current state, including the writes of other processes."""

    def check(self) -> None:
        """Raise if events cannot be stored now, or would be lost."""

    def reader(self) -> AbstractContextManager[CatalogReader]:
        """Open a consistent view of the catalog and the log."""

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Drop the projections and fold the log again; calls `progress(done, total)`."""

    def restore(
        self, backup: Path, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Verification:
        """Fill this empty store from a backup, all or nothing, and fold the log."""

    def add_key(
        self,
        name: str,
        role: KeyRole,
        namespaces: tuple[str, ...] = (),
        expires_at: int | None = None,
    ) -> str:
        """Create an API key and return it; it cannot be read again."""

    def revoke_key(self, name: str) -> None:
        """Revoke an API key."""

    def record(self, acts: Sequence[AuditAct]) -> None:
        """Add acts to the audit log."""

    def ledger(self) -> AbstractContextManager[FindingsTransaction]:
        """Open the write transaction for findings and alerts."""

    def redact(
        self, name: str, record: Callable[[Mapping[int, bytes]], Event], *, done: bool
    ) -> RedactedLog:
        """Erase a name from facets in the log, record it with an event, and fold the log again."""

    def record_verdict(self, verdict: RecordedVerdict, at: int) -> None:
        """Record a verdict of the gate."""

    def close(self) -> None:
        """Release files and connections."""


class SqlQueries(Protocol):
    """Queries within one consistent view. The placeholder is `?` for every database."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query."""

    def rows_in(self, sql: str, numbers: Sequence[int]) -> list[Row]:
        """Return the rows of a query that ends in `IN`, for these numbers."""

    def find_ids(self, key: NaturalKey, keys: Sequence[Row]) -> dict[Row, int]:
        """Return the ids of the rows that exist, by natural key."""

    def scan(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of a query without loading all of them."""


class SqlTransaction(SqlQueries, Protocol):
    """An open write transaction; it holds the write lock of the store."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement."""

    def merge(self, table: CatalogTable, rows: Sequence[Row]) -> None:
        """Insert rows, merging those that exist. No two rows may have the same key."""

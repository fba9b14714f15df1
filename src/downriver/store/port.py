"""What every store can do, and the values it speaks in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from downriver.model.facts import Facts
    from downriver.openlineage import Event
    from downriver.store.catalog.reader import CatalogReader
    from downriver.store.catalog.tables import CatalogTable, NaturalKey
    from downriver.store.findings import FindingsTransaction
    from downriver.store.keys import KeyRole

Row = tuple[Any, ...]


class Receipt(msgspec.Struct, frozen=True):
    """The log holds this event, durably. `duplicate`: it held the very same one before."""

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
    """An event with all that can be made of it before it is its turn to be written."""

    event: Event
    facts: Facts
    body: bytes  # as the log keeps it


class StoreState(msgspec.Struct, frozen=True):
    """Where a store stands. Anything derived from another state may be out of date."""

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

    url: str
    times: StepTimes

    def append(self, events: Sequence[Event]) -> list[Receipt]:
        """Write events to the log and fold them in; durable, all or none, when it returns."""

    def prepare(self, event: Event) -> PreparedEvent:
        """Fold and pack an event, which no one has to wait for."""

    def write(self, events: Sequence[PreparedEvent]) -> list[Receipt]:
        """Append events that are prepared."""

    def state(self) -> StoreState:
        """Return where the store stands, including what other processes wrote."""

    def reader(self) -> AbstractContextManager[CatalogReader]:
        """Open a consistent view of the catalog and the log."""

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Drop the projections and fold the log again; calls `progress(done, total)`."""

    def add_key(self, name: str, role: KeyRole) -> str:
        """Make an API key and return it: the only time it can be seen."""

    def revoke_key(self, name: str) -> None:
        """Make an API key worthless from now on."""

    def ledger(self) -> AbstractContextManager[FindingsTransaction]:
        """Open the one write transaction for what a monitor records."""

    def close(self) -> None:
        """Release files and connections."""


class SqlQueries(Protocol):
    """Reading, within one consistent view. Placeholders are `?`, for every database."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query."""

    def rows_in(self, sql: str, numbers: Sequence[int]) -> list[Row]:
        """Return the rows of a query that ends in `IN`, for the numbers to follow it."""

    def scan(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of a query without holding them all."""


class SqlTransaction(SqlQueries, Protocol):
    """An open write transaction that holds the store's one writing lock."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement."""

    def find_ids(self, key: NaturalKey, keys: Sequence[Row]) -> dict[Row, int]:
        """Return the ids of the rows that exist, by natural key."""

    def merge(self, table: CatalogTable, rows: Sequence[Row]) -> None:
        """Insert rows, merging those that exist. No two rows may have the same key."""

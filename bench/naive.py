"""The baseline: the same store without batching and caches.

It uses one transaction per event, a row for every column and column edge, and one statement to find
and one to write each row. It caches nothing between events. All other code is the same, so a ratio
shows the gain by batching, group commit, packing and caches.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from downriver.service import Lineage
from downriver.service.session import StoreSession
from downriver.store.catalog.projection import Projection
from downriver.store.catalog.tables import CatalogTable
from downriver.store.postgres.store import PostgresStore
from downriver.store.sql_store import SqlStore
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.openlineage import Event
    from downriver.store import Receipt, Store
    from downriver.store.catalog.tables import NaturalKey
    from downriver.store.port import Row, SqlTransaction


class NaiveLineage(Lineage):
    """Writes each event separately, in the order of arrival."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.session = NaiveSession(store)


class NaiveSession(StoreSession):
    """Commits each event in a separate transaction."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._thread = ThreadPoolExecutor(1)

    def submit(self, events: list[Event]) -> list[Future[Receipt]]:
        """Queue events; a future resolves once its own transaction is on disk."""
        return [self._thread.submit(self._append, event) for event in events]

    def close(self) -> None:
        """Write the queued events and release the store."""
        self._thread.shutdown()
        super().close()

    def _append(self, event: Event) -> Receipt:
        return self.store.append([event])[0]


class _Naive(SqlStore):
    def append(self, events: Sequence[Event]) -> list[Receipt]:
        """Write events one transaction each."""
        receipts: list[Receipt] = []
        for event in events:
            self._projection = _NaiveProjection()  # with empty caches
            receipts += super().append([event])
        return receipts

    def _catch_up(self) -> None:
        super()._catch_up()
        with super()._writing() as tx:
            _make_tables(tx)

    @contextmanager
    def _writing(self) -> Iterator[SqlTransaction]:
        with super()._writing() as tx:
            yield _RowByRow(tx)


class _NaiveProjection(Projection):
    """A row for every column and every column edge."""

    def _load_columns(self, tx: SqlTransaction, wanted: Mapping[int, dict[str, None]]) -> None:
        sql = "SELECT id FROM naive_columns WHERE dataset = ? AND field = ?"
        for dataset, fields in wanted.items():
            if dataset in self._complete:
                continue  # a dataset that was created in this transaction has no columns yet
            for field in fields:
                self._columns[dataset].update(
                    (field, row[0]) for row in tx.rows(sql, (dataset, field))
                )

    def _write_columns(self, tx: SqlTransaction, new: dict[int, list[str]]) -> None:
        number = tx.rows("SELECT coalesce(max(id), 0) FROM naive_columns")[0][0]
        for dataset, fields in new.items():
            for field in fields:
                number += 1
                self._columns[dataset][field] = number
                tx.merge(_COLUMNS, [(number, dataset, field)])

    def _write_derivations(self, tx: SqlTransaction, claims: dict[int, Any]) -> None:
        number = tx.rows("SELECT coalesce(max(id), 0) FROM naive_derives")[0][0]
        for name, claim in claims.items():
            for source, target, kind in self._edges(claim):
                number += 1
                said = map(_stored, claim.transformations[kind])
                tx.merge(_DERIVES, [(number, name, source, target, *said)])

    def _forget_changes(self, tx: SqlTransaction, changed: int) -> None:
        """Do nothing: without caches, this would run for every event."""

    def _is_new(self, key: NaturalKey, row: Row) -> bool:
        return False  # so that every row needs a query


_COLUMNS = CatalogTable("naive_columns", (("id", "int"), ("dataset", "int"), ("field", "text")), "")
_DERIVES = CatalogTable(
    "naive_derives",
    (
        ("id", "bigint"),
        ("claim", "int"),
        ("source", "int"),
        ("target", "int"),
        ("direct", "smallint"),
        ("subtype", "text"),
        ("description", "text"),
        ("masking", "smallint"),
        ("confidence", "text"),
    ),
    "",
)


def _stored(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def _make_tables(tx: SqlTransaction) -> None:
    for table in (_COLUMNS, _DERIVES):
        columns = ", ".join(f"{name} {kind} NOT NULL" for name, kind in table.columns[1:])
        key = ", UNIQUE (dataset, field)" if table is _COLUMNS else ""
        tx.execute(
            f"CREATE TABLE IF NOT EXISTS {table.name} (id INTEGER PRIMARY KEY, {columns}{key})"
        )


class NaiveSqliteStore(_Naive, SqliteStore):
    """SQLite, one row per statement."""


class NaivePostgresStore(_Naive, PostgresStore):
    """PostgreSQL, one row per statement; the driver prepares each kind of statement once."""


class _RowByRow:
    """A transaction that runs one statement for every row it finds or merges."""

    def __init__(self, tx: SqlTransaction) -> None:
        self._tx = tx
        self.rows = tx.rows
        self.scan = tx.scan
        self.execute = tx.execute

    def rows_in(self, sql: str, numbers: Sequence[int]) -> list[Row]:
        return [row for number in numbers for row in self.rows(f"{sql} (?)", (number,))]

    def find_ids(self, key: NaturalKey, keys: Sequence[Row]) -> dict[Row, int]:
        condition = " AND ".join(f"{name} = ?" for name, _ in key.columns)
        sql = f"SELECT {key.id_column} FROM {key.table} WHERE {condition}"
        found: list[tuple[Row, list[Any]]] = [(k, self.rows(sql, k)) for k in keys]
        return {k: rows[0][0] for k, rows in found if rows}

    def merge(self, table: CatalogTable, rows: Sequence[Row]) -> None:
        sql = table.insert_from(f"VALUES ({', '.join('?' * len(table.columns))})")
        for row in rows:
            self.execute(sql, row)

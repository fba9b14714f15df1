"""The embedded store: one SQLite file, write-ahead log, fully durable."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
import uuid
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from downriver.errors import StoreBusyError, StoreError
from downriver.fork_safety import ForkGate, keep_inherited
from downriver.store.sql_store import SqlStore, pending_migrations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.store.catalog.tables import CatalogTable, NaturalKey
    from downriver.store.port import Row

_WAIT_FOR_LOCK = 60.0
_TRY_AGAIN = 0.01
_IDLE_READERS = 8
_MOST_VARIABLES = 999  # of a statement, in SQLite before 3.32
_OPTIONS: dict[str, Any] = {
    "timeout": _WAIT_FOR_LOCK,
    "isolation_level": None,
    "check_same_thread": False,
    "cached_statements": 256,
}
MEMORY = ":memory:"
_SHARES_MEMORY = (3, 36, 0)  # since then several connections may share a database in memory
_inside_sqlite = ForkGate()
_SETTINGS = (
    "synchronous = FULL",
    "cache_size = -65536",
    "temp_store = MEMORY",
    "wal_autocheckpoint = 4000",  # 16 MB: pages that many commits change are copied back once
)


_FileId: TypeAlias = tuple[int, int]


def _file_id(path: str) -> _FileId | None:
    """Return an identifier of a file, or None if there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class SqliteStore(SqlStore):
    """A store in a SQLite file. Several processes can use it; their writes are serialised."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.url = str(path)
        self.location = str(path.absolute())
        self._path = path
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []  # for reading; taken and returned
        self._wal = f"{path}-wal"
        self._files: dict[str, _FileId] = {}  # the files that the connections have open
        with _inside_sqlite, _translated(self.url):
            self._make_folder()
            with ExitStack() as undo:
                undo.callback(self._writing_connection().close)
                self._check_ours()
                self._log_ahead()
                self._migrate()
                self._catch_up()
                undo.pop_all()

    def close(self) -> None:
        """Close every connection; a connection in use is closed when its reader ends."""
        with self._write_lock:
            self._closed = True
            if self._writer is not None:
                self._writer.close()
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _snapshot(self) -> Iterator[_SqliteQueries]:
        with _inside_sqlite, _translated(self.url):
            connection = self._take()
            queries = _SqliteQueries(connection)
            try:
                connection.execute("BEGIN")
                yield queries
            finally:
                queries.end()
                self._give_back(connection)

    @contextmanager
    def _transaction(self, first: str) -> Iterator[tuple[_SqliteTransaction, Row]]:
        with _inside_sqlite, _translated(self.url):
            self._check_open()
            writer = self._writing_connection()
            # IMMEDIATE takes the write lock first: ids and the head of the chain stay valid.
            writer.execute("BEGIN IMMEDIATE")
            try:
                tx = _SqliteTransaction(writer)
                yield tx, tx.rows(first)[0]
                writer.execute("COMMIT")
                self._check_files()  # a commit into a deleted file is lost: do not acknowledge it
            finally:
                if writer.in_transaction:  # a full disk may have rolled it back
                    writer.execute("ROLLBACK")

    def _writing_connection(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = self._connect()
        return self._writer

    def renew(self) -> None:
        """Reset in a forked process."""
        keep_inherited(self._writer, self._idle)
        super().renew()
        self._files.pop(self._wal, None)  # removed when the parent closes the last connection
        self._writer = None
        self._idle = []

    def _take(self) -> sqlite3.Connection:
        self._check_open()
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if self._closed or len(self._idle) >= _IDLE_READERS:
            connection.close()
        else:
            self._idle.append(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.url} is closed")
        self._check_files()

    def _check_files(self) -> None:
        """Raise if an open file was deleted or replaced.

        SQLite continues to write into such a file, and these writes are lost. The write-ahead log
        is created by the first write and then kept.
        """
        for path in (self.url, self._wal):
            current_id = _file_id(path)
            opened = (
                self._files.setdefault(path, current_id) if current_id else self._files.get(path)
            )
            if current_id != opened:
                what = "replaced" if current_id else "deleted"
                raise StoreError(
                    f"{path}: the file was {what} while it was in use. Nothing more is stored; put "
                    "it back or restore a backup, and start the process again"
                )

    def _make_folder(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)  # SQLite gives its other files the same mode
        except OSError as exc:
            raise StoreError(f"{self.url}: {exc.strerror or exc}") from exc

    def _connect(self) -> sqlite3.Connection:
        connection = self._open()
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _open(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(self._path, **_OPTIONS)
        return connection

    def _log_ahead(self) -> None:
        """Turn on the write-ahead log. SQLite lets only one process do so at a time."""
        deadline = time.monotonic() + _WAIT_FOR_LOCK
        while True:
            try:
                self._writing_connection().execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as exc:
                if "locked" not in str(exc) or time.monotonic() > deadline:
                    raise
                time.sleep(_TRY_AGAIN)
            else:
                return

    def _check_ours(self) -> None:
        """Reject a database that is not a Downriver store."""
        # The tables first: another process may be creating both at this moment.
        names = self._writing_connection().execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        )
        tables = {row[0] for row in names}
        applied = self._writing_connection().execute("PRAGMA user_version").fetchone()[0]
        if tables and (applied == 0 or not {"log", "meta"} <= tables):
            raise StoreError(f"{self.url} is a database, but not a Downriver store")

    def _migrate(self) -> None:
        applied = self._writing_connection().execute("PRAGMA user_version").fetchone()[0]
        if not pending_migrations("sqlite", applied):
            return
        with self._transaction("PRAGMA user_version") as (tx, (applied,)):
            for migration in pending_migrations("sqlite", applied):
                for statement in _statements(migration.sql):
                    tx.execute(statement)
                tx.execute(f"PRAGMA user_version = {migration.number}")


class MemoryStore(SqliteStore):
    """A store in the memory of this process. It is deleted when it is closed."""

    def __init__(self) -> None:
        if sqlite3.sqlite_version_info < _SHARES_MEMORY:
            raise StoreError(
                f"a store in memory needs SQLite 3.36, this Python has {sqlite3.sqlite_version}"
            )
        super().__init__(Path(f"file:/downriver-{uuid.uuid4().hex}?vfs=memdb"))
        self.url = MEMORY
        self.location = None

    def renew(self) -> None:
        """Start with a copy in a forked process, because memory is not shared."""
        SqlStore.renew(self)

    def _make_folder(self) -> None:
        """Do nothing: a store in memory has no folder."""

    def _check_files(self) -> None:
        """Do nothing: a store in memory has no files."""

    def _log_ahead(self) -> None:
        """Memory needs no write-ahead log."""

    def _open(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3.connect(str(self._path), uri=True, **_OPTIONS)
        return connection


class ScratchStore(SqliteStore):
    """A store in a temporary file, which is removed when it is closed. It is not durable."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="downriver-")
        super().__init__(Path(self._folder.name) / "scratch.db")
        self.location = None

    def close(self) -> None:
        """Close the connections and remove the file."""
        super().close()
        self._folder.cleanup()

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        connection.execute("PRAGMA synchronous = OFF")
        return connection


class _SqliteQueries:
    """An open transaction, to read from."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection: sqlite3.Connection | None = connection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query."""
        return self._open.execute(sql, parameters).fetchall()

    def rows_in(self, sql: str, numbers: Sequence[int]) -> list[Row]:
        """Return the rows of a query that ends in `IN`, for these numbers."""
        if not numbers:
            return []
        # The numbers are passed as one JSON value, so a single prepared statement fits any count of
        # them.
        return self.rows(f"{sql} (SELECT value FROM json_each(?))", (f"[{_listed(numbers)}]",))

    def find_ids(self, key: NaturalKey, keys: Sequence[Row]) -> dict[Row, int]:
        """Return the ids of the rows that exist, by natural key."""
        names = [name for name, _ in key.columns]
        same = " AND ".join(f"t.{name} = k.{name}" for name in names)
        ids: dict[Row, int] = {}
        for some in _chunks(keys):
            # CROSS JOIN makes the keys the outer loop, independent of SQLite's statistics.
            sql = (
                f"WITH k ({', '.join(names)}) AS ({_values(some)}) "
                f"SELECT t.{key.id_column}, k.* FROM k CROSS JOIN {key.table} AS t ON {same}"
            )
            ids.update((row[1:], row[0]) for row in self.rows(sql, _flat(some)))
        return ids

    def scan(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of a query without loading all of them."""
        return self._open.execute(sql, parameters)

    def end(self) -> None:
        """Reject further queries, because the connection is returned to the pool."""
        self._connection = None

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError("a reader can be used only inside its `with` block")
        return self._connection


class _SqliteTransaction(_SqliteQueries):
    """The open write transaction."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._open.execute(sql, parameters)

    def merge(self, table: CatalogTable, rows: Sequence[Row]) -> None:
        """Insert rows, merging those that exist."""
        for some in _chunks(rows):
            self._open.execute(table.insert_from(_values(some)), _flat(some))


def _chunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Split rows into few statements of few different sizes, so that SQLite prepares each once.

    `executemany` runs one statement for each row. Between two statements another thread can take
    the interpreter for a long time.
    """
    start = 0
    while start < len(rows):
        left = min(len(rows) - start, _MOST_VARIABLES // len(rows[0]))
        size = 1 << left.bit_length() - 1
        yield rows[start : start + size]
        start += size


def _values(rows: Sequence[Row]) -> str:
    row = f"({', '.join('?' * len(rows[0]))})"
    return f"VALUES {', '.join([row] * len(rows))}"


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _flat(rows: Sequence[Row]) -> list[Any]:
    return list(chain.from_iterable(rows))


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; sqlite3.executescript would commit the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def _translated(url: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as exc:
        if "locked" in str(exc) or "busy" in str(exc):
            raise StoreBusyError("another process is writing") from exc
        raise StoreError(f"{url}: {exc}") from exc
    except sqlite3.DatabaseError as exc:
        raise StoreError(f"{url}: {exc}; is it a Downriver store?") from exc

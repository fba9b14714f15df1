"""The PostgreSQL store. Several servers can share one; their writes are serialised."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from downriver import settings
from downriver.errors import InvalidRequestError, StoreBusyError, StoreError
from downriver.fork_safety import keep_inherited
from downriver.store.postgres.arrays import encode_array, register_array_dumper
from downriver.store.postgres.listener import ChangeListener
from downriver.store.sql_store import SqlStore, pending_migrations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.store.catalog.tables import CatalogTable, Columns, NaturalKey
    from downriver.store.port import Row, SqlQueries, StoreState
    from downriver.store.postgres.arrays import PostgresArray

# Connections beside those for queries: for API keys, simulated changes, and the monitor.
_MORE_READERS = 12
_WAIT_FOR_READER = 30.0
_SCAN_ROWS = 50_000

# Defaults that the URL can override. The timeouts detect a server that does not respond.
_CONNECTION = {
    "connect_timeout": 10,
    "fallback_application_name": "downriver",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 40_000,
}
_SESSION = "SET lock_timeout = '60s'; SET jit = off"
# Batches are small and tables are large, so an index is always the right plan.
_WRITING_SESSION = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"

_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

# One writer at a time, from its first query until its commit. Ids are dense, and log entries become
# visible in the order of their numbers, so that a reader which knows its last entry misses none.
# READ COMMITTED, so that queries after the lock see what the last holder committed. The commit is
# durable, independent of the default of the server.
_BEGIN_WRITING = """
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SELECT pg_advisory_xact_lock(7233017461270937);
    SELECT set_config('synchronous_commit', 'on', true)
    WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""

_FIND_MIGRATIONS = """
    SELECT 1 FROM pg_tables
    WHERE schemaname = current_schema() AND tablename = 'downriver_migrations'
"""
_CREATE_MIGRATIONS = """
    CREATE TABLE IF NOT EXISTS downriver_migrations (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
    )
"""


class PostgresStore(SqlStore):
    """A store in a PostgreSQL database, in the first schema of the search path."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._server = _Server(url)
        self.url = self._server.url
        self.location = url
        self._readers = _Readers(self._server)
        self._writer: psycopg.Connection | None = None
        self._closed = False
        self._listener = ChangeListener(self._server.connect)
        with ExitStack() as undo:
            undo.callback(self.close)
            self._migrate()
            self._catch_up()
            undo.pop_all()

    def renew(self) -> None:
        """Reset in a forked process."""
        keep_inherited(self._readers, self._writer, self._listener)
        super().renew()
        self._readers = _Readers(self._server)
        self._writer = None
        self._listener = ChangeListener(self._server.connect)

    def state(self) -> StoreState:
        """Return the current state, from notifications of the server if it is connected."""
        self._check_open()
        notified = self._listener.state()
        if notified is not None:
            return notified
        state = super().state()
        self._listener.note(state)
        return state

    def close(self) -> None:
        """Stop listening and close every connection."""
        self._closed = True
        self._listener.close()
        self._readers.close()
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()

    def _record_commit(self, state: StoreState) -> None:
        self._listener.note(state)

    @contextmanager
    def _snapshot(self) -> Iterator[_PostgresQueries]:
        with self._server.translated():
            self._check_open()
            connection = self._readers.take()
            queries = _PostgresQueries(connection)
            try:
                yield queries
            finally:
                queries.end()
                self._readers.give_back(connection)

    @contextmanager
    def _transaction(self, first: str) -> Iterator[tuple[_PostgresTransaction, Row]]:
        with self._exclusive(first) as (connection, row):
            # A pipeline: while the server merges the rows of one table, the next rows are made. The
            # commit is sent with the last of them; the server skips it if a statement fails.
            with connection.pipeline():
                yield _PostgresTransaction(connection), row
                commit = connection.execute("COMMIT")
            self._check_committed(commit)

    @contextmanager
    def _exclusive(self, first: str) -> Iterator[tuple[psycopg.Connection, Row]]:
        """Hold the write lock; roll back what was not committed."""
        with self._server.translated():
            self._check_open()
            connection, row = self._begin_writing(first)
            try:
                yield connection, row
            finally:
                _end(connection)

    def _begin_writing(self, first: str) -> tuple[psycopg.Connection, Row]:
        begin = f"{_BEGIN_WRITING}; {first}"
        if self._writer is not None:
            try:
                return self._writer, _begin(self._writer, begin)
            except psycopg.OperationalError:
                if not self._writer.closed:
                    raise
        # There is no connection yet, or it died while idle, without an open transaction.
        self._writer = self._server.connect()
        self._writer.execute(_WRITING_SESSION)
        return self._writer, _begin(self._writer, begin)

    def _check_committed(self, commit: psycopg.Cursor) -> None:
        done = commit.statusmessage
        if done != "COMMIT":  # PostgreSQL reports a failed commit this way, not with an error
            raise StoreError(f"{self.url}: nothing was written, COMMIT ended in {done}")

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.url} is closed")

    def _migrate(self) -> None:
        with self._snapshot() as queries:
            applied = _applied(queries)
        if not pending_migrations("postgres", applied):
            return
        with self._exclusive("SELECT 1") as (connection, _):
            connection.execute(_CREATE_MIGRATIONS)
            for migration in pending_migrations("postgres", _applied(_PostgresQueries(connection))):
                connection.execute(migration.sql)
                connection.execute(
                    "INSERT INTO downriver_migrations (number, name) VALUES (%s, %s)",
                    (migration.number, migration.name),
                )
            self._check_committed(connection.execute("COMMIT"))


def _applied(queries: SqlQueries) -> int:
    """Return the number of the last migration, 0 for none."""
    if not queries.rows(_FIND_MIGRATIONS):
        return 0
    last: int = queries.rows("SELECT coalesce(max(number), 0) FROM downriver_migrations")[0][0]
    return last


class _Server:
    """The address of the database, and how to connect to it."""

    def __init__(self, url: str) -> None:
        url_options = _parse_url(url)
        self.url = _without_password(url)
        self._parameters: dict[str, Any] = _CONNECTION | url_options
        self._secrets = [
            str(url_options[key]) for key in ("password", "sslpassword") if url_options.get(key)
        ]

    def connect(self) -> psycopg.Connection:
        """Open a connection in autocommit mode, so that transactions begin only explicitly."""
        with self.translated(), ExitStack() as undo:
            connection = psycopg.connect(**self._parameters, autocommit=True)
            undo.callback(connection.close)
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise StoreError(f"{self.url}: the database's encoding is {encoding}, not UTF8")
            register_array_dumper(connection)
            connection.execute(_SESSION)
            undo.pop_all()
        return connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the errors of the driver."""
        try:
            yield
        except psycopg.Error as exc:
            text = " ".join(str(exc).split())
            if isinstance(exc, _BUSY) or any(sign in text for sign in _FULL):
                raise StoreBusyError("the database is busy") from exc
            for secret in self._secrets:
                text = text.replace(secret, "***")
            raise StoreError(f"{self.url}: {text}") from exc


_BUSY = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.TooManyConnections,
)
# A refused connection has no error code, only these texts.
_FULL = ("too many clients", "too many connections", "remaining connection slots")


def _parse_url(url: str) -> dict[str, Any]:
    # The error contains neither the URL nor its cause. If the URL is split at the wrong place, for
    # example at an @ in the password, parts of the password look like a host.
    try:
        options = conninfo_to_dict(url)
    except psycopg.Error:
        raise _malformed() from None
    port = str(options.get("port", "0")).replace(",", "")
    if "@" in f"{options.get('host')}{options.get('dbname')}" or not port.isdigit():
        raise _malformed()
    return options


def _malformed() -> InvalidRequestError:
    return InvalidRequestError(
        "store",
        "not a URL such as postgresql://user:password@host:5432/database "
        "(in a password, write %40 for @, %2F for / and %3A for :)",
    )


def _without_password(url: str) -> str:
    shown = re.sub(r"(?<=://)([^:/@]*):.*@", r"\1@", url)
    return re.sub(r"(?<=[?&])(ssl)?password=[^&]*&?", "", shown).rstrip("?&")


class _Readers:
    """A pool of connections for reading."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._idle: list[psycopg.Connection] = []
        self._most = settings.read_number(settings.READERS) + _MORE_READERS
        self._free = threading.BoundedSemaphore(self._most)
        self._closed = False

    def take(self) -> psycopg.Connection:
        """Return a connection with an open read transaction."""
        if not self._free.acquire(timeout=_WAIT_FOR_READER):
            raise StoreBusyError(f"all {self._most} reading connections are in use")
        with ExitStack() as undo:
            undo.callback(self._free.release)
            connection = self._begin_reading()
            undo.pop_all()
        return connection

    def _begin_reading(self) -> psycopg.Connection:
        while self._idle:
            connection = self._idle.pop()
            try:
                _begin(connection, _BEGIN_READING)
            except psycopg.OperationalError:
                connection.close()  # it died while idle; try the next one
            else:
                return connection
        connection = self._server.connect()
        _begin(connection, _BEGIN_READING)
        return connection

    def give_back(self, connection: psycopg.Connection) -> None:
        """End the transaction and return the connection to the pool, if it still works."""
        try:
            _end(connection)
            if self._closed:
                connection.close()
            elif not connection.closed:
                self._idle.append(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close idle connections now, and the others when they are returned."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _begin(connection: psycopg.Connection, how: str) -> Row:
    """Open a transaction in one round trip; return the first row of its last statement."""
    with ExitStack() as undo:
        undo.callback(_end, connection)
        cursor = connection.execute(how)
        while cursor.nextset():
            pass
        row = cursor.fetchone() if cursor.description else None
        undo.pop_all()
    return row or ()


def _end(connection: psycopg.Connection) -> None:
    """Roll back an open transaction; close the connection if that fails."""
    try:
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()


class _PostgresQueries:
    """Queries in an open transaction."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection: psycopg.Connection | None = connection
        self._scans = 0

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query."""
        return self._run(_statement(sql), parameters).fetchall()

    def rows_in(self, sql: str, numbers: Sequence[int]) -> list[Row]:
        """Return the rows of a query that ends in `IN`, for these numbers."""
        if not numbers:
            return []
        return self._run(
            f"{sql.removesuffix('IN')} = ANY(%b::bigint[])", [encode_array("bigint", numbers)]
        ).fetchall()

    def find_ids(self, key: NaturalKey, keys: Sequence[Row]) -> dict[Row, int]:
        """Return the ids of the rows that exist, by natural key."""
        ids = self._run(_find_statement(key), _arrays(key.columns, keys))
        return {keys[position - 1]: row_id for position, row_id in ids}

    def scan(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of a query without loading all of them."""
        # A cursor on the server, not a stream, so that other queries can run in between.
        self._scans += 1
        name = f"scan_{self._scans}"
        self._run(f"DECLARE {name} NO SCROLL CURSOR FOR {_statement(sql)}", parameters)
        rows = [()] * _SCAN_ROWS
        while len(rows) == _SCAN_ROWS:
            rows = self._run(f"FETCH {_SCAN_ROWS} FROM {name}").fetchall()
            yield from rows

    def end(self) -> None:
        """Reject further queries, because the connection is returned to the pool."""
        self._connection = None

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> psycopg.Cursor[Row]:
        if self._connection is None:
            raise StoreError("a reader can be used only inside its `with` block")
        return self._connection.execute(sql, parameters or None, binary=True)


class _PostgresTransaction(_PostgresQueries):
    """The open write transaction."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._run(_statement(sql), parameters)

    def merge(self, table: CatalogTable, rows: Sequence[Row]) -> None:
        """Insert rows, merging those that exist."""
        if rows:
            self._run(_merge_statement(table), _arrays(table.columns, rows))


def _arrays(columns: Columns, rows: Sequence[Row]) -> list[PostgresArray]:
    """Return one array per column."""
    return [
        encode_array(kind, values)
        for (_, kind), values in zip(columns, zip(*rows, strict=True), strict=True)
    ]


@cache
def _statement(sql: str) -> str:
    """Replace `?` with the placeholder of the driver."""
    if "%" in sql:
        raise ValueError(f"write SQL for every store without %: {sql}")
    return sql.replace("?", "%s")


@cache
def _find_statement(key: NaturalKey) -> str:
    names = [name for name, _ in key.columns]
    condition = " AND ".join(f"t.{name} = k.{name}" for name in names)
    return f"""
        SELECT k.position, t.{key.id_column}
        FROM unnest({_placeholders(key.columns)}) WITH ORDINALITY AS k({", ".join(names)}, position)
        JOIN {key.table} t ON {condition}
    """


@cache
def _merge_statement(table: CatalogTable) -> str:
    return table.insert_from(f"SELECT * FROM unnest({_placeholders(table.columns)})")


def _placeholders(columns: Columns) -> str:
    return ", ".join(f"%b::{kind}[]" for _, kind in columns)

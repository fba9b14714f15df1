"""A scratch schema of a database, in which models are built and compared.

Nothing outside of it is written. PostgreSQL builds in one transaction that is rolled back at the
end. DuckDB's file is attached read-only, and the scratch schema is in a temporary file.
"""

from __future__ import annotations

import tempfile
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from downriver.capture.inventory.databases import (
    duckdb_file,
    load_driver,
    postgres_address,
    without_password,
)
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FIELD = "--verify"
_LONGEST = 300  # characters of an error
_CATALOG = "downriver_scratch"  # the name of DuckDB's temporary file
_WRITES = (
    exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.Command,
    exp.Into, exp.Copy, exp.TruncateTable,
)  # fmt: skip


class VerifyOptions(msgspec.Struct, kw_only=True, frozen=True):
    """Which database verifies a verdict, and its limits.

    `target` is the schema into which dbt builds; it decides between tables of one name.
    """

    url: str
    schema: str = "downriver_verify"
    target: str = ""
    timeout: float = 60.0  # seconds of one statement
    rows: int = 1_000_000  # of a table whose values are compared


class DatabaseTable(NamedTuple):
    """A table or view of the database."""

    catalog: str
    schema: str
    name: str


class RelationColumn(NamedTuple):
    """A column of a table: its name and type."""

    name: str
    type: str


class StatementFault(str, Enum):
    """Why the database did not run a statement."""

    ERROR = "error"
    MISSING_RELATION = "missing_relation"
    TIMEOUT = "timeout"
    NOT_A_QUERY = "not_a_query"


class StatementError(Exception):
    """The database did not run a statement; the scratch schema can still be used."""

    def __init__(self, fault: StatementFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message


class ScratchDatabase(ABC):
    """A database with a scratch schema."""

    dialect: str

    def __init__(self, options: VerifyOptions) -> None:
        self.options = options

    def quote(self, *parts: str) -> str:
        """Return a name as SQL."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in parts if part)

    @abstractmethod
    def scratch(self, name: str) -> str:
        """Return the name of a table of the scratch schema as SQL."""

    @abstractmethod
    def relations(self) -> list[DatabaseTable]:
        """Return the tables and views outside of the scratch schema."""

    @abstractmethod
    def default_schemas(self) -> list[str]:
        """Return the schemas in which a name without a schema is looked up."""

    @abstractmethod
    def columns(self, relation: str) -> list[RelationColumn]:
        """Return the columns of a table, whose name is given as SQL."""

    @abstractmethod
    def query(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query with these parameters."""

    def create(self, name: str, sql: str) -> None:
        """Create a table of the scratch schema with the rows of a query."""
        self.check_query(sql)
        # On lines of its own: a query may end with a comment.
        self.query(f"CREATE TABLE {self.scratch(name)} AS\nSELECT * FROM (\n{sql}\n) AS model")

    def drop(self, name: str) -> None:
        """Drop a table of the scratch schema."""
        self.query(f"DROP TABLE {self.scratch(name)}")

    def check_query(self, sql: str) -> None:
        """Raise an error unless a text is one query that only reads."""
        try:
            statements = [tree for tree in sqlglot.parse(sql, dialect=self.dialect) if tree]
        except SqlglotError as exc:
            raise StatementError(StatementFault.NOT_A_QUERY, _first_line(exc)) from exc
        if len(statements) != 1 or not isinstance(statements[0], exp.Query):
            raise StatementError(StatementFault.NOT_A_QUERY, "its SQL is not a single query")
        if statements[0].find(*_WRITES):
            raise StatementError(StatementFault.NOT_A_QUERY, "its SQL writes data")


@contextmanager
def open_scratch(options: VerifyOptions) -> Iterator[ScratchDatabase]:
    """Open a database with an empty scratch schema, which is dropped at the end."""
    scheme = options.url.partition("://")[0].partition("+")[0]
    match scheme:
        case "duckdb":
            opened = _open_duckdb(options)
        case "postgresql" | "postgres":
            opened = _open_postgres(options)
        case _:
            reason = "give duckdb://PATH or postgresql://HOST/DATABASE"
            raise InvalidRequestError(_FIELD, reason)
    with opened as database:
        yield database


def _refuse_existing(options: VerifyOptions) -> InvalidRequestError:
    reason = f"the scratch schema {options.schema} exists in {without_password(options.url)}; "
    return InvalidRequestError(_FIELD, f"{reason}drop it, or name another with --verify-scratch")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:_LONGEST]


@contextmanager
def _open_duckdb(options: VerifyOptions) -> Iterator[ScratchDatabase]:
    duckdb = load_driver("duckdb", "inventory")
    file = duckdb_file(options.url)
    if not file.is_file():
        raise InvalidRequestError(_FIELD, f"{file}: no such file")
    with tempfile.TemporaryDirectory(prefix="downriver-") as folder:
        scratch = Path(folder) / f"{_CATALOG}.duckdb"
        with duckdb.connect(str(scratch), config={"threads": 1}) as connection:
            try:
                database = DuckDbScratch(connection, options, file)
            except duckdb.Error as exc:
                reason = f"{without_password(options.url)}: {_first_line(exc)}"
                raise InvalidRequestError(_FIELD, reason) from exc
            yield database


class DuckDbScratch(ScratchDatabase):
    """A DuckDB file, attached read-only beside a temporary file with the scratch schema."""

    dialect = "duckdb"

    def __init__(self, connection: Any, options: VerifyOptions, file: Path) -> None:
        super().__init__(options)
        self._connection = connection
        self._catalog = file.stem
        attached = str(file).replace("'", "''")
        catalog = self.quote(self._catalog)
        connection.execute(f"ATTACH '{attached}' AS {catalog} (READ_ONLY)")
        schemata = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = ?"
        if (options.schema,) in connection.execute(schemata, [self._catalog]).fetchall():
            raise _refuse_existing(options)
        connection.execute(f"CREATE SCHEMA {self.quote(_CATALOG, options.schema)}")
        path = self.quote(self._catalog, options.target or "main").replace("'", "''")
        connection.execute(f"SET search_path = '{path}'")
        # The SQL of a model reads no files and opens no other database.
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")

    def scratch(self, name: str) -> str:
        """Return the name of a table of the scratch schema as SQL."""
        return self.quote(_CATALOG, self.options.schema, name)

    def relations(self) -> list[DatabaseTable]:
        """Return the tables and views of the file."""
        sql = (
            "SELECT table_catalog, table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = ?"
        )
        rows = self.query(sql, [self._catalog])
        return [DatabaseTable(*row) for row in sorted(rows)]

    def default_schemas(self) -> list[str]:
        """Return DuckDB's default schema."""
        return ["main"]

    def columns(self, relation: str) -> list[RelationColumn]:
        """Return the columns of a table, whose name is given as SQL."""
        return [RelationColumn(*row[:2]) for row in self.query(f"DESCRIBE {relation}")]

    def query(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, which is interrupted after the time limit."""
        duckdb = load_driver("duckdb", "inventory")
        timer = threading.Timer(self.options.timeout, self._connection.interrupt)
        timer.start()
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(sql, values).fetchall()
        except duckdb.InterruptException as exc:
            raise StatementError(StatementFault.TIMEOUT, _over_time(self.options)) from exc
        except duckdb.CatalogException as exc:
            is_table = str(exc).startswith("Catalog Error: Table")
            fault = StatementFault.MISSING_RELATION if is_table else StatementFault.ERROR
            raise StatementError(fault, _first_line(exc)) from exc
        except duckdb.Error as exc:
            raise StatementError(StatementFault.ERROR, _first_line(exc)) from exc
        else:
            return rows
        finally:
            timer.cancel()


@contextmanager
def _open_postgres(options: VerifyOptions) -> Iterator[ScratchDatabase]:
    psycopg = load_driver("psycopg", "postgres")
    try:
        connection = psycopg.connect(postgres_address(options.url))
    except psycopg.Error as exc:
        reason = f"{without_password(options.url)}: {_first_line(exc)}"
        raise InvalidRequestError(_FIELD, reason) from exc
    try:
        try:
            database = PostgresScratch(connection, options)
        except psycopg.errors.DuplicateSchema as exc:
            raise _refuse_existing(options) from exc
        except psycopg.Error as exc:
            reason = f"{without_password(options.url)}: {_first_line(exc)}"
            raise InvalidRequestError(_FIELD, reason) from exc
        yield database
    finally:
        connection.rollback()
        connection.close()


class PostgresScratch(ScratchDatabase):
    """A PostgreSQL database. The scratch schema exists only in one transaction."""

    dialect = "postgres"

    def __init__(self, connection: Any, options: VerifyOptions) -> None:
        super().__init__(options)
        self._connection = connection
        milliseconds = int(options.timeout * 1000)
        connection.execute(f"SET LOCAL statement_timeout = {milliseconds}")
        connection.execute(f"SET LOCAL lock_timeout = {milliseconds}")
        # In parallel, sums of floating-point numbers differ from run to run.
        connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        if options.target:
            connection.execute(f"SET LOCAL search_path = {self.quote(options.target)}, public")
        connection.execute(f"CREATE SCHEMA {self.quote(options.schema)}")

    def scratch(self, name: str) -> str:
        """Return the name of a table of the scratch schema as SQL."""
        return self.quote(self.options.schema, name)

    def relations(self) -> list[DatabaseTable]:
        """Return the tables and views outside of the scratch schema."""
        sql = """
            SELECT current_database(), n.nspname, c.relname
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
              AND n.nspname NOT IN ('information_schema', 'pg_catalog', 'pg_toast', %s)
        """
        rows = self.query(sql, [self.options.schema])
        return [DatabaseTable(*row) for row in sorted(rows)]

    def default_schemas(self) -> list[str]:
        """Return the schemas of the search path."""
        return [
            str(name) for (names,) in self.query("SELECT current_schemas(false)") for name in names
        ]

    def columns(self, relation: str) -> list[RelationColumn]:
        """Return the columns of a table, whose name is given as SQL."""
        sql = """
            SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
        """
        return [RelationColumn(*row) for row in self.query(sql, [relation])]

    def query(self, sql: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. An error undoes only this query."""
        psycopg = load_driver("psycopg", "postgres")
        try:
            with self._connection.transaction():
                # A prepared statement is a single statement.
                cursor = self._connection.execute(sql, values or None, prepare=True)
                rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
                return rows
        except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as exc:
            raise StatementError(StatementFault.TIMEOUT, _over_time(self.options)) from exc
        except psycopg.errors.UndefinedTable as exc:
            raise StatementError(StatementFault.MISSING_RELATION, _first_line(exc)) from exc
        except psycopg.OperationalError as exc:
            raise InvalidRequestError(_FIELD, _first_line(exc)) from exc
        except psycopg.Error as exc:
            raise StatementError(StatementFault.ERROR, _first_line(exc)) from exc


def _over_time(options: VerifyOptions) -> str:
    return f"takes longer than {options.timeout:g} s (--verify-timeout)"

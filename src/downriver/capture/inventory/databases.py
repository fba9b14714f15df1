"""The tables, views and rows of a database, by its SQLAlchemy URL.

PostgreSQL and DuckDB are read with their own drivers, every other database with SQLAlchemy.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from downriver.errors import InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Partitions are parts of a table, not tables of their own.
_POSTGRES = r"""
    SELECT current_database(), n.nspname, c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
"""
_DUCKDB = """
    SELECT table_catalog, table_schema, table_name FROM information_schema.tables
    WHERE table_schema NOT IN ('information_schema', 'pg_catalog')
"""
_SYSTEM_SCHEMAS = frozenset(
    {"information_schema", "pg_catalog", "sys", "mysql", "performance_schema"}
)
_FIELD = "URL"


def list_tables(url: str) -> Iterator[str]:
    """Yield the tables and views of a database as `database.schema.table`."""
    scheme = url.partition("://")[0].partition("+")[0]
    match scheme:
        case "postgresql" | "postgres":
            rows = _read_postgres(url)
        case "duckdb":
            rows = _read_duckdb(url)
        case _:
            rows = _read_with_sqlalchemy(url)
    return (".".join(part for part in row if part) for row in rows)


def read_rows(url: str, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query, by the names of its columns."""
    match url.partition("://")[0].partition("+")[0]:
        case "postgresql" | "postgres":
            psycopg = load_driver("psycopg", "postgres")
            try:
                with psycopg.connect(postgres_address(url)) as connection:
                    return _by_name(connection.execute(query))
            except psycopg.Error as exc:
                raise _unreadable(url, exc) from exc
        case "duckdb":
            duckdb = load_driver("duckdb", "inventory")
            try:
                with duckdb.connect(str(duckdb_file(url)), read_only=True) as connection:
                    return _by_name(connection.execute(query))
            except duckdb.Error as exc:
                raise _unreadable(url, exc) from exc
    sqlalchemy = load_driver("sqlalchemy", "inventory")
    try:
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            return [dict(row) for row in connection.execute(sqlalchemy.text(query)).mappings()]
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as exc:
        raise _unreadable(url, exc) from exc


def _by_name(cursor: Any) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def without_password(url: str) -> str:
    """Return a URL without its password."""
    return re.sub(r"^([^:]*://[^/@:]*):[^@]*@", r"\1@", url).partition("?")[0]


def load_driver(library: str, extra: str) -> Any:
    """Return the driver of a database, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(library)
    except ImportError as exc:
        raise MissingDependencyError(library, extra) from exc


def postgres_address(url: str) -> str:
    """Return the address of a PostgreSQL database, as its driver reads it."""
    return re.sub(r"^postgres(?:ql)?(?:\+\w+)?://", "postgresql://", url)


def duckdb_file(url: str) -> Path:
    """Return the file of a DuckDB database: of `duckdb:///shop.db`, or `duckdb:////data/shop.db`.

    The absolute path of a file that exists may also follow two slashes: `duckdb:///data/shop.db`.
    """
    path = unquote(url.partition("://")[2].partition("?")[0])
    relative = Path(path.removeprefix("/"))
    return Path(path) if not relative.exists() and Path(path).exists() else relative


def _read_postgres(url: str) -> list[tuple[str, ...]]:
    psycopg = load_driver("psycopg", "postgres")
    try:
        with psycopg.connect(postgres_address(url)) as connection:
            return list(connection.execute(_POSTGRES).fetchall())
    except psycopg.Error as exc:
        raise _unreadable(url, exc) from exc


def _read_duckdb(url: str) -> list[tuple[str, ...]]:
    duckdb = load_driver("duckdb", "inventory")
    try:
        with duckdb.connect(str(duckdb_file(url)), read_only=True) as connection:
            return list(connection.execute(_DUCKDB).fetchall())
    except duckdb.Error as exc:
        raise _unreadable(url, exc) from exc


def _read_with_sqlalchemy(url: str) -> list[tuple[str, ...]]:
    sqlalchemy = load_driver("sqlalchemy", "inventory")
    try:
        engine = sqlalchemy.create_engine(url)
        inspector = sqlalchemy.inspect(engine)
        tables = [
            (engine.url.database or "", schema or "", name)
            for schema in inspector.get_schema_names()
            if schema.casefold() not in _SYSTEM_SCHEMAS
            for name in (*inspector.get_table_names(schema), *inspector.get_view_names(schema))
        ]
        engine.dispose()
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as exc:
        raise _unreadable(url, exc) from exc
    # SQLite's only schema and database are not part of a name.
    return [
        (name,) if engine.dialect.name == "sqlite" else row for row in tables for name in row[2:]
    ]


def _unreadable(url: str, error: Exception) -> InvalidRequestError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return InvalidRequestError(_FIELD, f"{without_password(url)}: {lines[0]}")

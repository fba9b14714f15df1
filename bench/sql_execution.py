"""Runs statements on DuckDB, over generated tables and over copies with one column changed."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import duckdb
import msgspec
import sqlglot

from bench.sql_databases import DATABASES, Database
from bench.sql_perturbations import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

STATEMENTS = Path(__file__).parent / "sql_statements"
QUERY = ""  # the output of a query has no table name

Source: TypeAlias = tuple[str, str]  # table, column
Run: TypeAlias = "dict[str, Result]"  # by output table


class Case(msgspec.Struct, frozen=True):
    """A statement, or a script, and the tables it runs on."""

    name: str
    topic: str
    database: str
    sql: str


def read_cases(folder: Path = STATEMENTS) -> list[Case]:
    """Return the statements of a folder; a `-- name:` line begins each."""
    cases: list[Case] = []
    for path in sorted(folder.glob("*.sql")):
        _, *parts = re.split(r"^-- name: *(\w+)\n", path.read_text("utf-8"), flags=re.MULTILINE)
        database = path.stem if path.stem in DATABASES else "shop"
        for name, sql in zip(parts[::2], parts[1::2], strict=True):
            cases.append(Case(name, path.stem, database, sql.strip()))
    return cases


# Results


class Result(NamedTuple):
    """The rows of one output. `ordered` is true when their order matters."""

    names: list[str]
    rows: list[tuple[Any, ...]]
    ordered: bool = False

    def differs(self, other: Result, columns: Sequence[int]) -> bool:
        """Return whether the rows of these columns differ."""
        mine = [tuple(row[at] for at in columns) for row in self.rows]
        theirs = [tuple(row[at] for at in columns) for row in other.rows]
        return mine != theirs if self.ordered else Counter(mine) != Counter(theirs)


class Difference(NamedTuple):
    """How one output differs after an input was changed.

    `columns` have other values, or the same values in rows whose other columns differ. `rest` is
    true when the columns without an edge differ. `tainted` columns contain a changed value.
    """

    columns: frozenset[int]
    rest: bool
    tainted: frozenset[int]


def compare(
    before: Result,
    after: Result,
    *,
    fed: AbstractSet[int] = frozenset(),
    ignored: AbstractSet[int] = frozenset(),
    made: Iterable[Any] = (),
) -> Difference | None:
    """Return how a result differs from another, or None when it does not.

    Rows are compared in any order unless they are ordered. The columns `fed` may differ and the
    others should not.
    """
    every = range(len(before.names))
    if before.rows == after.rows or not before.differs(after, every):
        return None
    rest = [at for at in every if at not in fed and at not in ignored]
    moved = before.differs(after, rest)
    changed = {at for at in every if before.differs(after, [at])}
    if not moved:
        changed |= {at for at in fed if before.differs(after, [*rest, at])}
    marks = set(_leaves([normal(value) for value in made]))
    tainted = {
        at for at in every if marks and not marks.isdisjoint(_leaves([r[at] for r in after.rows]))
    }
    return Difference(frozenset(changed - ignored), moved, frozenset(tainted - ignored))


def normal(value: Any) -> Any:
    """Return a hashable value; floats are rounded because sums may differ in the last digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return tuple(normal(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, normal(item)) for key, item in value.items())
    return value


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _leaves(value)
        elif isinstance(value, (str, dt.date, int, Decimal)) and not isinstance(value, bool):
            yield value


# Running


class _Prepared(NamedTuple):
    """One statement. `ordered` is None when it is not a query."""

    statement: duckdb.Statement
    ordered: bool | None


class StatementRunner:
    """A database with generated tables, and copies of each table with one column changed.

    Each copy is in its own schema: a statement reads it when that schema is searched first.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET enable_progress_bar = false")
        self._schemas: dict[tuple[tuple[Source, ...], int, int], tuple[str, list[Any]]] = {}
        self._prepared: dict[Case, list[_Prepared]] = {}
        self._reordered: set[str] = set()
        for table in database.tables.values():
            columns = ", ".join(f"{name} {type_}" for name, type_ in table.columns.items())
            marks = ", ".join("?" for _ in table.columns)
            self._connection.execute(f"CREATE TABLE {table.name} ({columns})")
            self._connection.executemany(f"INSERT INTO {table.name} VALUES ({marks})", table.rows)

    def reorder(self, seed: int) -> str:
        """Return a schema with the same rows, stored in another order."""
        schema = f"reordered_{seed}"
        if schema not in self._reordered:
            self._reordered.add(schema)
            self._connection.execute(f"CREATE SCHEMA {schema}")
            for name in self.database.tables:
                self._connection.execute(
                    f"CREATE TABLE {schema}.{name} AS "
                    f"SELECT * FROM main.{name} ORDER BY hash(rowid + {seed})"
                )
        return schema

    def perturb(self, sources: tuple[Source, ...], kind: int, seed: int) -> tuple[str, list[Any]]:
        """Return a schema in which these columns have other values, and the new values."""
        key = (sources, kind, seed)
        if key not in self._schemas:
            schema = f"p{len(self._schemas)}"
            self._connection.execute(f"CREATE SCHEMA {schema}")
            made: list[Any] = []
            for name in dict.fromkeys(table for table, _ in sources):
                columns = {column for table, column in sources if table == name}
                made += self._copy(schema, name, columns, kind, seed)
            self._schemas[key] = schema, made
        return self._schemas[key]

    def _copy(self, schema: str, name: str, columns: set[str], kind: int, seed: int) -> list[Any]:
        table = self.database.tables[name]
        made: list[Any] = []
        items: list[str] = []
        values: dict[str, list[Any]] = {}
        for column, type_ in table.columns.items():
            if column in columns:
                random_ = random.Random(f"{name}.{column}.{kind}.{seed}")
                changed = KINDS[kind](random_, table.values(column), type_)
                values[column] = changed.values
                made += changed.made
                items.append(f"(CAST(${column} AS {type_}[]))[rowid + 1] AS {column}")
            else:
                items.append(column)
        self._connection.execute(
            f"CREATE TABLE {schema}.{name} AS "
            f"SELECT {', '.join(items)} FROM main.{name} ORDER BY rowid",
            values,
        )
        return made

    def run(self, case: Case, schema: str, outputs: Sequence[str] | None = None) -> Run:
        """Run a case and return its outputs: the rows of a query, or the tables it wrote."""
        *before, last = self._prepare(case)
        self._connection.execute(f"SET search_path = '{schema},main'")
        if not before and last.ordered is not None:
            return {QUERY: self._read(last.statement, ordered=last.ordered)}
        self._connection.execute("BEGIN")
        try:
            for prepared in before:
                self._connection.execute(prepared.statement)
            if last.ordered is not None:
                return {QUERY: self._read(last.statement, ordered=last.ordered)}
            self._connection.execute(last.statement)
            names = outputs if outputs is not None else self._written()
            return {name: self._read(f"SELECT * FROM {name}") for name in names}
        finally:
            self._connection.execute("ROLLBACK")

    def _prepare(self, case: Case) -> list[_Prepared]:
        if case not in self._prepared:
            self._prepared[case] = [
                _Prepared(
                    statement,
                    _is_ordered(statement.query)
                    if statement.type == duckdb.StatementType.SELECT
                    else None,
                )
                for statement in self._connection.extract_statements(case.sql)
            ]
        return self._prepared[case]

    def _read(self, sql: str | duckdb.Statement, *, ordered: bool = False) -> Result:
        cursor = self._connection.execute(sql)
        names = [str(column[0]) for column in cursor.description or ()]
        rows = [tuple(map(normal, row)) for row in cursor.fetchall()]
        return Result(names, rows, ordered)

    def _written(self) -> list[str]:
        """Return the tables that are new, and those whose rows changed."""
        found = self._connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT temporary "
            "UNION ALL SELECT view_name FROM duckdb_views() "
            "WHERE schema_name = 'main' AND NOT temporary AND NOT internal ORDER BY 1"
        ).fetchall()
        return [name for (name,) in found if self._differs(name)]

    def _differs(self, name: str) -> bool:
        table = self.database.tables.get(name)
        if table is None:
            return True
        before = Counter(tuple(map(normal, row)) for row in table.rows)
        return Counter(self._read(f"SELECT * FROM main.{name}").rows) != before


def _is_ordered(sql: str) -> bool:
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    return tree.args.get("order") is not None

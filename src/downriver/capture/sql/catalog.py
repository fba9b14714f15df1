"""The tables of a script: schemas, temporary tables, the current database."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from downriver.columns import Column, Relation, Star, union_by_name

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.statements.context import StatementEffect, TableWrite
    from downriver.columns import TableName

Schema: TypeAlias = Mapping[str, Sequence[str]] | Callable[[str], Sequence[str] | None]

_DEFINES_COLUMNS = frozenset({"CREATE TABLE AS", "CREATE VIEW", "SELECT INTO", "CLONE"})


class KnownColumns:
    """The known columns of tables. A short name matches the last parts of a longer name."""

    def __init__(self, given: Schema) -> None:
        self._columns: dict[tuple[str, ...], list[str]] = {}
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        self._lookup = given if callable(given) else None
        for name, columns in given.items() if not callable(given) else ():
            self.add(tuple(name.split(".")), list(columns))

    def add(self, table: TableName, columns: list[str]) -> None:
        """Set the columns of a table."""
        key = _key(table)
        if key not in self._columns:
            self._by_last.setdefault(key[-1], []).append(key)
        self._columns[key] = columns

    def remove(self, table: TableName) -> None:
        """Remove a table."""
        key = _key(table)
        if self._columns.pop(key, None) is not None:
            self._by_last[key[-1]].remove(key)

    def find_relation(self, table: TableName) -> Relation | None:
        """Return None: no table is replaced by another relation."""
        return None

    def apply(
        self, effect: StatementEffect, writes: Sequence[TableWrite], temporary: TemporaryTables
    ) -> None:
        """Record the columns that a statement defines, and the tables it drops or renames."""
        for table, columns in (effect.defines or {}).items():
            self.add(table, columns)
        for write in writes:
            if effect.lifecycle == "DROP":
                self.remove(write.table)
            elif effect.lifecycle == "RENAME":
                self._rename(write)
            elif effect.kind in _DEFINES_COLUMNS:
                names = [item.name for item in write.columns if isinstance(item, Column)]
                if len(names) == len(write.columns):
                    self.add(write.table, names)

    def _rename(self, write: TableWrite) -> None:
        for item in write.columns:
            columns = self.columns_of(item.table) if isinstance(item, Star) else None
            if isinstance(item, Star) and columns is not None:
                self.remove(item.table)
                self.add(write.table, columns)

    def columns_of(self, table: TableName) -> list[str] | None:
        """Return a table's columns in order, None when they are unknown."""
        key = _key(table)
        if not key:
            return None
        exact = self._columns.get(key)
        if exact is not None:
            return exact
        matches = [k for k in self._by_last.get(key[-1], ()) if _same_suffix(k, key)]
        if matches:
            return self._columns[matches[0]] if len(matches) == 1 else None
        columns = self._lookup(".".join(table)) if self._lookup is not None else None
        return None if columns is None else list(columns)


def _key(table: TableName) -> tuple[str, ...]:
    return tuple(part.casefold() for part in table)


def _same_suffix(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(one), len(other))
    return one[-shared:] == other[-shared:]


_PREFIXES = ("#", "@")


class TemporaryTables:
    """The temporary tables and views that a script has created so far, with their rows."""

    def __init__(self, dialect: Dialect) -> None:
        self.relations: dict[TableName, Relation] = {}
        self._has_prefixes = type(dialect).__name__.lower() in ("tsql", "fabric", "redshift")

    def keep(self, effect: StatementEffect, written: list[TableWrite]) -> list[TableWrite]:
        """Apply the writes to temporary tables, and return the writes to other tables."""
        kept: list[TableWrite] = []
        for write in written:
            if effect.temporary:
                relation = Relation(write.columns, write.rows, reads=effect.inputs)
                self.relations[write.table] = relation
            elif effect.lifecycle == "RENAME" and self._rename(write):
                continue
            elif self._is_temporary(write.table):
                self._change(effect, write)
            else:
                kept.append(write)
        return kept

    def _is_temporary(self, table: TableName) -> bool:
        if table in self.relations:
            return True
        return self._has_prefixes and len(table) == 1 and table[0].startswith(_PREFIXES)

    def _rename(self, written: TableWrite) -> bool:
        for item in written.columns:
            if isinstance(item, Star) and item.table in self.relations:
                self.relations[written.table] = self.relations.pop(item.table)
                return True
        return False

    def _change(self, effect: StatementEffect, written: TableWrite) -> None:
        if effect.lifecycle == "DROP":
            self.relations.pop(written.table, None)
        elif effect.lifecycle is None:
            old = self.relations.get(written.table) or Relation([])
            both = union_by_name([old, Relation(written.columns, written.rows)])
            both.reads = list(dict.fromkeys([*old.reads, *effect.inputs]))
            self.relations[written.table] = both


_NAME = re.compile(r"[\w$ -]+\Z")  # not a path or a stage, which have no schema
# Dialects in which `USE x` selects a database, and the schema that it starts in.
_FIRST_SCHEMA = {"tsql": "dbo", "fabric": "dbo", "snowflake": "PUBLIC"}


class CurrentSchema:
    """The database and schema that USE has selected: names without a schema belong to them."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._first_schema = _FIRST_SCHEMA.get(type(dialect).__name__.lower())
        self._database: tuple[str, ...] = ()
        self._schema: tuple[str, ...] = ()

    def follow(self, tree: exp.Expression) -> None:
        """Apply a USE statement; ignore any other."""
        if not isinstance(tree, exp.Use) or not isinstance(tree.this, exp.Table):
            return
        if not all(isinstance(part, exp.Identifier) for part in tree.this.parts):
            self._database = self._schema = ()  # known only at run time
            return
        parts = tuple(
            str(self._dialect.normalize_identifier(part.copy()).this) for part in tree.this.parts
        )
        kind = str(tree.args.get("kind") or "").upper()
        if kind in ("WAREHOUSE", "ROLE", "SECONDARY ROLES"):
            return
        names_database = kind in ("DATABASE", "CATALOG") or (not kind and len(parts) == 1)
        if self._first_schema is not None and names_database:
            self._database, self._schema = parts, (self._first_schema,)
        elif kind == "CATALOG":
            self._database, self._schema = parts, ()
        else:
            self._database, self._schema = parts[:-1] or self._database, parts[-1:]

    def text(self, name: TableName) -> str:
        """Return a table's name as one string, qualified with the current database and schema."""
        if self._schema and name and all(_NAME.match(part) for part in name):
            if len(name) == 1:
                name = (*self._database, *self._schema, *name)
            elif len(name) == 2 and self._database:
                name = (*self._database, *name)
        return ".".join(name)

"""What a script knows about tables: schemas, temporary tables, the current database."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from downriver.columns.dependencies import Deps, merge
from downriver.columns.relations import Relation, Star, united_by_name

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.statements.context import StatementEffect, TableWrite
    from downriver.columns.dependencies import TableName

Schema: TypeAlias = Mapping[str, Sequence[str]] | Callable[[str], Sequence[str] | None]


class KnownColumns:
    """Known columns of tables; a shorter name matches a longer one by its last parts."""

    def __init__(self, given: Schema) -> None:
        self._columns: dict[tuple[str, ...], list[str]] = {}
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        self._ask = given if callable(given) else None
        for name, columns in given.items() if not callable(given) else ():
            self.add(tuple(name.split(".")), list(columns))

    def add(self, table: TableName, columns: list[str]) -> None:
        """Remember the columns of a table: what was said last counts."""
        key = _key(table)
        if key not in self._columns:
            self._by_last.setdefault(key[-1], []).append(key)
        self._columns[key] = columns

    def forget(self, table: TableName) -> None:
        """Forget a table that is gone."""
        key = _key(table)
        if self._columns.pop(key, None) is not None:
            self._by_last[key[-1]].remove(key)

    def columns_of(self, table: TableName) -> list[str] | None:
        """Return a table's columns in order, or None when they are unknown."""
        key = _key(table)
        if not key:
            return None
        exact = self._columns.get(key)
        if exact is not None:
            return exact
        fitting = [k for k in self._by_last.get(key[-1], ()) if _ends_alike(k, key)]
        if fitting:
            return self._columns[fitting[0]] if len(fitting) == 1 else None
        found = self._ask(".".join(table)) if self._ask is not None else None
        return None if found is None else list(found)


def _key(table: TableName) -> tuple[str, ...]:
    return tuple(part.casefold() for part in table)


def _ends_alike(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(one), len(other))
    return one[-shared:] == other[-shared:]


_MARKS = ("#", "@")


class TemporaryTables:
    """The temporary tables and views a script has made so far, and what is in them."""

    def __init__(self, dialect: Dialect) -> None:
        self.relations: dict[TableName, Relation] = {}
        self._has_marks = type(dialect).__name__.lower() in ("tsql", "fabric", "redshift")

    def keep(self, effect: StatementEffect, written: list[TableWrite]) -> list[TableWrite]:
        """Remember what a statement does to temporary tables; return what it does to others."""
        kept: list[TableWrite] = []
        for one in written:
            if effect.temporary:
                rows = dict(one.rows)
                self.relations[one.table] = Relation(list(one.columns), rows, reads=effect.inputs)
            elif effect.lifecycle == "RENAME" and self._rename(one):
                continue
            elif self._is_temporary(one.table):
                self._change(effect, one)
            else:
                kept.append(one)
        return kept

    def _is_temporary(self, table: TableName) -> bool:
        if table in self.relations:
            return True
        return self._has_marks and len(table) == 1 and table[0].startswith(_MARKS)

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
            old = self.relations.get(written.table) or Relation([], {})
            rows: Deps = dict(old.rows)
            merge(rows, written.rows)
            new = Relation(list(written.columns), {})
            found = united_by_name([old, new], rows)
            found.reads = list(dict.fromkeys([*old.reads, *effect.inputs]))
            self.relations[written.table] = found


_NAME = re.compile(r"[\w$ -]+\Z")  # a path or a stage is in no schema
# Where `USE x` names a database with schemas in it, and the schema it starts in.
_FIRST_SCHEMA = {"tsql": "dbo", "fabric": "dbo", "snowflake": "PUBLIC"}


class CurrentSchema:
    """What USE has said so far."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._first_schema = _FIRST_SCHEMA.get(type(dialect).__name__.lower())
        self._database: tuple[str, ...] = ()
        self._schema: tuple[str, ...] = ()

    def follow(self, tree: exp.Expression) -> None:
        """Take note of a USE statement; any other changes nothing."""
        if not isinstance(tree, exp.Use) or not isinstance(tree.this, exp.Table):
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
        """Return a table's name as one string, with the database and schema in use."""
        if self._schema and name and all(_NAME.match(part) for part in name):
            if len(name) == 1:
                name = (*self._database, *self._schema, *name)
            elif len(name) == 2 and self._database:
                name = (*self._database, *name)
        return ".".join(name)

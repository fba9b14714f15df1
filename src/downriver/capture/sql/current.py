"""`USE`: the database and schema that names without one belong to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.deps import TableName

_NAME = re.compile(r"[\w$ -]+\Z")  # a path or a stage is in no schema
# Where `USE x` names a database with schemas in it, and the schema it starts in.
_FIRST_SCHEMA = {"tsql": "dbo", "fabric": "dbo", "snowflake": "PUBLIC"}


class CurrentNames:
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

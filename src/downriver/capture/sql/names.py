"""Names as the dialect compares them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.deps import TableName

# Where a table may stand, `format.path` is a file of that format.
_FORMATS = frozenset(
    {"avro", "binaryfile", "csv", "delta", "iceberg", "json", "orc", "parquet", "text"}
)
_PART = re.compile(r'"[^"]*"|`[^`]*`|[^.]+')


class Names:
    """What identifiers, tables, select items and relations are called in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.dialect_name = type(dialect).__name__.lower()
        self._names: dict[tuple[str, bool], str] = {}

    def name(self, node: exp.Expression) -> str:
        """Return an identifier as the dialect compares it."""
        if isinstance(node, exp.Identifier):
            key = (node.this, bool(node.args.get("quoted")))
            known = self._names.get(key)
            if known is None:
                copy = exp.Identifier(this=key[0], quoted=key[1])
                known = self._names[key] = str(self.dialect.normalize_identifier(copy).this)
            return known
        if isinstance(node, exp.Parameter) and isinstance(node.this, exp.Literal):
            return f"${node.name}"  # the columns of a file in a Snowflake stage: $1, $2
        return str(node.name)

    def fold(self, name: str) -> str:
        """Return a name as the dialect compares it when it is not quoted."""
        return self.name(exp.Identifier(this=name, quoted=False))

    def table_name(self, node: exp.Table) -> TableName:
        """Return the parts of a table's name; `#t` and `@t` of T-SQL keep their marks."""
        if is_named_by_value(node.this):
            return self.name_in(_value(node.this))
        parts = [part for part in node.parts if part.name]
        if len(parts) == 2 and parts[0].name.lower() in _FORMATS and "/" in parts[1].name:
            return (str(parts[1].name),)  # Spark: parquet.`/data/orders` is a file
        if self.dialect_name == "bigquery" and len(parts) > 1:
            return tuple(str(part.name) for part in parts)  # as it is written, unlike a column's
        return tuple(_mark(part) + self.name(part) for part in parts)

    def name_in(self, value: object) -> TableName:
        """Return the parts of a table's name that is a string, nothing when it is no constant."""
        if not isinstance(value, exp.Literal) or not value.is_string:
            return ()
        return tuple(
            part.strip('"`') if part.startswith(('"', "`")) else self.fold(part)
            for part in _PART.findall(value.name)
        )

    def output_name(self, node: exp.Expression) -> str:
        """Return the name a select item gets, or nothing when it has none."""
        if isinstance(node, exp.Alias):
            return self.name(node.args["alias"])
        if isinstance(node, exp.Column):
            return self.name(node.this)
        if isinstance(node, exp.Dot):
            return self.name(node.expression)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
            return self.name(node.this.this)
        if isinstance(node, (exp.Paren, exp.Subquery)) and node.this is not None:
            return self.name(node.args["alias"].this) if node.args.get("alias") else ""
        return ""

    def alias(self, node: exp.Expression) -> str:
        """Return the name a relation goes by in a FROM clause."""
        for part in reversed(node.args.get("pivots") or ()):
            if part.args.get("alias") is not None and part.args["alias"].this is not None:
                return self.name(part.args["alias"].this)
        if isinstance(node, exp.Final):
            return self.alias(node.this)
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            return self.name(alias.this) if alias.this is not None else ""
        if alias is not None:
            return self.name(alias) if isinstance(alias, exp.Expression) else str(alias)
        if isinstance(node, exp.Table) and node.this is not None:
            return self.name(node.this)
        return ""


def is_named_by_value(node: object) -> bool:
    """Return whether a table is named by an expression, as in `IDENTIFIER('db.orders')`."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper() == "IDENTIFIER" and bool(node.expressions)
    return isinstance(node, exp.DynamicIdentifier)


def _value(node: exp.Expression) -> object:
    return node.expressions[0] if isinstance(node, exp.Anonymous) else node.this


def _mark(node: exp.Expression) -> str:
    if isinstance(node, exp.Parameter):
        return "@"
    if node.args.get("global_"):
        return "##"
    return "#" if node.args.get("temporary") else ""

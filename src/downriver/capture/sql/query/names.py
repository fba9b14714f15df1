"""Names as the dialect compares them, and the column that a name or a path refers to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.text.variables import is_variable
from downriver.columns import (
    NOTHING,
    Column,
    DependencyKind,
    Deps,
    direct,
    indirect,
    merge,
    merge_all,
)

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.query.walker import QueryWalker
    from downriver.columns import Relation, TableName

# Spark reads `format.path` in FROM as a file of that format.
_FORMATS = frozenset(
    {"avro", "binaryfile", "csv", "delta", "iceberg", "json", "orc", "parquet", "text"}
)
_PARTITION = re.compile(r"\$(?:\d{4,10}|__\w+__)\Z")  # BigQuery: orders$20240131
_PART = re.compile(r'"[^"]*"|`[^`]*`|[^.]+')


_MOST_SPELLINGS = 100_000
_spellings: dict[tuple[type, object], dict[tuple[str, bool], str]] = {}


def _known_spellings(dialect: Dialect) -> dict[tuple[str, bool], str]:
    key = (type(dialect), dialect.normalization_strategy)
    spellings = _spellings.setdefault(key, {})
    if len(spellings) > _MOST_SPELLINGS:
        spellings = _spellings[key] = {}
    return spellings


class DialectNames:
    """The names of identifiers, tables, select items and relations in one dialect.

    `spellings` is a cache that the instances of a dialect share.
    """

    def __init__(
        self, dialect: Dialect, spellings: dict[tuple[str, bool], str] | None = None
    ) -> None:
        self.dialect = dialect
        self.dialect_name = type(dialect).__name__.lower()
        self.spellings = _known_spellings(dialect) if spellings is None else spellings

    def name(self, node: exp.Expression) -> str:
        """Return an identifier as the dialect compares it."""
        if isinstance(node, exp.Identifier):
            key = (node.this, bool(node.args.get("quoted")))
            known = self.spellings.get(key)
            if known is None:
                copy = exp.Identifier(this=key[0], quoted=key[1])
                known = self.spellings[key] = str(self.dialect.normalize_identifier(copy).this)
            return known
        if isinstance(node, exp.Parameter) and isinstance(node.this, exp.Literal):
            return f"${node.name}"  # the columns of a file in a Snowflake stage: $1, $2
        return str(node.name)

    def fold(self, name: str) -> str:
        """Return an unquoted name as the dialect compares it."""
        spelling = self.spellings.get((name, False))
        if spelling is not None:
            return spelling
        return self.name(exp.Identifier(this=name, quoted=False))

    def table_name(self, node: exp.Table) -> TableName:
        """Return the parts of a table's name; `#t` and `@t` of T-SQL keep their prefix."""
        if is_named_by_value(node.this):
            return self.name_in(_value(node.this))
        parts = [part for part in node.parts if part.name]
        if parts and is_variable(parts[-1].name):
            return ()
        if len(parts) == 2 and parts[0].name.lower() in _FORMATS and "/" in parts[1].name:
            return (str(parts[1].name),)  # Spark: parquet.`/data/orders` is a file
        if self.dialect_name == "bigquery" and len(parts) > 1:
            names = tuple(str(part.name) for part in parts)  # case-sensitive, unlike columns
            return (*names[:-1], _PARTITION.sub("", names[-1]))
        return tuple(_prefix(part) + self.name(part) for part in parts)

    def name_in(self, value: object) -> TableName:
        """Return the parts of a table's name in a string literal, () for anything else."""
        if not isinstance(value, exp.Literal) or not value.is_string:
            return ()
        return tuple(
            part.strip('"`') if part.startswith(('"', "`")) else self.fold(part)
            for part in _PART.findall(value.name)
        )

    def output_name(self, node: exp.Expression) -> str:
        """Return the name of a select item, "" when it has none."""
        if isinstance(node, exp.Alias):
            return self.name(node.args["alias"])
        if isinstance(node, exp.Column):
            return self.name(node.this)
        if isinstance(node, exp.Dot):
            return self.name(node.expression)
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
            return self.name(node.this.this)
        if isinstance(node, (exp.Paren, exp.Subquery)) and node.this is not None:
            alias = node.args.get("alias")
            named = alias.this if isinstance(alias, exp.TableAlias) else alias
            return self.name(named) if isinstance(named, exp.Expression) else ""
        return ""

    def alias(self, node: exp.Expression) -> str:
        """Return the alias of a relation in a FROM clause, or its own name."""
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
    if isinstance(node, exp.Placeholder):
        return True
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper() == "IDENTIFIER" and bool(node.expressions)
    return isinstance(node, exp.DynamicIdentifier)


def _value(node: exp.Expression) -> object:
    return node.expressions[0] if isinstance(node, exp.Anonymous) else node.this


def _prefix(node: exp.Expression) -> str:
    if isinstance(node, exp.Parameter):
        return "@"
    if isinstance(node, exp.Placeholder):
        return ":"
    if node.args.get("global_"):
        return "##"
    return "#" if node.args.get("temporary") else ""


_STEPS = (exp.Dot, exp.Bracket, exp.StructExtract, exp.Paren)

# Dialects in which a table's name is not a value: `select t from t` means a column t.
_NO_ROW_VALUES = frozenset(
    {"fabric", "hive", "mysql", "oracle", "snowflake", "spark", "spark2", "databricks", "teradata",
     "tsql"}
)  # fmt: skip

_PSEUDO_COLUMNS = {"oracle": frozenset({"rownum", "user", "sysdate", "systimestamp", "uid"})}
_KEYWORDS = frozenset({"default", "$action"})  # SET a = DEFAULT; the action of a MERGE
_HIERARCHY_COLUMNS = frozenset({"level", "connect_by_isleaf", "connect_by_iscycle"})


class ColumnResolver:
    """Resolves names in a scope, and follows paths into structs."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def find(self, node: exp.Expression, scope: QueryScope) -> Column | None:
        """Resolve `column`, `source.column`, `db.source.column` or `column.field`."""
        column = self._resolve([self._walker.name(part) for part in node.parts], scope)
        self._walker.listener.column(node, scope, column)
        return column

    def _resolve(self, parts: list[str], scope: QueryScope) -> Column | None:
        if len(parts) == 1:
            return self._plain(parts[0], scope)
        for at in range(len(parts) - 1, 0, -1):
            source = scope.find_source(".".join(parts[:at]))
            if source is None and at > 1:
                source = scope.find_source(parts[at - 1])
            if source is not None:
                column = source.known(".".join(parts[at:])) if at + 1 < len(parts) else None
                if column is not None:  # the schema lists the fields of structs
                    return column
                if len(source.stars) == 1:
                    table = source.stars[0].table
                    self._walker.uses.setdefault(table, set()).add(parts[at].casefold())
                column = source.find(parts[at])
                if column is None and not self._walker.listener.trusts_schemas:
                    column = source.find_unlisted(parts[at])
                return _inside(column, parts[at + 1 :])
        record = self._of_record(parts)
        if record is not None:
            return record
        path = ".".join(parts)
        if scope.knows(path):
            return scope.find_column(path)
        return _inside(self._find_named(parts[0], scope), parts[1:])

    def _of_record(self, parts: list[str]) -> Column | None:
        """Return a column of a named row: `r.id` in a loop, `NEW.id` in a trigger."""
        record = self._walker.records.get(parts[0].casefold())
        field = record.find(parts[1]) if record is not None else None
        if record is None or field is None:
            return None
        self._walker.inputs.update(dict.fromkeys(record.reads))
        # The row exists only if the query returns one.
        deps = merge_all([field.deps, record.rows])
        return _inside(field.with_deps(deps), parts[2:])

    def _find_named(self, name: str, scope: QueryScope) -> Column | None:
        """Return the column of a name, or the variable of that name if no column is known."""
        if self._is_variable(name.casefold(), scope) and not scope.knows(name):
            return Column(name, NOTHING)
        column = scope.find_column(name)
        if column is None and not self._walker.listener.trusts_schemas:
            return scope.find_unlisted(name)
        return column

    def _is_variable(self, name: str, scope: QueryScope) -> bool:
        if name in self._walker.variables or name in _KEYWORDS:
            return True
        return name in _PSEUDO_COLUMNS.get(self._walker.dialect_name, ()) or (
            name in _HIERARCHY_COLUMNS and scope.is_hierarchy
        )

    def _plain(self, name: str, scope: QueryScope) -> Column | None:
        source = scope.find_source(name)
        has_rows = self._walker.dialect_name not in _NO_ROW_VALUES
        if source is None or not (has_rows and is_row(source, name, scope)):
            origin = self._find_named(name, scope)
            if origin is not None or source is None:
                return origin
        # A whole row: `select t from t`.
        deps = direct(source.value(), DependencyKind.TRANSFORMATION)
        return Column(name, deps, fields={column.name: column for column in source.columns})

    def follow(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of a path: `a.b.c`, `a['b']`, `f(a).b`."""
        names: list[str] = []
        also: Deps = {}  # of the indexes and arguments in the path
        while isinstance(node, _STEPS):
            if isinstance(node, exp.Dot):
                part = node.expression
                names.insert(
                    0, "" if part is None or isinstance(part, exp.Func) else self._walker.name(part)
                )
                if isinstance(part, exp.Func):
                    merge(also, self._computed(part, scope))
            elif not isinstance(node, exp.Paren):
                keys = node.expressions or [node.expression]
                names.insert(0, str(keys[0].this) if len(keys) == 1 and keys[0].is_string else "")
                for key in keys:
                    merge(also, self._computed(key, scope))
            node = node.this
        origin = self._start(node, names, scope, also)
        if not also:
            return origin.deps if origin is not None else NOTHING
        merge(also, origin.deps if origin is not None else NOTHING)
        return also

    def _start(
        self, node: exp.Expression, names: list[str], scope: QueryScope, also: Deps
    ) -> Column | None:
        """Return the column at the end of a path."""
        match node:
            case exp.Column():
                return _inside(self.find(node, scope), names)
            case exp.Struct():
                return _inside(self.struct(node, "", scope), names)
            case exp.Identifier():
                return self._called_on(node, names, scope)
            case exp.Subquery():
                relation = self._walker.query(node, scope)
                if len(relation.items) == 1 and isinstance(relation.items[0], Column):
                    merge(also, relation.rows)
                    return _inside(relation.items[0], names)
        return Column("", self._computed(node, scope))

    def _computed(self, node: exp.Expression, scope: QueryScope) -> Deps:
        return direct(self._walker.expressions.of(node, scope), DependencyKind.TRANSFORMATION)

    def _called_on(
        self, node: exp.Expression, names: list[str], scope: QueryScope
    ) -> Column | None:
        """Return the column of `a.b.f(c)`, None where a is the schema of the function."""
        name = self._walker.name(node)
        is_column = scope.knows(name) or scope.find_source(name) is not None
        if not is_column and self._walker.dialect_name != "duckdb":
            return None
        parts = [name, *names]
        at = parts.index("") if "" in parts else len(parts)
        return _inside(self._resolve(parts[:at], scope), parts[at:])

    def struct(self, node: exp.Expression, name: str, scope: QueryScope) -> Column:
        """Return a struct constructor as a column with its fields."""
        fields: dict[str, Column] = {}
        for at, part in enumerate(node.expressions):
            if isinstance(part, exp.PropertyEQ):
                field, value = self._walker.name(part.this), part.expression
            elif isinstance(part, exp.Alias):
                field, value = self._walker.name(part.args["alias"]), part.this
            else:
                field, value = self._walker.output_name(part) or f"_{at}", part
            fields[field] = self._walker.expressions.column(value, field, scope)
        deps = merge_all(column.deps for column in fields.values())
        deps = direct(deps, DependencyKind.TRANSFORMATION)
        return Column(name, deps, fields=fields)

    def row_fields(self, node: exp.Expression, scope: QueryScope) -> dict[str, Column] | None:
        """Return the fields of a row or struct that an expression takes from others.

        `ARRAY_AGG(t ORDER BY day LIMIT 1)[OFFSET(0)]` has the columns of t.
        """
        match node:
            case exp.Column():
                origin = self.find(node, scope)
                return origin.fields if origin is not None else None
            case exp.Struct():
                return self.struct(node, "", scope).fields
            case exp.Tuple():
                columns = self._walker.selects.items(node.expressions, scope)
                return {f"_{at}": c for at, c in enumerate(columns) if isinstance(c, Column)}
            case exp.Bracket() | exp.Paren() | exp.IgnoreNulls() | exp.RespectNulls():
                return self.row_fields(node.this, scope)
            case exp.Limit() | exp.HavingMax() if node.this is not None:
                return self.row_fields(node.this, scope)
            case exp.Cast() if node.to.this == exp.DType.STRUCT:
                return self._renamed_fields(node, scope)
            case exp.Array():
                return self._element_fields(node, scope)
            case exp.Order() if node.this is not None:
                keys = merge_all(
                    self._walker.expressions.of(key, scope) for key in node.expressions
                )
                order = indirect(keys, DependencyKind.SORT)
                return _with(self.row_fields(node.this, scope), DependencyKind.IDENTITY, order)
            case exp.ArrayAgg() | exp.AnyValue() | exp.First() | exp.Last():
                return _with(self.row_fields(node.this, scope), DependencyKind.AGGREGATION, {})
        return None

    def _renamed_fields(self, node: exp.Cast, scope: QueryScope) -> dict[str, Column] | None:
        """Return the fields of `STRUCT<a INT64, b STRING>(x, y)`."""
        fields = self.row_fields(node.this, scope)
        names = [self._walker.name(c.this) for c in node.to.expressions if c.name]
        if fields is None or len(names) != len(fields):
            return fields
        columns = zip(names, fields.values(), strict=True)
        return {name: column.with_name(name) for name, column in columns}

    def _element_fields(self, node: exp.Array, scope: QueryScope) -> dict[str, Column] | None:
        """Return the fields of the structs in an array; the first names them."""
        rows = [self.row_fields(part, scope) for part in node.expressions]
        if not rows or not all(rows) or len({len(row or ()) for row in rows}) > 1:
            return None
        first = rows[0] or {}
        values = zip(*((row or {}).values() for row in rows), strict=True)
        return {
            name: Column(name, merge_all(column.deps for column in columns))
            for name, columns in zip(first, values, strict=True)
        }


def _with(
    fields: dict[str, Column] | None, kind: DependencyKind, also: Deps
) -> dict[str, Column] | None:
    if fields is None:
        return None
    return {
        name: column.with_deps(merge_all([direct(column.deps, kind), also]))
        for name, column in fields.items()
    }


def is_row(source: Relation, name: str, scope: QueryScope) -> bool:
    """Return whether a name means the rows of a source, and not an unknown column."""
    own_name = any(star.table[-1] == name for star in source.stars)
    return not own_name and not scope.knows(name)


def _inside(column: Column | None, path: list[str]) -> Column | None:
    """Follow a path into a struct that the query builds. Other values are used as a whole."""
    for name in path:
        if column is None:
            return None
        inner = (column.fields or {}).get(name)
        if inner is None:
            return Column(name, direct(column.deps, DependencyKind.TRANSFORMATION))
        column = inner
    return column

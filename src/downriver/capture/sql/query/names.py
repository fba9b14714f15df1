"""Names as the dialect compares them, and the column that a name or a path refers to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.columns.dependencies import NOTHING, DependencyKind, Deps, direct, merge
from downriver.columns.relations import Column, Relation, opaque_column

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.query.walker import QueryWalker
    from downriver.columns.dependencies import TableName

# Where a table may stand, `format.path` is a file of that format.
_FORMATS = frozenset(
    {"avro", "binaryfile", "csv", "delta", "iceberg", "json", "orc", "parquet", "text"}
)
_PART = re.compile(r'"[^"]*"|`[^`]*`|[^.]+')


class DialectNames:
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


_STEPS = (exp.Dot, exp.Bracket, exp.StructExtract, exp.Paren)

# Where a table's name among expressions is no value, but a column of that name may be.
_NO_ROW_VALUES = frozenset(
    {"fabric", "hive", "mysql", "oracle", "snowflake", "spark", "spark2", "databricks", "teradata",
     "tsql"}
)  # fmt: skip

_PSEUDO_COLUMNS = {"oracle": frozenset({"rownum", "user", "sysdate", "systimestamp", "uid"})}
_WORDS = frozenset({"default", "$action"})  # SET a = DEFAULT, and what MERGE did to a row
_OF_HIERARCHIES = frozenset({"level", "connect_by_isleaf", "connect_by_iscycle"})


class ColumnResolver:
    """Resolves names in a scope, and follows paths into structs."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def find(self, node: exp.Expression, scope: QueryScope) -> Column | None:
        """Resolve `column`, `source.column`, `db.source.column` or `column.field`."""
        found = self._resolve([self._walker.name(part) for part in node.parts], scope)
        self._walker.listener.column(node, scope, found)
        return found

    def _resolve(self, parts: list[str], scope: QueryScope) -> Column | None:
        if len(parts) == 1:
            return self._plain(parts[0], scope)
        for at in range(len(parts) - 1, 0, -1):
            source = scope.find_source(".".join(parts[:at]))
            if source is None and at > 1:
                source = scope.find_source(parts[at - 1])
            if source is not None:
                found = source.find(parts[at])
                if found is None and not self._walker.listener.trusts_schemas:
                    found = source.outdated(parts[at])
                return _inside(found, parts[at + 1 :])
        return self._of_record(parts) or _inside(self._named(parts[0], scope), parts[1:])

    def _of_record(self, parts: list[str]) -> Column | None:
        """Return a column of a row that goes by a name: `r.id` in a loop, `NEW.id` in a trigger."""
        record = self._walker.records.get(parts[0].casefold())
        found = record.find(parts[1]) if record is not None else None
        if record is None or found is None:
            return None
        self._walker.inputs.update(dict.fromkeys(record.reads))
        deps = dict(found.deps)
        merge(deps, record.rows)  # there is one only if the query has a row
        return _inside(found.with_deps(deps), parts[2:])

    def _named(self, name: str, scope: QueryScope) -> Column | None:
        """Return what a name means: a column, unless it is a variable and none is known."""
        if self._is_no_column(name.casefold(), scope) and not scope.knows(name):
            return Column(name, NOTHING)
        found = scope.find_column(name)
        if found is None and not self._walker.listener.trusts_schemas:
            return scope.find_outdated(name)
        return found

    def _is_no_column(self, name: str, scope: QueryScope) -> bool:
        if name in self._walker.variables or name in _WORDS:
            return True
        return name in _PSEUDO_COLUMNS.get(self._walker.dialect_name, ()) or (
            name in _OF_HIERARCHIES and scope.is_hierarchy
        )

    def _plain(self, name: str, scope: QueryScope) -> Column | None:
        source = scope.find_source(name)
        has_rows = self._walker.dialect_name not in _NO_ROW_VALUES
        if source is None or not (has_rows and is_row(source, name, scope)):
            found = self._named(name, scope)
            if found is not None or source is None:
                return found
        row = opaque_column(source, name)  # a whole row: `select t from t`
        row.fields = {column.name: column for column in source.columns}
        return row

    def follow(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """`a.b.c`, `a['b']`, `f(a).b`: a path into a struct, or into anything else."""
        names: list[str] = []
        also: Deps = {}  # what indexes and arguments on the way depend on
        while isinstance(node, _STEPS):
            if isinstance(node, exp.Dot):
                part = node.expression
                names.insert(
                    0, "" if part is None or isinstance(part, exp.Func) else self._walker.name(part)
                )
                if isinstance(part, exp.Func):
                    merge(
                        also,
                        direct(
                            self._walker.expressions.of(part, scope), DependencyKind.TRANSFORMATION
                        ),
                    )
            elif not isinstance(node, exp.Paren):
                keys = node.expressions or [node.expression]
                names.insert(0, str(keys[0].this) if len(keys) == 1 and keys[0].is_string else "")
                for key in keys:
                    merge(
                        also,
                        direct(
                            self._walker.expressions.of(key, scope), DependencyKind.TRANSFORMATION
                        ),
                    )
            node = node.this
        found = self._start(node, names, scope, also)
        if not also:
            return found.deps if found is not None else NOTHING
        merge(also, found.deps if found is not None else NOTHING)
        return also

    def _start(
        self, node: exp.Expression, names: list[str], scope: QueryScope, also: Deps
    ) -> Column | None:
        """Return what a path leads to from where it starts."""
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
        return Column(
            "", direct(self._walker.expressions.of(node, scope), DependencyKind.TRANSFORMATION)
        )

    def _called_on(
        self, node: exp.Expression, names: list[str], scope: QueryScope
    ) -> Column | None:
        """`a.b.f(c)`: a is a column in some dialects, and else a schema the function is in."""
        name = self._walker.name(node)
        is_column = scope.knows(name) or scope.find_source(name) is not None
        if not is_column and self._walker.dialect_name != "duckdb":
            return None
        parts = [name, *names]
        at = parts.index("") if "" in parts else len(parts)
        return _inside(self._resolve(parts[:at], scope), parts[at:])

    def struct(self, node: exp.Expression, name: str, scope: QueryScope) -> Column:
        """Return a struct that is built here as a column with its fields."""
        fields: dict[str, Column] = {}
        for at, part in enumerate(node.expressions):
            if isinstance(part, exp.PropertyEQ):
                field, value = self._walker.name(part.this), part.expression
            elif isinstance(part, exp.Alias):
                field, value = self._walker.name(part.args["alias"]), part.this
            else:
                field, value = self._walker.output_name(part) or f"_{at}", part
            fields[field] = self._walker.expressions.column(value, field, scope)
        deps: Deps = {}
        for column in fields.values():
            merge(deps, direct(column.deps, DependencyKind.TRANSFORMATION))
        return Column(name, deps, fields=fields)


def is_row(source: Relation, name: str, scope: QueryScope) -> bool:
    """Whether a name that a source goes by means its rows and not a column we do not know of."""
    own_name = any(star.table[-1] == name for star in source.stars)
    return not own_name and not scope.knows(name)


def _inside(column: Column | None, path: list[str]) -> Column | None:
    """Follow a path into a struct that was built in the query; else all of it is used."""
    for name in path:
        if column is None:
            return None
        inner = (column.fields or {}).get(name)
        if inner is None:
            return Column(name, direct(column.deps, DependencyKind.TRANSFORMATION))
        column = inner
    return column

"""Table functions: UNNEST, EXPLODE, FLATTEN, file readers and others that return rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.columns.dependencies import (
    NOTHING,
    DependencyKind,
    Deps,
    TableName,
    direct,
    indirect,
    merge,
)
from downriver.columns.relations import (
    Column,
    OpaqueRelation,
    Relation,
    Star,
    opaque_column,
    united,
)

if TYPE_CHECKING:
    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.query.walker import QueryWalker

# The columns of functions that make rows, where no alias names them.
_TABLE_FUNCTIONS = {
    "generate_series": ("generate_series",),
    "range": ("range",),
    "json_each": ("key", "value", "type", "atom", "id", "parent", "fullkey", "path"),
    "json_tree": ("key", "value", "type", "atom", "id", "parent", "fullkey", "path"),
    "jsonb_each": ("key", "value"),
    "json_each_text": ("key", "value"),
    "jsonb_each_text": ("key", "value"),
    "json_array_elements": ("value",),
    "jsonb_array_elements": ("value",),
    "json_array_elements_text": ("value",),
    "jsonb_array_elements_text": ("value",),
    "string_split": ("value", "ordinal"),
    "openjson": ("key", "value", "type"),
    "sequence": ("sequential_number",),
}

# Functions that read the files their first argument names.
_FILE_READERS = frozenset(
    {
        "read_csv", "read_csv_auto", "readcsv", "read_parquet", "readparquet", "parquet_scan",
        "read_json", "read_json_auto", "read_ndjson", "read_xlsx", "read_text", "delta_scan",
        "iceberg_scan", "openrowset", "read_files", "s3", "s3cluster", "gcs", "hdfs", "url", "file",
    }
)  # fmt: skip


class TableFunctionTranslator:
    """Computes the relations of everything in FROM that is no table and no query."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def lateral(self, node: exp.Lateral, scope: QueryScope) -> Relation:
        """Return the rows of LATERAL: of a query or a function over the row before it."""
        if isinstance(node.this, (exp.Subquery, exp.Query)):
            relation = self._walker.query(node.this, scope)
            alias = node.args.get("alias")
            columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
            return relation.renamed(map(self._walker.name, columns)) if columns else relation
        if not isinstance(node.this, exp.Expression):
            return Relation([], NOTHING)
        alias = node.args.get("alias")
        names_columns = isinstance(alias, exp.TableAlias) and alias.args.get("columns")
        if _is_unknown(node.this) and not names_columns:
            return self.function(node.this, scope)
        return self.generated(node, node.this, scope)

    def unnest(self, node: exp.Unnest, scope: QueryScope) -> Relation:
        """Return the rows of UNNEST."""
        parts = [
            direct(self._walker.expressions.of(part, scope), DependencyKind.TRANSFORMATION)
            for part in node.expressions
        ]
        deps: Deps = {}
        for part in parts:
            merge(deps, part)
        relation = self._generated_from(node, deps)
        columns = relation.columns
        if len(parts) == 1 or len(columns) < len(parts):
            return relation
        # UNNEST(a, b) AS t (x, y): each column comes from an array of its own, a number of both.
        items = [c.with_deps(part) for c, part in zip(columns, parts, strict=False)]
        return Relation([*items, *columns[len(parts) :]], relation.rows)

    def array(self, node: exp.Expression, scope: QueryScope) -> Relation:
        """`ARRAY JOIN t.xs AS x`: a row for each element."""
        inner = node.this if isinstance(node, exp.Alias) else node
        deps = direct(self._walker.expressions.of(inner, scope), DependencyKind.TRANSFORMATION)
        return Relation(
            [Column(self._walker.output_name(node), deps)], indirect(deps, DependencyKind.JOIN)
        )

    def generated(self, node: exp.Expression, call: exp.Expression, scope: QueryScope) -> Relation:
        """Return the rows a function makes of its arguments, under the names it gives them."""
        deps = direct(self._walker.expressions.of(call, scope), DependencyKind.TRANSFORMATION)
        listed = [c for c in call.expressions if isinstance(c, exp.OpenJSONColumnDef)]
        names = [self._walker.name(c.this) for c in listed] or self._column_names(call)
        alias = node.args.get("alias")
        if names and not (isinstance(alias, exp.TableAlias) and alias.args.get("columns")):
            return Relation(
                [Column(name, deps) for name in names], indirect(deps, DependencyKind.JOIN)
            )
        return self._generated_from(node, deps)

    def in_table(self, node: exp.Expression, call: exp.Expression, scope: QueryScope) -> Relation:
        """Return the rows of `TABLE(f(…))`."""
        if isinstance(call, exp.Generator):  # Snowflake's: rows without a column
            return Relation([], NOTHING)
        if isinstance(call, exp.Explode) or self._column_names(call):
            return self.generated(node, call, scope)
        return self.function(call, scope)

    def _column_names(self, call: exp.Expression) -> list[str]:
        """Return the columns a well-known table function has."""
        if self._walker.dialect_name == "snowflake" and isinstance(call, exp.Explode):
            return ["SEQ", "KEY", "PATH", "INDEX", "VALUE", "THIS"]  # FLATTEN
        return [*_TABLE_FUNCTIONS.get(_called(call), ())]

    def _generated_from(self, node: exp.Expression, deps: Deps) -> Relation:
        """Rows made from a value: each of their columns, and how many there are, depend on it."""
        alias = node.args.get("alias")
        columns = list(alias.args.get("columns") or ()) if alias is not None else []
        names = [self._walker.name(column) for column in columns]
        if alias is not None and alias.this is not None and not names:
            names = [self._walker.name(alias.this)]
        offset = node.args.get("offset")
        if isinstance(offset, exp.Expression):
            names.append(self._walker.name(offset))
        items: list[Column | Star] = [Column(name, deps) for name in names or ["col"]]
        return Relation(items, indirect(deps, DependencyKind.JOIN))

    def function(self, node: exp.Expression, scope: QueryScope) -> Relation:
        """A table function: each of its columns may depend on each of its arguments."""
        if isinstance(node, exp.Pivot):
            return self._pairs(node, scope)
        called = _called(_unwrapped(node))
        if called in _FILE_READERS:
            return self._files(node)
        deps = self._arguments(node, scope)
        deps = direct(deps, DependencyKind.TRANSFORMATION)
        alias = node.parent.args.get("alias") if node.parent is not None else None
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        names = [self._walker.name(c) for c in columns or ()] or self._own_columns(node, called)
        if not names:
            self._walker.blind_spots.append(f"the columns of {called}() are unknown")
            return OpaqueRelation(deps)
        return Relation([Column(name, deps) for name in names], indirect(deps, DependencyKind.JOIN))

    def _own_columns(self, node: exp.Expression, called: str) -> list[str]:
        """Return the columns that a function lists or is known to have."""
        listed = node.find_all(exp.JSONColumnDef) if isinstance(node, exp.JSONTable) else ()
        names = [self._walker.name(c.this) for c in listed if isinstance(c.this, exp.Identifier)]
        return names or [*_TABLE_FUNCTIONS.get(called, ())]

    def _pairs(self, node: exp.Pivot, scope: QueryScope) -> Relation:
        """`UNPIVOT t.properties AS value AT name`: the keys and values of an object."""
        names: list[str] = []
        pair: exp.Expression = node.this
        if isinstance(pair, exp.AtIndex):
            names.append(self._walker.name(pair.expression))
            pair = pair.this
        names.append(self._walker.output_name(pair))
        inner = pair.this if isinstance(pair, exp.Alias) else pair
        deps = direct(self._walker.expressions.of(inner, scope), DependencyKind.TRANSFORMATION)
        return Relation([Column(name, deps) for name in names], indirect(deps, DependencyKind.JOIN))

    def _arguments(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return what a table function is given: values, queries, whole tables."""
        deps: Deps = {}
        for child in node.iter_expressions():
            if isinstance(child, exp.Table):
                merge(deps, opaque_column(self._walker.sources.table(child, scope), "").deps)
            elif isinstance(child, exp.Query):
                merge(deps, opaque_column(self._walker.query(child, scope), "").deps)
            elif isinstance(child, exp.Anonymous) and _called(child) == "table":
                table = child.expressions[0] if child.expressions else None  # TABLE(orders)
                if isinstance(table, exp.Column):
                    name = tuple(map(self._walker.name, table.parts))
                    merge(
                        deps,
                        opaque_column(self._walker.sources.table_or_field(name, scope), "").deps,
                    )
            elif isinstance(child, (exp.Kwarg, exp.Anonymous)):
                merge(deps, self._arguments(child, scope))
            else:
                merge(deps, self._walker.expressions.of(child, scope))
        return deps

    def _files(self, node: exp.Expression) -> Relation:
        """`read_csv('a.csv')`: each file named is an input, whose columns are not known."""
        first = next(node.iter_expressions(), None)
        paths = first.find_all(exp.Literal) if first is not None else ()
        names: list[TableName] = [(str(path.this),) for path in paths if path.is_string]
        for name in names:
            self._walker.inputs[name] = None
        if not names:
            return Relation([], NOTHING)
        return united([Relation([Star(name)], NOTHING) for name in names], NOTHING)


def _is_unknown(node: exp.Expression) -> bool:
    """Whether this calls a function of the user's own."""
    call = node.expression if isinstance(node, exp.Dot) else node
    return isinstance(call, exp.Anonymous) and _called(call) not in _TABLE_FUNCTIONS


def _unwrapped(node: exp.Expression) -> exp.Expression:
    """Return the function inside `TABLE(…)`."""
    is_table = isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE"
    inner = node.expressions[0] if is_table and node.expressions else None
    return inner if isinstance(inner, exp.Func) else node


def _called(node: exp.Expression) -> str:
    """Return the name of a function as it was written, as far as the tree still says."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return _called(node.expression)
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if node.args.get("is_end_exclusive"):
        return "range"
    if isinstance(node, exp.ExplodingGenerateSeries):
        return "generate_series"
    return node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__.lower()

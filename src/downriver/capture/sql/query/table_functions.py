"""Table functions: UNNEST, EXPLODE, FLATTEN, file readers and others that return rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.query.remote_tables import find_remote
from downriver.columns import (
    Column,
    DependencyKind,
    Deps,
    Relation,
    Star,
    TableName,
    direct,
    generate,
    indirect,
    merge,
    merge_all,
    union,
)

if TYPE_CHECKING:
    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.query.walker import QueryWalker

# The columns of table functions, where no alias names them.
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
    """Computes the relations of items in FROM other than tables and queries."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def lateral(self, node: exp.Lateral, scope: QueryScope) -> Relation:
        """Return the rows of LATERAL: a query or a function over each earlier row."""
        if isinstance(node.this, (exp.Subquery, exp.Query)):
            relation = self._walker.query(node.this, scope)
            alias = node.args.get("alias")
            columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
            return relation.renamed(map(self._walker.name, columns)) if columns else relation
        if not isinstance(node.this, exp.Expression):
            return Relation([])
        alias = node.args.get("alias")
        names_columns = isinstance(alias, exp.TableAlias) and alias.args.get("columns")
        if _is_unknown(node.this) and not names_columns:
            return self.function(node.this, scope)
        return self.generated(node, node.this, scope)

    def unnest(self, node: exp.Unnest, scope: QueryScope) -> Relation:
        """Return the rows of UNNEST."""
        if self._walker.dialect_name == "bigquery" and len(node.expressions) == 1:
            relation = self._unnest_rows(node, scope)
            if relation is not None:
                return relation
        parts = [
            direct(self._walker.expressions.of(part, scope), DependencyKind.TRANSFORMATION)
            for part in node.expressions
        ]
        relation = generate(self._alias_names(node), merge_all(parts))
        columns = relation.columns
        if len(parts) == 1 or len(columns) < len(parts):
            return relation
        # UNNEST(a, b) AS t (x, y): each column comes from its own array, an offset from both.
        items = [c.with_deps(part) for c, part in zip(columns, parts, strict=False)]
        return Relation([*items, *columns[len(parts) :]], relation.rows)

    def _unnest_rows(self, node: exp.Unnest, scope: QueryScope) -> Relation | None:
        """Return BigQuery's rows of an array of structs: each field is a column."""
        (array,) = node.expressions
        fields = self._walker.paths.row_fields(array, scope)
        if not fields:
            if node.args.get("alias") is not None or isinstance(array, exp.Array):
                return None
            return generate([], self._walker.expressions.of(array, scope))
        columns = [
            c.with_deps(direct(c.deps, DependencyKind.TRANSFORMATION)) for c in fields.values()
        ]
        rows: Deps = {}
        if not isinstance(array, exp.Array):  # a literal array always has the same length
            rows = indirect(merge_all(c.deps for c in columns), DependencyKind.JOIN)
        if node.args.get("alias") is not None:
            name, *_ = self._alias_names(node)
            element = merge_all(c.deps for c in columns)
            columns = [Column(name, element, fields={c.name: c for c in columns})]
        offset = node.args.get("offset")
        if isinstance(offset, exp.Expression):
            columns.append(Column(self._walker.name(offset), {}))
        return Relation(columns, rows)

    def array(self, node: exp.Expression, scope: QueryScope) -> Relation:
        """Return the rows of `ARRAY JOIN t.xs AS x`: one for each element."""
        inner = node.this if isinstance(node, exp.Alias) else node
        deps = self._walker.expressions.of(inner, scope)
        return generate([self._walker.output_name(node)], deps)

    def generated(self, node: exp.Expression, call: exp.Expression, scope: QueryScope) -> Relation:
        """Return the rows that a function makes from its arguments."""
        deps = self._walker.expressions.of(call, scope)
        listed = [c for c in call.expressions if isinstance(c, exp.OpenJSONColumnDef)]
        names = [self._walker.name(c.this) for c in listed] or self._column_names(call)
        alias = node.args.get("alias")
        if names and not (isinstance(alias, exp.TableAlias) and alias.args.get("columns")):
            return generate(names, deps)
        return generate(self._alias_names(node), deps)

    def in_table(self, node: exp.Expression, call: exp.Expression, scope: QueryScope) -> Relation:
        """Return the rows of `TABLE(f(…))`."""
        if isinstance(call, exp.Generator):  # Snowflake: rows without columns
            return Relation([])
        if isinstance(call, exp.Explode) or self._column_names(call):
            return self.generated(node, call, scope)
        return self.function(call, scope)

    def _column_names(self, call: exp.Expression) -> list[str]:
        """Return the columns of a well-known table function."""
        if self._walker.dialect_name == "snowflake" and isinstance(call, exp.Explode):
            return ["SEQ", "KEY", "PATH", "INDEX", "VALUE", "THIS"]  # FLATTEN
        return [*_TABLE_FUNCTIONS.get(_function_name(call), ())]

    def _alias_names(self, node: exp.Expression) -> list[str]:
        """Return the column names that an alias gives to generated rows."""
        alias = node.args.get("alias")
        columns = list(alias.args.get("columns") or ()) if alias is not None else []
        names = [self._walker.name(column) for column in columns]
        if alias is not None and alias.this is not None and not names:
            names = [self._walker.name(alias.this)]
        offset = node.args.get("offset")
        if isinstance(offset, exp.Expression):
            names.append(self._walker.name(offset))
        return names or ["col"]

    def function(self, node: exp.Expression, scope: QueryScope) -> Relation:
        """Return the rows of a table function: each column may depend on each argument."""
        if isinstance(node, exp.Pivot):
            return self._pairs(node, scope)
        inner = _unwrapped(node)
        called = _function_name(inner)
        remote = find_remote(inner, called, self._walker)
        if remote is not None:
            return remote
        if called in _FILE_READERS:
            return self._files(node)
        alias = node.parent.args.get("alias") if node.parent is not None else None
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        names = [self._walker.name(c) for c in columns or ()] or self._own_columns(node, called)
        if not names:
            self._walker.blind_spots.append(f"the columns of {called}() are unknown")
        return generate(names, self._arguments(node, scope))

    def _own_columns(self, node: exp.Expression, called: str) -> list[str]:
        """Return the columns that a call lists, or the known columns of the function."""
        listed = node.find_all(exp.JSONColumnDef) if isinstance(node, exp.JSONTable) else ()
        names = [self._walker.name(c.this) for c in listed if isinstance(c.this, exp.Identifier)]
        return names or [*_TABLE_FUNCTIONS.get(called, ())]

    def _pairs(self, node: exp.Pivot, scope: QueryScope) -> Relation:
        """Return the keys and values of an object: `UNPIVOT t.properties AS value AT name`."""
        names: list[str] = []
        pair: exp.Expression = node.this
        if isinstance(pair, exp.AtIndex):
            names.append(self._walker.name(pair.expression))
            pair = pair.this
        names.append(self._walker.output_name(pair))
        inner = pair.this if isinstance(pair, exp.Alias) else pair
        return generate(names, self._walker.expressions.of(inner, scope))

    def _arguments(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of a table function's arguments: values, queries, tables."""
        deps: Deps = {}
        for child in node.iter_expressions():
            if isinstance(child, exp.Table):
                merge(deps, self._walker.sources.table(child, scope).value())
            elif isinstance(child, exp.Query):
                merge(deps, self._walker.query(child, scope).value())
            elif isinstance(child, exp.Anonymous) and _function_name(child) == "table":
                table = child.expressions[0] if child.expressions else None  # TABLE(orders)
                if isinstance(table, exp.Column):
                    name = tuple(map(self._walker.name, table.parts))
                    merge(deps, self._walker.sources.table_or_field(name, scope).value())
            elif isinstance(child, (exp.Kwarg, exp.Anonymous)):
                merge(deps, self._arguments(child, scope))
            else:
                merge(deps, self._walker.expressions.of(child, scope))
        return deps

    def _files(self, node: exp.Expression) -> Relation:
        """Return the rows of files, as in `read_csv('a.csv')`; their columns are not known."""
        first = next(node.iter_expressions(), None)
        paths = first.find_all(exp.Literal) if first is not None else ()
        names: list[TableName] = [(str(path.this),) for path in paths if path.is_string]
        for name in names:
            self._walker.inputs[name] = None
        return union([Relation([Star(name)]) for name in names]) if names else Relation([])


def _is_unknown(node: exp.Expression) -> bool:
    """Return whether this calls a user-defined function."""
    call = node.expression if isinstance(node, exp.Dot) else node
    return isinstance(call, exp.Anonymous) and _function_name(call) not in _TABLE_FUNCTIONS


def _unwrapped(node: exp.Expression) -> exp.Expression:
    """Return the function inside `TABLE(…)`."""
    is_table = isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE"
    inner = node.expressions[0] if is_table and node.expressions else None
    is_call = isinstance(inner, exp.Func) or (
        isinstance(inner, exp.Dot) and isinstance(inner.expression, exp.Func)
    )
    return inner if inner is not None and is_call else node


def _function_name(node: exp.Expression) -> str:
    """Return the name of a function as written, if the tree has it."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return _function_name(node.expression)
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if node.args.get("is_end_exclusive"):
        return "range"
    if isinstance(node, exp.ExplodingGenerateSeries):
        return "generate_series"
    return node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__.lower()

"""One pass over a query's tree: every relation is computed once, from the inside out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.deps import (
    NOTHING,
    Deps,
    Kind,
    Sure,
    TableName,
    at_least,
    merge,
    steering,
)
from downriver.capture.sql.expressions import Expressions
from downriver.capture.sql.listening import SILENT, Listener
from downriver.capture.sql.matching import matched
from downriver.capture.sql.pivots import pivot
from downriver.capture.sql.relations import (
    AnyColumns,
    Column,
    Relation,
    Star,
    opaque,
    united,
    united_by_name,
)
from downriver.capture.sql.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.limits import Budget

_RECURSION_ROUNDS = 10

# Where an alias of the same SELECT may be used further on in it.
_LATERAL_ALIASES = frozenset(
    {"redshift", "snowflake", "databricks", "spark", "spark2", "duckdb", "teradata", "clickhouse"}
)


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
}

# Functions that read the files their first argument names.
_FILE_READERS = frozenset(
    {
        "read_csv", "read_csv_auto", "readcsv", "read_parquet", "readparquet", "parquet_scan",
        "read_json", "read_json_auto", "read_ndjson", "read_xlsx", "read_text", "delta_scan",
        "iceberg_scan", "openrowset", "read_files",
    }
)  # fmt: skip

# Where `*` shows the columns of USING where the first table has them, and not before all others.
_MERGED_IN_PLACE = frozenset({"duckdb", "clickhouse", "sqlite"})
_PATTERNS = frozenset({"duckdb", "clickhouse"})  # which know COLUMNS('regular expression')

# What a table's name is made of; anything else in its place is a function.
_TABLE_NAMES = (exp.Identifier, exp.Parameter, exp.Var, exp.Literal, exp.Dot)

# What decides which rows there are, and how.
_STEERING = (
    ("prewhere", Kind.FILTER),
    ("where", Kind.FILTER),
    ("having", Kind.FILTER),
    ("qualify", Kind.FILTER),
    ("order", Kind.SORT),
    ("sort", Kind.SORT),
    ("cluster", Kind.SORT),
    ("distribute", Kind.SORT),
)


class Walker:
    """Computes relations for one statement. `columns_of` knows schemas; None is unknown."""

    def __init__(
        self,
        dialect: Dialect,
        columns_of: Callable[[TableName], Sequence[str] | None],
        views: dict[TableName, Relation],
        budget: Budget,
    ) -> None:
        self._dialect = dialect
        self.dialect_name = type(dialect).__name__.lower()
        self._columns_of = columns_of
        self._views = views
        self._budget = budget
        self._names: dict[tuple[str, bool], str] = {}
        self.expressions = Expressions(self)
        self.inputs: dict[TableName, None] = {}
        self.blind_spots: list[str] = []
        self.variables: AbstractSet[str] = frozenset()  # names that are no columns, in lower case
        self.listener: Listener = SILENT
        # Reads a statement that stands where a query does, and returns what decides its rows.
        self.on_write: Callable[[exp.Expression, Scope | None], Deps] | None = None

    # Names

    def name(self, node: exp.Expression) -> str:
        """Return an identifier as the dialect compares it."""
        if isinstance(node, exp.Identifier):
            key = (node.this, bool(node.args.get("quoted")))
            known = self._names.get(key)
            if known is None:
                copy = exp.Identifier(this=key[0], quoted=key[1])
                known = self._names[key] = str(self._dialect.normalize_identifier(copy).this)
            return known
        if isinstance(node, exp.Parameter) and isinstance(node.this, exp.Literal):
            return f"${node.name}"  # the columns of a file in a Snowflake stage: $1, $2
        return str(node.name)

    def fold(self, name: str) -> str:
        """Return a name as the dialect compares it when it is not quoted."""
        return self.name(exp.Identifier(this=name, quoted=False))

    def table_name(self, node: exp.Table) -> TableName:
        """Return the parts of a table's name; `#t` and `@t` of T-SQL keep their marks."""
        parts = [part for part in node.parts if part.name]
        if self.dialect_name == "bigquery" and len(parts) > 1:
            return tuple(str(part.name) for part in parts)  # as it is written, unlike a column's
        return tuple(_mark(part) + self.name(part) for part in parts)

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

    def window_parts(self, node: exp.Expression) -> Iterator[exp.Expression]:
        """Yield the expressions a window is partitioned and ordered by."""
        yield from node.args.get("partition_by") or ()
        if node.args.get("order") is not None:
            yield from node.args["order"].expressions
        if node.args.get("spec") is not None:
            yield node.args["spec"]

    # Queries

    def query(self, node: exp.Expression, outer: Scope | None) -> Relation:
        """Return the relation of anything that has rows."""
        self._budget.spend()
        ctes = self.with_clause(node, outer)
        if ctes:
            outer = Scope(outer, ctes)
        match node:
            case exp.Select():
                return self._select(node, outer)
            case exp.SetOperation():
                return self._set_operation(node, outer)
            case exp.Subquery() | exp.Paren():
                return self._wrapped(node, outer)
            case exp.Values():
                return self.values(node, Scope(outer, {}))
            case exp.Table():
                return self._table(node, Scope(outer, {}))
            case exp.Pivot() if node.this is not None:
                return pivot(node, self.query(node.this, outer), self, outer)
            case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge():
                return self._returning(node, outer)
            case _:
                return self._from_item(node, Scope(outer, {}))

    def with_clause(self, node: exp.Expression, outer: Scope | None) -> dict[str, Relation]:
        """Return the relations a WITH clause names."""
        found: dict[str, Relation] = {}
        clause = node.args.get("with_")
        if clause is None:
            return found
        scope = Scope(outer, found)
        recursive = bool(clause.args.get("recursive"))
        for cte in clause.expressions:
            name = self.name(cte.args["alias"].this)
            columns = [self.name(c) for c in cte.args["alias"].args.get("columns") or ()]
            found[name] = self._cte(cte.this, name, columns, scope, recursive)
        return found

    def _cte(
        self, body: exp.Expression, name: str, columns: list[str], scope: Scope, recursive: bool
    ) -> Relation:
        refers_to_itself = isinstance(body, exp.SetOperation) and (
            recursive or self.dialect_name in ("tsql", "oracle", "bigquery")
        )
        if not refers_to_itself or not _mentions(body, name):
            relation = self.query(body, scope)
            return relation.renamed(columns) if columns else relation
        # The first branch names the columns; then go round until nothing new flows in.
        anchor = body.this
        inner = Scope(scope, {})
        relation = self.query(anchor, inner)
        relation = relation.renamed(columns) if columns else relation
        for _ in range(_RECURSION_ROUNDS):
            inner.ctes[name] = relation
            after = self.query(body, inner)
            after = after.renamed(columns) if columns else after
            if _same(relation, after):
                break
            relation = after
        return relation

    def _wrapped(self, node: exp.Expression, outer: Scope | None) -> Relation:
        relation = self.query(node.this, outer)
        joins = node.args.get("joins")
        if joins:
            scope = Scope(outer, {})
            scope.sources["\x00"] = relation
            rows = dict(relation.rows)
            for join in joins:
                self.join(join, scope, rows)
            relation = Relation(self.all_items(scope), rows)
        relation = self._pivoted(node, relation, outer)
        if any(node.args.get(part) for part in ("order", "where", "limit", "offset")):
            scope = Scope(outer, {})
            scope.sources["\x00"] = relation
            scope.items = relation.items
            rows = dict(relation.rows)
            self._steer_rows(node, scope, rows)
            relation = Relation(relation.items, rows)
        return relation

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> Relation:
        branches: list[exp.Expression] = []
        current: exp.Expression = node
        # Left-deep chains of UNION are as deep as they are long: walk them, do not recurse.
        kinds: list[exp.SetOperation] = []
        while isinstance(current, exp.SetOperation) and (
            current is node or not current.args.get("with_")
        ):
            branches.append(current.expression)
            kinds.append(current)
            current = current.this
        branches.append(current)
        relations = [self.query(branch, outer) for branch in reversed(branches)]
        # What EXCEPT takes away decides which rows remain, but none of its values do.
        taken_away = [isinstance(kind, exp.Except) for kind in reversed(kinds)]
        flowing = [relations[0]] + [
            relation for relation, gone in zip(relations[1:], taken_away, strict=True) if not gone
        ]
        rows: Deps = {}
        for relation in relations:
            self._budget.spend(len(relation.items))
            merge(rows, relation.rows)
        by_name = any(kind.args.get("by_name") for kind in kinds)
        result = united_by_name(flowing, rows) if by_name else united(flowing, rows)
        compared = any(
            kind.args.get("distinct") or not isinstance(kind, exp.Union) for kind in kinds
        )
        if compared:
            self._compare_rows(relations, rows)
        self.listener.united(node, relations, result)
        if any(node.args.get(part) is not None for part in ("order", "limit", "offset")):
            scope = Scope(outer, {})
            scope.sources["\x00"] = result
            scope.items = result.items
            self._steer_rows(node, scope, rows)
        return result

    def _compare_rows(self, relations: Sequence[Relation], rows: Deps) -> None:
        """Where equal rows become one, every column decides which rows there are."""
        for relation in relations:
            for item in relation.items:
                column = item if isinstance(item, Column) else item.column("*", Sure.INFERRED)
                merge(rows, steering(column.deps, Kind.GROUP_BY))

    def values(self, node: exp.Values, scope: Scope) -> Relation:
        """Return the rows of a VALUES list."""
        columns: list[Deps] = []
        for row in node.expressions:
            for at, value in enumerate(row.expressions if isinstance(row, exp.Tuple) else [row]):
                if at == len(columns):
                    columns.append({})
                merge(columns[at], self.expressions.of(value, scope))
        items: list[Column | Star] = [Column(f"col{n}", d) for n, d in enumerate(columns, 1)]
        return Relation(items, NOTHING)

    def _returning(self, node: exp.Expression, outer: Scope | None) -> Relation:
        """A statement used as a query (a CTE that writes): its RETURNING columns."""
        target = node.find(exp.Table)
        returning = node.args.get("returning")
        rows = self.on_write(node, outer) if self.on_write is not None else NOTHING
        scope = Scope(outer, {})
        if target is None or not isinstance(returning, exp.Expression):
            return Relation([], rows)
        scope.sources[self.alias(target)] = self.table_relation(self.table_name(target))
        return Relation(self._items(returning.expressions, scope), rows)

    # SELECT

    def _select(self, node: exp.Select, outer: Scope | None) -> Relation:
        scope = Scope(outer, {})
        rows: Deps = {}
        self.from_clause(node, scope, rows)
        for window in node.args.get("windows") or ():
            scope.windows[self.name(window.this)] = window
        items = self._items(node.expressions, scope)
        merge(rows, scope.generates)
        scope.items = items
        scope.aliases = {}
        for item in items:
            if isinstance(item, Column):
                scope.aliases.setdefault(item.name, item)
        self._steer_rows(node, scope, rows)
        self._budget.spend(len(items) + len(rows))
        self._group(node, scope, rows)
        if node.args.get("distinct") is not None:
            self._distinct(node.args["distinct"], scope, items, rows)
        return Relation(items, rows)

    def from_clause(self, node: exp.Expression, scope: Scope, rows: Deps) -> None:
        """Add everything FROM and JOIN name to a scope."""
        clause = node.args.get("from_")
        if clause is not None:
            self.add_source(clause.this, scope, rows)
        for join in node.args.get("joins") or ():
            self.join(join, scope, rows)
        for lateral in node.args.get("laterals") or ():
            self.add_source(lateral, scope, rows)
        pattern = node.args.get("match")
        if isinstance(pattern, exp.MatchRecognize):
            relation = matched(pattern, scope, rows, self)
            scope.sources = {self.alias(pattern): relation}
            merge(rows, relation.rows)

    def add_source(self, node: exp.Expression, scope: Scope, rows: Deps) -> Relation:
        """Add one relation of a FROM clause to a scope, and what decides its rows to `rows`."""
        if isinstance(node, (exp.Paren, exp.Subquery)) and not self.alias(node):
            inner = node.this
            if isinstance(inner, (exp.Table, exp.Paren)) or (
                isinstance(inner, exp.Subquery) and not node.args.get("pivots")
            ):
                # Parentheses around a join: the names inside stay visible.
                relation = self.add_source(inner, scope, rows)
                for join in node.args.get("joins") or ():
                    self.join(join, scope, rows)
                return relation
        relation = self._from_item(node, scope)
        merge(rows, relation.rows)
        alias = self.alias(node) or f"\x00{len(scope.sources)}"
        if isinstance(node, exp.Table) and not node.alias:
            full = ".".join(self.table_name(node))
            if alias in scope.sources:  # the same last part in two schemas
                alias = full
            scope.sources[alias] = relation
        else:
            scope.sources[alias] = relation
        for join in node.args.get("joins") or ():
            if not isinstance(node, exp.Subquery):
                self.join(join, scope, rows)
        return relation

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

    def _from_item(self, node: exp.Expression, scope: Scope) -> Relation:
        match node:
            case exp.Table():
                relation = self._table(node, scope)
            case exp.Subquery() | exp.Paren() | exp.Query():
                relation = self.query(node, self._seen_from(node, scope))
            case exp.Lateral():
                relation = self._lateral(node, scope)
            case exp.Unnest():
                relation = self._unnest(node, scope)
            case exp.Values():
                relation = self.values(node, scope)
            case exp.TableFromRows() if isinstance(node.this, exp.Func):
                relation = self._generated(node, node.this, scope)
            case exp.Alias() | exp.Column():
                relation = self._array(node, scope)
            case exp.Final():  # ClickHouse: rows without their older versions
                return self._from_item(node.this, scope)
            case exp.Expression():
                relation = self._function(node, scope)
            case _:
                relation = Relation([], NOTHING)
        return self._with_alias_columns(node, relation)

    def _seen_from(self, node: exp.Expression, scope: Scope) -> Scope:
        # A derived table sees CTEs and outer queries. Its siblings it sees only when LATERAL, but
        # no valid query can tell the difference, and some dialects are lateral by default.
        return scope

    def _with_alias_columns(self, node: exp.Expression, relation: Relation) -> Relation:
        alias = node.args.get("alias")
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if not columns or isinstance(node, (exp.Lateral, exp.Unnest)):
            return relation
        return relation.renamed(self.name(column) for column in columns)

    def _table(self, node: exp.Table, scope: Scope) -> Relation:
        if not isinstance(node.this, _TABLE_NAMES):
            relation = self._function(node.this, scope)
        else:
            name = self.table_name(node)
            cte = scope.find_cte(name[0]) if len(name) == 1 else None
            relation = cte if cte is not None else self._table_or_field(name, scope)
        return self._pivoted(node, relation, scope)

    def _table_or_field(self, name: TableName, scope: Scope) -> Relation:
        """A name in FROM is a table, or an array in a row before it (`from t, t.items`)."""
        if len(name) > 1 and name[0] in scope.sources:
            column = scope.sources[name[0]].find(name[1])
            if column is not None:
                deps = at_least(column.deps, Kind.TRANSFORMATION)
                return Relation([Column(name[-1], deps)], NOTHING)
        return self.table_relation(name)

    def table_relation(self, name: TableName) -> Relation:
        """Return a table's columns, as far as they are known, and count it as an input."""
        view = self._views.get(name)
        if view is not None:
            return view
        self.inputs[name] = None
        columns = self._columns_of(name)
        return self.existing(name, columns)

    def existing(self, name: TableName, columns: Sequence[str] | None) -> Relation:
        """Return the rows of a table without counting it as an input."""
        if columns is None:
            return Relation([Star(name)], NOTHING)
        return Relation(
            [
                # Schemas are told in any case: compare as the dialect does, answer as told.
                Column(self.fold(column), {(name, column, Kind.IDENTITY, False): Sure.EXACT})
                for column in columns
            ],
            NOTHING,
        )

    def _lateral(self, node: exp.Lateral, scope: Scope) -> Relation:
        if isinstance(node.this, (exp.Subquery, exp.Query)):
            relation = self.query(node.this, scope)
            alias = node.args.get("alias")
            columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
            return relation.renamed(map(self.name, columns)) if columns else relation
        return self._generated(node, node.this, scope)

    def _unnest(self, node: exp.Unnest, scope: Scope) -> Relation:
        parts = [
            at_least(self.expressions.of(part, scope), Kind.TRANSFORMATION)
            for part in node.expressions
        ]
        deps: Deps = {}
        for part in parts:
            merge(deps, part)
        relation = self._generated_from(node, deps)
        if len(parts) == 1 or len(relation.items) != len(parts):
            return relation
        # UNNEST(a, b) AS t (x, y): each column comes from an array of its own.
        items = [c.with_deps(part) for c, part in zip(relation.columns, parts, strict=True)]
        return Relation([*items], relation.rows)

    def _array(self, node: exp.Expression, scope: Scope) -> Relation:
        """`ARRAY JOIN t.xs AS x`: a row for each element."""
        inner = node.this if isinstance(node, exp.Alias) else node
        deps = at_least(self.expressions.of(inner, scope), Kind.TRANSFORMATION)
        return Relation([Column(self.output_name(node), deps)], steering(deps, Kind.JOIN))

    def _generated(self, node: exp.Expression, call: exp.Expression, scope: Scope) -> Relation:
        deps = at_least(self.expressions.of(call, scope), Kind.TRANSFORMATION)
        listed = [c for c in call.expressions if isinstance(c, exp.OpenJSONColumnDef)]
        names = [self.name(c.this) for c in listed] or self._column_names(call)
        alias = node.args.get("alias")
        if names and not (isinstance(alias, exp.TableAlias) and alias.args.get("columns")):
            return Relation([Column(name, deps) for name in names], steering(deps, Kind.JOIN))
        return self._generated_from(node, deps)

    def _column_names(self, call: exp.Expression) -> list[str]:
        """Return the columns a well-known table function has."""
        if self.dialect_name == "snowflake" and isinstance(call, exp.Explode):
            return ["SEQ", "KEY", "PATH", "INDEX", "VALUE", "THIS"]  # FLATTEN
        return [*_TABLE_FUNCTIONS.get(_called(call), ())]

    def _generated_from(self, node: exp.Expression, deps: Deps) -> Relation:
        """Rows made from a value: each of their columns, and how many there are, depend on it."""
        alias = node.args.get("alias")
        columns = list(alias.args.get("columns") or ()) if alias is not None else []
        names = [self.name(column) for column in columns]
        if alias is not None and alias.this is not None and not names:
            names = [self.name(alias.this)]
        offset = node.args.get("offset")
        if isinstance(offset, exp.Expression):
            names.append(self.name(offset))
        items: list[Column | Star] = [Column(name, deps) for name in names or ["col"]]
        return Relation(items, steering(deps, Kind.JOIN))

    def _function(self, node: exp.Expression, scope: Scope) -> Relation:
        """A table function: each of its columns may depend on each of its arguments."""
        called = _called(node)
        if called in _FILE_READERS:
            return self._files(node)
        deps = self._arguments(node, scope)
        deps = at_least(deps, Kind.TRANSFORMATION)
        alias = node.parent.args.get("alias") if node.parent is not None else None
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        names = [self.name(c) for c in columns or ()] or [*_TABLE_FUNCTIONS.get(called, ())]
        if not names:
            self.blind_spots.append(f"the columns of {called}() are unknown")
            return AnyColumns(deps)
        return Relation([Column(name, deps) for name in names], steering(deps, Kind.JOIN))

    def _arguments(self, node: exp.Expression, scope: Scope) -> Deps:
        """Return what a table function is given: values, queries, whole tables."""
        deps: Deps = {}
        for child in node.iter_expressions():
            if isinstance(child, exp.Table):
                merge(deps, opaque(self._table(child, scope), "").deps)
            elif isinstance(child, exp.Query):
                merge(deps, opaque(self.query(child, scope), "").deps)
            elif isinstance(child, exp.Anonymous) and _called(child) == "table":
                table = child.expressions[0] if child.expressions else None  # TABLE(orders)
                if isinstance(table, exp.Column):
                    name = tuple(map(self.name, table.parts))
                    merge(deps, opaque(self._table_or_field(name, scope), "").deps)
            elif isinstance(child, (exp.Kwarg, exp.Anonymous)):
                merge(deps, self._arguments(child, scope))
            else:
                merge(deps, self.expressions.of(child, scope))
        return deps

    def _files(self, node: exp.Expression) -> Relation:
        """`read_csv('a.csv')`: each file named is an input, whose columns are not known."""
        first = next(node.iter_expressions(), None)
        paths = first.find_all(exp.Literal) if first is not None else ()
        names: list[TableName] = [(str(path.this),) for path in paths if path.is_string]
        for name in names:
            self.inputs[name] = None
        return Relation([*map(Star, names)], NOTHING)

    # Joins

    def join(self, join: exp.Join, scope: Scope, rows: Deps) -> None:
        """Add one JOIN to a scope."""
        before = list(scope.sources.values())
        relation = self.add_source(join.this, scope, rows)
        for more in join.expressions:  # ARRAY JOIN xs AS x, ys AS y
            self.add_source(more, scope, rows)
        using = [self.name(column) for column in join.args.get("using") or ()]
        for column in join.args.get("using") or ():
            self.listener.using(column, before, relation)
        if str(join.args.get("method") or "").upper() == "NATURAL":
            using = _shared_names(before, relation)
            self.listener.natural_join(join, using, before, relation)
            for side in (*before, relation):
                if side.open:
                    self.blind_spots.append("the columns of a NATURAL JOIN are not all known")
                    merge(rows, steering(opaque(side, "").deps, Kind.JOIN))
        for name in using:
            self._merge_column(name, before, relation, join, scope, rows)
        condition = join.args.get("on")
        if condition is not None:
            merge(rows, steering(self.expressions.of(condition, scope), Kind.JOIN))
        match_condition = join.args.get("match_condition")
        if match_condition is not None:
            merge(rows, steering(self.expressions.of(match_condition, scope), Kind.JOIN))
        if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            scope.sources.popitem()

    def _merge_column(
        self,
        name: str,
        before: list[Relation],
        relation: Relation,
        join: exp.Join,
        scope: Scope,
        rows: Deps,
    ) -> None:
        side = str(join.args.get("side") or join.args.get("kind") or "").upper()
        left: Deps = dict(scope.merged.get(name) or {})
        if not left:
            for other in before:
                column = other.find(name, Sure.EXACT if len(before) == 1 else Sure.INFERRED)
                if column is not None:
                    merge(left, column.deps)
        column = relation.find(name)
        right = column.deps if column is not None else NOTHING
        merge(rows, steering(left, Kind.JOIN))
        merge(rows, steering(right, Kind.JOIN))
        # An outer join shows the key of the side that is kept; others show what both have.
        if side in ("LEFT", "SEMI", "ANTI") and left:
            scope.merged[name] = left
        elif side == "RIGHT" and right:
            scope.merged[name] = right
        else:
            merge(left, right)
            scope.merged[name] = left

    # What decides which rows there are

    def _steer_rows(self, node: exp.Expression, scope: Scope, rows: Deps) -> None:
        for part, kind in _STEERING:
            clause = node.args.get(part)
            if clause is None:
                continue
            for expression in clause.expressions or [clause.this]:
                if isinstance(expression, exp.Expression):
                    deps = self._output(expression, scope) if kind == Kind.SORT else None
                    if deps is None:
                        deps = self.expressions.of(expression, scope)
                    merge(rows, steering(deps, kind))
        for part, kind in (("start", Kind.FILTER), ("connect", Kind.JOIN)):  # CONNECT BY
            clause = node.args.get("connect")
            condition = clause.args.get(part) if isinstance(clause, exp.Connect) else None
            if isinstance(condition, exp.Expression):
                merge(rows, steering(self.expressions.of(condition, scope), kind))
        for part in ("limit", "offset"):
            clause = node.args.get(part)
            count = clause.args.get("expression") if clause is not None else None
            if isinstance(count, exp.Expression) and not isinstance(count, exp.Literal):
                merge(rows, steering(self.expressions.of(count, scope), Kind.FILTER))

    def _output(self, node: exp.Expression, scope: Scope) -> Deps | None:
        """Return what `ORDER BY 2`, `ORDER BY ALL` or `ORDER BY alias` means, if it is one."""
        inner = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            alias = scope.aliases.get(self.name(inner.this))
            return None if alias is None else alias.deps
        if isinstance(inner, exp.Var) and inner.name.upper() == "ALL":
            return opaque(Relation(list(scope.items), NOTHING), "").deps
        return self._by_position(inner, scope)

    def _by_position(self, node: exp.Expression, scope: Scope) -> Deps | None:
        """Return what `ORDER BY 2` or `GROUP BY 1` means."""
        if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
            return None
        at = int(node.this) - 1
        if any(isinstance(item, Star) for item in scope.items[: at + 1]):
            return opaque(Relation(list(scope.items), NOTHING), "").deps
        item = scope.items[at] if 0 <= at < len(scope.items) else None
        return item.deps if isinstance(item, Column) else NOTHING

    def _group(self, node: exp.Select, scope: Scope, rows: Deps) -> None:
        group = node.args.get("group")
        if group is None:
            return
        parts = list(_group_parts(group))
        if group.args.get("all"):
            parts += [part for part in node.expressions if not _aggregates(part)]
        for part in parts:
            deps = self._by_position(part, scope)
            if deps is None and part.is_star:
                deps = opaque(Relation(self._items([part], scope), NOTHING), "").deps
            elif deps is None:
                deps = self.expressions.of(part, scope)
            merge(rows, steering(deps, Kind.GROUP_BY))

    def _distinct(
        self,
        clause: exp.Expression,
        scope: Scope,
        items: list[Column | Star],
        rows: Deps,
    ) -> None:
        on = clause.args.get("on")
        if on is not None:
            merge(rows, steering(self.expressions.of(on, scope), Kind.GROUP_BY))
            return
        self._compare_rows([Relation(items, NOTHING)], rows)

    # Select items

    def _items(self, expressions: Sequence[exp.Expression], scope: Scope) -> list[Column | Star]:
        scope.lateral_aliases = self.dialect_name in _LATERAL_ALIASES
        items: list[Column | Star] = []
        for at, expression in enumerate(expressions):
            if isinstance(expression, exp.Star):
                items += self._starred(expression, self.all_items(scope), scope)
            elif isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star):
                source = scope.find_source(self.name(expression.parts[-2]))
                found = source.items if source is not None else self._field_star(expression, scope)
                items += self._starred(expression.this, found, scope)
            elif self.dialect_name in _PATTERNS and expression.find(exp.Columns) is not None:
                items += self._by_pattern(expression, scope)
            else:
                items += self._item(expression, at, scope)
            if isinstance(expression, exp.Alias) and items and isinstance(items[-1], Column):
                scope.aliases.setdefault(items[-1].name, items[-1])
        return items

    def item(self, expression: exp.Expression, name: str, scope: Scope) -> Column:
        """Return what a column that is assigned an expression depends on."""
        column = self.expressions.column(expression, name, scope)
        if isinstance(expression, exp.Column):
            return column
        return Expressed(column, expression, self._dialect, named=True)

    def select_list(
        self, expressions: Sequence[exp.Expression], scope: Scope, rows: Deps
    ) -> Relation:
        """Return the relation of a list of select items, as RETURNING has."""
        return Relation(self._items(expressions, scope), rows)

    def expand_columns(self, node: exp.Expression, scope: Scope) -> list[exp.Expression]:
        """Return the columns that `*` or `COLUMNS(…)` in an expression stand for, else itself."""
        inner = node.this if isinstance(node, exp.Columns) else node
        if inner.is_star:
            return [exp.column(item.name) for item in self._columns_in([inner], scope)]
        if not isinstance(node, exp.Columns):
            return [node]
        found = self._columns_in([exp.Star()], scope)
        if isinstance(inner, exp.Literal):
            found = [column for column in found if _matches(str(inner.this), column.name)]
        elif isinstance(inner, exp.Array):
            named = {str(part.name) for part in inner.expressions}
            found = [column for column in found if column.name in named]
        else:
            self.blind_spots.append("which columns COLUMNS() takes is decided by a function")
        return [exp.column(column.name) for column in found]

    def _columns_in(self, stars: Sequence[exp.Expression], scope: Scope) -> list[Column]:
        return [item for item in self._items(stars, scope) if isinstance(item, Column)]

    def _by_pattern(self, expression: exp.Expression, scope: Scope) -> list[Column | Star]:
        """`min(COLUMNS('a.*'))`: the expression once for each column."""
        at = expression.find(exp.Columns)
        items: list[Column | Star] = []
        if any(source.open for source in scope.sources.values()):
            self.blind_spots.append("the columns that COLUMNS() takes are not all known")
            row = opaque(Relation(self.all_items(scope), NOTHING), "*", Kind.IDENTITY)
            kind = Kind.IDENTITY if expression is at else Kind.TRANSFORMATION
            return [Column("*", at_least(row.deps, kind))]
        for column in self.expand_columns(at, scope) if at is not None else ():
            written = column if expression is at else expression.copy()
            for node in list(written.find_all(exp.Columns)):
                node.replace(column.copy())
            if not isinstance(written, (exp.Alias, exp.Column)):
                written = exp.alias_(written, column.name, quoted=True)
            items += self._items([written], scope)
        return items

    def _item(self, expression: exp.Expression, at: int, scope: Scope) -> list[Column]:
        if isinstance(expression, exp.QueryTransform):  # TRANSFORM (a) USING 'script' AS (b)
            return self._transformed(expression, scope)
        if isinstance(expression, exp.Aliases):  # explode(m) as (k, v), inline(...)
            deps = at_least(self.expressions.of(expression.this, scope), Kind.TRANSFORMATION)
            return (
                [Column(self.name(alias), deps) for alias in expression.aliases_identifiers]
                if (hasattr(expression, "aliases_identifiers"))
                else [Column(str(alias), deps) for alias in expression.aliases]
            )
        name = self.output_name(expression)
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        if isinstance(inner, exp.Explode):  # of a struct, it makes columns instead of rows
            parts = self.expressions.column(inner.this, "", scope).fields
            if parts:
                return list(parts.values())
        column = self.expressions.column(expression, name or f"\x00{at}", scope)
        if not isinstance(inner, exp.Column):
            column = Expressed(column, inner, self._dialect, named=bool(name))
        return [column]

    def _transformed(self, node: exp.QueryTransform, scope: Scope) -> list[Column]:
        deps: Deps = {}
        for part in node.expressions:
            merge(deps, at_least(self.expressions.of(part, scope), Kind.TRANSFORMATION))
        schema = node.args.get("schema")
        columns = schema.expressions if isinstance(schema, exp.Expression) else ()
        names = [self.name(c.this if isinstance(c, exp.ColumnDef) else c) for c in columns]
        return [Column(name, deps) for name in names or ["key", "value"]]

    def _field_star(self, node: exp.Column, scope: Scope) -> list[Column | Star]:
        """`column.*`: the fields of a struct."""
        found = self.expressions.find(exp.Column(this=node.parts[-2]), scope)
        if found is None:
            return []
        if found.fields:
            return [*found.fields.values()]
        deps = at_least(found.deps, Kind.TRANSFORMATION)
        return [Column("*", deps)]

    def all_items(self, scope: Scope) -> list[Column | Star]:
        """Return what `*` stands for: every column, those of USING once and first."""
        self._budget.spend(sum(len(relation.items) for relation in scope.sources.values()))
        if not scope.merged:
            return [item for relation in scope.sources.values() for item in relation.items]
        waiting = dict(scope.merged)
        items: list[Column | Star] = []
        if self.dialect_name not in _MERGED_IN_PLACE:
            items += [Column(name, deps) for name, deps in waiting.items()]
            waiting = {}
        for relation in scope.sources.values():
            for item in relation.items:
                if isinstance(item, Star):
                    items.append(item.without(scope.merged))
                elif item.name not in scope.merged:
                    items.append(item)
                elif item.name in waiting:
                    items.append(Column(item.name, waiting.pop(item.name)))
        return items + [Column(name, deps) for name, deps in waiting.items()]

    def _starred(
        self, star: exp.Star, found: list[Column | Star], scope: Scope
    ) -> list[Column | Star]:
        """Apply EXCEPT, REPLACE and RENAME to the columns of a star."""
        self.listener.star(star, found)
        dropped = {self.name(_identifier(c)) for c in star.args.get("except_") or ()}
        replaced = {
            self.name(alias.args["alias"]): self.expressions.of(alias.this, scope)
            for alias in star.args.get("replace") or ()
            if isinstance(alias, exp.Alias)
        }
        renamed = {
            self.name(_identifier(alias.this)): self.name(alias.args["alias"])
            for alias in star.args.get("rename") or ()
            if isinstance(alias, exp.Alias)
        }
        if not (dropped or replaced or renamed):
            return list(found)
        gone = frozenset(dropped | replaced.keys() | renamed.keys())
        items: list[Column | Star] = []
        for item in found:
            if isinstance(item, Star):
                items.append(item.without(gone))
                items += [
                    Column(new, item.column(old, Sure.INFERRED).deps)
                    for old, new in renamed.items()
                ]
            elif item.name in replaced:
                items.append(Column(item.name, replaced[item.name]))
            elif item.name not in dropped:
                items.append(
                    Column(
                        renamed.get(item.name, item.name), item.deps, item.expression, item.fields
                    )
                )
        named = {item.name for item in items if isinstance(item, Column)}
        items += [Column(name, deps) for name, deps in replaced.items() if name not in named]
        return items

    def _pivoted(self, node: exp.Expression, relation: Relation, outer: Scope | None) -> Relation:
        for clause in node.args.get("pivots") or ():
            self._budget.spend(len(relation.items))
            relation = pivot(clause, relation, self, outer)
        return relation


class Expressed(Column):
    """A column whose expression text is written only when someone asks for it."""

    __slots__ = ("_dialect", "_node")

    def __init__(
        self, column: Column, node: exp.Expression, dialect: Dialect, *, named: bool
    ) -> None:
        self._node = node
        self._dialect = dialect
        name = column.name if named else node.sql(dialect=dialect, comments=False)
        super().__init__(name, column.deps, fields=column.fields)

    def text(self) -> str:
        """Return the SQL this column is computed by."""
        return str(self._node.sql(dialect=self._dialect, comments=False))


def _mark(node: exp.Expression) -> str:
    if isinstance(node, exp.Parameter):
        return "@"
    if node.args.get("global_"):
        return "##"
    return "#" if node.args.get("temporary") else ""


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return True


def _called(node: exp.Expression) -> str:
    """Return the name of a function as it was written, as far as the tree still says."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if node.args.get("is_end_exclusive"):
        return "range"
    return node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__.lower()


def _identifier(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Column) else node


def _group_parts(group: exp.Expression) -> Iterator[exp.Expression]:
    yield from group.expressions
    for part in ("cube", "rollup", "grouping_sets"):
        value = group.args.get(part)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, exp.Expression):
                yield from item.expressions or [item]


def _aggregates(node: exp.Expression) -> bool:
    """Whether a select item is an aggregate, and so nothing to group by."""
    if isinstance(node, (exp.AggFunc, exp.Query)):
        return isinstance(node, exp.AggFunc)
    return any(_aggregates(child) for child in node.iter_expressions())


def _shared_names(before: list[Relation], relation: Relation) -> list[str]:
    mine = {column.name for column in relation.columns}
    return [c.name for other in before for c in other.columns if c.name in mine]


def _mentions(body: exp.Expression, name: str) -> bool:
    return any(t.name.casefold() == name.casefold() for t in body.find_all(exp.Table))


def _same(one: Relation, other: Relation) -> bool:
    return (
        len(one.items) == len(other.items)
        and one.rows.keys() == other.rows.keys()
        and all(_same_item(a, b) for a, b in zip(one.items, other.items, strict=True))
    )


def _same_item(one: Column | Star, other: Column | Star) -> bool:
    if isinstance(one, Column):
        return isinstance(other, Column) and one.deps.keys() == other.deps.keys()
    return isinstance(other, Star) and one.table == other.table

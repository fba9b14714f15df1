"""One pass over a query's tree: every relation is computed once, from the inside out."""

from __future__ import annotations

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
from downriver.capture.sql.relations import Column, Relation, Star, opaque, united, united_by_name
from downriver.capture.sql.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.limits import Budget

_RECURSION_ROUNDS = 10

# Where an alias of the same SELECT may be used further on in it.
_LATERAL_ALIASES = frozenset(
    {"redshift", "snowflake", "databricks", "spark", "spark2", "duckdb", "teradata", "clickhouse"}
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
        self._dialect_name = type(dialect).__name__.lower()
        self._columns_of = columns_of
        self._views = views
        self._budget = budget
        self._names: dict[tuple[str, bool], str] = {}
        self.expressions = Expressions(self)
        self.inputs: dict[TableName, None] = {}
        self.blind_spots: list[str] = []

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
        return str(node.name)

    def fold(self, name: str) -> str:
        """Return a name as the dialect compares it when it is not quoted."""
        return self.name(exp.Identifier(this=name, quoted=False))

    def table_name(self, node: exp.Table) -> TableName:
        """Return the parts of a table's name; `#t` and `@t` of T-SQL keep their marks."""
        return tuple(_mark(part) + self.name(part) for part in node.parts if part.name)

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
        for part in ("order", "spec"):
            if node.args.get(part) is not None:
                yield node.args[part]

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
            recursive or self._dialect_name in ("tsql", "oracle", "bigquery")
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
            relation = Relation(self._all_items(scope), rows)
        relation = self._pivoted(node, relation, outer)
        if any(node.args.get(part) for part in ("order", "where")):
            scope = Scope(outer, {})
            scope.sources["\x00"] = relation
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
        rows: Deps = {}
        for relation in relations:
            self._budget.spend(len(relation.items))
            merge(rows, relation.rows)
        by_name = any(kind.args.get("by_name") for kind in kinds)
        result = united_by_name(relations, rows) if by_name else united(relations, rows)
        compared = any(kind.args.get("distinct") or not isinstance(kind, exp.Union) for kind in kinds)
        if compared:
            self._compare_rows(relations, rows)
        if node.args.get("order") is not None:
            scope = Scope(outer, {})
            scope.sources["\x00"] = result
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
        scope = Scope(outer, {})
        if target is not None:
            scope.sources[self.alias(target)] = self.table_relation(self.table_name(target))
        if returning is None:
            return Relation([], NOTHING)
        return Relation(self._items(returning.expressions, scope), NOTHING)

    # SELECT

    def _select(self, node: exp.Select, outer: Scope | None) -> Relation:
        scope = Scope(outer, {})
        rows: Deps = {}
        self.from_clause(node, scope, rows)
        items = self._items(node.expressions, scope)
        scope.aliases = {}
        for item in items:
            if isinstance(item, Column):
                scope.aliases.setdefault(item.name, item)
        self._steer_rows(node, scope, rows)
        self._budget.spend(len(items) + len(rows))
        self._group(node, scope, items, rows)
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
        if not isinstance(node.this, (exp.Identifier, exp.Parameter, exp.Var, exp.Literal)):
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
        deps: Deps = {}
        for part in node.expressions:
            merge(deps, at_least(self.expressions.of(part, scope), Kind.TRANSFORMATION))
        return self._generated_from(node, deps)

    def _generated(self, node: exp.Expression, call: exp.Expression, scope: Scope) -> Relation:
        deps = at_least(self.expressions.of(call, scope), Kind.TRANSFORMATION)
        return self._generated_from(node, deps)

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
        deps: Deps = {}
        for child in node.iter_expressions():
            if isinstance(child, exp.Table):
                merge(deps, opaque(self._table(child, scope), "").deps)
            elif isinstance(child, exp.Query):
                merge(deps, opaque(self.query(child, scope), "").deps)
            else:
                merge(deps, self.expressions.of(child, scope))
        deps = at_least(deps, Kind.TRANSFORMATION)
        alias = node.parent.args.get("alias") if node.parent is not None else None
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        names = [self.name(c) for c in columns or ()]
        if not names:
            self.blind_spots.append(f"the columns of {type(node).__name__.lower()}() are unknown")
            return AnyColumns(deps)
        return Relation([Column(name, deps) for name in names], steering(deps, Kind.JOIN))

    # Joins

    def join(self, join: exp.Join, scope: Scope, rows: Deps) -> None:
        """Add one JOIN to a scope."""
        before = list(scope.sources.values())
        relation = self.add_source(join.this, scope, rows)
        using = [self.name(column) for column in join.args.get("using") or ()]
        if str(join.args.get("method") or "").upper() == "NATURAL":
            using = _shared_names(before, relation)
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
        left: Deps = dict(scope.merged.get(name) or {})
        if not left:
            for other in before:
                column = other.find(name, Sure.EXACT if len(before) == 1 else Sure.INFERRED)
                if column is not None:
                    merge(left, column.deps)
        right = relation.find(name)
        deps = dict(left)
        merge(deps, right.deps if right is not None else NOTHING)
        scope.merged[name] = deps
        merge(rows, steering(deps, Kind.JOIN))

    # What decides which rows there are

    def _steer_rows(self, node: exp.Expression, scope: Scope, rows: Deps) -> None:
        for part, kind in (
            ("prewhere", Kind.FILTER),
            ("where", Kind.FILTER),
            ("having", Kind.FILTER),
            ("qualify", Kind.FILTER),
            ("connect", Kind.JOIN),
            ("order", Kind.SORT),
            ("sort", Kind.SORT),
            ("cluster", Kind.SORT),
            ("distribute", Kind.SORT),
        ):
            clause = node.args.get(part)
            if clause is None:
                continue
            expressions = clause.expressions or [clause.this]
            for expression in expressions:
                if isinstance(expression, exp.Expression):
                    deps = self._by_position(expression, scope)
                    if deps is None:
                        deps = self.expressions.of(expression, scope)
                    merge(rows, steering(deps, kind))

    def _by_position(self, node: exp.Expression, scope: Scope) -> Deps | None:
        """Return what `ORDER BY 2` or `GROUP BY 1` means."""
        inner = node.this if isinstance(node, exp.Ordered) else node
        if not isinstance(inner, exp.Literal) or inner.is_string:
            return None
        columns = list(scope.aliases.values())
        at = int(inner.this) - 1 if str(inner.this).isdigit() else -1
        return columns[at].deps if 0 <= at < len(columns) else NOTHING

    def _group(
        self, node: exp.Select, scope: Scope, items: list[Column | Star], rows: Deps
    ) -> None:
        group = node.args.get("group")
        if group is None:
            return
        if group.args.get("all"):
            for item in items:
                if isinstance(item, Column):
                    plain = {k: v for k, v in item.deps.items() if k[2] < Kind.AGGREGATION}
                    merge(rows, steering(plain, Kind.GROUP_BY))
            return
        columns = [item for item in items if isinstance(item, Column)]
        for part in _group_parts(group):
            if isinstance(part, exp.Literal) and not part.is_string and str(part.this).isdigit():
                at = int(part.this) - 1
                deps = columns[at].deps if 0 <= at < len(columns) else NOTHING
            else:
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
        scope.lateral_aliases = self._dialect_name in _LATERAL_ALIASES
        items: list[Column | Star] = []
        for at, expression in enumerate(expressions):
            if isinstance(expression, exp.Star):
                items += self._starred(expression, self._all_items(scope), scope)
            elif isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star):
                source = scope.find_source(self.name(expression.parts[-2]))
                found = source.items if source is not None else self._field_star(expression, scope)
                items += self._starred(expression.this, found, scope)
            else:
                items += self._item(expression, at, scope)
            if isinstance(expression, exp.Alias) and isinstance(items[-1], Column):
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

    def _item(self, expression: exp.Expression, at: int, scope: Scope) -> list[Column]:
        if isinstance(expression, exp.Aliases):  # explode(m) as (k, v), inline(...)
            deps = at_least(self.expressions.of(expression.this, scope), Kind.TRANSFORMATION)
            return [Column(self.name(alias), deps) for alias in expression.aliases_identifiers] if (
                hasattr(expression, "aliases_identifiers")
            ) else [Column(str(alias), deps) for alias in expression.aliases]
        name = self.output_name(expression)
        column = self.expressions.column(expression, name or f"\x00{at}", scope)
        inner = expression.this if isinstance(expression, exp.Alias) else expression
        if not isinstance(inner, exp.Column):
            column = Expressed(column, inner, self._dialect, named=bool(name))
        return [column]

    def _field_star(self, node: exp.Column, scope: Scope) -> list[Column | Star]:
        """`column.*`: the fields of a struct."""
        found = self.expressions.find(exp.Column(this=node.parts[-2]), scope)
        if found is None:
            return []
        if found.fields:
            return [*found.fields.values()]
        deps = at_least(found.deps, Kind.TRANSFORMATION)
        return [Column("*", deps)]

    def _all_items(self, scope: Scope) -> list[Column | Star]:
        """Return what `*` stands for: every column, those of USING once and first."""
        self._budget.spend(sum(len(relation.items) for relation in scope.sources.values()))
        if not scope.merged:
            return [item for relation in scope.sources.values() for item in relation.items]
        items: list[Column | Star] = [Column(name, deps) for name, deps in scope.merged.items()]
        for relation in scope.sources.values():
            for item in relation.items:
                if isinstance(item, Star):
                    items.append(Star(item.table, item.dropped | frozenset(scope.merged)))
                elif item.name not in scope.merged:
                    items.append(item)
        return items

    def _starred(
        self, star: exp.Star, found: list[Column | Star], scope: Scope
    ) -> list[Column | Star]:
        """Apply EXCEPT, REPLACE and RENAME to the columns of a star."""
        dropped = {self.name(_identifier(c)) for c in star.args.get("except_") or ()}
        replaced = {
            self.name(alias.args["alias"]): self.expressions.of(alias.this, scope)
            for alias in star.args.get("replace") or ()
        }
        renamed = {
            self.name(_identifier(alias.this)): self.name(alias.args["alias"])
            for alias in star.args.get("rename") or ()
        }
        if not (dropped or replaced or renamed):
            return list(found)
        gone = frozenset(dropped | replaced.keys() | renamed.keys())
        items: list[Column | Star] = []
        for item in found:
            if isinstance(item, Star):
                items.append(Star(item.table, item.dropped | gone))
                items += [
                    Column(new, item.column(old, Sure.INFERRED).deps)
                    for old, new in renamed.items()
                ]
            elif item.name in replaced:
                items.append(Column(item.name, replaced[item.name]))
            elif item.name not in dropped:
                items.append(
                    Column(renamed.get(item.name, item.name), item.deps, item.expression, item.fields)
                )
        named = {item.name for item in items if isinstance(item, Column)}
        items += [Column(name, deps) for name, deps in replaced.items() if name not in named]
        return items

    # PIVOT and UNPIVOT

    def _pivoted(
        self, node: exp.Expression, relation: Relation, outer: Scope | None
    ) -> Relation:
        for pivot in node.args.get("pivots") or ():
            relation = self._pivot(pivot, relation, outer)
        return relation

    def _pivot(self, pivot: exp.Pivot, relation: Relation, outer: Scope | None) -> Relation:
        self._budget.spend(len(relation.items))
        scope = Scope(outer, {})
        scope.sources["\x00"] = relation
        used = {
            self.name(column.this) for column in pivot.find_all(exp.Column) if column.this.name
        }
        if pivot.args.get("unpivot"):
            return self._unpivot(pivot, relation, scope, used)
        made: Deps = {}
        for aggregate in pivot.expressions:
            merge(made, self.expressions.of(aggregate, scope))
        keys: Deps = {}
        for field in pivot.args.get("fields") or ():
            merge(keys, steering(self.expressions.of(field.this, scope), Kind.CONDITIONAL))
        deps = dict(made)
        merge(deps, keys)
        kept = _without(relation.items, used)
        rows = dict(relation.rows)
        for item in kept:
            column = item if isinstance(item, Column) else item.column("*", Sure.INFERRED)
            merge(rows, steering(column.deps, Kind.GROUP_BY))
        names = [self.name(column).strip("'") for column in pivot.args.get("columns") or ()]
        result = Relation([*kept, *(Column(name, deps) for name in names)], rows)
        alias = pivot.args.get("alias")
        columns = alias.args.get("columns") if alias is not None else None
        return result.renamed(map(self.name, columns)) if columns else result

    def _unpivot(
        self, pivot: exp.Pivot, relation: Relation, scope: Scope, used: set[str]
    ) -> Relation:
        values: Deps = {}
        names: list[str] = []
        sources: set[str] = set()
        for field in pivot.args.get("fields") or ():
            if isinstance(field, exp.In):
                names.append(self.output_name(field.this) or field.this.name)
                for part in field.expressions:
                    for column in part.find_all(exp.Column):
                        sources.add(self.name(column.this))
                        merge(values, self.expressions.of(column, scope))
        made = [self.output_name(part) or part.name for part in pivot.expressions]
        kept = _without(relation.items, sources or used)
        deps = at_least(values, Kind.TRANSFORMATION)
        items = [*kept, *(Column(n, NOTHING) for n in names), *(Column(n, deps) for n in made)]
        return Relation(items, relation.rows)


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


class AnyColumns(Relation):
    """The rows of a table function whose columns no one named: any name is one of them."""

    __slots__ = ("_deps",)

    def __init__(self, deps: Deps) -> None:
        super().__init__([], steering(deps, Kind.JOIN))
        self._deps = deps

    @property
    def open(self) -> bool:
        """Any column may exist."""
        return True

    def find(self, name: str, sure: int = Sure.EXACT) -> Column | None:
        """Return any column: it may depend on every argument."""
        return Column(name, self._deps)


def _mark(node: exp.Expression) -> str:
    if isinstance(node, exp.Parameter):
        return "@"
    if node.args.get("global_"):
        return "##"
    return "#" if node.args.get("temporary") else ""


def _identifier(node: exp.Expression) -> exp.Expression:
    return node.this if isinstance(node, exp.Column) else node


def _without(items: list[Column | Star], names: set[str]) -> list[Column | Star]:
    kept: list[Column | Star] = []
    for item in items:
        if isinstance(item, Star):
            kept.append(Star(item.table, item.dropped | names))
        elif item.name not in names:
            kept.append(item)
    return kept


def _group_parts(group: exp.Expression) -> Iterator[exp.Expression]:
    yield from group.expressions
    for part in ("cube", "rollup", "grouping_sets"):
        value = group.args.get(part)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, exp.Expression):
                yield from item.expressions or [item]


def _shared_names(before: list[Relation], relation: Relation) -> list[str]:
    mine = {column.name for column in relation.columns}
    return [c.name for other in before for c in other.columns if c.name in mine]


def _mentions(body: exp.Expression, name: str) -> bool:
    return any(t.name.casefold() == name.casefold() for t in body.find_all(exp.Table))


def _same(one: Relation, other: Relation) -> bool:
    return len(one.items) == len(other.items) and all(
        isinstance(a, Column) and isinstance(b, Column) and a.deps.keys() == b.deps.keys()
        for a, b in zip(one.items, other.items, strict=True)
    )

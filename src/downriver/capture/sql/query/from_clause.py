"""FROM and JOIN: the relations that a query reads, and MATCH_RECOGNIZE."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.query.names import is_named_by_value
from downriver.capture.sql.query.scope import QueryScope
from downriver.columns.dependencies import (
    NOTHING,
    Certainty,
    DependencyKind,
    Deps,
    TableName,
    direct,
    indirect,
    merge,
)
from downriver.columns.relations import Column, OpaqueRelation, Relation, Star, opaque_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.sql.query.walker import QueryWalker

# What a table's name is made of; anything else in its place is a function.
_TABLE_NAMES = (exp.Identifier, exp.Parameter, exp.Var, exp.Literal, exp.Dot)


class FromTranslator:
    """Adds the relations of FROM clauses to scopes."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def from_clause(self, node: exp.Expression, scope: QueryScope, rows: Deps) -> None:
        """Add everything FROM and JOIN name to a scope."""
        clause = node.args.get("from_")
        if clause is not None:
            self.add(clause.this, scope, rows)
        for join in node.args.get("joins") or ():
            self.join(join, scope, rows)
        for lateral in node.args.get("laterals") or ():
            self.add(lateral, scope, rows)
        pattern = node.args.get("match")
        if isinstance(pattern, exp.MatchRecognize):
            relation = match_recognize(pattern, scope, rows, self._walker)
            scope.sources = {self._walker.alias(pattern): relation}
            merge(rows, relation.rows)

    def add(self, node: exp.Expression, scope: QueryScope, rows: Deps) -> Relation:
        """Add one relation of a FROM clause to a scope, and what decides its rows to `rows`."""
        if isinstance(node, (exp.Paren, exp.Subquery)) and not self._walker.alias(node):
            inner = node.this
            if isinstance(inner, (exp.Table, exp.Paren)) or (
                isinstance(inner, exp.Subquery) and not node.args.get("pivots")
            ):
                # Parentheses around a join: the names inside stay visible.
                relation = self.add(inner, scope, rows)
                for join in node.args.get("joins") or ():
                    self.join(join, scope, rows)
                return relation
        relation = self.from_item(node, scope)
        merge(rows, relation.rows)
        alias = self._walker.alias(node) or f"\x00{len(scope.sources)}"
        if isinstance(node, exp.Table) and not node.alias and alias in scope.sources:
            alias = ".".join(self._walker.table_name(node))  # the same last part in two schemas
        scope.sources[alias] = relation
        for join in node.args.get("joins") or ():
            if not isinstance(node, exp.Subquery):
                self.join(join, scope, rows)
        return relation

    def from_item(self, node: exp.Expression, scope: QueryScope) -> Relation:
        """Return the relation of anything that can stand in FROM."""
        match node:
            case exp.Table():
                relation = self.table(node, scope)
            case exp.Subquery() | exp.Paren() | exp.Query():
                # Its siblings a derived table sees only when LATERAL, but no valid query can
                # tell the difference, and some dialects are lateral by default.
                relation = self._walker.query(node, scope)
            case exp.Lateral():
                relation = self._walker.functions.lateral(node, scope)
            case exp.Unnest():
                relation = self._walker.functions.unnest(node, scope)
            case exp.Values():
                relation = self._walker.values(node, scope)
            case exp.TableFromRows() if isinstance(node.this, exp.Literal):  # TABLE('db.orders')
                relation = self._walker.table_relation(self._walker.name_in(node.this))
            case exp.TableFromRows() if isinstance(node.this, exp.Func):
                relation = self._walker.functions.in_table(node, node.this, scope)
            case exp.Alias() | exp.Column():
                relation = self._walker.functions.array(node, scope)
            case exp.Final():  # ClickHouse: rows without their older versions
                return self.from_item(node.this, scope)
            case exp.Expression():
                relation = self._walker.functions.function(node, scope)
            case _:
                relation = Relation([], NOTHING)
        return self._with_alias_columns(node, relation)

    def _with_alias_columns(self, node: exp.Expression, relation: Relation) -> Relation:
        alias = node.args.get("alias")
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if not columns or isinstance(node, (exp.Lateral, exp.Unnest)):
            return relation
        return relation.renamed(self._walker.name(column) for column in columns)

    def table(self, node: exp.Table, scope: QueryScope) -> Relation:
        """Return the rows a name in FROM stands for: of a table, a CTE, a function or an array."""
        if node.this is None:
            relation = self._side_by_side(node.args.get("rows_from") or (), scope)
        elif is_named_by_value(node.this):
            relation = self._named_by_value(self._walker.table_name(node))
        elif not isinstance(node.this, _TABLE_NAMES):
            relation = self._walker.functions.function(node.this, scope)
        else:
            name = self._walker.table_name(node)
            cte = scope.find_cte(name[0]) if len(name) == 1 else None
            relation = cte if cte is not None else self.table_or_field(name, scope)
        return self._walker.pivoted(node, relation, scope)

    def _side_by_side(self, parts: Sequence[exp.Expression], scope: QueryScope) -> Relation:
        """`ROWS FROM (f(a), g(b))`: the columns of one function after those of another."""
        items: list[Column | Star] = []
        rows: Deps = {}
        for part in parts:
            relation = self.from_item(part, scope)
            items += relation.items
            merge(rows, relation.rows)
        return Relation(items, rows)

    def _named_by_value(self, name: TableName) -> Relation:
        if name:
            return self._walker.table_relation(name)
        self._walker.blind_spots.append("which table is read is known only when it runs")
        return OpaqueRelation(NOTHING)

    def table_or_field(self, name: TableName, scope: QueryScope) -> Relation:
        """A name in FROM is a table, or an array in a row before it (`from t, t.items`)."""
        if len(name) > 1 and name[0] in scope.sources:
            column = scope.sources[name[0]].find(name[1])
            if column is not None:
                deps = direct(column.deps, DependencyKind.TRANSFORMATION)
                return Relation([Column(name[-1], deps)], NOTHING)
        return self._walker.table_relation(name)

    def join(self, join: exp.Join, scope: QueryScope, rows: Deps) -> None:
        """Add one JOIN to a scope."""
        before = list(scope.sources.values())
        relation = self.add(join.this, scope, rows)
        for more in join.expressions:  # ARRAY JOIN xs AS x, ys AS y
            self.add(more, scope, rows)
        listener = self._walker.listener
        using = [self._walker.name(column) for column in join.args.get("using") or ()]
        for column in join.args.get("using") or ():
            listener.using(column, before, relation)
        if str(join.args.get("method") or "").upper() == "NATURAL":
            using = _shared_names(before, relation)
            listener.natural_join(join, using, before, relation)
            for side in (*before, relation):
                if side.open:
                    self._walker.blind_spots.append(
                        "the columns of a NATURAL JOIN are not all known"
                    )
                    merge(rows, indirect(opaque_column(side, "").deps, DependencyKind.JOIN))
        for name in using:
            self._merge_column(name, before, relation, join, scope, rows)
        condition = join.args.get("on")
        if condition is not None:
            merge(
                rows, indirect(self._walker.expressions.of(condition, scope), DependencyKind.JOIN)
            )
        match_condition = join.args.get("match_condition")
        if match_condition is not None:
            merge(
                rows,
                indirect(self._walker.expressions.of(match_condition, scope), DependencyKind.JOIN),
            )
        if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            scope.sources.popitem()

    def _merge_column(
        self,
        name: str,
        before: list[Relation],
        relation: Relation,
        join: exp.Join,
        scope: QueryScope,
        rows: Deps,
    ) -> None:
        side = str(join.args.get("side") or join.args.get("kind") or "").upper()
        left: Deps = dict(scope.merged.get(name) or {})
        if not left:
            for other in before:
                column = other.find(
                    name, Certainty.EXACT if len(before) == 1 else Certainty.INFERRED
                )
                if column is not None:
                    merge(left, column.deps)
        column = relation.find(name)
        right = column.deps if column is not None else NOTHING
        merge(rows, indirect(left, DependencyKind.JOIN))
        merge(rows, indirect(right, DependencyKind.JOIN))
        # An outer join shows the key of the side that is kept; others show what both have.
        if side in ("LEFT", "SEMI", "ANTI") and left:
            scope.merged[name] = left
        elif side == "RIGHT" and right:
            scope.merged[name] = right
        else:
            merge(left, right)
            scope.merged[name] = left


def _shared_names(before: list[Relation], relation: Relation) -> list[str]:
    mine = {column.name for column in relation.columns}
    return [c.name for other in before for c in other.columns if c.name in mine]


_NAME = re.compile(r"[^\W\d]\w*")


def match_recognize(
    clause: exp.Expression, scope: QueryScope, rows: Deps, walker: QueryWalker
) -> Relation:
    """Return the rows of a pattern: what it is partitioned by, and what each match measures."""
    source = Relation(walker.selects.all_items(scope), rows)
    around = QueryScope(scope, {})
    for name in _variables(clause, walker):
        around.sources[name] = source  # `u.price` is a row's price
    inner = QueryScope(around, {})
    inner.sources["\x00"] = source
    defined = [p for p in clause.args.get("define") or () if isinstance(p, exp.Alias)]
    decided: Deps = dict(rows)
    for node in _arranged_by(clause):
        merge(decided, indirect(walker.expressions.of(node, inner), DependencyKind.WINDOW))
    for part in defined:
        merge(decided, indirect(walker.expressions.of(part.this, inner), DependencyKind.FILTER))
    measures = [part.this for part in clause.args.get("measures") or ()]
    shown = clause.args.get("partition_by") or ()
    every_row = "ALL ROWS" in str(clause.args.get("rows") or "").upper()
    items: list[Column | Star] = list(source.items) if every_row else []
    if not every_row:
        items += walker.selects.relation(shown, inner, decided).items
    items += walker.selects.relation(measures, inner, decided).items
    return Relation(items, decided)


def _variables(clause: exp.Expression, walker: QueryWalker) -> Iterator[str]:
    """Yield what a pattern calls rows; not all of them have a condition."""
    pattern = clause.args.get("pattern")
    for name in _NAME.findall(pattern.name if isinstance(pattern, exp.Expression) else ""):
        yield walker.fold(name)


def _arranged_by(clause: exp.Expression) -> Iterator[exp.Expression]:
    yield from clause.args.get("partition_by") or ()
    order = clause.args.get("order")
    if isinstance(order, exp.Expression):
        yield from order.expressions

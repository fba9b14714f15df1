"""FROM and JOIN: the relations that a query reads, and MATCH_RECOGNIZE."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.query.names import is_named_by_value
from downriver.capture.sql.query.remote_tables import find_metadata
from downriver.capture.sql.query.scope import QueryScope
from downriver.capture.sql.text.variables import is_unnamed
from downriver.columns import (
    NOTHING,
    Certainty,
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    TableName,
    direct,
    filter_rows,
    generate,
    join,
    merge,
    merge_all,
    project,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.sql.query.walker import QueryWalker

# The node types of a table's name. Any other node in its place is a function.
_TABLE_NAMES = (exp.Identifier, exp.Parameter, exp.Var, exp.Literal, exp.Dot)


class FromTranslator:
    """Adds the relations of FROM clauses to scopes."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def from_clause(self, node: exp.Expression, scope: QueryScope) -> None:
        """Add the relations of FROM, JOIN and LATERAL to a scope."""
        clause = node.args.get("from_")
        if clause is not None:
            self.add(clause.this, scope)
        for join_node in node.args.get("joins") or ():
            self.join(join_node, scope)
        for lateral in node.args.get("laterals") or ():
            self.add(lateral, scope)
        pattern = node.args.get("match")
        if isinstance(pattern, exp.MatchRecognize):
            relation = match_recognize(pattern, scope, self._walker)
            scope.sources = {self._walker.alias(pattern): relation}
            merge(scope.rows, relation.rows)

    def add(self, node: exp.Expression, scope: QueryScope) -> Relation:
        """Add one relation of a FROM clause to a scope."""
        if isinstance(node, (exp.Paren, exp.Subquery)) and not self._walker.alias(node):
            inner = node.this
            if isinstance(inner, (exp.Table, exp.Paren)) or (
                isinstance(inner, exp.Subquery) and not node.args.get("pivots")
            ):
                # Parentheses around a join: the names inside stay visible.
                relation = self.add(inner, scope)
                for join_node in node.args.get("joins") or ():
                    self.join(join_node, scope)
                return relation
        relation = self.from_item(node, scope)
        merge(scope.rows, relation.rows)
        alias = self._walker.alias(node) or f"\x00{len(scope.sources)}"
        if isinstance(node, exp.Table) and not node.alias and alias in scope.sources:
            alias = ".".join(self._walker.table_name(node))  # the same last part in two schemas
        scope.sources[alias] = relation
        for join_node in node.args.get("joins") or ():
            if not isinstance(node, exp.Subquery):
                self.join(join_node, scope)
        return relation

    def from_item(self, node: exp.Expression, scope: QueryScope) -> Relation:
        """Return the relation of one item of a FROM clause."""
        match node:
            case exp.Table():
                relation = self.table(node, scope)
            case exp.Subquery() | exp.Paren() | exp.Query():
                # A derived table can use its siblings only when it is LATERAL. Every subquery is
                # read as lateral: for valid SQL the result is the same.
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
                relation = Relation([])
        return self._with_alias_columns(node, relation)

    def _with_alias_columns(self, node: exp.Expression, relation: Relation) -> Relation:
        alias = node.args.get("alias")
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if not columns or isinstance(node, (exp.Lateral, exp.Unnest)):
            return relation
        return relation.renamed(self._walker.name(column) for column in columns)

    def table(self, node: exp.Table, scope: QueryScope) -> Relation:
        """Return the rows of the table, CTE, function or array that FROM names."""
        if node.this is None:
            # ROWS FROM (f(a), g(b)): the columns of one function after those of the other.
            parts = node.args.get("rows_from") or ()
            relation = join([self.from_item(part, scope) for part in parts])
        elif is_named_by_value(node.this):
            relation = self._named_by_value(self._walker.table_name(node), node.this)
        elif not isinstance(node.this, _TABLE_NAMES):
            relation = self._walker.functions.function(node.this, scope)
        else:
            name = self._walker.table_name(node)
            if not name:
                relation = self._named_by_value(name, node.this)
                return self._walker.pivoted(node, relation, scope)
            self._walker.listener.table(name)
            cte = scope.find_cte(name[0]) if len(name) == 1 else None
            relation = cte if cte is not None else self.table_or_field(name, scope)
            version = node.args.get("version")  # FOR SYSTEM_TIME AS OF o.ordered_at
            if isinstance(version, exp.Version) and isinstance(version.expression, exp.Expression):
                deps = self._walker.expressions.of(version.expression, scope)
                scope.influence(deps, DependencyKind.JOIN)
        return self._walker.pivoted(node, relation, scope)

    def _named_by_value(self, name: TableName, node: object) -> Relation:
        if name:
            return self._walker.table_relation(name)
        if not is_unnamed(node):  # that is reported where the statement is parsed
            self._walker.blind_spots.append("the table that is read is known only at run time")
        return generate([], NOTHING)

    def table_or_field(self, name: TableName, scope: QueryScope) -> Relation:
        """Return the rows of a table, or of an array in an earlier row (`from t, t.items`)."""
        if len(name) > 1 and name[0] in scope.sources:
            column = scope.sources[name[0]].find(name[1])
            if column is not None:
                deps = direct(column.deps, DependencyKind.TRANSFORMATION)
                return Relation([Column(name[-1], deps)])
        metadata = find_metadata(name, self._walker) if "$" in name[-1] else None
        return metadata if metadata is not None else self._walker.table_relation(name)

    def join(self, node: exp.Join, scope: QueryScope) -> None:
        """Add one JOIN to a scope."""
        before = list(scope.sources.values())
        relation = self.add(node.this, scope)
        for more in node.expressions:  # ARRAY JOIN xs AS x, ys AS y
            self.add(more, scope)
        for name in self._join_columns(node, before, relation, scope):
            self._merge_column(name, before, relation, node, scope)
        for part in ("on", "match_condition"):
            condition = node.args.get(part)
            if condition is not None:
                deps = self._walker.expressions.of(condition, scope)
                scope.influence(deps, DependencyKind.JOIN)
        if str(node.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            scope.sources.popitem()

    def _join_columns(
        self, node: exp.Join, before: list[Relation], relation: Relation, scope: QueryScope
    ) -> list[str]:
        """Return the columns that USING lists, or that both sides of a NATURAL JOIN have."""
        listener = self._walker.listener
        for column in node.args.get("using") or ():
            listener.using(column, before, relation)
        if str(node.args.get("method") or "").upper() != "NATURAL":
            return [self._walker.name(column) for column in node.args.get("using") or ()]
        names = _shared_names(before, relation)
        listener.natural_join(node, names, before, relation)
        for side in (*before, relation):
            if side.open:
                self._walker.blind_spots.append("the columns of a NATURAL JOIN are not all known")
                scope.influence(side.value(), DependencyKind.JOIN)
        return names

    def _merge_column(
        self,
        name: str,
        before: list[Relation],
        relation: Relation,
        node: exp.Join,
        scope: QueryScope,
    ) -> None:
        """Make one column of the two that USING or NATURAL compares."""
        side = str(node.args.get("side") or node.args.get("kind") or "").upper()
        left: Deps = dict(scope.merged.get(name) or {})
        if not left:
            certainty = Certainty.EXACT if len(before) == 1 else Certainty.INFERRED
            for other in before:
                column = other.find(name, certainty)
                if column is not None:
                    merge(left, column.deps)
        column = relation.find(name)
        right = column.deps if column is not None else NOTHING
        scope.influence(left, DependencyKind.JOIN)
        scope.influence(right, DependencyKind.JOIN)
        # The key of an outer join comes from the side that keeps all its rows; in other joins, from
        # both.
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


def match_recognize(clause: exp.Expression, scope: QueryScope, walker: QueryWalker) -> Relation:
    """Return the result of MATCH_RECOGNIZE: its partition columns and its measures."""
    source = Relation(walker.selects.all_items(scope), dict(scope.rows))
    variables = QueryScope(scope)
    for name in _pattern_variables(clause, walker):
        variables.sources[name] = source  # `u.price` is the price of a row
    inner = QueryScope.over(source, variables)

    def deps_of(nodes: Iterator[exp.Expression]) -> Deps:
        return merge_all(walker.expressions.of(node, inner) for node in nodes)

    matches = source.influenced(deps_of(_window_keys(clause)), DependencyKind.WINDOW)
    conditions = (p.this for p in clause.args.get("define") or () if isinstance(p, exp.Alias))
    matches = filter_rows(matches, deps_of(conditions))
    measures = [part.this for part in clause.args.get("measures") or ()]
    all_rows = "ALL ROWS" in str(clause.args.get("rows") or "").upper()
    items: list[Item] = list(source.items) if all_rows else []
    if not all_rows:
        items += walker.selects.items(clause.args.get("partition_by") or (), inner)
    items += walker.selects.items(measures, inner)
    return project(matches, items)


def _pattern_variables(clause: exp.Expression, walker: QueryWalker) -> Iterator[str]:
    """Yield the names that a pattern gives to rows; not all of them have a condition."""
    pattern = clause.args.get("pattern")
    for name in _NAME.findall(pattern.name if isinstance(pattern, exp.Expression) else ""):
        yield walker.fold(name)


def _window_keys(clause: exp.Expression) -> Iterator[exp.Expression]:
    yield from clause.args.get("partition_by") or ()
    order = clause.args.get("order")
    if isinstance(order, exp.Expression):
        yield from order.expressions

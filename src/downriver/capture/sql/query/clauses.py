"""WHERE, GROUP BY, ORDER BY, DISTINCT and LIMIT: the clauses that decide a query's rows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.columns import (
    NOTHING,
    Column,
    DependencyKind,
    Deps,
    Relation,
    Star,
    aggregate,
    distinct,
    filter_rows,
    merge_all,
    sort,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.query.walker import QueryWalker

_FILTERS = ("prewhere", "where", "having", "qualify")
# Dialects in which a clause cannot use the alias of a select item.
_NO_ALIASES = frozenset({"tsql", "fabric", "oracle", "trino", "presto", "athena", "hive"})
_WITHOUT_ALIASES = {"having": _NO_ALIASES | {"postgres"}}
_ORDERS = ("order", "sort", "cluster", "distribute")


class RowClauseTranslator:
    """Applies the clauses of a query to the relation of its select list."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def select(self, node: exp.Select, relation: Relation, scope: QueryScope) -> Relation:
        """Apply every clause of a SELECT."""
        relation = self.filter_and_sort(node, relation, scope)
        self._walker.budget.spend(len(relation.items) + len(relation.rows))
        group = node.args.get("group")
        if group is not None:
            with self._aliases_of("group", scope):
                keys = self._group_keys(group, node, scope)
            relation = aggregate(relation, keys, relation.items)
        clause = node.args.get("distinct")
        if clause is not None:
            on = clause.args.get("on")
            compared = None if on is None else self._walker.expressions.of(on, scope)
            relation = distinct(relation, compared)
        return relation

    @contextmanager
    def _aliases_of(self, part: str, scope: QueryScope) -> Iterator[None]:
        """Prefer the alias of a select item to an unknown column, if the clause allows aliases."""
        before = scope.lateral_aliases
        if self._walker.dialect_name not in _WITHOUT_ALIASES.get(part, _NO_ALIASES):
            scope.lateral_aliases = part not in ("where", "prewhere") or before
        try:
            yield
        finally:
            scope.lateral_aliases = before

    def filter_and_sort(
        self, node: exp.Expression, relation: Relation, scope: QueryScope
    ) -> Relation:
        """Apply WHERE, HAVING, QUALIFY, ORDER BY, CONNECT BY and LIMIT."""
        for part in _FILTERS:
            clause = node.args.get(part)
            if clause is None:
                continue
            with self._aliases_of(part, scope):
                for condition in _expressions_of(clause):
                    relation = filter_rows(relation, self._walker.expressions.of(condition, scope))
        for part in _ORDERS:
            clause = node.args.get(part)
            if clause is not None:
                keys = [self._sort_key(key, scope) for key in _expressions_of(clause)]
                relation = sort(relation, merge_all(keys))
        hierarchy = node.args.get("connect")
        if isinstance(hierarchy, exp.Connect):
            relation = self._connect_by(hierarchy, relation, scope)
        return self._limit(node, relation, scope)

    def _connect_by(self, node: exp.Connect, relation: Relation, scope: QueryScope) -> Relation:
        for part, kind in (("start", DependencyKind.FILTER), ("connect", DependencyKind.JOIN)):
            condition = node.args.get(part)
            if isinstance(condition, exp.Expression):
                relation = relation.influenced(self._walker.expressions.of(condition, scope), kind)
        return relation

    def _limit(self, node: exp.Expression, relation: Relation, scope: QueryScope) -> Relation:
        for part in ("limit", "offset"):
            clause = node.args.get(part)
            if clause is None:
                continue
            count = clause.args.get("expression")
            if isinstance(count, exp.Expression) and not isinstance(count, exp.Literal):
                relation = filter_rows(relation, self._walker.expressions.of(count, scope))
            if clause.expressions:  # ClickHouse: LIMIT 1 BY a
                keys = (self._walker.expressions.of(key, scope) for key in clause.expressions)
                relation = distinct(relation, merge_all(keys))
        return relation

    def _sort_key(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of a sort key; `2`, `ALL` and an alias mean select items."""
        inner = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            alias = scope.aliases.get(self._walker.name(inner.this))
            return self._walker.expressions.of(node, scope) if alias is None else alias.deps
        if isinstance(inner, exp.Columns) or (
            isinstance(inner, exp.Var) and inner.name.upper() == "ALL"
        ):
            return Relation(scope.items).value()
        deps = _by_position(inner, scope)
        return self._walker.expressions.of(node, scope) if deps is None else deps

    def _group_keys(self, group: exp.Expression, node: exp.Select, scope: QueryScope) -> Deps:
        keys = list(_group_parts(group))
        if group.args.get("all"):
            keys += [item for item in node.expressions if not _has_aggregate(item)]
        return merge_all(self._group_key(key, scope) for key in keys)

    def _group_key(self, key: exp.Expression, scope: QueryScope) -> Deps:
        deps = _by_position(key, scope)
        if deps is not None:
            return deps
        if key.is_star:
            return Relation(self._walker.selects.items([key], scope)).value()
        return self._walker.expressions.of(key, scope)


def _expressions_of(clause: exp.Expression) -> Iterable[exp.Expression]:
    parts = clause.expressions or [clause.this]
    return [part for part in parts if isinstance(part, exp.Expression)]


def _by_position(node: exp.Expression, scope: QueryScope) -> Deps | None:
    """Return the dependencies of `ORDER BY 2` or `GROUP BY 1`, None for anything else."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        return None
    at = int(node.this) - 1
    if Star in map(type, scope.items[: at + 1]):
        return Relation(scope.items).value()
    item = scope.items[at] if 0 <= at < len(scope.items) else None
    return item.deps if isinstance(item, Column) else NOTHING


def _group_parts(group: exp.Expression) -> Iterator[exp.Expression]:
    yield from group.expressions
    for part in ("cube", "rollup", "grouping_sets"):
        value = group.args.get(part)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, exp.Expression):
                yield from item.expressions or [item]


def _has_aggregate(node: exp.Expression) -> bool:
    """Return whether a select item contains an aggregate. Then it is no key of GROUP BY ALL."""
    if isinstance(node, (exp.AggFunc, exp.Query)):
        return isinstance(node, exp.AggFunc)
    return any(_has_aggregate(child) for child in node.iter_expressions())

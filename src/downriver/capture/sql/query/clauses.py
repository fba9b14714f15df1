"""WHERE, GROUP BY, ORDER BY, DISTINCT and LIMIT: what decides which rows a query returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.columns.dependencies import NOTHING, Certainty, DependencyKind, Deps, indirect, merge
from downriver.columns.relations import Column, Relation, Star, opaque_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.query.walker import QueryWalker

# What decides which rows there are, and how.
_STEERING = (
    ("prewhere", DependencyKind.FILTER),
    ("where", DependencyKind.FILTER),
    ("having", DependencyKind.FILTER),
    ("qualify", DependencyKind.FILTER),
    ("order", DependencyKind.SORT),
    ("sort", DependencyKind.SORT),
    ("cluster", DependencyKind.SORT),
    ("distribute", DependencyKind.SORT),
)


class RowClauseTranslator:
    """Adds what clauses look at to what decides a query's rows."""

    def __init__(self, walker: QueryWalker) -> None:
        self._walker = walker

    def compare(self, relations: Sequence[Relation], rows: Deps) -> None:
        """Where equal rows become one, every column decides which rows there are."""
        for relation in relations:
            for item in relation.items:
                column = item if isinstance(item, Column) else item.column("*", Certainty.INFERRED)
                merge(rows, indirect(column.deps, DependencyKind.GROUP_BY))

    def steer(self, node: exp.Expression, scope: QueryScope, rows: Deps) -> None:
        """Add what WHERE, HAVING, QUALIFY, CONNECT BY, ORDER BY and LIMIT look at."""
        for part, kind in _STEERING:
            clause = node.args.get(part)
            if clause is None:
                continue
            for expression in clause.expressions or [clause.this]:
                if isinstance(expression, exp.Expression):
                    deps = self._output(expression, scope) if kind == DependencyKind.SORT else None
                    if deps is None:
                        deps = self._walker.expressions.of(expression, scope)
                    merge(rows, indirect(deps, kind))
        for part, kind in (
            ("start", DependencyKind.FILTER),
            ("connect", DependencyKind.JOIN),
        ):  # CONNECT BY
            clause = node.args.get("connect")
            condition = clause.args.get(part) if isinstance(clause, exp.Connect) else None
            if isinstance(condition, exp.Expression):
                merge(rows, indirect(self._walker.expressions.of(condition, scope), kind))
        for part in ("limit", "offset"):
            clause = node.args.get(part)
            count = clause.args.get("expression") if clause is not None else None
            if isinstance(count, exp.Expression) and not isinstance(count, exp.Literal):
                merge(
                    rows, indirect(self._walker.expressions.of(count, scope), DependencyKind.FILTER)
                )
            for key in clause.expressions if clause is not None else ():  # ClickHouse: LIMIT 1 BY a
                merge(
                    rows, indirect(self._walker.expressions.of(key, scope), DependencyKind.GROUP_BY)
                )

    def _output(self, node: exp.Expression, scope: QueryScope) -> Deps | None:
        """Return what `ORDER BY 2`, `ORDER BY ALL` or `ORDER BY alias` means, if it is one."""
        inner = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            alias = scope.aliases.get(self._walker.name(inner.this))
            return None if alias is None else alias.deps
        if isinstance(inner, exp.Columns) or (
            isinstance(inner, exp.Var) and inner.name.upper() == "ALL"
        ):
            return opaque_column(Relation(list(scope.items), NOTHING), "").deps
        return self._by_position(inner, scope)

    def _by_position(self, node: exp.Expression, scope: QueryScope) -> Deps | None:
        """Return what `ORDER BY 2` or `GROUP BY 1` means."""
        if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
            return None
        at = int(node.this) - 1
        if any(isinstance(item, Star) for item in scope.items[: at + 1]):
            return opaque_column(Relation(list(scope.items), NOTHING), "").deps
        item = scope.items[at] if 0 <= at < len(scope.items) else None
        return item.deps if isinstance(item, Column) else NOTHING

    def group(self, node: exp.Select, scope: QueryScope, rows: Deps) -> None:
        """Add what GROUP BY looks at."""
        group = node.args.get("group")
        if group is None:
            return
        parts = list(_group_parts(group))
        if group.args.get("all"):
            parts += [part for part in node.expressions if not _aggregates(part)]
        for part in parts:
            deps = self._by_position(part, scope)
            if deps is None and part.is_star:
                deps = opaque_column(
                    Relation(self._walker.selects.items([part], scope), NOTHING), ""
                ).deps
            elif deps is None:
                deps = self._walker.expressions.of(part, scope)
            merge(rows, indirect(deps, DependencyKind.GROUP_BY))

    def distinct(
        self,
        clause: exp.Expression,
        scope: QueryScope,
        items: list[Column | Star],
        rows: Deps,
    ) -> None:
        """Add what DISTINCT compares."""
        on = clause.args.get("on")
        if on is not None:
            merge(rows, indirect(self._walker.expressions.of(on, scope), DependencyKind.GROUP_BY))
            return
        self.compare([Relation(items, NOTHING)], rows)


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

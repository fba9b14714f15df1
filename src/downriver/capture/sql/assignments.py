"""`SET a = …`: what UPDATE, MERGE and ON CONFLICT have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.deps import merge
from downriver.capture.sql.effects import Written
from downriver.capture.sql.relations import Star

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.sql.context import Context
    from downriver.capture.sql.deps import Deps, TableName
    from downriver.capture.sql.relations import Column
    from downriver.capture.sql.scope import Scope


def assigned(
    assignments: Sequence[exp.Expression],
    target: TableName,
    scope: Scope,
    rows: Deps,
    context: Context,
) -> Written:
    """Return the columns that assignments fill."""
    items: list[Column | Star] = []
    for assignment in assignments:
        if isinstance(assignment, exp.Binary):
            items += _columns(assignment.this, assignment.expression, scope, rows, context)
    return Written(target, items, rows)


def _columns(
    left: exp.Expression, right: exp.Expression, scope: Scope, rows: Deps, context: Context
) -> Iterator[Column | Star]:
    if isinstance(left, exp.Parameter):  # T-SQL: SET @x = …, or SET @x = a = …
        return
    if not isinstance(left, (exp.Tuple, exp.Paren)):
        yield context.walker.selects.item(right, _assigned_name(left, scope, context), scope)
        return
    names = [_assigned_name(part, scope, context) for part in left.expressions or [left.this]]
    if isinstance(right, (exp.Subquery, exp.Query)):
        relation = context.walker.query(right, scope).renamed(names)
        for item in relation.items:
            yield _in_row(item, relation.rows)
        return
    values = right.expressions or [right.this]
    for name, value in zip(names, values, strict=False):
        yield context.walker.selects.item(value, name, scope)


def _assigned_name(node: exp.Expression, scope: Scope, context: Context) -> str:
    """Return the column that is assigned to: in `address.city`, unless that is a table, address."""
    while isinstance(node, (exp.Dot, exp.Bracket)):
        node = node.this
    if isinstance(node, exp.Column) and len(node.parts) == 2:
        first = context.walker.name(node.parts[0])
        if scope.find_source(first) is None and first != context.walker.name(node.this):
            return first
    return context.column_name(node)


def _in_row(item: Column | Star, rows: Deps) -> Column | Star:
    """A value from a subquery depends on what decides which row the subquery has."""
    if isinstance(item, Star):
        return item
    deps = dict(item.deps)
    merge(deps, rows)
    return item.with_deps(deps)

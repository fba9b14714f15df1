"""T-SQL's `OUTPUT inserted.a, deleted.b INTO audit`: a second table a change is written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.context import truthy
from downriver.capture.sql.effects import Written
from downriver.capture.sql.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.sql.context import Context
    from downriver.capture.sql.relations import Relation


def output_into(
    node: exp.Expression, context: Context, new: Relation, old: Relation
) -> Iterator[Written]:
    """Yield what OUTPUT … INTO writes; rows that are only returned go nowhere we know."""
    returning = truthy(node.args.get("returning"))
    into = truthy(returning.args.get("into")) if returning is not None else None
    if returning is None or into is None:
        return
    scope = Scope(None, {})
    scope.sources["inserted"] = new
    scope.sources["deleted"] = old
    relation = context.walker.selects.relation(returning.expressions, scope, new.rows)
    names = [context.column_name(column) for column in into.expressions]
    yield Written(_table(into, context), relation.renamed(names).items, dict(new.rows))


def _table(into: exp.Expression, context: Context) -> tuple[str, ...]:
    if isinstance(into, exp.Table):
        return context.walker.table_name(into)
    if isinstance(into, exp.Identifier):
        return tuple(context.walker.name(into).split("."))  # one name: see output_clause.py
    if isinstance(into, exp.Column):
        return tuple(context.walker.name(part) for part in into.parts)
    if isinstance(into, exp.Parameter):
        return (f"@{into.name}",)
    return (into.name.lower() if isinstance(into, exp.Anonymous) else into.sql_name().lower(),)

"""INSERT: into one table or several, by position or by name, and what happens on conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.assignments import assigned
from downriver.capture.sql.context import Context, by_name, named, truthy
from downriver.capture.sql.deps import Deps, Kind, Sure, TableName, merge, steering
from downriver.capture.sql.effects import UNKNOWN_TARGET, Effect, Written
from downriver.capture.sql.outputs import output_into
from downriver.capture.sql.relations import Column, Relation, Star
from downriver.capture.sql.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_insert(node: exp.Expression, context: Context) -> Effect:
    """INSERT … VALUES, SELECT, OVERWRITE, BY NAME, ON CONFLICT."""
    outer = context.outer(node)
    target, names = context.target(node.this)
    source = truthy(node.expression)
    if target is None:
        if source is not None:
            context.walker.query(source, outer)
        return Effect("INSERT", context.inputs(), [], hidden=(UNKNOWN_TARGET,))
    if source is None:
        return Effect("INSERT", context.inputs(), [Written(target, [], {})])
    relation = context.walker.query(source, outer)
    items = _columns(node, target, names, relation, context)
    rows = dict(relation.rows)
    scope = _conflict_scope(node, target, items, context)
    _look_at_keys(node, scope, rows, context)
    written = [Written(target, items, rows)]
    written += _on_conflict(node, target, scope, context)
    written += output_into(node, context, Relation(items, rows), context.existing(target))
    return Effect("INSERT", context.inputs(), written)


def _columns(
    node: exp.Expression,
    target: TableName,
    names: list[str],
    relation: Relation,
    context: Context,
) -> list[Column | Star]:
    """Return what fills which column: as listed, by name, or by the target's own order."""
    if names:
        return named(relation, names)
    columns = context.columns_of(target)
    if node.args.get("by_name"):
        return by_name(relation, columns)
    if columns is None:
        return (
            list(relation.items)
            if isinstance(node.this, exp.Directory)
            else list(_assumed(relation.items))
        )
    fixed = _static_partition(node)
    usable = [column for column in columns if column.casefold() not in fixed]
    if relation.open or len(usable) < len(relation.items):
        return list(relation.items)
    return named(relation, usable)


def _assumed(items: list[Column | Star]) -> Iterator[Column | Star]:
    """The target's columns are unknown: we take them to be called as the query calls them."""
    for item in items:
        if isinstance(item, Column):
            item = item.with_deps(
                {key: max(sure, Sure.INFERRED) for key, sure in item.deps.items()}
            )
        yield item


def _static_partition(node: exp.Expression) -> set[str]:
    """Return the columns that `PARTITION (day = '…')` fills with a constant."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    partition = truthy(node.args.get("partition")) or truthy(table.args.get("partition"))
    parts = partition.expressions if partition is not None else []
    return {part.this.name.casefold() for part in parts if isinstance(part, exp.EQ)}


# ON CONFLICT


def _conflict_scope(
    node: exp.Expression, target: TableName, items: list[Column | Star], context: Context
) -> Scope:
    """Inside ON CONFLICT the new row is `excluded` (or has an alias), the old one is the table."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    new = Relation(items, {})
    scope = Scope(None, {})
    scope.sources[context.walker.alias(table) or target[-1]] = context.existing(target)
    scope.sources.setdefault(target[-1], next(iter(scope.sources.values())))
    for name in ("excluded", "EXCLUDED"):
        scope.sources[name] = new
    alias = context.walker.alias(node.expression) if node.expression else ""
    if alias:
        scope.sources[alias] = new
    return scope


def _look_at_keys(node: exp.Expression, scope: Scope, rows: Deps, context: Context) -> None:
    """The keys that conflict decide whether a row is new."""
    conflict = truthy(node.args.get("conflict"))
    for key in (conflict.args.get("conflict_keys") or ()) if conflict is not None else ():
        inner = key.this if isinstance(key, exp.Ordered) else key
        column = scope.sources["excluded"].find(context.column_name(inner))
        if column is not None:
            merge(rows, steering(column.deps, Kind.JOIN))


def _on_conflict(
    node: exp.Expression, target: TableName, scope: Scope, context: Context
) -> Iterator[Written]:
    conflict = truthy(node.args.get("conflict"))
    if conflict is None or not conflict.expressions:
        return
    rows: Deps = {}
    context.filtered(conflict, scope, rows)
    assignments = [part.copy().transform(_values_of_new_row) for part in conflict.expressions]
    yield assigned(assignments, target, scope, rows, context)


def _values_of_new_row(node: exp.Expression) -> exp.Expression:
    """MySQL's `VALUES(a)` is the value that was to be inserted."""
    is_values = isinstance(node, exp.Anonymous) and str(node.this).upper() == "VALUES"
    if not is_values or not node.expressions:
        return node
    inner = node.expressions[0]
    name = inner.this if isinstance(inner, exp.Column) else inner
    if not isinstance(name, exp.Identifier):
        return node
    return exp.Column(this=name.copy(), table=exp.to_identifier("excluded"))


# Several tables at once


def read_multi_insert(node: exp.Expression, context: Context) -> Effect:
    """Hive's `FROM s INSERT … INSERT …` and `INSERT ALL` of Snowflake and Oracle."""
    outer = context.outer(node)
    scope = Scope(outer, {})
    rows: Deps = {}
    relation = context.walker.sources.add(node.args["source"], scope, rows)
    if "\x00" not in scope.sources:
        scope.sources.setdefault("\x00", Relation([], {}))
    written: list[Written] = []
    seen: Deps = {}
    for part in node.expressions:
        insert = part.this if isinstance(part, exp.ConditionalInsert) else part
        branch_rows = dict(rows)
        condition = truthy(part.args.get("expression")) if part is not insert else None
        if condition is not None:
            seen = steering(context.walker.expressions.of(condition, scope), Kind.FILTER)
        merge(branch_rows, seen)
        written += _one_of_many(insert, scope, relation, branch_rows, context)
    return Effect("INSERT", context.inputs(), written)


def _one_of_many(
    insert: exp.Expression, scope: Scope, relation: Relation, rows: Deps, context: Context
) -> Iterator[Written]:
    target, names = context.target(insert.this)
    if target is None:
        return
    source = truthy(insert.expression)
    if isinstance(source, exp.Values):
        relation = context.walker.values(source, scope)
    elif isinstance(source, exp.Query):
        relation = context.walker.query(source, scope)
        merge(rows, relation.rows)
    yield Written(target, _columns(insert, target, names, relation, context), rows)

"""INSERT into one or several tables, by position or by name, with ON CONFLICT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.query.scope import QueryScope
from downriver.capture.sql.statements.changes import read_assignments, read_output_into
from downriver.capture.sql.statements.context import (
    UNKNOWN_TARGET,
    StatementContext,
    StatementEffect,
    TableWrite,
    as_node,
    match_columns,
    rename_columns,
)
from downriver.columns.dependencies import (
    Certainty,
    DependencyKind,
    Deps,
    TableName,
    indirect,
    merge,
)
from downriver.columns.relations import Column, Relation, Star

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_insert(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """INSERT … VALUES, SELECT, OVERWRITE, BY NAME, ON CONFLICT."""
    outer = context.outer(node)
    target, names = context.target(node.this)
    source = as_node(node.expression)
    if target is None:
        if source is not None:
            context.walker.query(source, outer)
        return StatementEffect("INSERT", context.inputs(), [], hidden=(UNKNOWN_TARGET,))
    if source is None:
        return StatementEffect("INSERT", context.inputs(), [TableWrite(target, [], {})])
    relation = context.walker.query(source, outer)
    items = _columns(node, target, names, relation, context)
    rows = dict(relation.rows)
    scope = _conflict_scope(node, target, items, context)
    _look_at_keys(node, scope, rows, context)
    written = [TableWrite(target, items, rows)]
    written += _on_conflict(node, target, scope, context)
    written += read_output_into(node, context, Relation(items, rows), context.existing(target))
    return StatementEffect("INSERT", context.inputs(), written)


def _columns(
    node: exp.Expression,
    target: TableName,
    names: list[str],
    relation: Relation,
    context: StatementContext,
) -> list[Column | Star]:
    """Return what fills which column: as listed, by name, or by the target's own order."""
    if names:
        return rename_columns(relation, names)
    columns = context.columns_of(target)
    if node.args.get("by_name"):
        return match_columns(relation, columns)
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
    return rename_columns(relation, usable)


def _assumed(items: list[Column | Star]) -> Iterator[Column | Star]:
    """The target's columns are unknown: we take them to be called as the query calls them."""
    for item in items:
        if isinstance(item, Column):
            item = item.with_deps(
                {key: max(sure, Certainty.INFERRED) for key, sure in item.deps.items()}
            )
        yield item


def _static_partition(node: exp.Expression) -> set[str]:
    """Return the columns that `PARTITION (day = '…')` fills with a constant."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    partition = as_node(node.args.get("partition")) or as_node(table.args.get("partition"))
    parts = partition.expressions if partition is not None else []
    return {part.this.name.casefold() for part in parts if isinstance(part, exp.EQ)}


# ON CONFLICT


def _conflict_scope(
    node: exp.Expression, target: TableName, items: list[Column | Star], context: StatementContext
) -> QueryScope:
    """Inside ON CONFLICT the new row is `excluded` (or has an alias), the old one is the table."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    new = Relation(items, {})
    scope = QueryScope(None, {})
    scope.sources[context.walker.alias(table) or target[-1]] = context.existing(target)
    scope.sources.setdefault(target[-1], next(iter(scope.sources.values())))
    for name in ("excluded", "EXCLUDED"):
        scope.sources[name] = new
    alias = context.walker.alias(node.expression) if node.expression else ""
    if alias:
        scope.sources[alias] = new
    return scope


def _look_at_keys(
    node: exp.Expression, scope: QueryScope, rows: Deps, context: StatementContext
) -> None:
    """The keys that conflict decide whether a row is new."""
    conflict = as_node(node.args.get("conflict"))
    for key in (conflict.args.get("conflict_keys") or ()) if conflict is not None else ():
        inner = key.this if isinstance(key, exp.Ordered) else key
        column = scope.sources["excluded"].find(context.column_name(inner))
        if column is not None:
            merge(rows, indirect(column.deps, DependencyKind.JOIN))


def _on_conflict(
    node: exp.Expression, target: TableName, scope: QueryScope, context: StatementContext
) -> Iterator[TableWrite]:
    conflict = as_node(node.args.get("conflict"))
    if conflict is None or not conflict.expressions:
        return
    rows: Deps = {}
    context.filtered(conflict, scope, rows)
    assignments = [part.copy().transform(_values_of_new_row) for part in conflict.expressions]
    yield read_assignments(assignments, target, scope, rows, context)


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


def read_multi_insert(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Hive's `FROM s INSERT … INSERT …` and `INSERT ALL` of Snowflake and Oracle."""
    outer = context.outer(node)
    scope = QueryScope(outer, {})
    rows: Deps = {}
    relation = context.walker.sources.add(node.args["source"], scope, rows)
    if "\x00" not in scope.sources:
        scope.sources.setdefault("\x00", Relation([], {}))
    written: list[TableWrite] = []
    seen: Deps = {}
    for part in node.expressions:
        insert = part.this if isinstance(part, exp.ConditionalInsert) else part
        branch_rows = dict(rows)
        condition = as_node(part.args.get("expression")) if part is not insert else None
        if condition is not None:
            seen = indirect(context.walker.expressions.of(condition, scope), DependencyKind.FILTER)
        merge(branch_rows, seen)
        written += _one_of_many(insert, scope, relation, branch_rows, context)
    return StatementEffect("INSERT", context.inputs(), written)


def _one_of_many(
    insert: exp.Expression,
    scope: QueryScope,
    relation: Relation,
    rows: Deps,
    context: StatementContext,
) -> Iterator[TableWrite]:
    target, names = context.target(insert.this)
    if target is None:
        return
    source = as_node(insert.expression)
    if isinstance(source, exp.Values):
        relation = context.walker.values(source, scope)
    elif isinstance(source, exp.Query):
        relation = context.walker.query(source, scope)
        merge(rows, relation.rows)
    yield TableWrite(target, _columns(insert, target, names, relation, context), rows)

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
from downriver.columns import (
    NOTHING,
    Certainty,
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    TableName,
    filter_rows,
    indirect,
    merge_all,
    weaken,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def read_insert(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read INSERT: VALUES, SELECT, OVERWRITE, BY NAME, ON CONFLICT."""
    outer = context.outer(node)
    target, names = context.target(node.this)
    source = as_node(node.expression)
    if target is None:
        if source is not None:
            context.walker.query(source, outer)
        return StatementEffect("INSERT", context.inputs(), [], blind_spots=(UNKNOWN_TARGET,))
    if source is None:
        return StatementEffect("INSERT", context.inputs(), [TableWrite(target, [], {})])
    relation = context.walker.query(source, outer)
    items = _columns(node, target, names, relation, context)
    scope = _conflict_scope(node, target, items, context)
    # INSERT INTO t REPLACE WHERE day = …: the rows of t that remain depend on its own columns.
    replaced = context.where(node, QueryScope.over(context.existing(target)))
    rows = merge_all([relation.rows, _conflict_keys(node, scope, context), replaced])
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
) -> Sequence[Item]:
    """Return the columns that INSERT writes: as listed, by name, or in the target's order."""
    if names:
        return rename_columns(relation, names)
    columns = context.columns_of(target)
    if node.args.get("by_name"):
        return match_columns(relation, columns)
    if columns is None:
        is_directory = isinstance(node.this, exp.Directory)
        return relation.items if is_directory else _inferred(relation.items)
    fixed = _static_partition(node)
    usable = [column for column in columns if column.casefold() not in fixed]
    if relation.open or len(usable) < len(relation.items):
        return relation.items
    return rename_columns(relation, usable)


def _inferred(items: Sequence[Item]) -> list[Item]:
    """Return columns of an unknown target. Assume the names of the query's columns."""
    return [
        item.with_deps(weaken(item.deps, Certainty.INFERRED)) if isinstance(item, Column) else item
        for item in items
    ]


def _static_partition(node: exp.Expression) -> set[str]:
    """Return the columns that `PARTITION (day = '…')` fills with a constant."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    partition = as_node(node.args.get("partition")) or as_node(table.args.get("partition"))
    parts = partition.expressions if partition is not None else []
    return {part.this.name.casefold() for part in parts if isinstance(part, exp.EQ)}


# ON CONFLICT


def _conflict_scope(
    node: exp.Expression, target: TableName, items: Sequence[Item], context: StatementContext
) -> QueryScope:
    """Return the scope of ON CONFLICT: `excluded` is the new row, the table is the old one."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    new = Relation(items)
    scope = QueryScope()
    scope.sources[context.walker.alias(table) or "".join(target[-1:])] = context.existing(target)
    scope.sources.setdefault("".join(target[-1:]), next(iter(scope.sources.values())))
    for name in ("excluded", "EXCLUDED"):
        scope.sources[name] = new
    alias = context.walker.alias(node.expression) if node.expression else ""
    if alias:
        scope.sources[alias] = new
    return scope


def _conflict_keys(node: exp.Expression, scope: QueryScope, context: StatementContext) -> Deps:
    """Return the dependencies of the conflict keys: they decide whether a row is new."""
    conflict = as_node(node.args.get("conflict"))
    keys = (conflict.args.get("conflict_keys") or ()) if conflict is not None else ()
    names = [context.column_name(k.this if isinstance(k, exp.Ordered) else k) for k in keys]
    columns = [scope.sources["excluded"].find(name) for name in names]
    deps = merge_all(column.deps for column in columns if column is not None)
    return indirect(deps, DependencyKind.JOIN)


def _on_conflict(
    node: exp.Expression, target: TableName, scope: QueryScope, context: StatementContext
) -> Iterator[TableWrite]:
    conflict = as_node(node.args.get("conflict"))
    if conflict is None or not conflict.expressions:
        return
    rows = context.where(conflict, scope)
    assignments = [part.copy().transform(_values_of_new_row) for part in conflict.expressions]
    yield read_assignments(assignments, target, scope, rows, context)


def _values_of_new_row(node: exp.Expression) -> exp.Expression:
    """Replace MySQL's `VALUES(a)`, the value of the new row, by `excluded.a`."""
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
    """Read Hive's `FROM s INSERT … INSERT …`, and `INSERT ALL` of Snowflake and Oracle."""
    scope = QueryScope(context.outer(node))
    added = context.walker.sources.add(node.args["source"], scope)
    relation = Relation(added.items, scope.rows, unnamed=added.unnamed)
    scope.sources.setdefault("\x00", Relation([]))
    written: list[TableWrite] = []
    condition: Deps = NOTHING  # ELSE depends on the condition before it
    for part in node.expressions:
        insert = part.this if isinstance(part, exp.ConditionalInsert) else part
        when = as_node(part.args.get("expression")) if part is not insert else None
        if when is not None:
            condition = context.walker.expressions.of(when, scope)
        written += _one_of_many(insert, scope, filter_rows(relation, condition), context)
    return StatementEffect("INSERT", context.inputs(), written)


def _one_of_many(
    insert: exp.Expression, scope: QueryScope, relation: Relation, context: StatementContext
) -> Iterator[TableWrite]:
    target, names = context.target(insert.this)
    if target is None:
        return
    source = as_node(insert.expression)
    rows = relation.rows
    if isinstance(source, exp.Values):
        relation = context.walker.values(source, scope)
    elif isinstance(source, exp.Query):
        relation = context.walker.query(source, scope)
        rows = merge_all([rows, relation.rows])
    yield TableWrite(target, _columns(insert, target, names, relation, context), rows)

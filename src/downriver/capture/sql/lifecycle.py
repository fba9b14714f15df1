"""Statements that drop, empty, rename or change tables, and those that only name some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.context import Context, truthy
from downriver.capture.sql.effects import Effect, Written
from downriver.capture.sql.relations import Column, Star
from downriver.capture.sql.shapes import rename

if TYPE_CHECKING:
    from downriver.capture.sql.deps import TableName

_HOLD_ROWS = frozenset({"TABLE", "VIEW"})


def read_drop(node: exp.Expression, context: Context) -> Effect:
    """DROP TABLE and DROP VIEW."""
    kind = str(node.args.get("kind") or "").upper()
    tables = [node.this, *(node.args.get("tables") or ()), *node.expressions]
    names = [context.walker.table_name(t) for t in tables if isinstance(t, exp.Table)]
    if kind not in _HOLD_ROWS or not names:
        return Effect(f"DROP {kind}".strip(), [], [])
    return Effect(f"DROP {kind}", [], _changed(names), lifecycle="DROP")


def read_truncate(node: exp.Expression, context: Context) -> Effect:
    """TRUNCATE."""
    tables = [node.this, *node.expressions]
    names = [context.walker.table_name(t) for t in tables if isinstance(t, exp.Table)]
    return Effect("TRUNCATE", [], _changed(names), lifecycle="TRUNCATE")


def read_alter(node: exp.Expression, context: Context) -> Effect:
    """ALTER TABLE: RENAME and SWAP move data to another name, the rest changes columns."""
    if not isinstance(node.this, exp.Table):
        return Effect("ALTER", [], [])
    name = context.walker.table_name(node.this)
    for action in node.args.get("actions") or ():
        if isinstance(action, exp.AlterRename) and isinstance(action.this, exp.Table):
            return rename([(name, context.walker.table_name(action.this))])
        if isinstance(action, exp.SwapTable) and isinstance(action.this, exp.Table):
            other = context.walker.table_name(action.this)
            written = [Written(name, [Star(other)], {}), Written(other, [Star(name)], {})]
            return Effect("SWAP", [name, other], written, lifecycle="SWAP")
        if isinstance(action, exp.RenameColumn):
            return _renamed_column(name, action, context)
    return Effect("ALTER", [], _changed([name]), lifecycle="ALTER")


def _renamed_column(name: TableName, action: exp.RenameColumn, context: Context) -> Effect:
    """The schema we know is of the column's old name: later statements use the new one."""
    old = context.column_name(action.this).casefold()
    new = context.column_name(action.args["to"])
    columns = context.columns_of(name)
    renamed = [new if column.casefold() == old else column for column in columns or ()]
    defines = {name: renamed} if columns is not None else {}
    return Effect("ALTER", [], _changed([name]), lifecycle="ALTER", defines=defines)


def _changed(names: list[TableName]) -> list[Written]:
    return [Written(name, [], {}) for name in names]


def read_cache(node: exp.Expression, context: Context) -> Effect:
    """Spark's CACHE TABLE t AS query: a temporary view."""
    target, _ = context.target(node.this)
    query = truthy(node.expression)
    if query is None or target is None:
        return Effect("CACHE", [], [])
    relation = context.walker.query(query, None)
    written = Written(target, list(relation.items), dict(relation.rows))
    return Effect("CACHE", context.inputs(), [written], temporary=True)


def read_declare(node: exp.Expression, context: Context) -> Effect:
    """DECLARE: a T-SQL table variable is a temporary table, a default may be a query."""
    written: list[Written] = []
    for item in node.expressions:
        kind, default = item.args.get("kind"), truthy(item.args.get("default"))
        if isinstance(kind, exp.Schema):
            columns = [
                context.walker.name(c.this)
                for c in kind.expressions
                if isinstance(c, exp.ColumnDef) and isinstance(c.this, exp.Identifier)
            ]
            for variable in item.this if isinstance(item.this, list) else [item.this]:
                filled: list[Column | Star] = [Column(column, {}) for column in columns]
                written.append(Written((f"@{variable.name}",), filled, {}))
        elif default is not None:
            for query in default.find_all(exp.Query):
                if query.find_ancestor(exp.Query) is None:
                    context.walker.query(query, None)
    return Effect("DECLARE", context.inputs(), written, temporary=True)

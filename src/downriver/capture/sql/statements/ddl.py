"""CREATE, DROP, ALTER, TRUNCATE, CACHE and DECLARE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.statements.context import (
    StatementContext,
    StatementEffect,
    TableWrite,
    as_node,
    rename_columns,
)
from downriver.capture.sql.statements.files import paths_in
from downriver.capture.sql.statements.token_shapes import rename_tables
from downriver.columns import NOTHING, Column, Item, Relation, Star

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.columns import Deps, TableName

_KINDS = frozenset({"TABLE", "VIEW", "MODEL"})
_PREPARED = ("procedure_call", "the rows come from a prepared statement")
_TEMPORARY = (exp.TemporaryProperty, exp.VolatileProperty)


def read_create(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read CREATE: the sources of the new table or view."""
    kind = str(node.args.get("kind") or "").upper()
    target, names = context.target(node.this)
    if kind == "MACRO":
        return _macro(node, context)
    if kind not in _KINDS or target is None:
        return StatementEffect(f"CREATE {kind}".strip(), [], [])
    temporary = _is_temporary(node, target)
    clone = _clone(node, context)
    if clone is not None:
        relation = context.walker.table_relation(clone)
        written = TableWrite(target, relation.items)
        return StatementEffect("CLONE", context.inputs(), [written], temporary=temporary)
    source = as_node(node.expression)
    model = _model_table(node, context)
    if model is not None and source is None:
        return _like(target, names, model, temporary, context)
    if not isinstance(source, (exp.Query, exp.Table, exp.Values)):
        return _empty(node, target, names, temporary, context)
    return _as_query(node, target, names, source, context)


def _macro(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read `CREATE MACRO m(a) AS TABLE SELECT …`: the tables that the macro reads."""
    names = (part.name.casefold() for part in node.this.expressions)
    context.walker.variables = context.walker.variables | set(names)
    source = as_node(node.expression)
    relation = context.walker.query(source, None) if isinstance(source, exp.Query) else None
    return StatementEffect("CREATE MACRO", context.inputs(), [], relation)


def _as_query(
    node: exp.Expression,
    target: TableName,
    names: list[str],
    source: exp.Expression,
    context: StatementContext,
) -> StatementEffect:
    kind = str(node.args.get("kind")).upper()
    relation = context.walker.query(source, context.outer(node))
    items = rename_columns(relation, names)
    rows: Deps = relation.rows
    if any(isinstance(p, exp.WithDataProperty) and p.args.get("no") for p in _properties(node)):
        items = [Column(item.name, NOTHING) for item in items if isinstance(item, Column)]
        rows = NOTHING
    written = [TableWrite(target, items, rows)]
    written += [
        TableWrite(context.walker.table_name(part.this), items, rows)
        for part in _properties(node)
        if isinstance(part, exp.ToTableProperty)  # ClickHouse: a view that fills a table
    ]
    name = "CREATE TABLE AS" if kind == "TABLE" else f"CREATE {kind}"
    return StatementEffect(name, context.inputs(), written, temporary=_is_temporary(node, target))


def _like(
    target: TableName,
    names: list[str],
    model: TableName,
    temporary: bool,
    context: StatementContext,
) -> StatementEffect:
    """Read `CREATE TABLE a (LIKE b)`: the columns of b and none of its rows."""
    context.walker.table_relation(model)
    columns = [*(context.columns_of(model) or ()), *names]
    defines = {target: columns} if context.columns_of(model) is not None else {}
    written = TableWrite(target, [Column(name, NOTHING) for name in columns])
    return StatementEffect(
        "CREATE TABLE LIKE", context.inputs(), [written], defines=defines, temporary=temporary
    )


def _empty(
    node: exp.Expression,
    target: TableName,
    names: list[str],
    temporary: bool,
    context: StatementContext,
) -> StatementEffect:
    """Read CREATE of a table with columns only, or of a table over files."""
    kind = str(node.args.get("kind")).upper()
    files = [(path,) for path in _shown_files(node)]
    partition_of = _partition_of(node, context)
    if partition_of is not None and not names:
        names = list(context.columns_of(partition_of) or ())
    items: Sequence[Item] = [Column(name, NOTHING) for name in names]
    if files:
        items = rename_columns(Relation([Star(file) for file in files]), names)
    defines = {target: names} if names else {}
    written = [TableWrite(target, items)]
    executes = any(isinstance(part, exp.ExecuteAsProperty) for part in _properties(node))
    return StatementEffect(
        f"CREATE {kind}",
        list(files),
        written,
        defines=defines,
        temporary=temporary,
        blind_spots=(_PREPARED,) if executes and not names else (),
    )


def _shown_files(node: exp.Expression) -> list[str]:
    """Return the files of an external table or of a view over files."""
    parts = _properties(node)
    is_external = any(isinstance(part, exp.ExternalProperty) for part in parts)
    is_view = str(node.args.get("kind")).upper() == "VIEW"
    if not (is_external or is_view):
        return []
    return [path for part in parts for path in paths_in(part)]


def _properties(node: exp.Expression) -> list[exp.Expression]:
    properties = as_node(node.args.get("properties"))
    return list(properties.expressions) if properties is not None else []


def _clone(node: exp.Expression, context: StatementContext) -> TableName | None:
    clone = as_node(node.args.get("clone"))
    if clone is not None and isinstance(clone.this, exp.Table):
        return context.walker.table_name(clone.this)
    return None


def _model_table(node: exp.Expression, context: StatementContext) -> TableName | None:
    inside = node.this.expressions if isinstance(node.this, exp.Schema) else []
    for part in [*_properties(node), *inside]:
        if isinstance(part, exp.LikeProperty) and isinstance(part.this, exp.Table):
            return context.walker.table_name(part.this)
    return None


def _partition_of(node: exp.Expression, context: StatementContext) -> TableName | None:
    for part in _properties(node):
        if isinstance(part, exp.PartitionedOfProperty) and isinstance(part.this, exp.Table):
            return context.walker.table_name(part.this)
    return None


def _is_temporary(node: exp.Expression, target: TableName) -> bool:
    kinds = _properties(node)
    return any(isinstance(part, _TEMPORARY) for part in kinds) or "".join(target[-1:]).startswith(
        "#"
    )


_HOLD_ROWS = frozenset({"TABLE", "VIEW"})


def read_drop(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read DROP TABLE and DROP VIEW."""
    kind = str(node.args.get("kind") or "").upper()
    tables = [node.this, *(node.args.get("tables") or ()), *node.expressions]
    names = [context.walker.table_name(t) for t in tables if isinstance(t, exp.Table)]
    if kind not in _HOLD_ROWS or not names:
        return StatementEffect(f"DROP {kind}".strip(), [], [])
    return StatementEffect(f"DROP {kind}", [], _changed(names), lifecycle="DROP")


def read_truncate(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read TRUNCATE."""
    tables = [node.this, *node.expressions]
    names = [context.walker.table_name(t) for t in tables if isinstance(t, exp.Table)]
    return StatementEffect("TRUNCATE", [], _changed(names), lifecycle="TRUNCATE")


def read_alter(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read ALTER TABLE: RENAME and SWAP move data to another name, the rest changes columns."""
    if not isinstance(node.this, exp.Table):
        return StatementEffect("ALTER", [], [])
    name = context.walker.table_name(node.this)
    for action in node.args.get("actions") or ():
        if isinstance(action, exp.AlterRename) and isinstance(action.this, exp.Table):
            return rename_tables([(name, context.walker.table_name(action.this))])
        if isinstance(action, exp.SwapTable) and isinstance(action.this, exp.Table):
            other = context.walker.table_name(action.this)
            written = [TableWrite(name, [Star(other)]), TableWrite(other, [Star(name)])]
            return StatementEffect("SWAP", [name, other], written, lifecycle="SWAP")
        if isinstance(action, exp.RenameColumn):
            return _renamed_column(name, action, context)
    return StatementEffect("ALTER", [], _changed([name]), lifecycle="ALTER")


def _renamed_column(
    name: TableName, action: exp.RenameColumn, context: StatementContext
) -> StatementEffect:
    """Read RENAME COLUMN: later statements use the new name."""
    old = context.column_name(action.this).casefold()
    new = context.column_name(action.args["to"])
    columns = context.columns_of(name)
    renamed = [new if column.casefold() == old else column for column in columns or ()]
    defines = {name: renamed} if columns is not None else {}
    return StatementEffect("ALTER", [], _changed([name]), lifecycle="ALTER", defines=defines)


def _changed(names: list[TableName]) -> list[TableWrite]:
    return [TableWrite(name) for name in names]


def read_cache(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read Spark's `CACHE TABLE t AS query`: a temporary view."""
    target, _ = context.target(node.this)
    query = as_node(node.expression)
    if query is None or target is None:
        return StatementEffect("CACHE", [], [])
    relation = context.walker.query(query, None)
    written = TableWrite(target, relation.items, relation.rows)
    return StatementEffect("CACHE", context.inputs(), [written], temporary=True)


def read_declare(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read DECLARE: a T-SQL table variable is a temporary table, a default may be a query."""
    written: list[TableWrite] = []
    for item in node.expressions:
        kind, default = item.args.get("kind"), as_node(item.args.get("default"))
        if isinstance(kind, exp.Schema):
            columns = [
                context.walker.name(c.this)
                for c in kind.expressions
                if isinstance(c, exp.ColumnDef) and isinstance(c.this, exp.Identifier)
            ]
            for variable in item.this if isinstance(item.this, list) else [item.this]:
                filled = [Column(column, NOTHING) for column in columns]
                written.append(TableWrite((f"@{variable.name}",), filled))
        elif default is not None:
            for query in default.find_all(exp.Query):
                if query.find_ancestor(exp.Query) is None:
                    context.walker.query(query, None)
    return StatementEffect("DECLARE", context.inputs(), written, temporary=True)

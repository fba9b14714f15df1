"""Reads one parsed statement: a table of readers, one for each kind of statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.statements.changes import read_delete, read_merge, read_update
from downriver.capture.sql.statements.context import UNKNOWN_TARGET, StatementEffect, TableWrite
from downriver.capture.sql.statements.ddl import (
    read_alter,
    read_cache,
    read_create,
    read_declare,
    read_drop,
    read_truncate,
)
from downriver.capture.sql.statements.files import read_copy, read_export, read_load
from downriver.capture.sql.statements.insert import read_insert, read_multi_insert
from downriver.columns import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.statements.context import StatementContext
    from downriver.columns import Deps


def read_statement(node: exp.Expression, context: StatementContext) -> StatementEffect | None:
    """Return the effect of a statement, or None if its kind moves no data."""
    if isinstance(node, exp.LockingStatement):
        node = node.expression

    def read_inside(inner: exp.Expression, scope: QueryScope | None) -> Deps:
        effect = _READERS[type(inner)](inner, context.inside(scope))
        context.written_inside += effect.written
        return effect.written[0].rows if effect.written else NOTHING

    context.walker.on_write = read_inside
    reader = _READERS.get(type(node))
    if reader is not None:
        effect = reader(node, context)
    elif isinstance(node, (exp.Query, exp.Values, exp.Pivot)):
        effect = _read_query(node, context)
    else:
        return None
    return _with_known_targets(effect._replace(written=[*context.written_inside, *effect.written]))


def _with_known_targets(effect: StatementEffect) -> StatementEffect:
    """Return an effect in which writes to unknown tables are replaced by a blind spot."""
    named_writes = [write for write in effect.written if write.table]
    if len(named_writes) == len(effect.written):
        return effect
    defines = {table: names for table, names in (effect.defines or {}).items() if table}
    effect = effect._replace(written=named_writes, defines=defines or None)
    return effect._replace(blind_spots=(*effect.blind_spots, UNKNOWN_TARGET))


def _read_query(node: exp.Expression, context: StatementContext) -> StatementEffect:
    relation = context.walker.query(node, None)
    first = node
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    into = first.args.get("into")
    if not isinstance(into, exp.Into) or not isinstance(into.this, exp.Table):
        return StatementEffect("SELECT", context.inputs(), [], relation)
    if isinstance(into.this.this, exp.Placeholder):  # into a variable of a procedure
        return StatementEffect("SELECT", context.inputs(), [], relation)
    target = context.walker.table_name(into.this)
    temporary = bool(into.args.get("temporary")) or "".join(target[-1:]).startswith("#")
    written = TableWrite(target, relation.items, relation.rows)
    return StatementEffect("SELECT INTO", context.inputs(), [written], temporary=temporary)


_READERS: dict[type, Callable[[exp.Expression, StatementContext], StatementEffect]] = {
    exp.Insert: read_insert,
    exp.MultitableInserts: read_multi_insert,
    exp.Create: read_create,
    exp.Merge: read_merge,
    exp.Update: read_update,
    exp.Delete: read_delete,
    exp.Drop: read_drop,
    exp.TruncateTable: read_truncate,
    exp.Alter: read_alter,
    exp.Copy: read_copy,
    exp.LoadData: read_load,
    exp.Export: read_export,
    exp.Cache: read_cache,
    exp.Declare: read_declare,
}

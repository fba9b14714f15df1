"""From one parsed statement to what it does: a table of readers, one a kind of statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.changes import read_delete, read_merge, read_update
from downriver.capture.sql.creates import read_create
from downriver.capture.sql.deps import NOTHING
from downriver.capture.sql.effects import Effect, Written
from downriver.capture.sql.files import read_copy, read_export, read_load
from downriver.capture.sql.inserts import read_insert, read_multi_insert
from downriver.capture.sql.lifecycle import (
    read_alter,
    read_cache,
    read_declare,
    read_drop,
    read_truncate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql.context import Context
    from downriver.capture.sql.deps import Deps
    from downriver.capture.sql.scope import Scope


def read_statement(node: exp.Expression, context: Context) -> Effect | None:
    """Return what a statement does, or None when it is of a kind that moves no data."""
    if isinstance(node, exp.LockingStatement):
        node = node.expression

    def read_inside(inner: exp.Expression, scope: Scope | None) -> Deps:
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
    return effect._replace(written=[*context.written_inside, *effect.written])


def _read_query(node: exp.Expression, context: Context) -> Effect:
    relation = context.walker.query(node, None)
    first = node
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    into = first.args.get("into")
    if not isinstance(into, exp.Into) or not isinstance(into.this, exp.Table):
        return Effect("SELECT", context.inputs(), [], relation)
    target = context.walker.table_name(into.this)
    temporary = bool(into.args.get("temporary")) or target[-1].startswith("#")
    written = Written(target, relation.items, relation.rows)
    return Effect("SELECT INTO", context.inputs(), [written], temporary=temporary)


_READERS: dict[type, Callable[[exp.Expression, Context], Effect]] = {
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

"""CREATE TABLE and CREATE VIEW, with a query, a copy of another table, or only columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.context import Context, named, truthy
from downriver.capture.sql.effects import Effect, Written
from downriver.capture.sql.files import paths_in
from downriver.capture.sql.relations import Column, Relation, Star

if TYPE_CHECKING:
    from downriver.capture.sql.deps import TableName

_KINDS = frozenset({"TABLE", "VIEW", "MODEL"})
_PREPARED = ("procedure_call", "the rows come from a prepared statement")
_TEMPORARY = (exp.TemporaryProperty, exp.VolatileProperty)


def read_create(node: exp.Expression, context: Context) -> Effect:
    """CREATE: what the new table or view is made of."""
    kind = str(node.args.get("kind") or "").upper()
    target, names = context.target(node.this)
    if kind == "MACRO":
        return _macro(node, context)
    if kind not in _KINDS or target is None:
        return Effect(f"CREATE {kind}".strip(), [], [])
    temporary = _is_temporary(node, target)
    clone = _clone(node, context)
    if clone is not None:
        relation = context.walker.table_relation(clone)
        written = Written(target, list(relation.items), {})
        return Effect("CLONE", context.inputs(), [written], temporary=temporary)
    source = truthy(node.expression)
    model = _model_table(node, context)
    if model is not None and source is None:
        return _like(target, names, model, temporary, context)
    if not isinstance(source, (exp.Query, exp.Table, exp.Values)):
        return _empty(node, target, names, temporary, context)
    return _as_query(node, target, names, source, context)


def _macro(node: exp.Expression, context: Context) -> Effect:
    """`CREATE MACRO m(a) AS TABLE SELECT …`: what it reads whenever it is used."""
    names = (part.name.casefold() for part in node.this.expressions)
    context.walker.variables = context.walker.variables | set(names)
    source = truthy(node.expression)
    relation = context.walker.query(source, None) if isinstance(source, exp.Query) else None
    return Effect("CREATE MACRO", context.inputs(), [], relation)


def _as_query(
    node: exp.Expression,
    target: TableName,
    names: list[str],
    source: exp.Expression,
    context: Context,
) -> Effect:
    kind = str(node.args.get("kind")).upper()
    relation = context.walker.query(source, context.outer(node))
    items = named(relation, names)
    rows = dict(relation.rows)
    if any(isinstance(p, exp.WithDataProperty) and p.args.get("no") for p in _properties(node)):
        items, rows = [Column(i.name, {}) for i in items if isinstance(i, Column)], {}
    written = [Written(target, items, rows)]
    written += [
        Written(context.walker.table_name(part.this), items, rows)
        for part in _properties(node)
        if isinstance(part, exp.ToTableProperty)  # ClickHouse: a view that fills a table
    ]
    name = "CREATE TABLE AS" if kind == "TABLE" else f"CREATE {kind}"
    return Effect(name, context.inputs(), written, temporary=_is_temporary(node, target))


def _like(
    target: TableName, names: list[str], model: TableName, temporary: bool, context: Context
) -> Effect:
    """`CREATE TABLE a (LIKE b)` takes b's columns and none of its rows."""
    context.walker.table_relation(model)
    columns = [*(context.columns_of(model) or ()), *names]
    defines = {target: columns} if context.columns_of(model) is not None else {}
    written = Written(target, [Column(name, {}) for name in columns], {})
    return Effect(
        "CREATE TABLE LIKE", context.inputs(), [written], defines=defines, temporary=temporary
    )


def _empty(
    node: exp.Expression, target: TableName, names: list[str], temporary: bool, context: Context
) -> Effect:
    """A table with columns only, or one that shows files."""
    kind = str(node.args.get("kind")).upper()
    files = [(path,) for path in _shown_files(node)]
    partition_of = _partition_of(node, context)
    if partition_of is not None and not names:
        names = list(context.columns_of(partition_of) or ())
    items: list[Column | Star] = [Column(name, {}) for name in names]
    if files:
        shown: list[Column | Star] = [Star(file) for file in files]
        items = Relation(shown, {}).renamed(names).items if names else shown
    defines = {target: names} if names else {}
    written = [Written(target, items, {})]
    executes = any(isinstance(part, exp.ExecuteAsProperty) for part in _properties(node))
    return Effect(
        f"CREATE {kind}",
        list(files),
        written,
        defines=defines,
        temporary=temporary,
        hidden=(_PREPARED,) if executes and not names else (),
    )


def _shown_files(node: exp.Expression) -> list[str]:
    """Return the files that an external table or a view over files shows."""
    parts = _properties(node)
    is_external = any(isinstance(part, exp.ExternalProperty) for part in parts)
    is_view = str(node.args.get("kind")).upper() == "VIEW"
    if not (is_external or is_view):
        return []
    return [path for part in parts for path in paths_in(part)]


def _properties(node: exp.Expression) -> list[exp.Expression]:
    properties = truthy(node.args.get("properties"))
    return list(properties.expressions) if properties is not None else []


def _clone(node: exp.Expression, context: Context) -> TableName | None:
    clone = truthy(node.args.get("clone"))
    if clone is not None and isinstance(clone.this, exp.Table):
        return context.walker.table_name(clone.this)
    return None


def _model_table(node: exp.Expression, context: Context) -> TableName | None:
    inside = node.this.expressions if isinstance(node.this, exp.Schema) else []
    for part in [*_properties(node), *inside]:
        if isinstance(part, exp.LikeProperty) and isinstance(part.this, exp.Table):
            return context.walker.table_name(part.this)
    return None


def _partition_of(node: exp.Expression, context: Context) -> TableName | None:
    for part in _properties(node):
        if isinstance(part, exp.PartitionedOfProperty) and isinstance(part.this, exp.Table):
            return context.walker.table_name(part.this)
    return None


def _is_temporary(node: exp.Expression, target: TableName) -> bool:
    kinds = _properties(node)
    return any(isinstance(part, _TEMPORARY) for part in kinds) or target[-1].startswith("#")

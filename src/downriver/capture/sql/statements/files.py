"""COPY, LOAD and EXPORT: data that enters or leaves the database as files."""

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
from downriver.columns.relations import Column, Relation, Star

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.columns.dependencies import TableName

_PATHS = frozenset({"uri", "uris", "path", "location"})
_STREAMS = frozenset({"STDIN", "STDOUT"})


def read_copy(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """COPY of every dialect: a table from files, or files from a table or query."""
    sources = list(node.args.get("files") or ())
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.Query):  # COPY (query) TO file
        return _unloaded(inner, _places(sources), context)
    place = _place(inner)
    if place is not None:  # COPY INTO @stage FROM table
        return (
            _unloaded(sources[0], [place], context) if sources else StatementEffect("COPY", [], [])
        )
    table, names = context.target(inner)
    if table is None:
        return StatementEffect("COPY", [], [])
    if node.args.get("kind"):
        return _loaded(table, names, sources, context)
    relation = context.walker.table_relation(table)
    if names:
        relation = Relation([c for c in (relation.find(n) for n in names) if c is not None], {})
    return _written_to(relation, _places(sources), context)


def _loaded(
    table: TableName, names: list[str], sources: list[exp.Expression], context: StatementContext
) -> StatementEffect:
    query = sources[0] if sources and isinstance(sources[0], exp.Query) else None
    columns = names or list(context.columns_of(table) or ())
    if query is not None:
        relation = context.walker.query(query, None)
        items = rename_columns(relation, columns) if not relation.open else list(relation.items)
        return StatementEffect(
            "COPY", context.inputs(), [TableWrite(table, items, dict(relation.rows))]
        )
    files = _places(sources)
    filled: list[Column | Star] = [Star(file) for file in files]
    items = Relation(filled, {}).renamed(names).items if names else filled
    return StatementEffect("COPY", files, [TableWrite(table, items, {})])


def _unloaded(
    source: exp.Expression, places: list[TableName], context: StatementContext
) -> StatementEffect:
    return _written_to(context.walker.query(source, None), places, context)


def _written_to(
    relation: Relation, places: list[TableName], context: StatementContext
) -> StatementEffect:
    written = [TableWrite(place, list(relation.items), dict(relation.rows)) for place in places]
    return StatementEffect("COPY", context.inputs(), written)


def _places(nodes: list[exp.Expression]) -> list[TableName]:
    found = [_place(node) or _plain_name(node) for node in nodes]
    return [place for place in found if place is not None and place[0] not in _STREAMS]


def _place(node: object) -> TableName | None:
    """Return a stage or a path, None when it is the name of a table."""
    inner = node.this if isinstance(node, exp.Table) else node
    if isinstance(inner, exp.Literal) and inner.is_string:
        return (str(inner.this),)
    if isinstance(inner, exp.Var) and str(inner.this).startswith("@"):
        return (str(inner.this),)
    return None


def _plain_name(node: exp.Expression) -> TableName | None:
    text = str(node.name or "")
    return (text,) if text else None


def read_load(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """LOAD DATA: Hive's INPATH, BigQuery's FROM FILES."""
    table, names = context.target(node.this)
    inpath = as_node(node.args.get("inpath"))
    files = [(str(inpath.name),)] if inpath is not None else []
    properties = as_node(node.args.get("files"))
    for part in properties.expressions if properties is not None else ():
        files += [(path,) for path in paths_in(part)]
    if table is None:
        return StatementEffect("LOAD", [], [])
    filled: list[Column | Star] = [Star(file) for file in files]
    items = Relation(filled, {}).renamed(names).items if names else filled
    return StatementEffect("LOAD", [*files], [TableWrite(table, items, {})])


def read_export(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """BigQuery's EXPORT DATA."""
    query = as_node(node.this)
    if query is None:
        return StatementEffect("EXPORT", [], [])
    relation = context.walker.query(query, None)
    options = as_node(node.args.get("options"))
    paths = [path for part in (options.expressions if options else ()) for path in paths_in(part)]
    written = [TableWrite((path,), list(relation.items), dict(relation.rows)) for path in paths]
    return StatementEffect("EXPORT", context.inputs(), written)


def paths_in(part: exp.Expression) -> Iterator[str]:
    """Yield the paths a property names: LOCATION '…', uris=[…], OPTIONS (path '…')."""
    if isinstance(part, exp.LocationProperty):
        yield str(part.this.name)
    elif isinstance(part, exp.OptionsProperty):
        for inner in part.expressions:
            yield from paths_in(inner)
    elif isinstance(part, exp.Property) and _property_name(part) in _PATHS:
        value = part.args.get("value")
        for literal in value.find_all(exp.Literal) if isinstance(value, exp.Expression) else ():
            yield str(literal.this)


def _property_name(part: exp.Property) -> str:
    key = part.args.get("this")
    return str(key.name if isinstance(key, exp.Expression) else key).lower()

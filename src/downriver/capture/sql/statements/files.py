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
from downriver.columns import Relation, Star

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.columns import TableName

_PATHS = frozenset({"uri", "uris", "path", "location"})
_STREAMS = frozenset({"STDIN", "STDOUT"})


def read_copy(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read COPY of every dialect: a table from files, or files from a table or query."""
    sources = list(node.args.get("files") or ())
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.Query):  # COPY (query) TO file
        return _write_query(inner, _locations(sources), context)
    location = _location(inner)
    if location is not None:  # COPY INTO @stage FROM table
        if not sources:
            return StatementEffect("COPY", [], [])
        return _write_query(sources[0], [location], context)
    table, names = context.target(inner)
    if table is None:
        return StatementEffect("COPY", [], [])
    if node.args.get("kind"):
        return _load(table, names, sources, context)
    relation = context.walker.table_relation(table)
    if names:
        relation = Relation([c for c in (relation.find(n) for n in names) if c is not None])
    return _write_files(relation, _locations(sources), context)


def _load(
    table: TableName, names: list[str], sources: list[exp.Expression], context: StatementContext
) -> StatementEffect:
    query = sources[0] if sources and isinstance(sources[0], exp.Query) else None
    columns = names or list(context.columns_of(table) or ())
    if query is not None:
        relation = context.walker.query(query, None)
        items = relation.items if relation.open else rename_columns(relation, columns)
        return StatementEffect("COPY", context.inputs(), [TableWrite(table, items, relation.rows)])
    files = _locations(sources)
    items = rename_columns(Relation([Star(file) for file in files]), names)
    return StatementEffect("COPY", files, [TableWrite(table, items)])


def _write_query(
    source: exp.Expression, locations: list[TableName], context: StatementContext
) -> StatementEffect:
    return _write_files(context.walker.query(source, None), locations, context)


def _write_files(
    relation: Relation, locations: list[TableName], context: StatementContext
) -> StatementEffect:
    written = [TableWrite(location, relation.items, relation.rows) for location in locations]
    return StatementEffect("COPY", context.inputs(), written)


def _locations(nodes: list[exp.Expression]) -> list[TableName]:
    locations = [_location(node) or _plain_name(node) for node in nodes]
    return [
        location for location in locations if location is not None and location[0] not in _STREAMS
    ]


def _location(node: object) -> TableName | None:
    """Return a stage or a path, None for the name of a table."""
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
    """Read LOAD DATA: Hive's INPATH, BigQuery's FROM FILES."""
    table, names = context.target(node.this)
    inpath = as_node(node.args.get("inpath"))
    files = [(str(inpath.name),)] if inpath is not None else []
    properties = as_node(node.args.get("files"))
    for part in properties.expressions if properties is not None else ():
        files += [(path,) for path in paths_in(part)]
    if table is None:
        return StatementEffect("LOAD", [], [])
    items = rename_columns(Relation([Star(file) for file in files]), names)
    return StatementEffect("LOAD", [*files], [TableWrite(table, items)])


def read_export(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read BigQuery's EXPORT DATA."""
    query = as_node(node.this)
    if query is None:
        return StatementEffect("EXPORT", [], [])
    relation = context.walker.query(query, None)
    options = as_node(node.args.get("options"))
    paths = [path for part in (options.expressions if options else ()) for path in paths_in(part)]
    written = [TableWrite((path,), relation.items, relation.rows) for path in paths]
    return StatementEffect("EXPORT", context.inputs(), written)


def paths_in(part: exp.Expression) -> Iterator[str]:
    """Yield the paths in a property: LOCATION '…', uris=[…], OPTIONS (path '…')."""
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

"""Functions that read tables named in string literals: other databases, dictionaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from downriver.capture.sql.text.parse import StatementParser
from downriver.columns import (
    Column,
    DependencyKind,
    Deps,
    Relation,
    direct,
    indirect,
    merge,
    source,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.query.walker import QueryWalker
    from downriver.columns import TableName

# Functions that run the query in one of their arguments on another server.
_RUN_QUERIES = frozenset(
    {
        "external_query", "openquery", "dblink", "postgres_query", "mysql_query", "sqlite_query",
        "query", "openrowset", "remote_query",
    }
)  # fmt: skip
# Functions that read one table: the positions of the parts of its name.
_READ_TABLES = {
    "mysql": (0, 1, 2),
    "postgresql": (0, 1, 2),
    "mongodb": (0, 1, 2),
    "sqlite": (0, 1),
    "remote": (0, 1, 2),
    "remotesecure": (0, 1, 2),
    "cluster": (1, 2),
    "clusterallreplicas": (1, 2),
    "dictionary": (0,),
    "postgres_scan": (1, 2),
    "mysql_scan": (1, 2),
    "sqlite_scan": (0, 1),
}
_LOOKUPS = ("dictget", "dicthas", "joinget")  # ClickHouse
_DIALECTS = ("", "postgres", "mysql", "oracle", "tsql")


def find_remote(node: exp.Expression, called: str, walker: QueryWalker) -> Relation | None:
    """Return the rows of a function that reads another database, None for any other function."""
    call = node.expression if isinstance(node, exp.Dot) else node
    arguments = list(_arguments(call))
    if called in _RUN_QUERIES:
        query = next((a for a in arguments[::-1] if _is_query(a)), None)
        if query is not None:
            return _run(query.name, _server(node, arguments), called, walker)
    positions = _READ_TABLES.get(called)
    if positions is None or walker.dialect_name not in ("clickhouse", "duckdb"):
        return None
    parts = [part for at in positions if at < len(arguments) for part in _names(arguments[at])]
    if len(parts) < len(positions):
        return None
    return walker.table_relation(tuple(parts[: len(positions)]))


def find_lookup(node: exp.Expression, walker: QueryWalker, scope: QueryScope) -> Deps | None:
    """Return the dependencies of `dictGet('d', 'attribute', key)`, None for other functions."""
    called = str(node.name).lower()
    if not called.startswith(_LOOKUPS) or len(node.expressions) < 2:
        return None
    first, *others = node.expressions
    names = list(_names(first))
    if not names:
        walker.blind_spots.append(f"the dictionary that {called}() reads is known only at run time")
        return None
    table: TableName = tuple(part for name in names for part in name.split("."))
    walker.inputs[table] = None
    deps: Deps = {}
    attributes = 0 if called.startswith("dicthas") else 1
    for value in others[:attributes]:
        for literal in value.find_all(exp.Literal):
            merge(deps, direct(source(table, str(literal.this)), DependencyKind.TRANSFORMATION))
    for key in others[attributes:]:
        merge(deps, indirect(walker.expressions.of(key, scope), DependencyKind.JOIN))
    return deps


def find_metadata(name: TableName, walker: QueryWalker) -> Relation | None:
    """Return the rows of a metadata table of Trino, `orders$partitions`, which describe a table."""
    table, _, kind = name[-1].partition("$")
    if not kind or not table or walker.dialect_name not in ("trino", "presto", "athena"):
        return None
    described = walker.table_relation((*name[:-1], table)).value()
    used = direct(described, DependencyKind.TRANSFORMATION)
    return Relation([Column("*", used)], unnamed=used)


def _run(text: str, server: str, called: str, walker: QueryWalker) -> Relation:
    tree = _parse(text, walker)
    if tree is None:
        walker.blind_spots.append(f"the query inside {called}() does not parse")
        return Relation([Column("*", {})], unnamed={})
    ctes = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if not table.db and table.name.casefold() in ctes:
            continue
        slot = "catalog" if table.db else "db"
        if server and not table.args.get(slot):
            table.set(slot, exp.to_identifier(server, quoted=True))
    return walker.query(tree, None)


def _parse(text: str, walker: QueryWalker) -> exp.Query | None:
    for name in _DIALECTS:
        dialect = Dialect.get_or_raise(name or None)
        parsed = StatementParser(dialect, walker.budget).parse_text(text, dialect)
        if parsed is not None and isinstance(parsed.tree, exp.Query):
            return parsed.tree
    return None


def _arguments(call: exp.Expression) -> Iterator[exp.Expression]:
    for child in call.iter_expressions():
        yield child.expression if isinstance(child, exp.Kwarg) else child


def _is_query(node: exp.Expression) -> bool:
    if not isinstance(node, (exp.Literal, exp.National, exp.RawString)):
        return False
    return bool(node.name.lstrip(" \n\t(").lower().startswith(("select", "with")))


def _server(node: exp.Expression, arguments: list[exp.Expression]) -> str:
    """Return the name of the server: the first argument, or the catalog of the function."""
    if isinstance(node, exp.Dot):
        first = node
        while isinstance(first, exp.Dot):
            first = first.this
        return str(first.name)
    return str(arguments[0].name) if arguments and not _is_query(arguments[0]) else ""


def _names(node: exp.Expression) -> Iterator[str]:
    if isinstance(node, exp.Column):
        yield from (str(part.name) for part in node.parts)
    elif isinstance(node, exp.Literal) and node.is_string:
        yield str(node.this)

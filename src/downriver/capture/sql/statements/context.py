"""The effect of a statement, and the context for reading every kind of statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from downriver.capture.sql.query.scope import QueryScope
from downriver.capture.sql.text.variables import is_variable
from downriver.columns import (
    NOTHING,
    Certainty,
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    Star,
    TableName,
    indirect,
    source,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from downriver.capture.sql.query.walker import QueryWalker

UNKNOWN_TARGET = ("dynamic_sql", "the table that is written is known only at run time")


class TableWrite(NamedTuple):
    """The write of a statement to one table: its columns, and the dependencies of its rows."""

    table: TableName
    columns: Sequence[Item] = ()
    rows: Deps = NOTHING


class StatementEffect(NamedTuple):
    """The effect of a statement.

    `result` is the relation that a query returns. `lifecycle` is set when tables are dropped,
    truncated, renamed or altered rather than filled. `defines` are the columns that a DDL statement
    lists. The tables of a `temporary` effect exist only in the script. A blind spot has a kind and
    a message.
    """

    kind: str
    inputs: list[TableName]
    written: list[TableWrite]
    result: Relation | None = None
    lifecycle: str | None = None
    defines: dict[TableName, list[str]] | None = None
    temporary: bool = False
    blind_spots: tuple[tuple[str, str], ...] = ()


class StatementContext:
    """The walker of one statement, and the schemas of the tables it may write to."""

    def __init__(
        self,
        walker: QueryWalker,
        columns_of: Callable[[TableName], Sequence[str] | None],
        temporary: Mapping[TableName, Relation],
    ) -> None:
        self.walker = walker
        self._columns_of = columns_of
        self._temporary = temporary
        self._around: QueryScope | None = None
        self.written_inside: list[TableWrite] = []  # by statements inside a WITH clause

    def columns_of(self, table: TableName) -> Sequence[str] | None:
        """Return the columns of a table that is written to, None when they are unknown."""
        if not table:
            return None
        relation = self._temporary.get(table)
        if relation is not None and relation.columns and not relation.open:
            return [column.name for column in relation.columns]
        return self._columns_of(table)

    def inputs(self, *, without: Sequence[TableName] = ()) -> list[TableName]:
        """Return the tables read so far, except those that the statement only changes."""
        return [name for name in self.walker.inputs if name not in without]

    def outer(self, node: exp.Expression) -> QueryScope | None:
        """Return the scope of a statement's WITH clause, inside that of a statement around it."""
        around = self._around
        ctes = self.walker.with_clause(node, around)
        return QueryScope(around, ctes) if ctes else around

    def inside(self, scope: QueryScope | None) -> StatementContext:
        """Return the context of a statement inside the WITH clause of another."""
        inner = StatementContext(self.walker, self._columns_of, self._temporary)
        inner._around = scope
        inner.written_inside = self.written_inside
        return inner

    def existing(self, target: TableName) -> Relation:
        """Return the rows already in a target, without adding it to the inputs."""
        if target in self._temporary:
            return self._temporary[target]
        columns = self.columns_of(target)
        if columns is None:
            return Relation([Star(target)])
        return Relation([Column(column, source(target, column)) for column in columns])

    def target(self, node: object) -> tuple[TableName | None, list[str]]:
        """Return the table that a statement writes to, and the columns it lists."""
        names: list[str] = []
        if isinstance(node, exp.Schema):
            names = [
                self.walker.name(column if isinstance(column, exp.Identifier) else column.this)
                for column in node.expressions
                if isinstance(column, (exp.Identifier, exp.ColumnDef, exp.Column))
            ]
            node = node.this
        if isinstance(node, exp.Table):
            return self.walker.table_name(node), names
        if isinstance(node, exp.Directory):
            path = str(node.this.name)
            return () if is_variable(path) else (path,), names
        return None, names

    def column_name(self, node: exp.Expression) -> str:
        """Return the name of a column that is assigned to."""
        if isinstance(node, exp.Identifier):
            return self.walker.name(node)
        return self.walker.output_name(node) or str(node.name)

    def where(self, node: exp.Expression, scope: QueryScope) -> Deps:
        """Return the dependencies of a statement's WHERE clause."""
        where = as_node(node.args.get("where"))
        if where is None:
            return NOTHING
        return indirect(self.walker.expressions.of(where, scope), DependencyKind.FILTER)


def rename_columns(relation: Relation, names: Sequence[str]) -> Sequence[Item]:
    """Return a relation's columns, renamed by position if names are given."""
    return relation.renamed(names).items if names else relation.items


def match_columns(relation: Relation, columns: Sequence[str] | None) -> Sequence[Item]:
    """Return a relation's columns. For an open relation, they get the names of a known target."""
    if columns is None or not relation.open:
        return relation.items
    matches = ((name, relation.find(name, Certainty.INFERRED)) for name in columns)
    return [
        Column(name, column.deps, fields=column.fields, computation=column.computation)
        for name, column in matches
        if column is not None
    ]


def as_node(value: object) -> exp.Expression | None:
    """Return an argument of a node, or None; sqlglot uses False and None for a missing one."""
    return value if isinstance(value, exp.Expression) else None

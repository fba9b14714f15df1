"""What a statement does, and the context in which every kind of statement is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from downriver.capture.sql.query.scope import QueryScope
from downriver.columns.dependencies import (
    NOTHING,
    Certainty,
    DependencyKind,
    Deps,
    TableName,
    indirect,
    merge,
)
from downriver.columns.relations import Column, Relation, Star

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from downriver.capture.sql.query.walker import QueryWalker

UNKNOWN_TARGET = ("dynamic_sql", "which table is written is known only when it runs")


class TableWrite(NamedTuple):
    """What a statement does to one table: the columns it fills, and what decides the rows."""

    table: TableName
    columns: list[Column | Star]
    rows: Deps


class StatementEffect(NamedTuple):
    """What a statement does.

    `result` is what a query returns to whoever asked. `lifecycle` says that tables were dropped,
    emptied, renamed or changed rather than filled. `defines` are the columns a DDL statement
    names, and `temporary` tables are seen through by the statements after this one.
    """

    kind: str
    inputs: list[TableName]
    written: list[TableWrite]
    result: Relation | None = None
    lifecycle: str | None = None
    defines: dict[TableName, list[str]] | None = None
    temporary: bool = False
    replaces: bool = False
    hidden: tuple[tuple[str, str], ...] = ()


class StatementContext:
    """One statement's walker, and the schemas of the tables it may write to."""

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
        self.written_inside: list[TableWrite] = []  # by statements in a WITH clause

    def columns_of(self, table: TableName) -> Sequence[str] | None:
        """Return the columns of a table that is written to, or None when they are unknown."""
        relation = self._temporary.get(table)
        if relation is not None and relation.columns and not relation.open:
            return [column.name for column in relation.columns]
        return self._columns_of(table)

    def inputs(self, *, without: Sequence[TableName] = ()) -> list[TableName]:
        """Return the tables read so far, those a statement merely changes left out."""
        return [name for name in self.walker.inputs if name not in without]

    def outer(self, node: exp.Expression) -> QueryScope | None:
        """Return the scope around a statement: its WITH clause, in that of one around it."""
        around = self._around
        ctes = self.walker.with_clause(node, around)
        return QueryScope(around, ctes) if ctes else around

    def inside(self, scope: QueryScope | None) -> StatementContext:
        """Return the context of a statement that stands in the WITH clause of another."""
        inner = StatementContext(self.walker, self._columns_of, self._temporary)
        inner._around = scope
        inner.written_inside = self.written_inside
        return inner

    def existing(self, target: TableName) -> Relation:
        """Return the rows already in a target, without counting it as an input."""
        if target in self._temporary:
            return self._temporary[target]
        columns = self.columns_of(target)
        if columns is None:
            return Relation([Star(target)], NOTHING)
        items: list[Column | Star] = [
            Column(column, {(target, column, DependencyKind.IDENTITY, False): Certainty.EXACT})
            for column in columns
        ]
        return Relation(items, NOTHING)

    def target(self, node: object) -> tuple[TableName | None, list[str]]:
        """Return the table a statement writes to, and the columns it names for it."""
        names: list[str] = []
        if isinstance(node, exp.Schema):
            names = [
                self.walker.name(column if isinstance(column, exp.Identifier) else column.this)
                for column in node.expressions
                if isinstance(column, (exp.Identifier, exp.ColumnDef, exp.Column))
            ]
            node = node.this
        if isinstance(node, exp.Table):
            return self.walker.table_name(node) or None, names
        if isinstance(node, exp.Directory):
            return (str(node.this.name),), names
        return None, names

    def column_name(self, node: exp.Expression) -> str:
        """Return the name of a column that is assigned to."""
        if isinstance(node, exp.Identifier):
            return self.walker.name(node)
        return self.walker.output_name(node) or str(node.name)

    def filtered(self, node: exp.Expression, scope: QueryScope, rows: Deps) -> None:
        """Add what a WHERE clause looks at to what decides the rows."""
        where = node.args.get("where")
        if isinstance(where, exp.Expression):
            merge(rows, indirect(self.walker.expressions.of(where, scope), DependencyKind.FILTER))


def rename_columns(relation: Relation, names: Sequence[str]) -> list[Column | Star]:
    """Return a relation's columns under names given by position, or under their own."""
    return relation.renamed(names).items if names else list(relation.items)


def match_columns(relation: Relation, columns: Sequence[str] | None) -> list[Column | Star]:
    """Return a relation's columns, a star among them as the columns of a known target."""
    if columns is None or not relation.open:
        return list(relation.items)
    found: list[Column | Star] = []
    for name in columns:
        column = relation.find(name, Certainty.INFERRED)
        if column is not None:
            found.append(Column(name, column.deps, column.expression, column.fields))
    return found


def as_node(value: object) -> exp.Expression | None:
    """Return an argument of a node, which sqlglot leaves False or None where there is none."""
    return value if isinstance(value, exp.Expression) else None

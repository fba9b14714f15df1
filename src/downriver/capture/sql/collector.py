"""Collects the lineage of each statement of a script: tables, column edges, blind spots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from downriver.capture.sql.catalog import CurrentSchema
from downriver.capture.sql.listener import ScriptFault, ScriptListener, StatementReading
from downriver.capture.sql.result import ColumnEdge, ColumnRef, SqlBlindSpot, StatementLineage
from downriver.capture.sql.script import RESULT
from downriver.capture.sql.text.mentions import scan_tables
from downriver.capture.sql.text.tokens import tokenize_leniently
from downriver.capture.sql.unaccounted_names import ScriptAccount
from downriver.columns import Certainty, Column, DependencyKind, Star, weaken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.statements.context import StatementEffect, TableWrite
    from downriver.capture.sql.text.parse import ScriptStatement
    from downriver.columns import Deps, Item, TableName

    TableText = Callable[[TableName], str]

_LONGEST_SQL = 1_000
_RESOLUTIONS: dict[int, Literal["exact", "inferred", "ambiguous"]] = {
    Certainty.EXACT: "exact",
    Certainty.INFERRED: "inferred",
    Certainty.AMBIGUOUS: "ambiguous",
}
_SUBTYPES = tuple(kind.name for kind in DependencyKind)
_STAR_PARTS = ("except_", "rename", "replace")


class LineageCollector(ScriptListener):
    """Collects the lineage of statements, in order."""

    def __init__(self, dialect: Dialect, variables: AbstractSet[str]) -> None:
        self.statements: list[StatementLineage] = []
        self._dialect = dialect
        self._variables = variables
        self._current = CurrentSchema(dialect)
        self._account = ScriptAccount(dialect)

    def table(self, name: TableName) -> None:
        """Record that a FROM clause names a table."""
        self._account.table(name)

    def column(self, node: exp.Expression, scope: QueryScope, origin: Column | None) -> None:
        """Record that an expression names a column."""
        names = (str(part.name).casefold() for part in node.parts)
        account = self._account
        (account.unresolved if origin is None else account.columns).update(names)

    def star(self, star: exp.Expression, items: Sequence[Item]) -> None:
        """Record the columns that a star leaves out or renames."""
        for part in _STAR_PARTS:
            names = (str(node.name).casefold() for node in star.args.get(part) or ())
            self._account.columns.update(names)

    def finish(self) -> None:
        """Compare the names of the last statement with its lineage."""
        self._account.close(self._variables)

    def statement(self, reading: StatementReading) -> None:
        """Add the lineage of a statement."""
        if reading.statement.tree is not None:
            self._current.follow(reading.statement.tree)
        lineage = self._begin(reading.statement)
        lineage.blind_spots += [
            SqlBlindSpot("table_function", message, lineage.line) for message in reading.blind_spots
        ]
        if reading.effect is not None:
            self._fill(lineage, reading.effect, reading)
        self._account.statement(reading, lineage, self._variables)

    def fault(self, statement: ScriptStatement, fault: ScriptFault) -> None:
        """Add the tables of a statement that could not be read."""
        self._account.discard()
        self._scan(self._begin(statement), statement.sql, fault)

    def too_large(self, beginning: str) -> None:
        """Add the tables at the beginning of a script that is too long to read."""
        lineage = StatementLineage(kind="UNKNOWN", line=1, sql=beginning[:_LONGEST_SQL])
        self.statements.append(lineage)
        message = "the script is too long: only the tables at its beginning were read"
        self._scan(lineage, beginning, ScriptFault("too_large", message))

    def _begin(self, statement: ScriptStatement) -> StatementLineage:
        lineage = StatementLineage(
            kind=statement.kind,
            line=statement.line,
            sql=statement.sql,
            routine=statement.routine,
            inputs=self._texts(statement.inputs),
            outputs=self._texts(statement.outputs),
            blind_spots=list(statement.blind_spots),
        )
        self.statements.append(lineage)
        return lineage

    def _scan(self, lineage: StatementLineage, sql: str, fault: ScriptFault) -> None:
        """Find the tables of a statement that cannot be read."""
        tokens, _ = tokenize_leniently(sql, self._dialect)
        tables = scan_tables(tokens, self._dialect)
        lineage.inputs = self._texts(tables.inputs)
        lineage.outputs = self._texts(tables.outputs)
        lineage.blind_spots.append(SqlBlindSpot(fault.kind, fault.message, lineage.line))

    def _fill(
        self, lineage: StatementLineage, effect: StatementEffect, reading: StatementReading
    ) -> None:
        if reading.statement.target is None:
            lineage.kind = effect.kind
        lineage.lifecycle = effect.lifecycle
        lineage.inputs = self._texts(effect.inputs)
        lineage.blind_spots += [
            SqlBlindSpot(kind, message, lineage.line) for kind, message in effect.blind_spots
        ]
        lineage.columns = [
            item.name for w in reading.writes for item in w.columns if isinstance(item, Column)
        ]
        lasting = reading.lasting_writes
        tables = self._texts(write.table for write in lasting if write.table != RESULT)
        if effect.lifecycle is None:
            lineage.outputs = tables
        else:
            lineage.changed = tables
        text = self._current.text
        lineage.column_edges = sorted({edge for w in lasting for edge in column_edges(w, text)})
        lineage.dataset_edges = sorted({edge for w in lasting for edge in dataset_edges(w, text)})

    def _texts(self, names: Iterable[TableName]) -> list[str]:
        return list(dict.fromkeys(map(self._current.text, names)))


def column_edges(write: TableWrite, text: TableText) -> Iterator[ColumnEdge]:
    """Yield the edges into each column of a written table; `text` renders table names."""
    target = text(write.table)
    for item in write.columns:
        if isinstance(item, Star):
            yield ColumnEdge(
                source=ColumnRef(text(item.table), "*"),
                target=ColumnRef(target, "*"),
                type="DIRECT",
                subtype="IDENTITY",
                resolution="inferred",
                expression=_except_clause(item),
            )
            yield from _branch_edges(item, target, text)
        elif item.deps:
            expression = item.definition.text() if item.definition is not None else ""
            yield from _edges(item.deps, ColumnRef(target, item.name), expression, text)


def _branch_edges(star: Star, target: str, text: TableText) -> Iterator[ColumnEdge]:
    """Yield the edges of columns of other queries in a union, in the positions of a star."""
    for relation in star.branches:
        for column in relation.columns:
            deps = weaken(column.deps, Certainty.INFERRED)
            yield from _edges(deps, ColumnRef(target, column.name), "", text)


def dataset_edges(write: TableWrite, text: TableText) -> Iterator[ColumnEdge]:
    """Yield the edges into a written table as a whole, from the columns that decide its rows."""
    yield from _edges(write.rows, ColumnRef(text(write.table), "*"), "", text)


def _except_clause(star: Star) -> str:
    return f"* EXCEPT ({', '.join(sorted(star.dropped))})" if star.dropped else ""


def _edges(deps: Deps, target: ColumnRef, expression: str, text: TableText) -> Iterator[ColumnEdge]:
    for (table, column, kind, masked), certainty in deps.items():
        yield ColumnEdge(
            source=ColumnRef(text(table), column),
            target=target,
            type="DIRECT" if kind < DependencyKind.JOIN else "INDIRECT",
            subtype=_SUBTYPES[kind],
            masking=masked,
            resolution=_RESOLUTIONS[certainty],
            expression=expression,
        )

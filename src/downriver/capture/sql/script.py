"""A script: reads its statements in order and reports each to a listener."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from downriver.capture.sql.catalog import TemporaryTables
from downriver.capture.sql.limits import OverLimitError
from downriver.capture.sql.listener import (
    NO_LISTENER,
    ScriptFault,
    ScriptListener,
    StatementReading,
)
from downriver.capture.sql.query.walker import QueryWalker
from downriver.capture.sql.statements.context import StatementContext, TableWrite
from downriver.capture.sql.statements.dispatch import read_statement
from downriver.columns import Relation, Star

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from sqlglot import exp

    from downriver.capture.sql.limits import Budget
    from downriver.capture.sql.query.names import DialectNames
    from downriver.capture.sql.statements.context import StatementEffect
    from downriver.capture.sql.text.parse import ScriptStatement
    from downriver.columns import TableName

_logger = logging.getLogger(__name__)

RESULT: TableName = ("",)  # the target of a query that only returns rows
_CHANGED_ROWS = ("new", "old")
_CHANGED_TABLES = ("inserted", "deleted")  # of T-SQL
# sqlglot parses some invalid statements, such as a MERGE without a source.
_FAULTS = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)


class ScriptTables(Protocol):
    """The known tables that exist outside the script."""

    def columns_of(self, table: TableName) -> Sequence[str] | None:
        """Return the columns of a table in order, None when they are unknown."""

    def find_relation(self, table: TableName) -> Relation | None:
        """Return a relation to read instead of the table, if there is one."""

    def apply(
        self, effect: StatementEffect, writes: Sequence[TableWrite], temporary: TemporaryTables
    ) -> None:
        """Record what a statement changes, for later statements."""


class Script:
    """One reading of a script. It holds all state that changes while statements are read.

    Parsed statements, and `names`, can be shared by several readings at the same time.
    """

    def __init__(
        self,
        names: DialectNames,
        tables: ScriptTables,
        budget: Budget,
        listener: ScriptListener = NO_LISTENER,
        *,
        variables: AbstractSet[str] = frozenset(),
    ) -> None:
        self.temporary = TemporaryTables(names.dialect)
        self._tables = tables
        self._budget = budget
        self._listener = listener
        self._variables = variables
        self._records: dict[str, Relation] = {}  # rows that a loop or a trigger names
        self._walker = QueryWalker(names, tables.columns_of, self._find_view, budget, listener)
        self._walker.records = self._records

    def read(self, statements: Iterable[ScriptStatement]) -> None:
        """Read statements in order; later ones see what earlier ones defined."""
        for statement in statements:
            if statement.trigger:
                self._begin_trigger(statement.trigger)
            if statement.tree is None:
                self._finish(statement, statement.effect)
                continue
            effect = self._walk(statement.tree, statement.line)
            if isinstance(effect, ScriptFault):
                self._listener.fault(statement, effect)
            else:
                self._finish(statement, effect)

    def _find_view(self, table: TableName) -> Relation | None:
        return self.temporary.relations.get(table) or self._tables.find_relation(table)

    def _begin_trigger(self, table: TableName) -> None:
        """Define NEW and OLD, or T-SQL's `inserted` and `deleted`, as rows of the table."""
        row = self._walker.existing(table, self._tables.columns_of(table))
        row.reads = [table]
        self._records.update(dict.fromkeys(_CHANGED_ROWS, row))
        for name in _CHANGED_TABLES:
            self.temporary.relations[(self._walker.fold(name),)] = row

    def _walk(self, tree: exp.Expression, line: int) -> StatementEffect | ScriptFault | None:
        """Return what a statement does, None when it moves no data."""
        self._budget.renew()
        self._walker.begin_statement(self._variables)
        context = StatementContext(self._walker, self._tables.columns_of, self.temporary.relations)
        try:
            effect = read_statement(tree, context)
        except RecursionError:
            return ScriptFault("too_deep", "the statement is nested too deeply")
        except OverLimitError as exc:
            return ScriptFault("too_large", str(exc))
        except _FAULTS as exc:
            _logger.warning("reading the SQL statement on line %d failed", line, exc_info=True)
            return ScriptFault("failed", f"reading the statement failed: {exc!r}")
        if effect is not None and _count_edges(effect) > self._budget.limits.edges:
            return ScriptFault("too_large", "the statement has too many edges")
        return effect

    def _finish(self, statement: ScriptStatement, effect: StatementEffect | None) -> None:
        """Apply what a statement does, and report it."""
        if effect is None:
            self._listener.statement(StatementReading(statement))
            return
        writes = list(effect.written)
        if effect.result is not None:
            target = statement.target or RESULT
            writes.append(TableWrite(target, effect.result.items, effect.result.rows))
        lasting = self.temporary.keep(effect, writes)
        self._tables.apply(effect, lasting, self.temporary)
        if statement.row and effect.result is not None:
            rows = effect.result
            self._records[statement.row] = Relation(rows.items, rows.rows, reads=effect.inputs)
        walked = statement.tree is not None
        self._listener.statement(
            StatementReading(
                statement,
                effect,
                writes,
                lasting,
                inputs=tuple(self._walker.inputs) if walked else (),
                blind_spots=tuple(self._walker.blind_spots) if walked else (),
            )
        )


def _count_edges(effect: StatementEffect) -> int:
    parts = [(write.columns, write.rows) for write in effect.written]
    if effect.result is not None:
        parts.append((effect.result.items, effect.result.rows))
    return sum(
        len(rows) + sum(1 if isinstance(item, Star) else len(item.deps) for item in items)
        for items, rows in parts
    )

"""One script: reads its statements in order and keeps what later statements need."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from downriver.capture.sql.catalog import CurrentSchema, KnownColumns, TemporaryTables
from downriver.capture.sql.edges import column_edges, count_edges, dataset_edges
from downriver.capture.sql.limits import Budget, OverLimitError
from downriver.capture.sql.query.walker import QueryWalker
from downriver.capture.sql.result import SqlBlindSpot, StatementLineage
from downriver.capture.sql.script_parser import ScriptParser
from downriver.capture.sql.statements.context import StatementContext, TableWrite
from downriver.capture.sql.statements.dispatch import read_statement
from downriver.capture.sql.text.parse import ScriptStatement, scan_tables
from downriver.capture.sql.text.tokens import tokenize_leniently
from downriver.columns import Column, Relation, Star

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.catalog import Schema
    from downriver.capture.sql.statements.context import StatementEffect
    from downriver.columns import TableName

_logger = logging.getLogger(__name__)

_CREATES_COLUMNS = frozenset({"CREATE TABLE AS", "CREATE VIEW", "SELECT INTO", "CLONE"})
_RESULT: TableName = ("",)  # what a query returns goes to no table
_LONGEST_SQL = 1_000
_CHANGED_ROWS = ("new", "old")
_CHANGED_TABLES = ("inserted", "deleted")
# A tree can be valid for sqlglot and still make no sense, as a MERGE without a source.
_FAULTS = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)


class Script:
    """Reads the statements of one script, in order."""

    def __init__(self, dialect: Dialect, schema: Schema, budget: Budget) -> None:
        self._dialect = dialect
        self._schema = KnownColumns(schema)
        self._temporary = TemporaryTables(dialect)
        self._current = CurrentSchema(dialect)
        self._budget = budget
        self._variables: set[str] = set()
        self._records: dict[str, Relation] = {}  # rows that have a name of their own

    def read(self, sql: str) -> list[StatementLineage]:
        """Return the lineage of each statement."""
        limit = self._budget.limits.characters
        if len(sql) > limit:
            return [self._too_large(sql[:limit])]
        reader = ScriptParser(self._dialect, self._budget)
        self._variables = reader.variables
        return [self._statement(parsed) for parsed in reader.read(sql)]

    def _too_large(self, beginning: str) -> StatementLineage:
        found = StatementLineage(kind="UNKNOWN", line=1, sql=beginning[:_LONGEST_SQL])
        self._scan(beginning, found, "too_large", "only the beginning was read, for its tables")
        return found

    def _statement(self, parsed: ScriptStatement) -> StatementLineage:
        found = StatementLineage(
            kind=parsed.kind, line=parsed.line, sql=parsed.sql, routine=parsed.routine
        )
        found.blind_spots = list(parsed.blind_spots)
        found.inputs = self._texts(parsed.inputs)
        found.outputs = self._texts(parsed.outputs)
        if parsed.trigger:
            self._begin_trigger(parsed.trigger)
        if parsed.tree is not None:
            self._current.follow(parsed.tree)
            effect = self._follow(parsed.tree, parsed, found)
        else:
            effect = parsed.effect
        if effect is not None:
            self._fill(found, effect, parsed.target)
            if parsed.row and effect.result is not None:
                shown = effect.result
                row = Relation(shown.items, shown.rows, reads=effect.inputs)
                self._records[parsed.row] = row
        return found

    def _begin_trigger(self, table: TableName) -> None:
        """Let the words for a changed row, or T-SQL's for all of them, mean rows of its table."""
        walker = QueryWalker(self._dialect, self._schema.columns_of, {}, self._budget)
        row = walker.existing(table, self._schema.columns_of(table))
        row.reads = [table]
        self._records.update(dict.fromkeys(_CHANGED_ROWS, row))
        self._temporary.relations.update({(walker.fold(name),): row for name in _CHANGED_TABLES})

    # From a tree to its effect

    def _follow(
        self, tree: exp.Expression, parsed: ScriptStatement, found: StatementLineage
    ) -> StatementEffect | None:
        """Return what a tree does, or None with a blind spot when that cannot be found out."""
        columns_of = self._schema.columns_of
        walker = QueryWalker(self._dialect, columns_of, self._temporary.relations, self._budget)
        walker.variables = self._variables
        walker.records = self._records
        self._budget.renew()
        try:
            effect = read_statement(
                tree, StatementContext(walker, columns_of, self._temporary.relations)
            )
            if effect is not None and _count(effect) > self._budget.limits.edges:
                raise OverLimitError("the statement has too many edges")  # noqa: TRY301
        except RecursionError:
            self._scan(parsed.sql, found, "too_deep", "the statement is nested too deeply")
            return None
        except OverLimitError as exc:
            self._scan(parsed.sql, found, "too_large", str(exc))
            return None
        except _FAULTS as exc:
            _logger.warning("SQL lineage failed on line %d", parsed.line, exc_info=True)
            self._scan(parsed.sql, found, "failed", f"we failed to read it: {exc!r}")
            return None
        found.blind_spots += [
            SqlBlindSpot("table_function", message, found.line) for message in walker.blind_spots
        ]
        return effect

    def _scan(self, sql: str, found: StatementLineage, kind: str, message: str) -> None:
        """Find at least the tables of a statement that cannot be followed, and say so."""
        tokens, _ = tokenize_leniently(sql, self._dialect)
        tables = scan_tables(tokens, self._dialect)
        found.inputs = self._texts(tables.inputs)
        found.outputs = self._texts(tables.outputs)
        found.blind_spots.append(SqlBlindSpot(kind, message, found.line))

    # From an effect to what users see

    def _fill(
        self, found: StatementLineage, effect: StatementEffect, target: TableName | None
    ) -> None:
        found.kind = effect.kind if target is None else found.kind
        found.lifecycle = effect.lifecycle
        found.inputs = self._texts(effect.inputs)
        found.blind_spots += [
            SqlBlindSpot(kind, message, found.line) for kind, message in effect.blind_spots
        ]
        written = list(effect.written)
        if effect.result is not None:
            written.append(TableWrite(target or _RESULT, effect.result.items, effect.result.rows))
        found.columns = [i.name for w in written for i in w.columns if isinstance(i, Column)]
        kept = self._temporary.keep(effect, written)
        self._remember(effect, kept)
        tables = self._texts([w.table for w in kept if w.table != _RESULT])
        if effect.lifecycle is None:
            found.outputs = tables
        else:
            found.changed = tables
        name = self._current.text
        found.column_edges = sorted({edge for w in kept for edge in column_edges(w, name)})
        found.dataset_edges = sorted({edge for w in kept for edge in dataset_edges(w, name)})

    def _remember(self, effect: StatementEffect, kept: list[TableWrite]) -> None:
        """What this statement defines, later ones may use."""
        for table, columns in (effect.defines or {}).items():
            self._schema.add(table, columns)
        for written in kept:
            if effect.lifecycle == "DROP":
                self._schema.remove(written.table)
            elif effect.lifecycle == "RENAME":
                self._rename(written)
            elif effect.kind in _CREATES_COLUMNS:
                named = [item.name for item in written.columns if isinstance(item, Column)]
                if len(named) == len(written.columns):
                    self._schema.add(written.table, named)

    def _rename(self, written: TableWrite) -> None:
        for item in written.columns:
            columns = self._schema.columns_of(item.table) if isinstance(item, Star) else None
            if isinstance(item, Star) and columns is not None:
                self._schema.remove(item.table)
                self._schema.add(written.table, columns)

    def _texts(self, names: list[TableName] | tuple[TableName, ...]) -> list[str]:
        return list(dict.fromkeys(map(self._current.text, names)))


def _count(effect: StatementEffect) -> int:
    relation = effect.result
    result = [] if relation is None else [TableWrite(_RESULT, relation.items, relation.rows)]
    return sum(count_edges(written) for written in [*effect.written, *result])

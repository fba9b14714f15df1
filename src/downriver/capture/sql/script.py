"""`parse_sql_lineage`: from any SQL text to its lineage. It never raises on what the text says."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sqlglot.dialects.dialect import Dialect

from downriver.capture.sql.edges import column_edges, count_edges, dataset_edges, table_text
from downriver.capture.sql.effects import Written
from downriver.capture.sql.limits import Budget, Limits, OverLimitError
from downriver.capture.sql.parsing import Parsed, Reader
from downriver.capture.sql.relations import Column, Relation, Star
from downriver.capture.sql.result import SqlBlindSpot, SqlLineage, StatementLineage
from downriver.capture.sql.schema import KnownColumns
from downriver.capture.sql.context import Context
from downriver.capture.sql.statements import read_statement
from downriver.capture.sql.tokens import tokenize_somehow
from downriver.capture.sql.tolerant import scan_tables
from downriver.capture.sql.walker import Walker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.sql.deps import TableName
    from downriver.capture.sql.effects import Effect
    from downriver.capture.sql.schema import Schema

_logger = logging.getLogger(__name__)

_CREATES_COLUMNS = frozenset({"CREATE TABLE AS", "CREATE VIEW", "SELECT INTO"})
# A tree can be valid for sqlglot and still make no sense, as `MERGE` without a source.
_FAULTS = (AttributeError, IndexError, KeyError, TypeError, ValueError, AssertionError)


def parse_sql_lineage(
    sql: str,
    *,
    dialect: str | None = None,
    schema: Schema | None = None,
    limits: Limits | None = None,
) -> SqlLineage:
    """Return table and column lineage of a statement or script.

    `schema` maps table names to their columns as far as they are known, or is a function that does.
    """
    name = dialect or ""
    script = _Script(Dialect.get_or_raise(name or None), schema or {}, limits or Limits())
    return _summary(name, dialect is None, script.read(sql))


class _Script:
    """One script being read: what its statements have defined so far."""

    def __init__(self, dialect: Dialect, schema: Schema, limits: Limits) -> None:
        self._dialect = dialect
        self._schema = KnownColumns(schema)
        self._temporary: dict[TableName, Relation] = {}
        self._budget = Budget(limits)

    def read(self, sql: str) -> list[StatementLineage]:
        limit = self._budget.limits.characters
        reader = Reader(self._dialect, self._budget)
        if len(sql) > limit:
            return [self._too_large(sql[:limit])]
        return [self._statement(parsed) for parsed in reader.read(sql)]

    def _too_large(self, beginning: str) -> StatementLineage:
        tokens, _ = tokenize_somehow(beginning, self._dialect)
        found = scan_tables(tokens, self._dialect)
        spot = SqlBlindSpot("too_large", "only the beginning was read, for its tables", 1)
        return StatementLineage(
            kind="UNKNOWN",
            line=1,
            sql=beginning[:1_000],
            inputs=[table_text(name) for name in found.inputs],
            outputs=[table_text(name) for name in found.outputs],
            blind_spots=[spot],
        )

    def _statement(self, parsed: Parsed) -> StatementLineage:
        found = StatementLineage(
            kind=parsed.kind, line=parsed.line, sql=parsed.sql, routine=parsed.routine
        )
        found.blind_spots = list(parsed.blind_spots)
        found.inputs = [table_text(name) for name in parsed.inputs]
        found.outputs = [table_text(name) for name in parsed.outputs]
        effect = parsed.effect if parsed.tree is None else self._follow(parsed, found)
        if effect is not None:
            self._fill(found, effect, parsed.target)
        return found

    def _follow(self, parsed: Parsed, found: StatementLineage) -> Effect | None:
        """Return what a tree does, or None with a blind spot when that cannot be found out."""
        walker = Walker(self._dialect, self._schema.columns_of, self._temporary, self._budget)
        self._budget.renew()
        try:
            effect = read_statement(parsed.tree, Context(walker, self._schema.columns_of))
            if effect is not None and self._count(effect) > self._budget.limits.edges:
                raise OverLimitError("the statement has too many edges")
        except RecursionError:
            self._give_up(parsed, found, "too_deep", "the statement is nested too deeply")
            return None
        except OverLimitError as exc:
            self._give_up(parsed, found, "too_large", str(exc))
            return None
        except _FAULTS as exc:
            _logger.warning("SQL lineage failed on line %d", parsed.line, exc_info=True)
            self._give_up(parsed, found, "failed", f"we failed to read it: {exc!r}")
            return None
        found.blind_spots += [
            SqlBlindSpot("table_function", message, found.line) for message in walker.blind_spots
        ]
        return effect

    def _count(self, effect: Effect) -> int:
        relation = effect.result
        result = [] if relation is None else [Written(("",), relation.items, relation.rows)]
        return sum(count_edges(written) for written in [*effect.written, *result])

    def _give_up(
        self, parsed: Parsed, found: StatementLineage, kind: str, message: str
    ) -> None:
        tokens, _ = tokenize_somehow(parsed.sql, self._dialect)
        tables = scan_tables(tokens, self._dialect)
        found.inputs = [table_text(name) for name in tables.inputs]
        found.outputs = [table_text(name) for name in tables.outputs]
        found.blind_spots.append(SqlBlindSpot(kind, message, parsed.line))

    def _fill(
        self, found: StatementLineage, effect: Effect, target: TableName | None
    ) -> None:
        found.kind = effect.kind
        found.lifecycle = effect.lifecycle
        found.inputs = [table_text(name) for name in effect.inputs]
        found.blind_spots += [
            SqlBlindSpot(kind, message, found.line) for kind, message in effect.hidden
        ]
        written = list(effect.written)
        if effect.result is not None:
            written = [Written(target or ("",), effect.result.items, effect.result.rows)]
        tables = [table_text(w.table) for w in written if w.table != ("",)]
        if effect.lifecycle is None:
            found.outputs = list(dict.fromkeys(tables))
        else:
            found.changed = list(dict.fromkeys(tables))
        for one in written:
            found.column_edges += column_edges(one)
            found.dataset_edges += dataset_edges(one)
            found.columns += [i.name for i in one.columns if isinstance(i, Column)]
        found.column_edges = sorted(set(found.column_edges))
        found.dataset_edges = sorted(set(found.dataset_edges))
        self._remember(effect, found)

    def _remember(self, effect: Effect, found: StatementLineage) -> None:
        """What this statement defines, later ones may use."""
        for table, columns in (effect.defines or {}).items():
            self._schema.add(table, columns)
        if effect.lifecycle == "DROP":
            for written in effect.written:
                self._temporary.pop(written.table, None)
            return
        for written in effect.written:
            if effect.temporary:
                self._temporary[written.table] = Relation(written.columns, written.rows)
                found.outputs = []
                found.column_edges, found.dataset_edges = [], []
            elif effect.kind in _CREATES_COLUMNS:
                if not any(isinstance(item, Star) for item in written.columns):
                    self._schema.add(written.table, [c.name for c in written.columns])


def _summary(dialect: str, guessed: bool, statements: list[StatementLineage]) -> SqlLineage:
    def union(lists: Iterator[list[str]]) -> list[str]:
        return list(dict.fromkeys(name for names in lists for name in names))

    return SqlLineage(
        dialect=dialect,
        dialect_guessed=guessed,
        statements=statements,
        inputs=union(s.inputs for s in statements),
        outputs=union(s.outputs for s in statements),
        column_edges=sorted({e for s in statements for e in s.column_edges}),
        dataset_edges=sorted({e for s in statements for e in s.dataset_edges}),
        blind_spots=[spot for s in statements for spot in s.blind_spots],
    )

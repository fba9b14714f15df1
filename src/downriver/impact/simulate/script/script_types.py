"""The types of the columns and expressions of a script, under given table schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.columns.dependencies import DependencyKind
from downriver.impact.simulate.column_types import (
    UNKNOWN,
    ColumnType,
    check_call,
    check_joined,
    common_type,
    literal_type,
    parse_type,
    result_type,
)
from downriver.impact.simulate.script.resolution import ComputedValue, SqlProblems, UnitedValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.columns.dependencies import Deps
    from downriver.columns.relations import Computation
    from downriver.impact.simulate.script.job_script import TableSchemas
    from downriver.impact.simulate.script.resolution import ColumnValue, ResolutionRecorder


class ScriptTypes:
    """Types of the columns that a script reads and computes. `names` resolves each reference."""

    def __init__(self, names: ResolutionRecorder, tables: TableSchemas, dialect_name: str) -> None:
        self._names = names
        self._tables = tables
        self._dialect_name = dialect_name
        self._types: dict[Computation, ColumnType] = {}
        self.problems = SqlProblems()

    def type_of_column(self, column: ColumnValue) -> ColumnType:
        """Return a column's type as far as it is known."""
        computation = column.computation
        if computation is None:
            return self._base_type(column.deps)
        known = self._types.get(computation)
        if known is None:
            # A recursive query refers to itself: its own type is unknown while it is computed.
            self._types[computation] = UNKNOWN
            known = self._types[computation] = self._find_type(computation)
        return known

    def _find_type(self, computation: Computation) -> ColumnType:
        match computation:
            case UnitedValue():
                return common_type([self.type_of_column(each) for each in computation.branches])
            case ComputedValue():
                return self.type_of(computation.node)
            case _:
                return UNKNOWN

    def _base_type(self, deps: Deps) -> ColumnType:
        types = []
        for table, column, kind, _ in deps:
            if kind != DependencyKind.IDENTITY:
                return UNKNOWN
            text = self._tables.shape(table).types.get(column.casefold(), "")
            types.append(parse_type(text))
        return common_type(types)

    def type_of(self, node: exp.Expression) -> ColumnType:
        """Return the type of an expression."""
        if isinstance(node, exp.Column):
            column = self._names.find(node)
            return UNKNOWN if column is None else self.type_of_column(column)
        literal = literal_type(node)
        if literal is not None:
            return literal
        if isinstance(node, (exp.Alias, exp.Paren, exp.Distinct, exp.Ordered)) and node.this:
            return self.type_of(node.this)
        return result_type(node, self.type_of)

    def check_types(self, nodes: Sequence[exp.Expression]) -> None:
        """Record every operator and function with an argument of an invalid type."""
        for node in nodes:
            complaint = check_call(node, self.type_of, self._dialect_name)
            if complaint:
                self.problems.add("type", node, complaint)
        self.check_joins()

    def check_joins(self) -> None:
        """Record where USING and NATURAL compare columns that cannot be compared."""
        for node, left, right in self._names.joined:
            types = self.type_of_column(left), self.type_of_column(right)
            # Columns of USING were comparable before. NATURAL uses all columns with equal names.
            by_chance = isinstance(node, exp.Join)
            complaint = check_joined(*types, "" if by_chance else self._dialect_name)
            if complaint:
                self.problems.add("type", node, complaint)

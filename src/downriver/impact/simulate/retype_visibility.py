"""Follows type changes through expressions: casts, comparisons and aggregates can hide them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.columns.dependencies import DependencyKind
from downriver.impact.simulate.column_types import compare_types, parse_type
from downriver.impact.simulate.delta import DeltaKind
from downriver.impact.simulate.script.resolution import ComputedValue, UnitedValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from downriver.columns.dependencies import Deps
    from downriver.columns.relations import Computation
    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.column_types import ColumnType
    from downriver.impact.simulate.delta import Delta
    from downriver.impact.simulate.script.bound_script import BoundScript
    from downriver.impact.simulate.script.resolution import ColumnValue


class ValueChange(IntEnum):
    """How values differ after a type change, the least first."""

    SAME = 0
    SAME_TEXT = 1  # equal, and written alike: an integer that became a larger one
    EQUAL = 2  # equal, but written in another way: an integer that became a float
    AS_TEXT = 3  # the text of the old value
    LOSSY = 4  # part of it is lost: a timestamp that became a date
    DIFFERENT = 5  # other values, null where the old ones were
    OTHER = 6


SAME, SAME_TEXT, EQUAL = ValueChange.SAME, ValueChange.SAME_TEXT, ValueChange.EQUAL
AS_TEXT, LOSSY, OTHER = ValueChange.AS_TEXT, ValueChange.LOSSY, ValueChange.OTHER
DIFFERENT = ValueChange.DIFFERENT

_ARITHMETIC = (
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Round, exp.Coalesce, exp.Sum, exp.Avg,
    exp.Min, exp.Max, exp.Greatest, exp.Least, exp.Nullif, exp.First, exp.Last, exp.AnyValue,
    exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.Median,
)  # fmt: skip
_TEXT_OPERATORS = (exp.DPipe, exp.Concat, exp.Upper, exp.Lower, exp.Length, exp.Trim)
_DATE_PARTS = (
    exp.Extract, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.DateTrunc, exp.TimestampTrunc,
)  # fmt: skip
_DAY_OR_LONGER = frozenset({"year", "quarter", "month", "week", "day"})
_ORDERED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
# Expressions that are null exactly where an operand is null.
_KEEPS_NULLS = (
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Round, exp.Coalesce, exp.Sum, exp.Avg,
    exp.Min, exp.Max, exp.Greatest, exp.Least, exp.AnyValue, exp.Median, exp.EQ, exp.NEQ, exp.Not,
    *_ORDERED, *_TEXT_OPERATORS, *_DATE_PARTS,
)  # fmt: skip
_TRANSPARENT = (exp.Alias, exp.Paren, exp.Distinct, exp.Ordered, exp.Filter, exp.IgnoreNulls)


class RetypeVisibility:
    """The effects of type changes on the columns and rows of one process's SQL."""

    def __init__(
        self, reading: BoundScript, catalog: SimulationCatalog, deltas: Mapping[int, Delta]
    ) -> None:
        self._reading = reading
        self._names = reading.found.names
        self._catalog = catalog
        self._deltas = deltas
        self._known: dict[Computation, ValueChange] = {}

    def of_column(self, column: ColumnValue) -> ValueChange:
        """Return how the values of a column differ."""
        computation = column.computation
        if computation is None:
            return _worst(self._of_base_columns(column.deps))
        known = self._known.get(computation)
        if known is None:
            self._known[computation] = OTHER  # guards against recursive queries
            known = self._known[computation] = self._follow(computation)
        return known

    def _follow(self, computation: Computation) -> ValueChange:
        match computation:
            case UnitedValue():
                return _worst(self.of_column(each) for each in computation.branches)
            case ComputedValue():
                return self.of(computation.node)
            case _:
                return OTHER

    def _of_base_columns(self, deps: Deps) -> Iterator[ValueChange]:
        for table, column, kind, _ in deps:
            node = self._reading.tables.node(table)
            delta = self._deltas.get(node) if node is not None else None
            if node is None or delta is None:
                continue
            other = delta.find(column, DeltaKind.CHANGED, DeltaKind.NULLABLE)
            if other is not None:
                is_present = other.keeps_nulls and kind == DependencyKind.IDENTITY
                yield DIFFERENT if is_present else OTHER
            touch = delta.find(column, DeltaKind.RETYPED)
            if touch is None:
                continue
            types = {f.name.casefold(): f.type for f in self._catalog.fields(node) or ()}
            is_copied = kind == DependencyKind.IDENTITY
            yield _base_change(types.get(column.casefold(), ""), touch.to) if is_copied else OTHER

    def of(self, node: exp.Expression) -> ValueChange:
        """Return how the values of an expression differ."""
        if isinstance(node, exp.Column):
            column = self._names.find(node)
            return OTHER if column is None else self.of_column(column)
        if isinstance(node, (exp.Select, exp.Subquery, exp.SetOperation, exp.Exists)):
            return self._of_subquery(node)
        operands = _worst(self.of(child) for child in node.iter_expressions())
        if operands is SAME or isinstance(node, _TRANSPARENT):
            return operands
        if isinstance(node, (exp.Is, exp.Count)):
            return self._of_presence(node, operands)
        if isinstance(node, exp.Cast):
            return _cast(operands, node)
        change = self._of_operation(node, operands)
        is_present = operands <= DIFFERENT and isinstance(node, _KEEPS_NULLS)
        return DIFFERENT if change is OTHER and is_present else change

    def _of_operation(self, node: exp.Expression, operands: ValueChange) -> ValueChange:
        if isinstance(node, (exp.EQ, exp.NEQ, exp.In, exp.Connector, exp.Not)):
            return SAME if operands <= AS_TEXT else OTHER
        if isinstance(node, _ORDERED):
            return SAME if operands <= EQUAL else OTHER
        if isinstance(node, _TEXT_OPERATORS):
            return SAME if operands in (SAME_TEXT, AS_TEXT) else OTHER
        if isinstance(node, _DATE_PARTS):
            return self._of_date_part(node, operands)
        if isinstance(node, exp.Case):
            return self._of_case(node)
        if isinstance(node, (*_ARITHMETIC, exp.Window)):
            return operands if operands <= EQUAL else OTHER
        return OTHER

    def _of_presence(self, node: exp.Expression, operands: ValueChange) -> ValueChange:
        """Return how a count differs.

        A type change makes no value null, but may merge distinct values.
        """
        if node.find(exp.Distinct) is not None:
            return SAME if operands <= AS_TEXT else OTHER
        return SAME if operands <= DIFFERENT else OTHER

    def _of_subquery(self, node: exp.Expression) -> ValueChange:
        """Return how the values of a subquery differ: by its items, or by its rows."""
        if any(self._decides_rows(inner) for inner in node.walk()):
            return OTHER
        if isinstance(node, exp.Exists):
            return SAME
        query = node.unnest() if isinstance(node, exp.Subquery) else node
        if not isinstance(query, exp.Select):
            return OTHER
        return _worst(self._of_item(item) for item in query.expressions)

    def _of_date_part(self, node: exp.Expression, operands: ValueChange) -> ValueChange:
        names = {str(part.name).casefold() for part in node.find_all(exp.Var, exp.Literal)}
        is_day_or_longer = bool(names & _DAY_OR_LONGER) or isinstance(
            node, (exp.Year, exp.Month, exp.Day, exp.Quarter)
        )
        if operands <= EQUAL or (operands is LOSSY and is_day_or_longer):
            return EQUAL if isinstance(node, (exp.DateTrunc, exp.TimestampTrunc)) else SAME
        return OTHER

    def _of_case(self, node: exp.Case) -> ValueChange:
        branches = node.args.get("ifs") or ()
        conditions = [self.of(branch.this) for branch in branches]
        if node.this is not None:
            conditions = [SAME if max(self.of(node.this), *conditions) <= AS_TEXT else OTHER]
        if any(condition > AS_TEXT for condition in conditions):
            return OTHER
        values = [branch.args["true"] for branch in branches]
        default = node.args.get("default")
        return _worst(self.of(value) for value in [*values, *([default] if default else [])])

    # Rows

    def rows_differ(self) -> bool:
        """Return whether type changes can decide which rows there are."""
        return any(
            self._decides_rows(node) for tree in self._reading.script.trees for node in tree.walk()
        )

    def _decides_rows(self, node: exp.Expression) -> bool:
        if isinstance(node, (exp.Where, exp.Having, exp.Qualify)):
            return self.of(node.this) > SAME
        if isinstance(node, exp.Join):
            condition = node.args.get("on")
            return condition is not None and self.of(condition) > SAME
        if isinstance(node, exp.Group):
            return any(self._of_key(key, node) > AS_TEXT for key in node.expressions)
        if isinstance(node, exp.Select) and node.args.get("distinct"):
            return any(self.of(item) > AS_TEXT for item in node.expressions)
        if isinstance(node, exp.SetOperation) and node.args.get("distinct", True):
            items = (i for select in node.find_all(exp.Select) for i in select.expressions)
            return any(self._of_item(item) > AS_TEXT for item in items)
        if isinstance(node, exp.Order) and isinstance(node.parent, exp.Select):
            is_cut = node.parent.args.get("limit") is not None
            return is_cut and any(self.of(key) > EQUAL for key in node.expressions)
        if isinstance(node, (exp.Merge, exp.Update, exp.Delete)):
            return True
        return self._joins_retyped(node)

    def _joins_retyped(self, node: exp.Expression) -> bool:
        return any(
            place is node and max(self.of_column(left), self.of_column(right)) > AS_TEXT
            for place, left, right in self._names.joined
        )

    def _of_key(self, key: exp.Expression, group: exp.Group) -> ValueChange:
        """Return how a grouping key differs. The key may be the number of a select item."""
        select = group.parent
        if isinstance(key, exp.Literal) and key.is_int and isinstance(select, exp.Select):
            place = int(key.name) - 1
            if 0 <= place < len(select.expressions):
                return self._of_item(select.expressions[place])
        return self.of(key)

    def _of_item(self, item: exp.Expression) -> ValueChange:
        return OTHER if item.is_star else self.of(item)


def _worst(changes: Iterable[ValueChange]) -> ValueChange:
    return max(changes, default=SAME)


def _base_change(old: str, new: str) -> ValueChange:
    """Return how a column's own type change affects its values."""
    before, after = parse_type(old), parse_type(new)
    if before.family == "unknown" or after.family == "unknown":
        return OTHER
    match compare_types(old, new):
        case "same":
            return SAME
        case "widening":
            alike = before.family == "text" or (before.name == after.name == "integer")
            return SAME_TEXT if alike else EQUAL
        case "narrowing":
            return LOSSY
        case _:
            if after.family == "text" and before.family != "other":
                return AS_TEXT
            return EQUAL if (before.family, after.family) == ("boolean", "number") else DIFFERENT


def _cast(operand: ValueChange, node: exp.Cast) -> ValueChange:
    value_change = converted(operand, parse_type(node.to.sql()))
    return OTHER if value_change is DIFFERENT and isinstance(node, exp.TryCast) else value_change


def converted(operand: ValueChange, target: ColumnType) -> ValueChange:
    """Return how values differ after a conversion to a type.

    Text keeps the spelling of a value, other types only the value.
    """
    if operand in (SAME, OTHER):
        return operand
    if target.family == "text":
        return SAME if operand in (SAME_TEXT, AS_TEXT) else DIFFERENT
    if operand is LOSSY:
        return SAME if target.family == "date" else DIFFERENT
    return SAME if operand <= AS_TEXT else DIFFERENT

"""Types of expressions, by family: enough to tell what a changed type makes impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.impact.types import UNKNOWN, ColumnType, Family, parse_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    TypeOf = Callable[[exp.Expression], ColumnType]

NUMBER = ColumnType("number", 19, 0, "integer")
FLOAT = parse_type("double")
TEXT = parse_type("text")
BOOLEAN = ColumnType("boolean")
DATE = ColumnType("date")
TIMESTAMP = ColumnType("timestamp")

_NUMERIC_ONLY = (exp.Sum, exp.Avg, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln)
_NUMERIC_ONLY += (exp.Stddev, exp.Variance, exp.StddevPop, exp.StddevSamp, exp.Median)
_ARITHMETIC = (exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_SUMS = (exp.Add, exp.Sub)
_TEXT_FUNCTIONS = (exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.DPipe, exp.Substring)
_TEXT_FUNCTIONS += (exp.Initcap, exp.Left, exp.Right, exp.Replace, exp.ConcatWs)
_TEXT_ONLY = (exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Initcap, exp.Left, exp.Right)
_TEXT_ONLY += (exp.Like, exp.ILike, exp.Replace, exp.RegexpLike, exp.StartsWith)
_TEMPORAL_ONLY = (exp.DateTrunc, exp.TimestampTrunc, exp.Extract, exp.Year, exp.Month, exp.Day)
_TEMPORAL_ONLY += (exp.DateDiff, exp.DateAdd, exp.DateSub, exp.Quarter, exp.Week, exp.DayOfWeek)
_COUNTS = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Length, exp.Extract, exp.DateDiff)
_COUNTS += (exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.DayOfWeek, exp.CountIf)
_SAME_AS_FIRST = (exp.Min, exp.Max, exp.First, exp.Last, exp.Lag, exp.Lead, exp.FirstValue)
_SAME_AS_FIRST += (exp.LastValue, exp.AnyValue, exp.Neg, exp.Abs, exp.Nullif, exp.Filter)
_SAME_AS_FIRST += (exp.Window, exp.IgnoreNulls, exp.ArgMax, exp.ArgMin, exp.Sum, exp.Round)
_SAME_AS_FIRST += (exp.Mod, exp.IntDiv)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_TEMPORAL: frozenset[Family] = frozenset({"date", "timestamp", "time"})


def literal_type(node: exp.Expression) -> ColumnType | None:
    """Return the type of a literal, None of anything else."""
    if isinstance(node, exp.Literal):
        return UNKNOWN if node.is_string else NUMBER
    if isinstance(node, (exp.Boolean, exp.Predicate, exp.Connector, exp.Not)):
        return BOOLEAN
    return UNKNOWN if isinstance(node, exp.Null) else None


def common_type(types: Sequence[ColumnType]) -> ColumnType:
    """Return the type that holds all of these, unknown when they have none in common."""
    known = [kind for kind in types if kind.family != "unknown"]
    if not known or len({kind.family for kind in known}) > 1:
        return UNKNOWN
    if known[0].family not in ("number", "text"):
        return known[0]
    name = known[0].name if len({kind.name for kind in known}) == 1 else "decimal"
    whole, scale = max(k.whole for k in known), max(k.scale for k in known)
    return ColumnType(known[0].family, whole, scale, name)


def result_type(node: exp.Expression, type_of: TypeOf) -> ColumnType:
    """Return the type an operator or function makes of what it is given."""
    if isinstance(node, exp.Cast):
        return parse_type(node.to.sql())
    if isinstance(node, _COUNTS):
        return NUMBER
    if isinstance(node, _TEXT_FUNCTIONS):
        return TEXT
    if isinstance(node, exp.Avg):
        return FLOAT
    if isinstance(node, _SAME_AS_FIRST) and isinstance(node.this, exp.Expression):
        return type_of(node.this)
    if isinstance(node, exp.Coalesce):
        return common_type([type_of(part) for part in (node.this, *node.expressions)])
    if isinstance(node, exp.Case):
        return _case_type(node, type_of)
    if isinstance(node, (*_ARITHMETIC, *_SUMS)):
        return _arithmetic_type(node, type_of)
    if isinstance(node, exp.CurrentDate):
        return DATE
    if isinstance(node, (exp.DateTrunc, exp.TimestampTrunc, exp.CurrentTimestamp)):
        return TIMESTAMP
    return UNKNOWN


def _case_type(node: exp.Case, type_of: TypeOf) -> ColumnType:
    results = [branch.args["true"] for branch in node.args.get("ifs") or ()]
    if node.args.get("default") is not None:
        results.append(node.args["default"])
    return common_type([type_of(result) for result in results])


def _arithmetic_type(node: exp.Binary, type_of: TypeOf) -> ColumnType:
    left, right = type_of(node.left), type_of(node.right)
    if isinstance(node, _SUMS) and (left.family in _TEMPORAL or right.family in _TEMPORAL):
        return left if left.family in _TEMPORAL and right.family not in _TEMPORAL else UNKNOWN
    if isinstance(node, exp.Div):
        return FLOAT
    return common_type([left, right])


def check_call(node: exp.Expression, type_of: TypeOf) -> str:
    """Return what is wrong with the types an operator or function is given, if anything is."""
    if isinstance(node, _NUMERIC_ONLY) and isinstance(node.this, exp.Expression):
        kind = type_of(node.this).family
        if kind in ("text", "boolean", "date", "timestamp", "time"):
            return f"{node.sql_name().lower()} of a {kind}"
    elif isinstance(node, (*_ARITHMETIC, *_SUMS)):
        return _check_arithmetic(node, type_of)
    elif isinstance(node, _TEXT_ONLY) and isinstance(node.this, exp.Expression):
        kind = type_of(node.this).family
        if kind in ("number", "boolean", "date", "timestamp", "time"):
            return f"{type(node).__name__.lower()} of a {kind}"
    elif isinstance(node, _TEMPORAL_ONLY):
        return _check_temporal(node, type_of)
    elif isinstance(node, _COMPARISONS):
        return _check_comparison(node.left, node.right, type_of)
    elif isinstance(node, exp.Between):
        return _check_comparison(node.this, node.args["low"], type_of)
    return ""


def _check_arithmetic(node: exp.Binary, type_of: TypeOf) -> str:
    families = [type_of(side).family for side in (node.left, node.right)]
    if "text" in families or "boolean" in families:
        kind = "text" if "text" in families else "boolean"
        return f"arithmetic with a {kind}"
    if isinstance(node, _ARITHMETIC) and _TEMPORAL.intersection(families):
        return "arithmetic with a date"
    return ""


def _check_temporal(node: exp.Expression, type_of: TypeOf) -> str:
    for part in ("this", "expression"):
        value = node.args.get(part)
        if isinstance(value, exp.Expression) and not isinstance(value, (exp.Var, exp.Literal)):
            kind = type_of(value).family
            if kind in ("text", "number", "boolean"):
                if isinstance(node, (exp.DateAdd, exp.DateSub)) and part == "expression":
                    continue
                return f"a date function of a {kind}"
    return ""


def _check_comparison(left: exp.Expression, right: exp.Expression, type_of: TypeOf) -> str:
    one, other = type_of(left).family, type_of(right).family
    if {one, other} in _NOT_COMPARED and not _is_constant(left) and not _is_constant(right):
        return f"a {one} compared with a {other}"
    return ""


_NOT_COMPARED: tuple[set[Family], ...] = (
    {"number", "text"}, {"date", "text"}, {"timestamp", "text"}, {"number", "date"},
    {"number", "timestamp"}, {"boolean", "text"}, {"boolean", "date"},
)  # fmt: skip


def _is_constant(node: exp.Expression) -> bool:
    return node.find(exp.Column) is None

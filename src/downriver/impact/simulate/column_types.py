"""Column types as databases spell them: comparison of two types, and types of expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Sequence

Family = Literal[
    "number", "text", "boolean", "date", "timestamp", "time", "interval", "other", "unknown"
]
TypeComparison = Literal["same", "widening", "narrowing", "conversion"]

_INTEGERS = {
    "tinyint": 1, "int1": 1, "byteint": 1, "smallint": 2, "int2": 2, "short": 2, "mediumint": 3,
    "int": 4, "integer": 4, "int4": 4, "serial": 4, "bigint": 8, "int8": 8, "int64": 8, "long": 8,
    "bigserial": 8, "hugeint": 16, "int128": 16, "utinyint": 1, "usmallint": 2, "uinteger": 4,
    "ubigint": 8, "int16": 2, "int32": 4,
}  # fmt: skip
_FLOATS = {"real": 4, "float4": 4, "float": 8, "float8": 8, "float64": 8, "float32": 4, "double": 8}
_DECIMALS = frozenset({"decimal", "numeric", "number", "bignumeric", "dec", "money"})
_TEXTS = frozenset(
    {"varchar", "char", "text", "string", "nvarchar", "nchar", "character", "bpchar", "clob"}
)
_FAMILIES: dict[str, Family] = {
    "boolean": "boolean", "bool": "boolean", "bit": "boolean", "date": "date", "time": "time",
    "timestamp": "timestamp", "timestamptz": "timestamp", "datetime": "timestamp",
    "datetime2": "timestamp", "timestamp_ntz": "timestamp", "timestamp_ltz": "timestamp",
    "timestamp_tz": "timestamp", "timestampntz": "timestamp", "timestampltz": "timestamp",
    "smalldatetime": "timestamp", "interval": "interval",
}  # fmt: skip
_SHAPE = re.compile(
    r"\s*([a-z_][a-z0-9_]*)[^(]*(?:\(\s*(\d+|max)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE
)
_UNBOUNDED = 1 << 30
_DIGITS = {1: 3, 2: 5, 3: 7, 4: 10, 8: 19, 16: 39}  # decimal digits an integer of n bytes may have


class ColumnType(NamedTuple):
    """A type: its family and its capacity (digits before and after the point, characters)."""

    family: Family
    whole: int = 0
    scale: int = 0
    name: str = ""


UNKNOWN = ColumnType("unknown")


@lru_cache(maxsize=4096)
def parse_type(text: str) -> ColumnType:
    """Parse a type in any dialect. An unknown type is only equal to itself."""
    match = _SHAPE.match(text)
    if match is None or text.rstrip().endswith("[]"):
        return ColumnType("other", name=text.casefold()) if text.strip() else UNKNOWN
    word = match[1].casefold()
    size, scale = match[2], match[3]
    if word in _INTEGERS:
        return ColumnType("number", _DIGITS[_INTEGERS[word]], 0, "integer")
    if word in _FLOATS:
        return ColumnType("number", _FLOATS[word] * 40, _FLOATS[word] * 2 - 1, "float")
    if word in _DECIMALS:
        return _decimal(size, scale)
    if word in _TEXTS:
        return ColumnType("text", int(size) if size and size.isdigit() else _UNBOUNDED)
    if word in _FAMILIES:
        return ColumnType(_FAMILIES[word])
    return ColumnType("other", name=text.casefold().strip())


def _decimal(size: str | None, scale: str | None) -> ColumnType:
    if size is None or not size.isdigit():
        return ColumnType("number", 38, 38, "decimal")
    after = int(scale or 0)
    return ColumnType("number", int(size) - after, after, "decimal")


def compare_types(old: str, new: str) -> TypeComparison:
    """Return whether a new type holds all values of the old one, fewer, or other values."""
    before, after = parse_type(old), parse_type(new)
    if before == after:
        return "same"
    if before.family == after.family and before.family in ("number", "text"):
        holds_all = after.whole >= before.whole and after.scale >= before.scale
        return "widening" if holds_all else "narrowing"
    if (before.family, after.family) == ("date", "timestamp"):
        return "widening"
    if (before.family, after.family) == ("timestamp", "date"):
        return "narrowing"
    return "conversion"


TypeOf: TypeAlias = Callable[[exp.Expression], ColumnType]

NUMBER = ColumnType("number", 19, 0, "integer")
INTEGER = parse_type("integer")
_INTEGER_LIMIT = 1 << 31
FLOAT = parse_type("double")
TEXT = parse_type("text")
BOOLEAN = ColumnType("boolean")
DATE = ColumnType("date")
TIMESTAMP = ColumnType("timestamp")

_NUMERIC_ONLY = (
    exp.Sum, exp.Avg, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln, exp.Stddev,
    exp.Variance, exp.StddevPop, exp.StddevSamp, exp.Neg, exp.Exp, exp.Pow, exp.Sign,
)  # fmt: skip
_ARITHMETIC = (exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
_SUMS = (exp.Add, exp.Sub)
_TEXT_FUNCTIONS = (
    exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.DPipe, exp.Substring, exp.Initcap, exp.Left,
    exp.Right, exp.Replace, exp.ConcatWs,
)  # fmt: skip
_TEXT_ONLY = (
    exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Initcap, exp.Left, exp.Right, exp.Like,
    exp.ILike, exp.Replace, exp.RegexpLike, exp.StartsWith, exp.Length, exp.Split,
)  # fmt: skip
_TEMPORAL_ONLY = (
    exp.DateTrunc, exp.TimestampTrunc, exp.Extract, exp.Year, exp.Month, exp.Day, exp.DateDiff,
    exp.DateAdd, exp.DateSub, exp.Quarter, exp.Week, exp.DayOfWeek,
)  # fmt: skip
_COUNTS = (
    exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Length, exp.Extract, exp.DateDiff,
    exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Week, exp.DayOfWeek, exp.CountIf,
)  # fmt: skip
_SAME_AS_FIRST = (
    exp.Min, exp.Max, exp.First, exp.Last, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue,
    exp.AnyValue, exp.Neg, exp.Abs, exp.Nullif, exp.Filter, exp.Median, exp.Window,
    exp.IgnoreNulls, exp.ArgMax, exp.ArgMin, exp.Mod, exp.IntDiv,
)  # fmt: skip
_TEMPORAL: frozenset[Family] = frozenset({"date", "timestamp", "time"})


def literal_type(node: exp.Expression) -> ColumnType | None:
    """Return the type of a literal, None for other expressions."""
    if isinstance(node, exp.Literal):
        return UNKNOWN if node.is_string else _number_literal_type(node)
    if isinstance(node, (exp.Boolean, exp.Predicate, exp.Connector, exp.Not)):
        return BOOLEAN
    return UNKNOWN if isinstance(node, exp.Null) else None


def _number_literal_type(node: exp.Literal) -> ColumnType:
    whole, point, fraction = str(node.this).partition(".")
    if not whole.isdigit() or (point and not fraction.isdigit()):
        return NUMBER if not point else FLOAT
    if point:
        return ColumnType("number", len(whole.lstrip("0")), len(fraction), "decimal")
    return INTEGER if int(whole) < _INTEGER_LIMIT else NUMBER


def common_type(types: Sequence[ColumnType]) -> ColumnType:
    """Return the type that holds the values of all these types, or unknown if there is none."""
    known = [kind for kind in types if kind.family != "unknown"]
    if not known or len({kind.family for kind in known}) > 1:
        return UNKNOWN
    if known[0].family not in ("number", "text"):
        return known[0]
    name = known[0].name if len({kind.name for kind in known}) == 1 else "decimal"
    whole, scale = max(k.whole for k in known), max(k.scale for k in known)
    return ColumnType(known[0].family, whole, scale, name)


def result_type(node: exp.Expression, type_of: TypeOf) -> ColumnType:
    """Return the type of the result of an operator or function."""
    if isinstance(node, exp.Cast):
        return parse_type(node.to.sql())
    if isinstance(node, exp.Subquery):
        return _only_column_type(node.this, type_of)
    if isinstance(node, _COUNTS):
        return NUMBER
    if isinstance(node, _TEXT_FUNCTIONS):
        return TEXT
    if isinstance(node, exp.Avg):
        return FLOAT
    if isinstance(node, (exp.Sum, exp.Round)) and isinstance(node.this, exp.Expression):
        return _widest(node, type_of(node.this))
    if isinstance(node, _SAME_AS_FIRST) and isinstance(node.this, exp.Expression):
        return type_of(node.this)
    if isinstance(node, (exp.Coalesce, exp.Case, exp.Greatest, exp.Least)):
        return common_type([type_of(part) for part in _alternatives(node)])
    if isinstance(node, (*_ARITHMETIC, *_SUMS)):
        return _arithmetic_type(node, type_of)
    if isinstance(node, exp.CurrentDate):
        return DATE
    if isinstance(node, (exp.DateTrunc, exp.TimestampTrunc, exp.CurrentTimestamp)):
        return TIMESTAMP
    return UNKNOWN


def _widest(node: exp.Expression, of: ColumnType) -> ColumnType:
    """Return the type without limits on its digits. A rounded value has none after the point."""
    if of.family != "number" or of.name == "float":
        return of
    if isinstance(node, exp.Round):
        return of._replace(scale=0 if node.args.get("decimals") is None else of.scale)
    return ColumnType("number", 38, of.scale, of.name)


def _only_column_type(query: exp.Expression, type_of: TypeOf) -> ColumnType:
    """Return the type of a subquery that is a single value."""
    single = isinstance(query, exp.Select) and len(query.expressions) == 1
    return type_of(query.expressions[0]) if single else UNKNOWN


def _arithmetic_type(node: exp.Binary, type_of: TypeOf) -> ColumnType:
    left, right = type_of(node.left), type_of(node.right)
    if isinstance(node, _SUMS) and (left.family in _TEMPORAL or right.family in _TEMPORAL):
        return left if left.family in _TEMPORAL and right.family not in _TEMPORAL else UNKNOWN
    if isinstance(node, exp.Div):
        return FLOAT
    return common_type([left, right])


# How dialects treat mismatched types: reject them, allow only equality, or convert.
_CONVERTS = frozenset(
    {
        "mysql", "doris", "starrocks", "sqlite", "spark", "spark2", "databricks", "hive",
        "snowflake", "tsql", "fabric", "oracle", "teradata", "singlestore",
    }
)  # fmt: skip
_COMPARES_EQUAL = frozenset({"duckdb"})


def check_call(node: exp.Expression, type_of: TypeOf, dialect: str) -> str:
    """Return the type error in the arguments of an operator or function, if there is one."""
    if dialect in _CONVERTS:
        return ""
    for kinds, check in _CHECKS:
        if isinstance(node, kinds):
            return check(node, type_of)
    if isinstance(node, (exp.EQ, exp.NEQ)):
        pairs = _NOT_EQUAL if dialect in _COMPARES_EQUAL else _NOT_COMPARED
        return check_pair(type_of(node.left), type_of(node.right), pairs)
    return ""


def check_joined(one: ColumnType, other: ColumnType, dialect: str) -> str:
    """Return the type error of two columns that a join merges, if there is one."""
    if dialect in _CONVERTS:
        return ""
    return check_pair(one, other, _NOT_EQUAL if dialect in _COMPARES_EQUAL else _NOT_COMPARED)


def check_pair(one: ColumnType, other: ColumnType, pairs: tuple[set[Family], ...]) -> str:
    """Return the type error if values of two types cannot be compared."""
    if {one.family, other.family} in pairs:
        return f"a {one.family} compared with a {other.family}"
    return ""


def _check_numeric(node: exp.Expression, type_of: TypeOf) -> str:
    kind = type_of(node.this).family if isinstance(node.this, exp.Expression) else "unknown"
    if isinstance(node, (exp.Sum, exp.Avg)) and kind == "boolean":
        return ""
    if isinstance(node, exp.Avg) and kind in _TEMPORAL:
        return ""
    wrong = kind in ("text", "boolean", *_TEMPORAL)
    return f"{type(node).__name__.lower()} of a {kind}" if wrong else ""


def _check_arithmetic(node: exp.Expression, type_of: TypeOf) -> str:
    families = [type_of(side).family for side in (node.left, node.right)]
    if "text" in families or "boolean" in families:
        kind = "text" if "text" in families else "boolean"
        return f"arithmetic with a {kind}"
    if isinstance(node, _ARITHMETIC) and _TEMPORAL.intersection(families):
        return "arithmetic with a date"
    return ""


def _check_text(node: exp.Expression, type_of: TypeOf) -> str:
    kind = type_of(node.this).family if isinstance(node.this, exp.Expression) else "unknown"
    wrong = kind in ("number", "boolean", *_TEMPORAL)
    return f"{type(node).__name__.lower()} of a {kind}" if wrong else ""


def _check_temporal(node: exp.Expression, type_of: TypeOf) -> str:
    for part in ("this", "expression"):
        value = node.args.get(part)
        if not isinstance(value, exp.Expression) or isinstance(value, (exp.Var, exp.Literal)):
            continue
        if isinstance(node, (exp.DateAdd, exp.DateSub)) and part == "expression":
            continue
        kind = type_of(value).family
        if kind in ("text", "number", "boolean"):
            return f"a date function of a {kind}"
    return ""


def _check_boolean(node: exp.Expression, type_of: TypeOf) -> str:
    kind = type_of(node.this).family if isinstance(node.this, exp.Expression) else "unknown"
    wrong = kind in ("text", "number", *_TEMPORAL)
    return f"{type(node).__name__.lower()} of a {kind}" if wrong else ""


def _check_condition(node: exp.Expression, type_of: TypeOf) -> str:
    """Check the type of a condition: a date is never valid; engines differ on numbers and texts."""
    operands = [node.this] if isinstance(node, exp.Not) else [node.left, node.right]
    return _check_date_conditions(operands, type_of)


def _check_date_conditions(conditions: Sequence[exp.Expression], type_of: TypeOf) -> str:
    families = [type_of(condition).family for condition in conditions]
    wrong = next((family for family in families if family in _TEMPORAL), "")
    return f"a {wrong} as a condition" if wrong else ""


def _check_order(node: exp.Expression, type_of: TypeOf) -> str:
    return check_pair(type_of(node.left), type_of(node.right), _NOT_COMPARED)


def _check_between(node: exp.Expression, type_of: TypeOf) -> str:
    for bound in ("low", "high"):
        problem = check_pair(type_of(node.this), type_of(node.args[bound]), _NOT_COMPARED)
        if problem:
            return problem
    return ""


def _check_in(node: exp.Expression, type_of: TypeOf) -> str:
    query = node.args.get("query")
    inner = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        return ""
    return check_pair(type_of(node.this), type_of(inner.expressions[0]), _NOT_COMPARED)


def _check_mixed(node: exp.Expression, type_of: TypeOf) -> str:
    """Check that COALESCE, CASE and similar expressions choose among values of one kind."""
    if isinstance(node, exp.Case) and node.this is None:
        problem = _check_date_conditions(
            [branch.this for branch in node.args.get("ifs") or ()], type_of
        )
        if problem:
            return problem
    families = [type_of(part).family for part in _alternatives(node)]
    known = {family for family in families if family != "unknown"}
    clash = ("text" in known and len(known) > 1) or (
        "number" in known and not _TEMPORAL.isdisjoint(known)
    )
    return f"{type(node).__name__.lower()} of a {' and a '.join(sorted(known))}" if clash else ""


def _alternatives(node: exp.Expression) -> list[exp.Expression]:
    if isinstance(node, exp.Case):
        values = [branch.args["true"] for branch in node.args.get("ifs") or ()]
        default = node.args.get("default")
        return [*values, *([default] if default is not None else [])]
    return [part for part in (node.this, *node.expressions) if isinstance(part, exp.Expression)]


_CHECKS: tuple[tuple[tuple[type, ...], Callable[[exp.Expression, TypeOf], str]], ...] = (
    (_NUMERIC_ONLY, _check_numeric),
    ((*_ARITHMETIC, *_SUMS), _check_arithmetic),
    (_TEXT_ONLY, _check_text),
    (_TEMPORAL_ONLY, _check_temporal),
    ((exp.LogicalAnd, exp.LogicalOr), _check_boolean),
    ((exp.Not, exp.And, exp.Or), _check_condition),
    ((exp.GT, exp.GTE, exp.LT, exp.LTE), _check_order),
    ((exp.Between,), _check_between),
    ((exp.In,), _check_in),
    ((exp.Coalesce, exp.Case, exp.Greatest, exp.Least), _check_mixed),
)

_NOT_EQUAL: tuple[set[Family], ...] = ({"number", "date"}, {"number", "timestamp"})
_NOT_COMPARED: tuple[set[Family], ...] = (
    {"number", "text"}, {"date", "text"}, {"timestamp", "text"}, {"time", "text"},
    {"boolean", "text"}, {"boolean", "date"}, {"boolean", "timestamp"}, *_NOT_EQUAL,
)  # fmt: skip

# All node types that `check_call` can report.
CHECKED = (exp.EQ, exp.NEQ, *(kind for kinds, _ in _CHECKS for kind in kinds))

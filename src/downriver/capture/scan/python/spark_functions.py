"""PySpark's functions and the methods of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.python.columns import flat, mixed, named_column, united
from downriver.capture.scan.python.expression_text import expression_columns
from downriver.capture.scan.python.frames import NOTHING, Frame
from downriver.capture.scan.python.values import Col, Text, Udf, Value

if TYPE_CHECKING:
    from downriver.capture.scan.python.arguments import Args
    from downriver.capture.scan.python.interpreter import Interpreter

AGGREGATES = frozenset({
    "sum", "avg", "mean", "min", "max", "count", "countDistinct", "count_distinct",
    "approx_count_distinct", "approxCountDistinct", "collect_list", "collect_set", "first", "last",
    "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "sum_distinct",
    "sumDistinct", "median", "percentile_approx", "percentile", "mode", "any_value", "corr",
    "covar_pop", "covar_samp", "skewness", "kurtosis", "bool_and", "bool_or", "every", "some",
    "count_if", "max_by", "min_by", "product", "std", "var", "nunique", "array_agg", "size",
})  # fmt: skip
# Functions whose text arguments are all columns, those where only the later ones are, and those
# with none.
_ALL_COLUMNS = frozenset({
    "coalesce", "concat", "greatest", "least", "struct", "array", "hash", "xxhash64", "create_map",
    "countDistinct", "count_distinct", "corr", "covar_pop", "covar_samp", "datediff", "date_diff",
    "months_between", "arrays_zip", "map_from_arrays", "max_by", "min_by", "nvl", "ifnull",
    "nullif", "partitionBy", "orderBy", "atan2", "pow",
})  # fmt: skip
_LATER_COLUMNS = frozenset({"concat_ws", "date_trunc", "format_string", "printf", "make_interval"})
_NO_COLUMNS = frozenset({"lit", "typedLit", "current_date", "current_timestamp", "rand", "now"})


def function(run: Interpreter, name: str, args: Args) -> Value:
    """Return what a function of pyspark.sql.functions makes."""
    first = args.get("col", 0)
    if name in ("col", "column"):
        if isinstance(first, Text) and not first.has_holes:
            return named_column(first, args.line, maybe=first.maybe)
        run.recorder.cannot_see("dynamic_column", "a column known only when it runs", args.line)
        return Col(NOTHING)
    if name in _NO_COLUMNS:
        return Col(NOTHING)
    if name == "expr":
        return united(expression_columns(first)) if isinstance(first, Text) else Col(NOTHING)
    if name in ("udf", "pandas_udf"):
        return Udf()
    if name == "broadcast" and isinstance(first, Frame):
        return first
    if name == "when":
        condition = mixed([first], "CONDITIONAL")
        return united([condition, mixed(flat(args.given[1:]), "TRANSFORMATION")])
    given = named_columns(name, args)
    subtype = "AGGREGATION" if name in AGGREGATES else "TRANSFORMATION"
    if name in ("desc", "asc", "partitionBy", "orderBy", "rowsBetween", "rangeBetween"):
        return united(given)
    made = mixed(given, subtype)
    inner = ", ".join(column.name or "…" for column in given)
    return made._replace(name=f"{name}({inner})", generated=True)


def named_columns(name: str, args: Args) -> list[Col]:
    """Return the columns a function is given: some of them by name."""
    found: list[Col] = []
    for position, value in enumerate(args.all()):
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, Text):
                found += flat([part])
            elif part != "*" and _is_column_name(name, position):
                found.append(named_column(part, part.line, maybe=part.maybe))
    return found


def _is_column_name(function: str, position: int) -> bool:
    """Whether a text given to a function at this position names a column."""
    if function in _ALL_COLUMNS:
        return True
    return (position > 0) if function in _LATER_COLUMNS else position == 0


def column_method(run: Interpreter, base: Col, name: str, args: Args) -> Value:
    """Return what a method of a column makes."""
    first = args.get("", 0)
    if name in ("alias", "name", "as_", "rename") and isinstance(first, Text):
        return base._replace(name=str(first), generated=False)
    if name in ("desc", "asc", "desc_nulls_last", "asc_nulls_last", "desc_nulls_first"):
        return base
    if name == "over":
        return united(
            [mixed([base], "TRANSFORMATION"), mixed(flat(args.given), "WINDOW")], base.name
        )
    if name == "when":
        condition = mixed([first], "CONDITIONAL")
        return united([base, condition, mixed(flat(args.given[1:]), "TRANSFORMATION")], base.name)
    if name in ("partitionBy", "orderBy", "rowsBetween", "rangeBetween"):  # of a window
        return united([base, *named_columns("partitionBy", args)])
    if name in AGGREGATES and base.deps:
        return mixed([base, *args.all()], "AGGREGATION", base.name)
    keeps = base.name if name in ("cast", "astype", "fillna", "otherwise") else ""
    return mixed([base, *args.all()], "TRANSFORMATION", keeps)

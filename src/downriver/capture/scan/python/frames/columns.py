"""Expressions over columns: PySpark functions, column methods and SQL expressions in texts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.frames.frame import Frame, table_of, used
from downriver.capture.scan.python.interpreter.values import UNKNOWN, ColumnExpression, Udf, Value
from downriver.capture.sql import parse_sql_lineage
from downriver.columns import (
    NOTHING,
    Certainty,
    DependencyKind,
    Deps,
    choose,
    merge_all,
    source,
    window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments


FILE_METADATA = "_metadata"  # Spark's column with the path, size and time of a row's file
_FILE_FUNCTIONS = frozenset(
    {"input_file_name", "input_file_block_start", "input_file_block_length"}
)
_PENDING = "\0pending"  # begins the table name of a column whose frame is not known yet


def column_of(run: Interpreter, frame: Frame, name: LocatedText, line: int) -> ColumnExpression:
    """Return a column of a frame, and record a reference to it."""
    run.recorder.reference_column(frame, name, line, optional=name.optional)
    return ColumnExpression(frame.find(name), str(name).rpartition(".")[2])


def named_column(name: str, line: int, *, optional: bool = False) -> ColumnExpression:
    """Return a column by name, to be resolved on the frame it will be used on."""
    return ColumnExpression(_pending(name, line, optional=optional), name.rpartition(".")[2])


def _pending(
    name: str, line: int, kind: int = DependencyKind.IDENTITY, *, optional: bool = False
) -> Deps:
    table = (_PENDING, str(line), "optional" if optional else "")
    return {(table, name, kind, False): Certainty.INFERRED}


def pending_names(column: ColumnExpression) -> list[str]:
    """Return the names of columns that are not resolved yet."""
    return [name for table, name, _, _ in column.deps if table[0] == _PENDING]


def with_optional(column: ColumnExpression, names: frozenset[str]) -> ColumnExpression:
    """Return an expression in which unresolved columns of these names may be missing."""
    deps: Deps = {}
    for (table, name, kind, masked), certainty in column.deps.items():
        if table[0] == _PENDING and name.casefold() in names:
            table = (*table[:2], "optional")
        deps[table, name, kind, masked] = certainty
    return column._replace(deps=deps)


def combined(values: Iterable[Value], kind: DependencyKind, name: str = "") -> ColumnExpression:
    """Return an expression over others, with this kind of use for each."""
    deps = merge_all(used(column.deps, kind) for column in list_columns(values))
    return ColumnExpression(deps, name)


def list_columns(values: Iterable[Value]) -> list[ColumnExpression]:
    """Return the column expressions among values, also those inside lists."""
    columns: list[ColumnExpression] = []
    for value in values:
        if isinstance(value, ColumnExpression):
            columns.append(value)
        elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            columns += list_columns(value)
    return columns


def transformed(run: Interpreter, values: list[Value]) -> Value:
    """Return the value of an operator: a column expression if an operand is one, else unknown."""
    return combined(values, DependencyKind.TRANSFORMATION) if list_columns(values) else UNKNOWN


def merged(values: Iterable[ColumnExpression], name: str = "") -> ColumnExpression:
    """Return several expressions as one, without a change of use."""
    return ColumnExpression(merge_all(value.deps for value in values), name)


def resolved(run: Interpreter, column: ColumnExpression, frame: Frame, clause: Clause) -> Deps:
    """Return the dependencies of an expression on a frame, and record its references."""
    parts: list[Deps] = []
    for key, certainty in column.deps.items():
        table, name, kind, _ = key
        if table[0] != _PENDING:
            parts.append({key: certainty})
            continue
        if name.partition(".")[0] == FILE_METADATA and not frame.relation.known(name):
            parts.append(_file_metadata(frame))
            continue
        _, line, optional = table
        run.recorder.reference_column(
            frame, name, int(line), clause=clause, optional=bool(optional)
        )
        parts.append(used(frame.find(name), kind))
    return merge_all(parts)


def _file_metadata(frame: Frame) -> Deps:
    """Return the dependencies of a value that names the file of a row."""
    tables = [source(table_of(each), FILE_METADATA) for each in frame.datasets()]
    return used(merge_all(tables), DependencyKind.TRANSFORMATION)


def deps_of(run: Interpreter, value: Value, frame: Frame, clause: Clause) -> Deps:
    """Return the dependencies of an argument: a column, its name, or a list of them."""
    if isinstance(value, LocatedText):
        column = named_column(value, value.line, optional=value.optional)
        return resolved(run, column, frame, clause)
    parts = [resolved(run, column, frame, clause) for column in list_columns([value])]
    if isinstance(value, (list, tuple)) and not isinstance(value, ColumnExpression):
        names = [part for part in value if isinstance(part, (LocatedText, list))]
        parts += [deps_of(run, part, frame, clause) for part in names]
    return merge_all(parts)


def condition_deps(run: Interpreter, value: Value, frame: Frame, clause: Clause) -> Deps:
    """Return the dependencies of a condition. A text is a SQL expression, not a name."""
    if isinstance(value, LocatedText):
        return resolved(run, merged(expression_columns(value)), frame, clause)
    return deps_of(run, value, frame, clause)


_FRAME = "frame_of_the_expression"


def expression_columns(text: LocatedText) -> list[ColumnExpression]:
    """Return the columns of a SQL expression on a frame; `a as b` has the name `b`."""
    columns: list[ColumnExpression] = []
    for name, uses in _parsed(str(text)):
        deps = [_pending(field, text.line, DependencyKind[subtype]) for field, subtype in uses]
        columns.append(ColumnExpression(merge_all(deps), name))
    return columns


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    if text.strip() == "*":
        return (("*", (("*", "IDENTITY"),)),)
    # This SQL is parsed and never executed.
    lineage = parse_sql_lineage(f"SELECT {text} FROM {_FRAME}", dialect="spark")  # noqa: S608
    names = lineage.statements[0].columns if lineage.statements else []
    return tuple(
        (
            name,
            tuple(
                (edge.source.column, edge.subtype)
                for edge in lineage.column_edges
                if edge.target.column == name
            ),
        )
        for name in names or list(dict.fromkeys(e.target.column for e in lineage.column_edges))
    )


AGGREGATES = frozenset({
    "sum", "avg", "mean", "min", "max", "count", "countDistinct", "count_distinct",
    "approx_count_distinct", "approxCountDistinct", "collect_list", "collect_set", "first", "last",
    "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "sum_distinct",
    "sumDistinct", "median", "percentile_approx", "percentile", "mode", "any_value", "corr",
    "covar_pop", "covar_samp", "skewness", "kurtosis", "bool_and", "bool_or", "every", "some",
    "count_if", "max_by", "min_by", "product", "std", "var", "nunique", "array_agg", "size",
})  # fmt: skip
# Functions whose text arguments are all names of columns, functions where all but the first are,
# and functions without columns.
_ALL_COLUMNS = frozenset({
    "coalesce", "concat", "greatest", "least", "struct", "array", "hash", "xxhash64", "create_map",
    "countDistinct", "count_distinct", "corr", "covar_pop", "covar_samp", "datediff", "date_diff",
    "months_between", "arrays_zip", "map_from_arrays", "max_by", "min_by", "nvl", "ifnull",
    "nullif", "partitionBy", "orderBy", "atan2", "pow",
})  # fmt: skip
_LATER_COLUMNS = frozenset({"concat_ws", "date_trunc", "format_string", "printf", "make_interval"})
_NO_COLUMNS = frozenset({"lit", "typedLit", "current_date", "current_timestamp", "rand", "now"})


def function(run: Interpreter, name: str, args: Arguments) -> Value:
    """Return the value of a function of pyspark.sql.functions."""
    first = args.get("col", 0)
    if name in ("col", "column"):
        if isinstance(first, LocatedText) and not first.is_dynamic:
            return named_column(first, args.line, optional=first.optional)
        run.recorder.add_blind_spot(
            "dynamic_column", "the name of a column is only known at run time", args.line
        )
        return ColumnExpression(NOTHING)
    if name in _NO_COLUMNS:
        return ColumnExpression(NOTHING)
    if name in _FILE_FUNCTIONS:
        return named_column(FILE_METADATA, args.line)._replace(name=f"{name}()", generated=True)
    if name == "expr":
        return (
            merged(expression_columns(first))
            if isinstance(first, LocatedText)
            else ColumnExpression(NOTHING)
        )
    if name in ("udf", "pandas_udf"):
        return Udf()
    if name == "broadcast" and isinstance(first, Frame):
        return first
    if name == "when":
        return ColumnExpression(_when(first, args.given[1:]))
    given = named_columns(name, args)
    is_aggregate = name in AGGREGATES
    kind = DependencyKind.AGGREGATION if is_aggregate else DependencyKind.TRANSFORMATION
    if name in ("desc", "asc", "partitionBy", "orderBy", "rowsBetween", "rangeBetween"):
        return merged(given)
    result = combined(given, kind)
    inner = ", ".join(column.name or "…" for column in given)
    return result._replace(name=f"{name}({inner})", generated=True)


def _when(condition: Value, values: list[Value]) -> Deps:
    conditions = [used(c.deps, DependencyKind.CONDITIONAL) for c in list_columns([condition])]
    return choose(conditions, [column.deps for column in list_columns(values)])


def named_columns(name: str, args: Arguments) -> list[ColumnExpression]:
    """Return the column arguments of a function, also those given by name."""
    columns: list[ColumnExpression] = []
    for position, value in enumerate(args.all()):
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, LocatedText):
                columns += list_columns([part])
            elif part != "*" and _is_column_name(name, position):
                columns.append(named_column(part, part.line, optional=part.optional))
    return columns


def _is_column_name(function: str, position: int) -> bool:
    """Whether a text given to a function at this position names a column."""
    if function in _ALL_COLUMNS:
        return True
    return (position > 0) if function in _LATER_COLUMNS else position == 0


def column_method(run: Interpreter, base: ColumnExpression, name: str, args: Arguments) -> Value:
    """Return the value of a method of a column."""
    first = args.get("", 0)
    if name in ("alias", "name", "as_", "rename") and isinstance(first, LocatedText):
        return base._replace(name=str(first), generated=False)
    if name in ("desc", "asc", "desc_nulls_last", "asc_nulls_last", "desc_nulls_first"):
        return base
    if name == "over":
        keys = [used(column.deps, DependencyKind.WINDOW) for column in list_columns(args.given)]
        return ColumnExpression(window(base.deps, keys), base.name)
    if name == "when":
        return ColumnExpression(merge_all([base.deps, _when(first, args.given[1:])]), base.name)
    if name in ("partitionBy", "orderBy", "rowsBetween", "rangeBetween"):  # of a window
        return merged([base, *named_columns("partitionBy", args)])
    if name in AGGREGATES and base.deps and not pending_names(base):
        return combined([base, *args.all()], DependencyKind.AGGREGATION, base.name)
    keeps = base.name if name in ("cast", "astype", "fillna", "otherwise") else ""
    return combined([base, *args.all()], DependencyKind.TRANSFORMATION, keeps)

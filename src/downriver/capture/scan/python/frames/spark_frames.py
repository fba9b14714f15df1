"""Column lineage of the methods of PySpark data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python import glue, library_io
from downriver.capture.scan.python.frames import pandas
from downriver.capture.scan.python.frames.columns import (
    condition_deps,
    deps_of,
    expression_columns,
    pending_names,
    resolved,
)
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.frames.groups import aggregated
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    ColumnExpression,
    ColumnNames,
    Function,
    GroupedFrame,
    SparkWriter,
    Value,
    clause_args,
)
from downriver.capture.scan.python.io_calls import line_of_call
from downriver.columns import DependencyKind, Deps, Star, merge_all

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_PASSING = frozenset({
    "cache", "persist", "unpersist", "repartition", "coalesce", "hint", "checkpoint",
    "localCheckpoint", "sample", "limit", "distinct", "fillna", "fill", "replace",
    "repartitionByRange",
    "withWatermark", "exceptAll", "subtract", "intersect", "toDF", "offset", "observe", "copy",
    "lazy", "collect", "to_pandas", "to_polars", "to_arrow", "pl", "df", "fetchdf", "to_dataframe",
    "reset_index", "head", "tail", "sortWithinPartitions", "to_pandas_on_spark", "pandas_api",
})  # fmt: skip


_WITHOUT_ROWS = frozenset({
    "count", "show", "printSchema", "explain", "isEmpty", "is_empty", "info", "nunique", "any",
    "all", "equals", "memory_usage", "to_dict", "to_numpy", "to_list", "to_string", "to_html",
    "to_markdown", "iterrows", "itertuples", "close", "commit", "items", "keys", "get", "plot",
    "hist", "display", "schema", "awaitTermination", "stop", "foreach", "to_records",
})  # fmt: skip


def frame_method(run: Interpreter, frame: Frame, name: str, node: ast.Call) -> Value:
    """Return the value of a method of a frame."""
    own, other = (
        (pandas.METHODS, METHODS) if frame.library == "pandas" else (METHODS, pandas.METHODS)
    )
    handle = own.get(name) or other.get(name)
    if handle is not None:
        return handle(run, frame, node)
    args = clause_args(run, node, "select")
    if name in _PASSING:
        return frame
    for value in (
        library_io.method(run, frame, name, args),
        glue.frame_method(run, frame, name, args),
    ):
        if value is not None:
            return value
    for argument in args.all():
        if isinstance(argument, Function):
            run.recorder.add_blind_spot(
                "opaque",
                f"lineage of {name} is unknown: it runs a function",
                line_of_call(node),
            )
            return msgspec.structs.replace(UNKNOWN_FRAME, library=frame.library)
    return UNKNOWN if name in _WITHOUT_ROWS else msgspec.structs.replace(frame, is_known=False)


def selected(run: Interpreter, frame: Frame, values: list[Value], line: int) -> Frame:
    """Return a frame of the selected columns."""
    columns: dict[str, Deps] = {}
    stars: list[Star] = []
    for value in _flatten(values):
        if isinstance(value, ColumnNames) or value == "*" or _is_star(value):
            _reference_all(run, frame, value, line)
            columns.update({column.name: column.deps for column in frame.relation.columns})
            stars += frame.relation.stars
        elif isinstance(value, LocatedText):
            columns[value.rpartition(".")[2]] = deps_of(run, value, frame, "select")
        elif isinstance(value, ColumnExpression):
            columns[value.name or "?"] = resolved(run, value, frame, "select")
    return frame.select(columns, stars).known_if(*_flatten(values))


def _flatten(values: list[Value]) -> Iterator[Value]:
    for value in values:
        if isinstance(value, list):
            yield from _flatten(value)
        else:
            yield value


def _is_star(value: Value) -> bool:
    if not isinstance(value, ColumnExpression):
        return False
    return any(name.endswith("*") for name in pending_names(value))


def _reference_all(run: Interpreter, frame: Frame, value: Value, line: int) -> None:
    at = value.line if isinstance(value, LocatedText) else line
    for dataset in frame.datasets():
        run.recorder.add_reference(dataset, "*", at, "select")


def _select(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    return selected(run, frame, args.given, line_of_call(node))


def _select_expr(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    columns: list[Value] = []
    for value in args.given:
        for text in value if isinstance(value, list) else [value]:
            columns += expression_columns(text) if isinstance(text, LocatedText) else []
    return selected(run, frame, columns, line_of_call(node))


def _with_column(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    name, value = args.get("colName", 0), args.get("col", 1)
    if not isinstance(name, LocatedText) or name.is_dynamic:
        run.recorder.add_blind_spot(
            "dynamic_column", "the name of a column is only known at run time", line_of_call(node)
        )
        return frame
    return frame.with_column(str(name), deps_of(run, value, frame, "select")).known_if(value)


def _with_columns(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    result = frame
    for name, value in _mapping(clause_args(run, node, "select")).items():
        result = result.with_column(name, deps_of(run, value, frame, "select")).known_if(value)
    return result


def _with_expressions(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    """Follow `with_columns` of polars, whose columns have the names of the expressions."""
    args = clause_args(run, node, "select")
    result = frame
    for value in _flatten(args.given):
        if isinstance(value, ColumnExpression):
            deps = resolved(run, value, frame, "select")
            result = result.with_column(value.name or "?", deps)
    for name, value in args.named.items():
        result = result.with_column(name, deps_of(run, value, frame, "select"))
    return result.known_if(*_flatten(args.all()))


def _mapping(args: Arguments) -> dict[str, Value]:
    first = args.get("", 0)
    entries = next((v for v in [first, *args.named.values()] if isinstance(v, dict)), {})
    return {key: value for key, value in entries.items() if isinstance(key, str)}


def _renamed(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    names = _mapping(args)
    if not names and len(args.all()) >= 2:
        old, new = args.get("existing", 0), args.get("new", 1)
        names = {old: new} if isinstance(old, LocatedText) and isinstance(new, LocatedText) else {}
    for old in names:  # Spark ignores a missing column, but then the new name is missing too
        line = old.line if isinstance(old, LocatedText) else line_of_call(node)
        run.recorder.reference_column(frame, old, line, clause="select")
    return frame.renamed({old: str(new) for old, new in names.items() if isinstance(new, str)})


def _drop(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "other")
    names = [value for value in args.given if isinstance(value, LocatedText)]
    for name in names:  # Spark ignores a missing column
        run.recorder.reference_column(frame, name, name.line, clause="other", optional=True)
    result = frame.without(names)
    for column in args.given:
        if isinstance(column, ColumnExpression):
            with run.recorder.guarded(None):
                dropped = resolved(run, column, frame, "other")
            result = result.without_part(column.name, dropped)
    return result


def _alias(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    name = clause_args(run, node, "other").get("alias", 0)
    return frame.aliased(name) if isinstance(name, LocatedText) else frame


def _filter(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "filter")
    deps = condition_deps(run, args.get("condition", 0), frame, "filter")
    return frame.influenced(deps, DependencyKind.FILTER).known_if(args.get("condition", 0))


def _join(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "join")
    other, on = args.get("other", 0), args.get("on", 1)
    if not isinstance(other, Frame):
        return beside_unknown(frame)
    deps = merge_all(
        deps_of(run, key, side, "join")
        for key in (on if isinstance(on, list) else [on])
        for side in (frame, other)
        if isinstance(key, (LocatedText, ColumnExpression))
    )
    how = args.get("how", 2)
    if isinstance(how, str) and how.replace("_", "") in ("leftsemi", "leftanti", "semi", "anti"):
        return frame.influenced(merge_all([deps, other.relation.rows]), DependencyKind.JOIN)
    return frame.merged(other).influenced(deps, DependencyKind.JOIN)


def beside_unknown(frame: Frame) -> Frame:
    """Return a frame joined with an unknown one: its own columns stay known."""
    return frame.merged(UNKNOWN_FRAME)


def _cross_join(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    other = clause_args(run, node, "join").get("other", 0)
    return frame.merged(other) if isinstance(other, Frame) else beside_unknown(frame)


def _union(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    other = clause_args(run, node, "select").get("other", 0)
    return frame.merged(other) if isinstance(other, Frame) else beside_unknown(frame)


def _group_by(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "group")
    keys: dict[str, Deps] = {}
    for value in [v for g in args.given for v in (g if isinstance(g, list) else [g])]:
        if isinstance(value, LocatedText):
            keys[value.rpartition(".")[2]] = deps_of(run, value, frame, "group")
        elif isinstance(value, ColumnExpression):
            keys[value.name or "?"] = resolved(run, value, frame, "group")
    return GroupedFrame(frame, keys)


def _agg(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    return aggregated(run, GroupedFrame(frame, {}), clause_args(run, node, "select"))


def _order_by(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "order")
    return frame.influenced(deps_of(run, args.given, frame, "order"), DependencyKind.SORT)


def _drop_duplicates(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "group")
    return frame.influenced(deps_of(run, args.given, frame, "group"), DependencyKind.GROUP_BY)


def _dropna(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "filter")
    return frame.influenced(
        deps_of(run, args.get("subset", 2), frame, "filter"), DependencyKind.FILTER
    )


def _temp_view(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    name = clause_args(run, node, "other").get("name", 0)
    if isinstance(name, LocatedText):
        run.views[name.casefold()] = frame
    return None


def _to_pandas(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    return pandas.as_pandas(frame)


def _transform(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    given = args.get("func", 0)
    if isinstance(given, Function):
        return run.call(given, [frame, *args.given[1:]], args.named)
    run.recorder.add_blind_spot(
        "opaque", "the function is not in the repository", line_of_call(node)
    )
    return UNKNOWN_FRAME


def _opaque(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    clause_args(run, node, "select")
    run.recorder.add_blind_spot(
        "opaque",
        "a function gets whole rows; the columns it uses are unknown",
        line_of_call(node),
    )
    return UNKNOWN_FRAME


def _write_to(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    name = clause_args(run, node, "write").get("table", 0)
    return (
        SparkWriter(frame, table=str(name)) if isinstance(name, LocatedText) else SparkWriter(frame)
    )


def _col_regex(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    clause_args(run, node, "select")
    return ColumnNames(frame)


METHODS: dict[str, Callable[[Interpreter, Frame, ast.Call], Value]] = {
    "select": _select,
    "selectExpr": _select_expr,
    "withColumn": _with_column,
    "withColumns": _with_columns,
    "with_columns": _with_expressions,
    "withColumnRenamed": _renamed,
    "withColumnsRenamed": _renamed,
    "drop": _drop,
    "alias": _alias,
    "filter": _filter,
    "where": _filter,
    "join": _join,
    "crossJoin": _cross_join,
    "union": _union,
    "unionAll": _union,
    "unionByName": _union,
    "groupBy": _group_by,
    "groupby": _group_by,
    "group_by": _group_by,
    "rollup": _group_by,
    "cube": _group_by,
    "agg": _agg,
    "orderBy": _order_by,
    "sort": _order_by,
    "dropDuplicates": _drop_duplicates,
    "drop_duplicates": _drop_duplicates,
    "dropna": _dropna,
    "createOrReplaceTempView": _temp_view,
    "createTempView": _temp_view,
    "createOrReplaceGlobalTempView": _temp_view,
    "registerTempTable": _temp_view,
    "toPandas": _to_pandas,
    "transform": _transform,
    "pipe": _transform,
    "mapInPandas": _opaque,
    "mapInArrow": _opaque,
    "foreach": _opaque,
    "foreachPartition": _opaque,
    "writeTo": _write_to,
    "colRegex": _col_regex,
}

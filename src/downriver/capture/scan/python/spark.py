"""PySpark: what its frames, columns and functions do to lineage."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from downriver.capture.scan.python import pandas, storage
from downriver.capture.scan.python.columns import (
    flat,
    mixed,
    named_column,
    resolved,
    united,
)
from downriver.capture.scan.python.expression_text import expression_columns
from downriver.capture.scan.python.frames import (
    NOTHING,
    UNKNOWN_FRAME,
    Dep,
    Deps,
    Frame,
)
from downriver.capture.scan.python.sql_text import run_sql
from downriver.capture.scan.python.values import (
    UNKNOWN,
    Col,
    ColumnNames,
    Function,
    Grouped,
    Merge,
    Reader,
    Session,
    Text,
    Value,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.calls import Args
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
_QUALIFIER = re.compile(r"\b[^\W\d]\w*\.(?=[^\W\d])")
_PASSING = frozenset({
    "cache", "persist", "unpersist", "repartition", "coalesce", "alias", "hint", "checkpoint",
    "localCheckpoint", "sample", "limit", "distinct", "fillna", "fill", "replace",
    "repartitionByRange",
    "withWatermark", "exceptAll", "subtract", "intersect", "toDF", "offset", "observe", "copy",
    "reset_index", "head", "tail", "sortWithinPartitions", "to_pandas_on_spark", "pandas_api",
})  # fmt: skip


def deps_of(run: Interpreter, value: Value, frame: Frame, clause: Clause) -> Deps:
    """Return what an argument depends on: a column, its name, or several."""
    if isinstance(value, Text):
        column = named_column(value, value.line, maybe=value.maybe)
        return resolved(run, column, frame, clause)
    found: Deps = NOTHING
    for column in flat([value]):
        found |= resolved(run, column, frame, clause)
    if isinstance(value, (list, tuple)) and not isinstance(value, Col):
        for part in value:
            if isinstance(part, (Text, list)):
                found |= deps_of(run, part, frame, clause)
    return found


def _condition(run: Interpreter, value: Value, frame: Frame, clause: Clause) -> Deps:
    """Return what a condition looks at; a text is an expression, not a name."""
    if isinstance(value, Text):
        return resolved(run, united(expression_columns(value)), frame, clause)
    return deps_of(run, value, frame, clause)


# Columns and functions


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
        return _made_udf
    if name == "broadcast" and isinstance(first, Frame):
        return first
    if name == "when":
        condition = mixed([first], "CONDITIONAL")
        return united([condition, mixed(_columns(args.given[1:]), "TRANSFORMATION")])
    given = _named_columns(name, args)
    subtype = "AGGREGATION" if name in AGGREGATES else "TRANSFORMATION"
    if name in ("desc", "asc", "partitionBy", "orderBy", "rowsBetween", "rangeBetween"):
        return united(given)
    made = mixed(given, subtype)
    inner = ", ".join(column.name or "…" for column in given)
    return made._replace(name=f"{name}({inner})", generated=True)


def _made_udf(*_: Value) -> Value:
    return UNKNOWN


def _columns(values: list[Value]) -> list[Col]:
    return flat(values)


def _named_columns(name: str, args: Args) -> list[Col]:
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
        return united([base, *_named_columns("partitionBy", args)])
    if name in AGGREGATES and base.deps:
        return mixed([base, *args.all()], "AGGREGATION", base.name)
    keeps = base.name if name in ("cast", "astype", "fillna", "otherwise") else ""
    return mixed([base, *args.all()], "TRANSFORMATION", keeps)


# Frames


def frame_method(run: Interpreter, frame: Frame, name: str, node: ast.Call) -> Value:
    """Return what a method of a frame returns."""
    own, other = (
        (pandas.METHODS, METHODS) if frame.library == "pandas" else (METHODS, pandas.METHODS)
    )
    handle = own.get(name) or other.get(name)
    if handle is not None:
        return handle(run, frame, node)
    args = _args(run, node, "select")
    if name in _PASSING:
        return frame
    for argument in args.all():
        if isinstance(argument, Function):
            run.recorder.cannot_see(
                "opaque", f"what the function given to {name} does is not followed", _line(node)
            )
    return UNKNOWN


def _args(run: Interpreter, node: ast.Call, clause: Clause) -> Args:
    from downriver.capture.scan.python.calls import read_args

    with run.recorder.clause(clause):
        return read_args(run, node)


def _line(node: ast.Call) -> int:
    return node.func.end_lineno or node.lineno


def selected(run: Interpreter, frame: Frame, values: list[Value], line: int) -> Frame:
    """Return a frame of the columns that are picked."""
    result = frame.only({})
    for value in values:
        if isinstance(value, list):
            result = _beside(result, selected(run, frame, value, line))
        elif isinstance(value, ColumnNames) or value == "*" or _is_star(value):
            _note_star(run, frame, value, line)
            result = _beside(result, frame)
        elif isinstance(value, Text):
            deps = deps_of(run, value, frame, "select")
            result = _beside(result, frame.only({value.rpartition(".")[2]: deps}))
        elif isinstance(value, Col):
            deps = resolved(run, value, frame, "select")
            result = _beside(result, frame.only({value.name or "?": deps}))
    return result


def _beside(one: Frame, other: Frame) -> Frame:
    return one.only({**one.columns, **other.columns}, (*one.stars, *other.stars))


def _is_star(value: Value) -> bool:
    return isinstance(value, Col) and any(use.name.endswith("*") for use in value.uses)


def _note_star(run: Interpreter, frame: Frame, value: Value, line: int) -> None:
    at = value.line if isinstance(value, Text) else line
    for dataset in frame.datasets():
        run.recorder.refers(Dep(dataset, "*", "IDENTITY"), at, "select")


def _select(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "select")
    return selected(run, frame, args.given, _line(node))


def _select_expr(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "select")
    columns: list[Value] = []
    for value in args.given:
        for text in value if isinstance(value, list) else [value]:
            columns += expression_columns(text) if isinstance(text, Text) else []
    return selected(run, frame, columns, _line(node))


def _with_column(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "select")
    name, value = args.get("colName", 0), args.get("col", 1)
    if not isinstance(name, Text) or name.has_holes:
        run.recorder.cannot_see("dynamic_column", "a column known only when it runs", _line(node))
        return frame
    return frame.with_column(str(name), deps_of(run, value, frame, "select"))


def _with_columns(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    made = frame
    for name, value in _mapping(_args(run, node, "select")).items():
        made = made.with_column(name, deps_of(run, value, frame, "select"))
    return made


def _mapping(args: Args) -> dict[str, Value]:
    first = args.get("", 0)
    found = next((v for v in [first, *args.named.values()] if isinstance(v, dict)), {})
    return {key: value for key, value in found.items() if isinstance(key, str)}


def _renamed(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "select")
    names = _mapping(args)
    if not names and len(args.all()) >= 2:
        old, new = args.get("existing", 0), args.get("new", 1)
        names = {old: new} if isinstance(old, Text) and isinstance(new, Text) else {}
    for old in names:  # Spark ignores what is not there, but then the new name is not there
        line = old.line if isinstance(old, Text) else _line(node)
        run.recorder.names_column(frame, old, line, clause="select")
    return frame.renamed({old: str(new) for old, new in names.items() if isinstance(new, str)})


def _drop(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "other")
    names = [value for value in args.given if isinstance(value, Text)]
    names += [Text(c.name, _line(node)) for c in args.given if isinstance(c, Col) and c.name]
    for name in names:  # Spark drops what is not there without a word
        run.recorder.names_column(frame, name, name.line, clause="other", maybe=True)
    return frame.without(names)


def _filter(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "filter")
    deps = _condition(run, args.get("condition", 0), frame, "filter")
    return frame.steered(deps, "FILTER")


def _join(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "join")
    other, on = args.get("other", 0), args.get("on", 1)
    if not isinstance(other, Frame):
        return beside_unknown(frame)
    keys = on if isinstance(on, list) else [on]
    deps: Deps = NOTHING
    for key in keys:
        if isinstance(key, (Text, Col)):
            deps |= deps_of(run, key, frame, "join") | deps_of(run, key, other, "join")
    how = args.get("how", 2)
    if isinstance(how, str) and how.replace("_", "") in ("leftsemi", "leftanti", "semi", "anti"):
        return frame.steered(deps | other.rows, "JOIN")
    return frame.beside(other).steered(deps, "JOIN")


def beside_unknown(frame: Frame) -> Frame:
    """Return a frame joined with something unknown: its own columns stay known."""
    return frame.either(UNKNOWN_FRAME)


def _cross_join(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    other = _args(run, node, "join").get("other", 0)
    return frame.beside(other) if isinstance(other, Frame) else beside_unknown(frame)


def _union(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    other = _args(run, node, "select").get("other", 0)
    return frame.either(other) if isinstance(other, Frame) else beside_unknown(frame)


def _group_by(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "group")
    keys: dict[str, Deps] = {}
    for value in [v for g in args.given for v in (g if isinstance(g, list) else [g])]:
        if isinstance(value, Text):
            keys[value.rpartition(".")[2]] = deps_of(run, value, frame, "group")
        elif isinstance(value, Col):
            keys[value.name or "?"] = resolved(run, value, frame, "group")
    return Grouped(frame, keys)


def _agg(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    return aggregated(run, Grouped(frame, {}), _args(run, node, "select"))


def _order_by(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "order")
    return frame.steered(deps_of(run, args.given, frame, "order"), "SORT")


def _drop_duplicates(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "group")
    return frame.steered(deps_of(run, args.given, frame, "group"), "GROUP_BY")


def _dropna(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "filter")
    return frame.steered(deps_of(run, args.get("subset", 2), frame, "filter"), "FILTER")


def _temp_view(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    name = _args(run, node, "other").get("name", 0)
    if isinstance(name, Text):
        run.views[name.casefold()] = frame
    return None


def _to_pandas(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    return pandas.as_pandas(frame)


def _transform(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = _args(run, node, "select")
    given = args.get("func", 0)
    if isinstance(given, Function):
        return run.call(given, [frame, *args.given[1:]], args.named)
    run.recorder.cannot_see("opaque", "a function that is not in this file", _line(node))
    return UNKNOWN_FRAME


def _opaque(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    _args(run, node, "select")
    run.recorder.cannot_see(
        "opaque", "which columns a function over whole rows uses is not followed", _line(node)
    )
    return UNKNOWN_FRAME


def _write_to(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    name = _args(run, node, "write").get("table", 0)
    return Writer(frame, table=str(name)) if isinstance(name, Text) else Writer(frame)


def _col_regex(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    _args(run, node, "select")
    return ColumnNames(frame)


METHODS: dict[str, Callable[[Interpreter, Frame, ast.Call], Value]] = {
    "select": _select,
    "selectExpr": _select_expr,
    "withColumn": _with_column,
    "withColumns": _with_columns,
    "withColumnRenamed": _renamed,
    "withColumnsRenamed": _renamed,
    "drop": _drop,
    "filter": _filter,
    "where": _filter,
    "join": _join,
    "crossJoin": _cross_join,
    "union": _union,
    "unionAll": _union,
    "unionByName": _union,
    "groupBy": _group_by,
    "groupby": _group_by,
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


# Groups


def aggregated(run: Interpreter, grouped: Grouped, args: Args) -> Frame:
    """Return the frame that aggregating makes: the keys and the aggregates."""
    frame = grouped.frame
    columns: dict[str, Deps] = dict(grouped.keys)
    for name, value in _aggregates(args, frame.library):
        deps = deps_of(run, value, frame, "select")
        columns[name] = columns.get(name, NOTHING) | frozenset(
            dep._replace(subtype="AGGREGATION") if dep.subtype == "IDENTITY" else dep
            for dep in deps
        )
    keys = [dep for deps in grouped.keys.values() for dep in deps]
    return frame.only(columns).steered(keys, "GROUP_BY")


def _aggregates(args: Args, library: str) -> list[tuple[str, Value]]:
    found: list[tuple[str, Value]] = []
    for value in args.given:
        for column, how in value.items() if isinstance(value, dict) else ():
            if isinstance(column, Text):  # pandas keeps the name of the column
                named = library == "spark" and isinstance(how, str)
                found.append((f"{how}({column})" if named else str(column), column))
        found += [(column.name or "?", column) for column in flat([value])]
    for name, value in args.named.items():  # pandas: total=("amount", "sum")
        if isinstance(value, tuple) and value and isinstance(value[0], Text):
            found.append((name, value[0]))
        elif isinstance(value, Col):
            found.append((name, value))
    return found


def grouped_method(run: Interpreter, grouped: Grouped, name: str, node: ast.Call) -> Value:
    """Return what a method of grouped rows returns."""
    args = _args(run, node, "select")
    frame = grouped.frame
    if frame.library == "pandas":
        return pandas.aggregate(run, grouped, name, args)
    if name == "agg":
        return aggregated(run, grouped, args)
    if name == "pivot":
        keys = deps_of(run, args.get("pivot_col", 0), frame, "group")
        run.recorder.cannot_see(
            "pivot", "a pivot's columns are known only when it runs", _line(node)
        )
        return Grouped(frame.steered(keys, "GROUP_BY"), grouped.keys)
    if name == "count":
        return frame.only({**grouped.keys, "count": NOTHING})
    if name in ("sum", "avg", "mean", "min", "max"):
        named = [v for v in args.given if isinstance(v, Text)]
        columns = {f"{name}({column})": column for column in named}
        made = aggregated(run, grouped, args._replace(given=[], named={}))
        for label, column in columns.items():
            deps = deps_of(run, column, frame, "select")
            made = made.with_column(label, mixed([Col(deps)], "AGGREGATION").deps)
        return made
    return _opaque(run, frame, node) if name.startswith("apply") else UNKNOWN_FRAME


# Reading and writing


def reader_method(run: Interpreter, reader: Reader, name: str, node: ast.Call) -> Value:
    """Return what a method of `spark.read` returns."""
    return storage.read(run, reader, name, _args(run, node, "read"))


def writer_method(run: Interpreter, writer: Writer, name: str, node: ast.Call) -> Value:
    """Return what a method of `df.write` returns; writing is noted."""
    return storage.write(run, writer, name, _args(run, node, "write"))


def session_method(run: Interpreter, session: Session, name: str, node: ast.Call) -> Value:
    """Return what a method of a SparkSession returns."""
    args = _args(run, node, "read")
    first = args.get("", 0) if args.given else next(iter(args.named.values()), None)
    if name == "sql":
        if isinstance(first, Text):
            return run_sql(run, first, dialect="spark")
        run.recorder.cannot_see("dynamic_sql", "a query known only when it runs", _line(node))
        return UNKNOWN_FRAME
    if name == "table":
        return storage.read_table(run, first, _line(node), "spark")
    if name == "createDataFrame":
        return first if isinstance(first, Frame) else Frame()
    return Frame() if name in ("range", "emptyDataFrame") else session


def delta_table(run: Interpreter, how: str, args: Args) -> Value:
    """Return a Delta table, by name or by path."""
    texts = [value for value in args.given if isinstance(value, Text)]
    if not texts:
        return UNKNOWN
    return Merge(storage.dataset_of(run, texts[-1], is_path=how == "forPath"))


def merge_method(run: Interpreter, merge: Merge, name: str, node: ast.Call) -> Value:
    """Follow a merge into a Delta table."""
    args = _args(run, node, "join")
    source = args.get("source", 0)
    if name == "toDF":
        return storage.read_dataset(run, merge.table, "spark")
    if name == "merge" and isinstance(source, Frame):
        condition = args.get("condition", 1)
        if isinstance(condition, Text):
            bare = Text(_QUALIFIER.sub("", condition), condition.line)
            deps = _condition(run, bare, source, "join")
            source = source.steered(deps, "JOIN")
        return merge._replace(frame=source)
    if name == "execute" and merge.frame is not None:
        run.recorder.writes(merge.table, merge.frame)
    if name in ("update", "delete"):
        run.recorder.writes(merge.table, None)
    return merge

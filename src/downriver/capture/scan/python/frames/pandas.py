"""Column lineage of pandas: functions that read, and methods of data frames."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import msgspec

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python import storage
from downriver.capture.scan.python.frames.columns import (
    combined,
    expression_columns,
    list_columns,
    merged,
    resolved,
)
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    ColumnExpression,
    Function,
    GroupedFrame,
    Value,
    clause_args,
)
from downriver.capture.scan.python.io_calls import line_of_call
from downriver.capture.scan.python.sql_text import looks_like_sql, run_sql
from downriver.columns import NOTHING, DependencyKind, Deps, direct, merge_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_READS_FILES = frozenset({
    "read_parquet", "read_csv", "read_json", "read_excel", "read_feather", "read_orc",
    "read_table", "read_pickle", "read_xml", "read_hdf", "read_stata", "read_fwf",
})  # fmt: skip


def as_pandas(frame: Frame) -> Frame:
    """Return a frame as a pandas data frame."""
    return msgspec.structs.replace(frame, library="pandas")


def function(run: Interpreter, name: str, args: Arguments) -> Value:
    """Return the value of a function of pandas."""
    first = args.get("", 0) if args.given else next(iter(args.named.values()), None)
    if name in ("read_sql", "read_sql_query", "read_gbq"):
        return _read_sql(run, args.get("sql", 0) or first, args)
    if name == "read_sql_table":
        return _narrowed(run, _read_table(run, args), args.get("columns"))
    if name in _READS_FILES:
        frame = storage.read_path(run, first, args.line, "pandas")
        return _narrowed(run, frame, args.get("usecols") or args.get("columns"))
    if name == "concat" and isinstance(first, (list, tuple)):
        return _concat(first)
    if name == "merge" and isinstance(first, Frame):
        return _merged(run, first, args.get("right", 1), args, shift=1)
    if name == "DataFrame":
        return first if isinstance(first, Frame) else _from_columns(run, first)
    return (
        combined(args.all(), DependencyKind.TRANSFORMATION) if list_columns(args.all()) else UNKNOWN
    )


def _read_sql(run: Interpreter, query: Value, args: Arguments) -> Frame:
    if isinstance(query, LocatedText) and looks_like_sql(query):
        return run_sql(run, query, library="pandas")
    if isinstance(query, LocatedText) and " " not in query.strip():
        return storage.read_table(run, query, args.line, "pandas")
    run.recorder.add_blind_spot("dynamic_sql", "the query is only known at run time", args.line)
    return as_pandas(UNKNOWN_FRAME)


def _read_table(run: Interpreter, args: Arguments) -> Frame:
    name, schema = args.get("table_name", 0), args.get("schema", 2)
    if isinstance(name, LocatedText) and isinstance(schema, LocatedText):
        name = LocatedText(f"{schema}.{name}", name.line)
    return storage.read_table(run, name, args.line, "pandas")


def _narrowed(run: Interpreter, frame: Frame, columns: Value) -> Frame:
    """Return a frame with the columns of `usecols=[…]` or `columns=[…]`."""
    names = [n for n in columns if isinstance(n, LocatedText)] if isinstance(columns, list) else []
    if not names:
        return frame
    for name in names:
        run.recorder.reference_column(frame, name, name.line, clause="select")
    return frame.select({str(name): frame.find(name) for name in names})


def _concat(frames: list[Value] | tuple[Value, ...]) -> Frame:
    known = [frame for frame in frames if isinstance(frame, Frame)]
    if not known:
        return as_pandas(UNKNOWN_FRAME)
    result = known[0]
    for frame in known[1:]:
        result = result.merged(frame)
    return result


def _from_columns(run: Interpreter, given: Value) -> Frame:
    columns: dict[str, Deps] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        columns[str(name)] = merged(list_columns([value])).deps
    return Frame(library="pandas").select(columns)


def _named_columns(run: Interpreter, frame: Frame, value: Value, clause: Clause) -> Deps:
    """Return the dependencies of columns given by name, and record references to them."""
    parts: list[Deps] = []
    for name in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(name, LocatedText):
            run.recorder.reference_column(
                frame, name, name.line, clause=clause, optional=name.optional
            )
            parts.append(frame.find(name))
    return merge_all(parts)


# Methods of frames


def _assign(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    result = frame
    for name, value in args.named.items():
        if isinstance(value, Function):
            value = run.call(value, [result], {})
        result = result.with_column(name, merged(list_columns([value])).deps)
    return result


def _rename(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    names = args.get("columns") or args.get("mapper", 0)
    if not isinstance(names, dict):
        return frame
    for old in names:  # pandas ignores a missing column, but then the new name is missing too
        if isinstance(old, LocatedText):
            run.recorder.reference_column(frame, old, old.line, clause="select")
    return frame.renamed({str(k): str(v) for k, v in names.items() if isinstance(v, str)})


def _drop(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "other")
    given = args.get("columns") or (args.get("labels", 0) if args.get("axis", 1) else None)
    _named_columns(run, frame, given, "other")
    names = given if isinstance(given, (list, tuple)) else [given]
    return frame.without([name for name in names if isinstance(name, str)])


def _merge(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "join")
    return _merged(run, frame, args.get("right", 0), args, shift=0)


def _merged(run: Interpreter, frame: Frame, other: Value, args: Arguments, *, shift: int) -> Frame:
    if not isinstance(other, Frame):
        return frame.merged(UNKNOWN_FRAME)
    on = args.get("on", 2 + shift)
    left, right = args.get("left_on") or on, args.get("right_on") or on
    keys = merge_all(
        [_named_columns(run, frame, left, "join"), _named_columns(run, other, right, "join")]
    )
    return frame.merged(other).influenced(keys, DependencyKind.JOIN)


def _group_by(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "group")
    by = args.get("by", 0)
    keys: dict[str, Deps] = {}
    for name in by if isinstance(by, list) else [by]:
        if isinstance(name, LocatedText):
            keys[str(name)] = _named_columns(run, frame, name, "group")
        elif isinstance(name, ColumnExpression):
            keys[name.name or "?"] = resolved(run, name, frame, "group")
    return GroupedFrame(frame, keys)


def _query(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    text = clause_args(run, node, "filter").get("expr", 0)
    if not isinstance(text, LocatedText):
        return frame
    readable = LocatedText(text.replace("==", "=").replace("@", ":"), text.line)
    deps = resolved(run, merged(expression_columns(readable)), frame, "filter")
    return frame.influenced(deps, DependencyKind.FILTER)


def _sort(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    by = clause_args(run, node, "order").get("by", 0)
    return frame.influenced(_named_columns(run, frame, by, "order"), DependencyKind.SORT)


def _subset(
    clause: Clause, kind: DependencyKind
) -> Callable[[Interpreter, Frame, ast.Call], Value]:
    def handle(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
        subset = clause_args(run, node, clause).get("subset", 0)
        return frame.influenced(_named_columns(run, frame, subset, clause), kind)

    return handle


def _keys_only(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    _named_columns(run, frame, args.get("keys", 0), "select")
    return frame


def _same(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    given = args.get("dtype", 0)
    for name in given if isinstance(given, dict) else ():
        if isinstance(name, LocatedText):
            run.recorder.reference_column(frame, name, name.line, clause="select")
    return frame


def _to_sql(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "write")
    name, schema = args.get("name", 0), args.get("schema", 2)
    if isinstance(name, LocatedText) and isinstance(schema, LocatedText):
        name = LocatedText(f"{schema}.{name}", name.line)
    storage.write_frame(run, frame, name, line_of_call(node), is_path=False)


def _to_file(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "write")
    path = args.get("path", 0) or args.get("path_or_buf") or args.get("excel_writer")
    if path is None:
        return UNKNOWN  # returns a text
    chosen = args.get("columns")
    frame = _narrowed(run, frame, chosen)
    storage.write_frame(run, frame, path, line_of_call(node), is_path=True)
    return None


def _to_gbq(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "write")
    storage.write_frame(
        run, frame, args.get("destination_table", 0), line_of_call(node), is_path=False
    )


def _pivot(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "group")
    given = [args.get("index"), args.get("columns")]
    keys = merge_all(_named_columns(run, frame, value, "group") for value in given)
    values = args.get("values")
    deps = direct(_named_columns(run, frame, values, "select"), DependencyKind.AGGREGATION)
    run.recorder.add_blind_spot(
        "pivot", "the columns of a pivot are only known at run time", line_of_call(node)
    )
    columns = {str(name): frame.find(str(name)) for name in _texts(args.get("index"))}
    return frame.select({**columns, "*": deps}).influenced(keys, DependencyKind.GROUP_BY)


def _melt(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    args = clause_args(run, node, "select")
    kept = _texts(args.get("id_vars", 0))
    values = _texts(args.get("value_vars", 1))
    _named_columns(run, frame, [*kept, *values], "select")
    columns = {str(name): frame.find(name) for name in kept}
    deps = merge_all(frame.find(name) for name in values)
    return frame.select({**columns, "variable": NOTHING, "value": deps})


def _texts(value: Value) -> list[LocatedText]:
    given = value if isinstance(value, (list, tuple)) else [value]
    return [name for name in given if isinstance(name, LocatedText)]


def _apply(run: Interpreter, frame: Frame, node: ast.Call) -> Value:
    """Follow `df.apply(lambda row: row["x"], axis=1)`, which names columns of the frame."""
    args = clause_args(run, node, "select")
    given = args.get("func", 0)
    if not isinstance(given, Function):
        return UNKNOWN
    value = run.call(given, [frame], {})
    return (
        combined(list_columns([value]), DependencyKind.TRANSFORMATION)
        if list_columns([value])
        else UNKNOWN
    )


SINKS = frozenset({
    "to_sql", "to_gbq", "to_parquet", "to_csv", "to_json", "to_feather", "to_excel", "to_orc",
    "to_pickle", "to_hdf", "to_stata", "to_xml",
})  # fmt: skip

METHODS: dict[str, Callable[[Interpreter, Frame, ast.Call], Value]] = {
    "assign": _assign,
    "rename": _rename,
    "drop": _drop,
    "merge": _merge,
    "groupby": _group_by,
    "query": _query,
    "sort_values": _sort,
    "dropna": _subset("filter", DependencyKind.FILTER),
    "drop_duplicates": _subset("group", DependencyKind.GROUP_BY),
    "set_index": _keys_only,
    "astype": _same,
    "to_sql": _to_sql,
    "to_gbq": _to_gbq,
    "to_parquet": _to_file,
    "to_csv": _to_file,
    "to_json": _to_file,
    "to_feather": _to_file,
    "to_excel": _to_file,
    "to_orc": _to_file,
    "to_pickle": _to_file,
    "to_hdf": _to_file,
    "to_stata": _to_file,
    "to_xml": _to_file,
    "pivot_table": _pivot,
    "pivot": _pivot,
    "melt": _melt,
    "apply": _apply,
}

"""Calls of functions, classes and methods of the repository, and of imported libraries."""

from __future__ import annotations

import ast
import re
from functools import reduce
from typing import TYPE_CHECKING

from downriver.capture.scan.located_text import RUNTIME_VALUE, LocatedText
from downriver.capture.scan.python import feast, glue, library_io, storage
from downriver.capture.scan.python.frames import columns, groups, pandas, spark_frames
from downriver.capture.scan.python.frames.columns import combined, list_columns
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter import builtins
from downriver.capture.scan.python.interpreter.builtins import attribute
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Arguments,
    Class,
    ColumnExpression,
    ColumnNames,
    DeltaMerge,
    Function,
    FunctionChoice,
    GlueIo,
    GlueSink,
    GroupedFrame,
    ImportedName,
    Module,
    Object,
    SparkReader,
    SparkSessionValue,
    SparkWriter,
    StoredObject,
    Task,
    Udf,
    Value,
    clause_args,
    read_args,
)
from downriver.capture.scan.python.io_calls import line_of_call
from downriver.capture.scan.python.sql_text import (
    is_without_data,
    looks_like_sql,
    looks_like_statement,
    run_sql,
)
from downriver.columns import DependencyKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments


def call(run: Interpreter, node: ast.Call) -> Value:
    """Return the value of a call, and record its inputs and outputs."""
    with run.recorder.following(node):
        return _call(run, node)


def _call(run: Interpreter, node: ast.Call) -> Value:
    from downriver.capture.scan.python.interpreter.expressions import evaluate

    if isinstance(node.func, ast.Attribute):
        base = evaluate(run, node.func.value)
        return _method(run, base, node.func.attr, node)
    if isinstance(node.func, ast.Name) and not run.scope.has(node.func.id):
        return builtins.function(run, node.func.id, read_args(run, node))
    return _callable(run, evaluate(run, node.func), node)


def _callable(run: Interpreter, target: Value, node: ast.Call) -> Value:
    match target:
        case Function():
            run.recorder.understand()  # the calls inside are listed separately
            args = read_args(run, node)
            run.line = args.line
            if run.airflow.is_task(target):
                return run.airflow.call_task(run, target, args)
            if any(name.endswith("udf") for name in target.decorators):
                return combined(
                    columns.named_columns("struct", args), DependencyKind.TRANSFORMATION
                )
            if run.airflow.is_dag(target):
                return run.airflow.run_dag(run, target, args.given, args.named)
            return run.call(target, args.given, args.named)
        case FunctionChoice():
            from downriver.capture.scan.python.interpreter.statements import either

            results = [_callable(run, function, node) for function in target.functions]
            return reduce(either, results)
        case Class():
            run.recorder.understand()
            args = read_args(run, node)
            run.line = args.line
            if isinstance(args.get("task_id"), LocatedText) and run.method(
                Object(target), "execute"
            ):
                return run.airflow.create_own(run, target, args)
            return run.instantiate(target, args.given, args.named)
        case ImportedName():
            return _call_imported(run, target, node)
        case Udf():
            named = columns.named_columns("struct", read_args(run, node))
            return combined(named, DependencyKind.TRANSFORMATION)
        case _:
            given = list_columns(read_args(run, node).all())
            return combined(given, DependencyKind.TRANSFORMATION) if given else UNKNOWN


def _method(run: Interpreter, base: Value, name: str, node: ast.Call) -> Value:
    if isinstance(base, Module):
        return _callable(run, attribute(run, base, name, node.func), node)
    if isinstance(base, ImportedName):
        return _call_imported(run, ImportedName(f"{base.name}.{name}"), node)
    for kind, handle in _METHODS:
        if isinstance(base, kind):
            return handle(run, base, name, node)
    return _call_unknown(run, name, read_args(run, node), node)


def _on_object(run: Interpreter, base: Object, name: str, node: ast.Call) -> Value:
    method = run.method(base, name)
    if method is not None:
        run.recorder.understand()
        args = read_args(run, node)
        run.line = args.line
        return run.call(method, args.given, args.named)
    args = read_args(run, node)
    targets = run.luigi.method(run, base, name)
    if targets is not None:
        return targets
    if isinstance(base.kind, ImportedName) and base.kind.name in ("open", "pathlib.Path"):
        path = base.argument("file")
        if name in ("read", "read_text") and isinstance(path, LocatedText):
            return builtins.file_text(run, path)
    if name in ("set_downstream", "set_upstream"):
        run.airflow.order(base, args.get("", 0), reverse=name == "set_upstream")
    return _call_unknown(run, name, args, node, base)


def _on_function(run: Interpreter, base: Function, name: str, node: ast.Call) -> Value:
    """Follow `task.override(…)`, `task.partial(…)` and `task.expand(…)`."""
    read_args(run, node)
    if name in ("expand", "expand_kwargs") and run.airflow.is_task(base):
        return run.airflow.call_task(run, base, Arguments([], {}, line_of_call(node)))
    return base if name in ("override", "partial") else UNKNOWN


def _on_task(run: Interpreter, base: Task, name: str, node: ast.Call) -> Value:
    args = read_args(run, node)
    if name in ("set_downstream", "set_upstream"):
        run.airflow.order(base, args.get("", 0), reverse=name == "set_upstream")
    return base


def _on_column(run: Interpreter, base: ColumnExpression, name: str, node: ast.Call) -> Value:
    return columns.column_method(run, base, name, read_args(run, node))


def _on_session(run: Interpreter, base: SparkSessionValue, name: str, node: ast.Call) -> Value:
    args = clause_args(run, node, "read")
    value = storage.session_method(run, name, args)
    if value is not None:
        return value
    value = _call_unknown(run, name, args, node)
    return base if value is UNKNOWN else value  # `SparkSession.builder.appName(…)`


def _on_glue_io(run: Interpreter, base: GlueIo, name: str, node: ast.Call) -> Value:
    return glue.io_method(run, base, name, read_args(run, node))


def _on_glue_sink(run: Interpreter, base: GlueSink, name: str, node: ast.Call) -> Value:
    return glue.sink_method(run, base, name, read_args(run, node))


def _on_stored_object(run: Interpreter, base: StoredObject, name: str, node: ast.Call) -> Value:
    return library_io.stored_object_method(run, base, name, read_args(run, node))


def _on_columns(run: Interpreter, base: ColumnNames, name: str, node: ast.Call) -> Value:
    read_args(run, node)
    return base


_METHODS: tuple[tuple[type, Callable[[Interpreter, Value, str, ast.Call], Value]], ...] = (
    (Frame, spark_frames.frame_method),
    (GroupedFrame, groups.grouped_method),
    (SparkReader, storage.reader_method),
    (SparkWriter, storage.writer_method),
    (SparkSessionValue, _on_session),
    (DeltaMerge, storage.merge_method),
    (StoredObject, _on_stored_object),
    (GlueIo, _on_glue_io),
    (GlueSink, _on_glue_sink),
    (ColumnExpression, _on_column),
    (ColumnNames, _on_columns),
    (Task, _on_task),
    (Function, _on_function),
    (Object, _on_object),
    (LocatedText, builtins.text_method),
    (list, builtins.list_method),
    (dict, builtins.dict_method),
)


# Methods that only send SQL to a database, and methods that may do so.
_EXECUTES = frozenset({
    "execute", "executemany", "execute_sql", "exec_driver_sql", "execute_query", "run_query",
    "execute_string", "RunSQL",
})  # fmt: skip
_RUNS_SQL = _EXECUTES | {
    "sql", "query", "run", "raw", "fetchdf", "fetch_df",
    "get_records", "get_first", "get_pandas_df", "get_df", "read_sql",
    "read_sql_query", "fetch", "fetchall", "fetchrow", "fetchval", "scalar", "scalars",
}  # fmt: skip
# `execute` is also a method of other objects. With these names, the object is a database.
_DATABASE = re.compile(
    r"(?:^|[^a-z])(?:cur|cursor|conn|connection|engine|session|db|database|hook|client|op|sql)"
    r"(?:$|[^a-z])|query|statement|stmt|ddl",
    re.IGNORECASE,
)
# `table` reads a table of a session or a connection.
_HAS_TABLES = re.compile(
    r"spark|(?:^|[^a-z])(?:sqlcontext|session|con|conn|connection|ibis|db)$", re.IGNORECASE
)
_SAME_TEXT = frozenset({
    "textwrap.dedent", "inspect.cleandoc", "sqlalchemy.text", "sqlalchemy.sql.text",
    "sqlalchemy.sql.expression.text", "str", "pathlib.Path", "pathlib.PurePath",
    "psycopg2.sql.SQL", "psycopg.sql.SQL",
})  # fmt: skip


def _resolved_model(run: Interpreter, name: str, args: Arguments) -> Value | None:
    """Return the table that `context.resolve_table("shop.orders")` of SQLMesh names."""
    model = args.get("model_name", 0) if name == "resolve_table" else None
    if not isinstance(model, LocatedText):
        return None
    run.recorder.understand()
    return model


def _last_name(node: ast.expr) -> str:
    """Return the last name of an expression, `db` of `app.db` and of `app.db(url)`."""
    match node:
        case ast.Call(func=func):
            return _last_name(func)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _call_unknown(
    run: Interpreter, name: str, args: Arguments, node: ast.Call, base: Value = UNKNOWN
) -> Value:
    """Follow a method of an unknown object that reads or writes data, or runs SQL."""
    for follow in (
        library_io.method(run, base, name, args),
        glue.context_method(run, name, args),
        _resolved_model(run, name, args),
    ):
        if follow is not None:
            return follow
    if name in pandas.SINKS:
        return pandas.METHODS[name](run, UNKNOWN_FRAME, node)
    if name == "writeTo":
        return spark_frames.METHODS[name](run, UNKNOWN_FRAME, node)
    if name == "table" and isinstance(node.func, ast.Attribute):
        is_database = _HAS_TABLES.search(_last_name(node.func.value))
        first = args.get("tableName", 0) or args.get("name")
        if is_database and isinstance(first, LocatedText):
            return storage.read_table(run, first, args.line, "spark")
    if name not in _RUNS_SQL:
        return UNKNOWN
    query = args.get("sql", 0) or args.get("query")
    result: Value = UNKNOWN
    for text in query if isinstance(query, list) else [query]:
        is_sql = looks_like_statement if name in _EXECUTES else looks_like_sql
        if isinstance(text, LocatedText) and is_sql(text):
            result = run_sql(run, text, library="pandas")
        elif isinstance(text, LocatedText) and is_without_data(text):
            run.recorder.understand()
        elif name in _EXECUTES and _is_hidden_query(text, node):
            run.recorder.add_blind_spot(
                "dynamic_sql", "the query is only known at run time", args.line
            )
    return UNKNOWN if isinstance(query, list) else result


def _is_hidden_query(value: Value, node: ast.Call) -> bool:
    """Whether an argument of `execute` is a query that is only known at run time."""
    if isinstance(value, LocatedText):
        return value.is_dynamic
    names = [ast.unparse(part) for part in (node.func, *node.args[:1])]
    return value is UNKNOWN and any(_DATABASE.search(name) for name in names)


def _call_imported(run: Interpreter, target: ImportedName, node: ast.Call) -> Value:
    """Return the value of a call of an imported object, and record its inputs and outputs."""
    args = read_args(run, node)
    for handle in _LIBRARIES:
        value = handle(run, target, args)
        if value is not None:
            return value
    if target.last in _RUNS_SQL:
        result = _call_unknown(run, target.last, args, node)
        if result is not UNKNOWN:
            return result
    value = _of_other_modules(run, target, args)
    return Object(target, tuple(args.given), args.named) if value is None else value


_POLARS_EXPRESSIONS = columns.AGGREGATES | {
    "col", "lit", "when", "concat_str", "coalesce", "struct", "date", "datetime", "element",
}  # fmt: skip


def _of_spark(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    name = target.name
    if name.startswith("polars.") and target.last in _POLARS_EXPRESSIONS:
        return columns.function(run, target.last, args)
    if name.startswith("pyspark.") and (".functions." in name or ".Window." in name):
        return columns.function(run, target.last, args)
    if "SparkSession" in name or "DatabricksSession" in name or name.endswith("SQLContext"):
        return SparkSessionValue()
    if name.startswith("delta.") and target.last in ("forName", "forPath"):
        return storage.delta_table(run, target.last, args)
    return None


def _of_pandas(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    if target.name.startswith("pandas."):
        return pandas.function(run, target.last, args)
    return None


def _of_texts(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    """Follow functions that return a text."""
    name = target.name
    if name in ("os.getenv", "os.environ.get"):
        default = args.get("default", 1)
        return (
            default if isinstance(default, LocatedText) else LocatedText(RUNTIME_VALUE, args.line)
        )
    if name in _SAME_TEXT and isinstance(args.get("", 0), LocatedText):
        return _path(args) if name.startswith("pathlib") else args.given[0]
    return _path(args) if name == "os.path.join" else None


def _of_feast(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    return feast.make(run, target.last, args) if target.name.startswith("feast.") else None


def _of_kedro(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    return run.kedro.create(run, target, args)


def _of_airflow(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    return run.airflow.create(run, target, args)


_MESSAGES = ("logging.", "warnings.", "loguru.", "structlog.", "pprint.")


def _of_other_modules(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    """Follow a function outside of the repository: its result depends on all its arguments."""
    columns = list_columns(args.all())
    if columns:
        return combined(columns, DependencyKind.TRANSFORMATION)
    frames = [value for value in args.all() if isinstance(value, Frame)]
    if not frames or not target.last[:1].islower() or target.name.startswith(_MESSAGES):
        return None
    run.recorder.add_blind_spot(
        "other_module", f"{target.name} gets a frame; its code is not in the repository", args.line
    )
    return frames[0]


_LIBRARIES: tuple[Callable[[Interpreter, ImportedName, Arguments], Value | None], ...] = (
    _of_spark,
    _of_pandas,
    library_io.function,
    glue.function,
    _of_texts,
    _of_feast,
    _of_kedro,
    _of_airflow,
)


def _path(args: Arguments) -> LocatedText:
    parts = [str(p) if isinstance(p, (str, int)) else RUNTIME_VALUE for p in args.given]
    joined = "/".join(
        part.rstrip("/") if at < len(parts) - 1 else part for at, part in enumerate(parts)
    )
    return LocatedText(joined, args.line)

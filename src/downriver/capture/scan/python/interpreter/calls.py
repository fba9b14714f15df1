"""Calls: of functions of the module, of methods, and of what is imported."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from downriver.capture.scan.python import spark_session
from downriver.capture.scan.python.frames import columns, groups, spark_frames
from downriver.capture.scan.python.frames.columns import combined, list_columns
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.interpreter import builtins, libraries
from downriver.capture.scan.python.interpreter.builtins import attribute
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Arguments,
    Class,
    ColumnExpression,
    ColumnNames,
    DeltaMerge,
    Function,
    GroupedFrame,
    ImportedName,
    LocatedText,
    Module,
    Object,
    SparkReader,
    SparkSessionValue,
    SparkWriter,
    Task,
    Udf,
    Value,
    line_of_call,
    read_args,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter


def call(run: Interpreter, node: ast.Call) -> Value:
    """Return what a call returns, as far as that can be told; note what it does."""
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
            args = read_args(run, node)
            run.line = args.line
            if run.airflow.is_task(target):
                return run.airflow.call_task(run, target, args)
            if any(name.endswith("udf") for name in target.decorators):
                return combined(columns.named_columns("struct", args), "TRANSFORMATION")
            if run.airflow.is_dag(target):
                return run.airflow.run_dag(run, target, args.given, args.named)
            return run.call(target, args.given, args.named)
        case Class():
            args = read_args(run, node)
            run.line = args.line
            return run.instantiate(target, args.given, args.named)
        case ImportedName():
            return libraries.imported(run, target, node)
        case Udf():
            named = columns.named_columns("struct", read_args(run, node))
            return combined(named, "TRANSFORMATION")
        case _:
            given = list_columns(read_args(run, node).all())
            return combined(given, "TRANSFORMATION") if given else UNKNOWN


def _method(run: Interpreter, base: Value, name: str, node: ast.Call) -> Value:
    if isinstance(base, Module):
        return _callable(run, attribute(run, base, name, node.func), node)
    if isinstance(base, ImportedName):
        return libraries.imported(run, ImportedName(f"{base.name}.{name}"), node)
    for kind, handle in _METHODS:
        if isinstance(base, kind):
            return handle(run, base, name, node)
    args = read_args(run, node)
    return libraries.on_anything(run, name, args)


def _on_object(run: Interpreter, base: Object, name: str, node: ast.Call) -> Value:
    method = run.method(base, name)
    if method is not None:
        args = read_args(run, node)
        run.line = args.line
        return run.call(method, args.given, args.named)
    args = read_args(run, node)
    if isinstance(base.kind, ImportedName) and base.kind.name in ("open", "pathlib.Path"):
        path = base.argument("file")
        if name in ("read", "read_text") and isinstance(path, LocatedText):
            return builtins.file_text(run, path)
    if name in ("set_downstream", "set_upstream"):
        run.airflow.order(base, args.get("", 0), reverse=name == "set_upstream")
    return libraries.on_anything(run, name, args)


def _on_function(run: Interpreter, base: Function, name: str, node: ast.Call) -> Value:
    """`task.override(…)`, `task.partial(…)`, `task.expand(…)`."""
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


def _on_columns(run: Interpreter, base: ColumnNames, name: str, node: ast.Call) -> Value:
    read_args(run, node)
    return base


_METHODS: tuple[tuple[type, Callable[[Interpreter, Value, str, ast.Call], Value]], ...] = (
    (Frame, spark_frames.frame_method),
    (GroupedFrame, groups.grouped_method),
    (SparkReader, spark_session.reader_method),
    (SparkWriter, spark_session.writer_method),
    (SparkSessionValue, spark_session.session_method),
    (DeltaMerge, spark_session.merge_method),
    (ColumnExpression, _on_column),
    (ColumnNames, _on_columns),
    (Task, _on_task),
    (Function, _on_function),
    (Object, _on_object),
    (LocatedText, builtins.text_method),
    (list, builtins.list_method),
    (dict, builtins.dict_method),
)

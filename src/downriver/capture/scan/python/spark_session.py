"""PySpark's sessions, readers and writers, and Delta's merges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.scan.python import storage
from downriver.capture.scan.python.frames.columns import condition_deps
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    DeltaMerge,
    LocatedText,
    SparkReader,
    SparkSessionValue,
    SparkWriter,
    Value,
    clause_args,
)
from downriver.capture.scan.python.sql_text import run_sql

if TYPE_CHECKING:
    import ast

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_QUALIFIER = re.compile(r"\b[^\W\d]\w*\.(?=[^\W\d])")


def reader_method(run: Interpreter, reader: SparkReader, name: str, node: ast.Call) -> Value:
    """Return what a method of `spark.read` returns."""
    return storage.read(run, reader, name, clause_args(run, node, "read"))


def writer_method(run: Interpreter, writer: SparkWriter, name: str, node: ast.Call) -> Value:
    """Return what a method of `df.write` returns; writing is noted."""
    return storage.write(run, writer, name, clause_args(run, node, "write"))


def session_method(
    run: Interpreter, session: SparkSessionValue, name: str, node: ast.Call
) -> Value:
    """Return what a method of a SparkSession returns."""
    args = clause_args(run, node, "read")
    first = args.get("", 0) if args.given else next(iter(args.named.values()), None)
    if name == "sql":
        if isinstance(first, LocatedText):
            return run_sql(run, first, dialect="spark")
        run.recorder.cannot_see("dynamic_sql", "a query known only when it runs", args.line)
        return UNKNOWN_FRAME
    if name == "table":
        return storage.read_table(run, first, args.line, "spark")
    if name == "createDataFrame":
        return first if isinstance(first, Frame) else Frame()
    return Frame() if name in ("range", "emptyDataFrame") else session


def delta_table(run: Interpreter, how: str, args: Arguments) -> Value:
    """Return a Delta table, by name or by path."""
    texts = [value for value in args.given if isinstance(value, LocatedText)]
    if not texts:
        return UNKNOWN
    return DeltaMerge(storage.dataset_of(run, texts[-1], is_path=how == "forPath"))


def merge_method(run: Interpreter, merge: DeltaMerge, name: str, node: ast.Call) -> Value:
    """Follow a merge into a Delta table."""
    args = clause_args(run, node, "join")
    source = args.get("source", 0)
    if name == "toDF":
        return storage.read_dataset(run, merge.table, "spark")
    if name == "merge" and isinstance(source, Frame):
        condition = args.get("condition", 1)
        if isinstance(condition, LocatedText):
            bare = LocatedText(_QUALIFIER.sub("", condition), condition.line)
            deps = condition_deps(run, bare, source, "join")
            source = source.steered(deps, "JOIN")
        return merge._replace(frame=source)
    if name == "execute" and merge.frame is not None:
        run.recorder.writes(merge.table, merge.frame)
    if name in ("update", "delete"):
        run.recorder.writes(merge.table, None)
    return merge

"""Reads and writes of frames: Spark sessions, Delta merges, tables, files, topics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.dataset_names import dataset_over_jdbc
from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.frames.columns import condition_deps
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame, read_frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    DeltaMerge,
    ImportedName,
    Object,
    SparkReader,
    SparkWriter,
    Value,
    clause_args,
)
from downriver.capture.scan.python.sql_text import looks_like_sql, run_sql
from downriver.columns import DependencyKind
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    import ast

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_FILE_FORMATS = frozenset({"parquet", "csv", "json", "orc", "text", "avro", "delta", "xml"})
_USER_FUNCTION = "a function of the user"
_SETTING = frozenset({
    "mode", "partitionBy", "bucketBy", "sortBy", "outputMode", "trigger", "queryName", "schema",
    "using", "tableProperty", "partitionedBy", "clusterBy",
})  # fmt: skip
_WRITES_TO = frozenset({
    "append", "create", "createOrReplace", "overwrite", "overwritePartitions", "replace",
})  # fmt: skip


def dataset_of(run: Interpreter, name: LocatedText, *, is_path: bool) -> DatasetId:
    """Return the dataset of a path or of a table name."""
    return dataset_at(str(name)) if is_path else run.recorder.context.dataset_for(str(name))


def read_dataset(run: Interpreter, dataset: DatasetId, library: str) -> Frame:
    """Record an input and return it as a frame."""
    run.recorder.add_input(dataset)
    run.recorder.framed.add(run.recorder.job.id)
    return read_frame(dataset, run.recorder.context.columns_of, library)


def read_table(run: Interpreter, name: Value, line: int, library: str) -> Frame:
    """Read a table, or the frame of a temporary view."""
    if not isinstance(name, LocatedText) or name.is_dynamic:
        run.recorder.add_blind_spot(
            "dynamic_name", "reads a table whose name is only known at run time", line
        )
        return UNKNOWN_FRAME
    view = run.views.get(name.casefold())
    if view is not None:
        run.recorder.understand()
        return view
    return read_dataset(run, dataset_of(run, name, is_path=False), library)


def path_of(value: Value) -> Value:
    """Return the path of an open file; other values as they are."""
    if isinstance(value, Object) and isinstance(value.kind, ImportedName):
        if value.kind.last in ("open", "Path"):
            return value.argument("file")
        return UNKNOWN
    if isinstance(value, LocatedText) and value.startswith(("http://", "https://")):
        return LocatedText(value.partition("?")[0], value.line)
    return value


def read_path(run: Interpreter, path: Value, line: int, library: str) -> Frame:
    """Read files. Several paths give one frame."""
    path = path_of(path)
    if isinstance(path, list) and path:
        frames = [read_path(run, part, line, library) for part in path]
        result = frames[0]
        for frame in frames[1:]:
            result = result.merged(frame)
        return result
    if not isinstance(path, LocatedText) or path.is_dynamic:
        run.recorder.add_blind_spot(
            "dynamic_path", "reads a path that is only known at run time", line
        )
        return UNKNOWN_FRAME
    return read_dataset(run, dataset_at(str(path)), library)


# Spark readers and writers


def _read(run: Interpreter, reader: SparkReader, name: str, args: Arguments) -> Value:
    """Follow a method of `spark.read`."""
    first = args.get("path", 0)
    if name == "format" and isinstance(first, LocatedText):
        return reader._replace(format=str(first).lower())
    if name in ("option", "options"):
        return reader._replace(options={**reader.options, **_set(args)})
    if name in _SETTING:
        return reader
    if name == "table":
        return read_table(run, args.get("tableName", 0), args.line, "spark")
    if name == "jdbc":
        return read_jdbc(run, args.get("url", 0), args.get("table", 1), args.line)
    if name == "load" and reader.format == "jdbc":
        options = reader.options
        table = options.get("dbtable") or options.get("query")
        return read_jdbc(run, options.get("url"), table, args.line)
    if name == "load" and reader.format == "kafka":
        return _read_topic(run, reader, args.line)
    if name == "load" and reader.format in ("snowflake", "bigquery", "redshift", "mongodb"):
        table = first or reader.options.get("dbtable") or reader.options.get("table")
        return read_table(run, table, args.line, "spark")
    if name == "load" or name in _FILE_FORMATS:
        paths = args.given if len(args.given) > 1 and name == "parquet" else first
        return read_path(run, paths or reader.options.get("path"), args.line, "spark")
    return UNKNOWN_FRAME


def _set(args: Arguments) -> dict[str, Value]:
    if args.given and isinstance(args.given[0], str):
        return {str(args.given[0]): args.get("value", 1)}
    return dict(args.named)


def read_jdbc(run: Interpreter, url: Value, table: Value, line: int) -> Frame:
    """Read a table or a query over JDBC."""
    if isinstance(table, LocatedText) and looks_like_sql(table.lstrip("( ")):
        return run_sql(run, LocatedText(_unwrapped(table), table.line))
    if isinstance(table, LocatedText) and not table.is_dynamic:
        dataset = _over_jdbc(run, url, table)
        return read_dataset(run, dataset, "spark")
    run.recorder.add_blind_spot(
        "dynamic_name", "reads a table whose name is only known at run time", line
    )
    return UNKNOWN_FRAME


def _unwrapped(query: str) -> str:
    """Return the query inside `(select …) as t`."""
    text = query.strip()
    return text[1 : text.rindex(")")] if text.startswith("(") and ")" in text else text


def _over_jdbc(run: Interpreter, url: Value, table: LocatedText) -> DatasetId:
    known = None
    if isinstance(url, LocatedText) and not url.is_dynamic:
        known = dataset_over_jdbc(str(url), str(table))
    return known or run.recorder.context.dataset_for(str(table))


def _read_topic(run: Interpreter, reader: SparkReader, line: int) -> Frame:
    topic = reader.options.get("subscribe") or reader.options.get("topic")
    servers = reader.options.get("kafka.bootstrap.servers")
    if not isinstance(topic, LocatedText) or topic.is_dynamic:
        run.recorder.add_blind_spot(
            "dynamic_name", "reads a topic whose name is only known at run time", line
        )
        return UNKNOWN_FRAME
    return read_dataset(run, _topic(topic, servers), "spark")


def _topic(topic: LocatedText, servers: Value) -> DatasetId:
    known = isinstance(servers, LocatedText) and not servers.is_dynamic
    broker = str(servers).partition(",")[0] if known else "unknown"
    return DatasetId(f"kafka://{broker}", str(topic))


def _write(run: Interpreter, writer: SparkWriter, name: str, args: Arguments) -> Value:
    """Follow a method of `df.write`."""
    first = args.get("path", 0)
    if name == "format" and isinstance(first, LocatedText):
        return writer._replace(format=str(first).lower())
    if name in ("option", "options"):
        return writer._replace(options={**writer.options, **_set(args)})
    if name in _SETTING:
        return writer
    if name in ("saveAsTable", "insertInto", "toTable", "save_as_table"):
        return _write_table(run, writer, args.get("name", 0) or args.get("tableName"), args.line)
    if name in _WRITES_TO and writer.table:
        return _write_table(run, writer, LocatedText(writer.table, args.line), args.line)
    if name == "jdbc" or (name == "save" and writer.format == "jdbc"):
        return _write_jdbc(run, writer, args)
    if name in ("save", "start") and writer.format == "kafka":
        return _write_topic(run, writer, args.line)
    if name in ("save", "start") and writer.format in ("snowflake", "bigquery", "redshift"):
        table = first or writer.options.get("dbtable") or writer.options.get("table")
        return _write_table(run, writer, table, args.line)
    if writer.format == _USER_FUNCTION:
        run.recorder.understand()
        return writer
    if name in ("save", "start") or name in _FILE_FORMATS:
        return _write_path(run, writer.frame, first or writer.options.get("path"), args.line)
    if name in ("foreachBatch", "foreach"):
        run.recorder.add_blind_spot(
            "opaque", f"lineage of {name} is unknown: it writes with a function", args.line
        )
        return writer._replace(format=_USER_FUNCTION)
    return writer


def _write_table(run: Interpreter, writer: SparkWriter, name: Value, line: int) -> None:
    if isinstance(name, LocatedText) and not name.is_dynamic:
        run.recorder.add_output(dataset_of(run, name, is_path=False), writer.frame)
    else:
        run.recorder.add_blind_spot(
            "dynamic_name", "writes a table whose name is only known at run time", line
        )


def _write_path(run: Interpreter, frame: Frame, path: Value, line: int) -> None:
    if isinstance(path, LocatedText) and not path.is_dynamic:
        run.recorder.add_output(dataset_at(str(path)), frame)
    else:
        run.recorder.add_blind_spot(
            "dynamic_path", "writes a path that is only known at run time", line
        )


def _write_jdbc(run: Interpreter, writer: SparkWriter, args: Arguments) -> None:
    url = args.get("url", 0) or writer.options.get("url")
    table = args.get("table", 1) or writer.options.get("dbtable")
    if isinstance(table, LocatedText) and not table.is_dynamic:
        run.recorder.add_output(_over_jdbc(run, url, table), writer.frame)
    else:
        run.recorder.add_blind_spot(
            "dynamic_name", "writes a table whose name is only known at run time", args.line
        )


def _write_topic(run: Interpreter, writer: SparkWriter, line: int) -> None:
    topic = writer.options.get("topic")
    if isinstance(topic, LocatedText) and not topic.is_dynamic:
        servers = writer.options.get("kafka.bootstrap.servers")
        run.recorder.add_output(_topic(topic, servers), writer.frame)
    else:
        run.recorder.add_blind_spot(
            "dynamic_name", "writes a topic whose name is only known at run time", line
        )


def write_frame(
    run: Interpreter, frame: Frame | None, name: Value, line: int, *, is_path: bool
) -> None:
    """Record that a frame or other data is written to a path or a table."""
    name = path_of(name) if is_path else name
    if isinstance(name, LocatedText) and not name.is_dynamic:
        run.recorder.add_output(dataset_of(run, name, is_path=is_path), frame)
    else:
        kind = "dynamic_path" if is_path else "dynamic_name"
        run.recorder.add_blind_spot(kind, "writes to a name that is only known at run time", line)


_QUALIFIER = re.compile(r"\b[^\W\d]\w*\.(?=[^\W\d])")


def reader_method(run: Interpreter, reader: SparkReader, name: str, node: ast.Call) -> Value:
    """Return the value of a method of `spark.read`."""
    return _read(run, reader, name, clause_args(run, node, "read"))


def writer_method(run: Interpreter, writer: SparkWriter, name: str, node: ast.Call) -> Value:
    """Return the value of a method of `df.write`, and record the output."""
    return _write(run, writer, name, clause_args(run, node, "write"))


def session_method(run: Interpreter, name: str, args: Arguments) -> Value | None:
    """Return the value of a method of a SparkSession; None if it returns no data."""
    first = args.get("", 0) if args.given else next(iter(args.named.values()), None)
    if name == "sql":
        if isinstance(first, LocatedText):
            return run_sql(run, first, dialect="spark")
        run.recorder.add_blind_spot("dynamic_sql", "the query is only known at run time", args.line)
        return UNKNOWN_FRAME
    if name == "table":
        return read_table(run, first, args.line, "spark")
    if name == "createDataFrame":
        return first if isinstance(first, Frame) else Frame()
    return Frame() if name in ("range", "emptyDataFrame") else None


def delta_table(run: Interpreter, how: str, args: Arguments) -> Value:
    """Return a Delta table by name or by path."""
    texts = [value for value in args.given if isinstance(value, LocatedText)]
    if not texts:
        return UNKNOWN
    return DeltaMerge(dataset_of(run, texts[-1], is_path=how == "forPath"))


def merge_method(run: Interpreter, merge: DeltaMerge, name: str, node: ast.Call) -> Value:
    """Follow a merge into a Delta table."""
    args = clause_args(run, node, "join")
    source = args.get("source", 0)
    if name == "toDF":
        return read_dataset(run, merge.table, "spark")
    if name == "merge" and isinstance(source, Frame):
        condition = args.get("condition", 1)
        if isinstance(condition, LocatedText):
            bare = LocatedText(_QUALIFIER.sub("", condition), condition.line)
            deps = condition_deps(run, bare, source, "join")
            source = source.influenced(deps, DependencyKind.JOIN)
        return merge._replace(frame=source)
    if name == "execute" and merge.frame is not None:
        run.recorder.add_output(merge.table, merge.frame)
    if name in ("update", "delete"):
        run.recorder.add_output(merge.table, None)
    return merge

"""Where frames are read from and written to: tables, files, databases, topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.dataset_names import dataset_at, dataset_over_jdbc
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame, read_frame
from downriver.capture.scan.python.interpreter.values import (
    LocatedText,
    SparkReader,
    SparkWriter,
    Value,
)
from downriver.capture.scan.python.sql_text import looks_like_sql, run_sql
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_FILE_FORMATS = frozenset({"parquet", "csv", "json", "orc", "text", "avro", "delta", "xml"})
_BY_HAND = "a function of the user"
_SETTING = frozenset({
    "mode", "partitionBy", "bucketBy", "sortBy", "outputMode", "trigger", "queryName", "schema",
    "using", "tableProperty", "partitionedBy", "clusterBy",
})  # fmt: skip
_WRITES_TO = frozenset({
    "append", "create", "createOrReplace", "overwrite", "overwritePartitions", "replace",
})  # fmt: skip


def dataset_of(run: Interpreter, name: LocatedText, *, is_path: bool) -> DatasetId:
    """Return the dataset a path or the name of a table means."""
    return dataset_at(str(name)) if is_path else run.recorder.around.dataset_for(str(name))


def read_dataset(run: Interpreter, dataset: DatasetId, library: str) -> Frame:
    """Note an input and return its data."""
    run.recorder.reads(dataset)
    run.recorder.framed.add(run.recorder.job.id)
    return read_frame(dataset, run.recorder.around.columns_of, library)


def read_table(run: Interpreter, name: Value, line: int, library: str) -> Frame:
    """Read a table by name; a temporary view is what it was made of."""
    if not isinstance(name, LocatedText) or name.has_holes:
        run.recorder.cannot_see("dynamic_name", "reads a table that only a run knows", line)
        return UNKNOWN_FRAME
    view = run.views.get(name.casefold())
    if view is not None:
        return view
    return read_dataset(run, dataset_of(run, name, is_path=False), library)


def read_path(run: Interpreter, path: Value, line: int, library: str) -> Frame:
    """Read files by path; several paths are one frame."""
    if isinstance(path, list) and path:
        frames = [read_path(run, part, line, library) for part in path]
        result = frames[0]
        for frame in frames[1:]:
            result = result.either(frame)
        return result
    if not isinstance(path, LocatedText) or path.has_holes:
        run.recorder.cannot_see("dynamic_path", "reads a path that only a run knows", line)
        return UNKNOWN_FRAME
    return read_dataset(run, dataset_at(str(path)), library)


# Spark's builders


def read(run: Interpreter, reader: SparkReader, name: str, args: Arguments) -> Value:
    """Follow `spark.read.…`."""
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
        return _read_jdbc(run, args.get("url", 0), args.get("table", 1), args.line)
    if name == "load" and reader.format == "jdbc":
        options = reader.options
        table = options.get("dbtable") or options.get("query")
        return _read_jdbc(run, options.get("url"), table, args.line)
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


def _read_jdbc(run: Interpreter, url: Value, table: Value, line: int) -> Frame:
    if isinstance(table, LocatedText) and looks_like_sql(table.lstrip("( ")):
        return run_sql(run, LocatedText(_unwrapped(table), table.line))
    if isinstance(table, LocatedText) and not table.has_holes:
        dataset = _over_jdbc(run, url, table)
        return read_dataset(run, dataset, "spark")
    run.recorder.cannot_see("dynamic_name", "reads a table that only a run knows", line)
    return UNKNOWN_FRAME


def _unwrapped(query: str) -> str:
    """`(select …) as t` is the query inside."""
    text = query.strip()
    return text[1 : text.rindex(")")] if text.startswith("(") and ")" in text else text


def _over_jdbc(run: Interpreter, url: Value, table: LocatedText) -> DatasetId:
    known = None
    if isinstance(url, LocatedText) and not url.has_holes:
        known = dataset_over_jdbc(str(url), str(table))
    return known or run.recorder.around.dataset_for(str(table))


def _read_topic(run: Interpreter, reader: SparkReader, line: int) -> Frame:
    topic = reader.options.get("subscribe") or reader.options.get("topic")
    servers = reader.options.get("kafka.bootstrap.servers")
    if not isinstance(topic, LocatedText) or topic.has_holes:
        run.recorder.cannot_see("dynamic_name", "reads a topic that only a run knows", line)
        return UNKNOWN_FRAME
    return read_dataset(run, _topic(topic, servers), "spark")


def _topic(topic: LocatedText, servers: Value) -> DatasetId:
    known = isinstance(servers, LocatedText) and not servers.has_holes
    broker = str(servers).partition(",")[0] if known else "unknown"
    return DatasetId(f"kafka://{broker}", str(topic))


def write(run: Interpreter, writer: SparkWriter, name: str, args: Arguments) -> Value:
    """Follow `df.write.…`."""
    first = args.get("path", 0)
    if name == "format" and isinstance(first, LocatedText):
        return writer._replace(format=str(first).lower())
    if name in ("option", "options"):
        return writer._replace(options={**writer.options, **_set(args)})
    if name in _SETTING:
        return writer
    if name in ("saveAsTable", "insertInto", "toTable"):
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
    if writer.format == _BY_HAND:
        return writer
    if name in ("save", "start") or name in _FILE_FORMATS:
        return _write_path(run, writer.frame, first or writer.options.get("path"), args.line)
    if name in ("foreachBatch", "foreach"):
        run.recorder.cannot_see("opaque", f"what {name} writes is not followed", args.line)
        return writer._replace(format=_BY_HAND)
    return writer


def _write_table(run: Interpreter, writer: SparkWriter, name: Value, line: int) -> None:
    if isinstance(name, LocatedText) and not name.has_holes:
        run.recorder.writes(dataset_of(run, name, is_path=False), writer.frame)
    else:
        run.recorder.cannot_see("dynamic_name", "writes a table that only a run knows", line)


def _write_path(run: Interpreter, frame: Frame, path: Value, line: int) -> None:
    if isinstance(path, LocatedText) and not path.has_holes:
        run.recorder.writes(dataset_at(str(path)), frame)
    else:
        run.recorder.cannot_see("dynamic_path", "writes a path that only a run knows", line)


def _write_jdbc(run: Interpreter, writer: SparkWriter, args: Arguments) -> None:
    url = args.get("url", 0) or writer.options.get("url")
    table = args.get("table", 1) or writer.options.get("dbtable")
    if isinstance(table, LocatedText) and not table.has_holes:
        run.recorder.writes(_over_jdbc(run, url, table), writer.frame)
    else:
        run.recorder.cannot_see("dynamic_name", "writes a table that only a run knows", args.line)


def _write_topic(run: Interpreter, writer: SparkWriter, line: int) -> None:
    topic = writer.options.get("topic")
    if isinstance(topic, LocatedText) and not topic.has_holes:
        servers = writer.options.get("kafka.bootstrap.servers")
        run.recorder.writes(_topic(topic, servers), writer.frame)
    else:
        run.recorder.cannot_see("dynamic_name", "writes a topic that only a run knows", line)


def write_frame(run: Interpreter, frame: Frame, name: Value, line: int, *, is_path: bool) -> None:
    """Note that a frame is written to a path or a table."""
    if isinstance(name, LocatedText) and not name.has_holes:
        run.recorder.writes(dataset_of(run, name, is_path=is_path), frame)
    else:
        kind = "dynamic_path" if is_path else "dynamic_name"
        run.recorder.cannot_see(kind, "writes where only a run knows", line)

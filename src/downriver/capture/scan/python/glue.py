"""AWS Glue: dynamic frames that are read from and written to the catalog, S3 and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python import storage
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Function,
    GlueIo,
    GlueSink,
    ImportedName,
    Value,
)
from downriver.columns import DependencyKind, merge_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

# `glueContext.create_dynamic_frame`, and its variants that include the method in their name.
READS = frozenset({"create_dynamic_frame", "create_data_frame"})
WRITES = frozenset({"write_dynamic_frame", "write_data_frame"})
_METHODS = ("from_catalog", "from_options", "from_jdbc_conf")
_TABLE_OPTIONS = ("dbtable", "dbTable", "table", "tableName", "dynamodb.input.tableName",
                  "dynamodb.output.tableName", "dynamodb.export", "collection")  # fmt: skip
_PATH_OPTIONS = ("paths", "path")


def context_method(run: Interpreter, name: str, args: Arguments) -> Value | None:
    """Return the value of a method of a GlueContext; None for any other method."""
    for prefix in (*READS, *WRITES):
        method = name.removeprefix(f"{prefix}_")
        if method != name and method in _METHODS:
            return io_method(run, GlueIo(prefix), method, args)
    if name == "getSink":
        run.recorder.understand()  # `writeFrame` writes
        return GlueSink({**args.named, "connection_type": args.get("connection_type", 0)})
    return None


def io_method(run: Interpreter, io: GlueIo, method: str, args: Arguments) -> Value:
    """Follow `create_dynamic_frame.from_catalog(…)` and its relatives."""
    if method not in _METHODS:
        return UNKNOWN
    is_write = io.name in WRITES
    frame = args.get("frame", 0) if is_write else None
    shift = 1 if is_write else 0
    if method == "from_catalog":
        name = _catalog_table(args.get("database", shift), args.get("table_name", 1 + shift))
        return _table(run, name, frame, args, is_write=is_write)
    options = args.get("connection_options", 1 + shift)
    options = options if isinstance(options, dict) else {}
    paths = next((options[key] for key in _PATH_OPTIONS if key in options), None)
    if paths is not None:
        return _path(run, paths, frame, args, is_write=is_write)
    table = next((options[key] for key in _TABLE_OPTIONS if key in options), None)
    database = options.get("database") or options.get("sfDatabase")
    if isinstance(database, LocatedText) and isinstance(table, LocatedText) and "." not in table:
        table = LocatedText(f"{database}.{table}", table.line)
    if table is None and isinstance(options.get("query"), LocatedText) and not is_write:
        return storage.read_jdbc(run, options.get("url"), options["query"], args.line)
    return _table(run, table, frame, args, is_write=is_write)


def sink_method(run: Interpreter, sink: GlueSink, name: str, args: Arguments) -> Value:
    """Follow `getSink(…)`: its table of the catalog, and the frame that is written."""
    if name == "setCatalogInfo":
        table = _catalog_table(args.get("catalogDatabase", 0), args.get("catalogTableName", 1))
        sink.options["table"] = table
        return sink
    if name in ("writeFrame", "write"):
        frame = args.get("dynamic_frame", 0) or args.get("frame")
        if sink.options.get("path") is not None:
            _path(run, sink.options["path"], frame, args, is_write=True)
        table = sink.options.get("table") or sink.options.get("dbtable")
        if table is not None or sink.options.get("path") is None:
            _table(run, table, frame, args, is_write=True)
        return UNKNOWN
    return sink


def _catalog_table(database: Value, table: Value) -> Value:
    if isinstance(database, LocatedText) and isinstance(table, LocatedText):
        return LocatedText(f"{database}.{table}", table.line)
    return UNKNOWN


def _table(
    run: Interpreter, name: Value, frame: Value, args: Arguments, *, is_write: bool
) -> Value:
    if not is_write:
        return storage.read_table(run, name, args.line, "spark")
    rows = frame if isinstance(frame, Frame) else UNKNOWN_FRAME
    storage.write_frame(run, rows, name, args.line, is_path=False)
    return rows


def _path(
    run: Interpreter, paths: Value, frame: Value, args: Arguments, *, is_write: bool
) -> Value:
    if not is_write:
        return storage.read_path(run, paths, args.line, "spark")
    rows = frame if isinstance(frame, Frame) else UNKNOWN_FRAME
    storage.write_frame(run, rows, paths, args.line, is_path=True)
    return rows


# Transforms: `ApplyMapping.apply(frame=…)`, or `frame.apply_mapping(…)`


def function(run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
    """Return the value of a function of `awsglue`; None if it is not one that returns a frame."""
    if not target.name.startswith("awsglue."):
        return None
    kind, _, name = target.name.rpartition(".")
    if name == "fromDF":
        return args.get("dataframe", 0)
    if name == "getResolvedOptions":
        return None
    frame = args.get("frame", 0) or args.get("frame1") or args.get("dfc")
    if name != "apply" or not isinstance(frame, Frame):
        return None
    handle = _TRANSFORMS.get(kind.rpartition(".")[2])
    return frame if handle is None else handle(run, frame, args._replace(given=args.given[1:]))


def frame_method(run: Interpreter, frame: Frame, name: str, args: Arguments) -> Value | None:
    """Return the value of a method of a dynamic frame; None for any other method."""
    handle = _FRAME_METHODS.get(name)
    return None if handle is None else handle(run, frame, args)


def _apply_mapping(run: Interpreter, frame: Frame, args: Arguments) -> Frame:
    mappings = args.get("mappings", 0)
    if not isinstance(mappings, list):
        return frame.merged(UNKNOWN_FRAME)
    columns = {}
    for mapping in mappings:
        names = [part for part in mapping if isinstance(part, LocatedText)]
        if len(names) >= 2:
            source, target = names[0], names[2] if len(names) > 2 else names[1]
            run.recorder.reference_column(frame, source, source.line, clause="select")
            columns[str(target)] = frame.find(source)
    return frame.select(columns)


def _select_fields(run: Interpreter, frame: Frame, args: Arguments) -> Frame:
    names = _names(args.get("paths", 0))
    for name in names:
        run.recorder.reference_column(frame, name, name.line, clause="select")
    return frame.select({str(name): frame.find(name) for name in names})


def _drop_fields(run: Interpreter, frame: Frame, args: Arguments) -> Frame:
    names = _names(args.get("paths", 0))
    for name in names:
        run.recorder.reference_column(frame, name, name.line, clause="other")
    return frame.without([str(name) for name in names])


def _rename_field(run: Interpreter, frame: Frame, args: Arguments) -> Frame:
    old, new = args.get("old_name", 0), args.get("new_name", 1)
    if not isinstance(old, LocatedText) or not isinstance(new, LocatedText):
        return frame
    run.recorder.reference_column(frame, old, old.line, clause="select")
    return frame.renamed({str(old): str(new)})


def _join(run: Interpreter, frame: Frame, args: Arguments) -> Frame:
    other = args.get("frame2", 0)
    if not isinstance(other, Frame):
        other = next((v for v in args.all() if isinstance(v, Frame) and v is not frame), None)
    if other is None:
        return frame.merged(UNKNOWN_FRAME)
    deps = []
    for owner, keys in ((frame, args.get("keys1", 1)), (other, args.get("keys2", 2))):
        for name in _names(keys):
            run.recorder.reference_column(owner, name, name.line, clause="join")
            deps.append(owner.find(name))
    return frame.merged(other).influenced(merge_all(deps), DependencyKind.JOIN)


def _with_function(run: Interpreter, frame: Frame, args: Arguments) -> Frame:
    """Follow a filter or a map. Its function gets whole records."""
    if any(isinstance(value, Function) for value in args.all()):
        run.recorder.add_blind_spot(
            "opaque", "a function gets whole rows; the columns it uses are unknown", args.line
        )
    return frame


def _names(value: Value) -> list[LocatedText]:
    names = value if isinstance(value, list) else [value]
    return [name for name in names if isinstance(name, LocatedText)]


_TRANSFORMS: dict[str, Callable[[Interpreter, Frame, Arguments], Frame]] = {
    "ApplyMapping": _apply_mapping,
    "SelectFields": _select_fields,
    "DropFields": _drop_fields,
    "RenameField": _rename_field,
    "Join": _join,
    "Filter": _with_function,
    "Map": _with_function,
}


def _same(run: Interpreter, frame: Frame, args: Arguments) -> Frame:
    return frame


_FRAME_METHODS: dict[str, Callable[[Interpreter, Frame, Arguments], Frame]] = {
    "apply_mapping": _apply_mapping,
    "select_fields": _select_fields,
    "drop_fields": _drop_fields,
    "rename_field": _rename_field,
    "resolveChoice": _same,
    "unbox": _same,
    "unnest": _same,
    "relationalize": _same,
}

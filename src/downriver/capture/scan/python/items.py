"""`value.attribute` and `value[key]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.python.columns import column_of, mixed, resolved
from downriver.capture.scan.python.frames import Frame
from downriver.capture.scan.python.modules import imported_value
from downriver.capture.scan.python.values import (
    HOLE,
    UNKNOWN,
    Class,
    Col,
    ColumnNames,
    Dotted,
    Grouped,
    Module,
    Object,
    Reader,
    Session,
    Task,
    Text,
    Unknown,
    Value,
    Writer,
)

if TYPE_CHECKING:
    import ast

    from downriver.capture.scan.python.interpreter import Interpreter

_SAME_FRAME = frozenset({"loc", "iloc", "at", "na", "stat", "T"})
_COLUMN_LISTS = frozenset({"columns", "schema", "dtypes"})
_NO_COLUMNS = frozenset(
    {"index", "shape", "values", "size", "empty", "ndim", "sparkSession", "sql_ctx", "isStreaming",
     "storageLevel", "plot", "style", "attrs"}
)  # fmt: skip


def attribute(run: Interpreter, base: Value, name: str, node: ast.expr) -> Value:
    """Return an attribute of a value."""
    from downriver.capture.scan.python.interpreter import is_session_name

    match base:
        case Frame():
            return _of_frame(run, base, name, node)
        case Dotted():
            return Dotted(f"{base.name}.{name}")
        case Module():
            return imported_value(base.scope.names.get(name, UNKNOWN), node.lineno)
        case Session():
            return Reader() if name in ("read", "readStream") else base
        case Object():
            return _of_object(run, base, name)
        case Col():
            return base  # `.str`, `.dt`: what follows is a method
        case Task():
            return base
        case Grouped() if isinstance(name, str):
            return base._replace(only=(name,))
        case ColumnNames():
            return base
        case Unknown() if is_session_name(name):
            return Session()
        case _:
            return UNKNOWN


def _of_frame(run: Interpreter, frame: Frame, name: str, node: ast.expr) -> Value:
    if name in _COLUMN_LISTS:
        return ColumnNames(frame)
    if name in ("write", "writeStream"):
        return Writer(frame)
    if name in _SAME_FRAME:
        return frame
    if name == "rdd":
        run.recorder.cannot_see("opaque", "what is done with an RDD is not followed", node.lineno)
        return UNKNOWN
    if name in _NO_COLUMNS:
        return UNKNOWN
    return column_of(run, frame, Text(name, node.lineno), node.lineno)


def _of_object(run: Interpreter, instance: Object, name: str) -> Value:
    from downriver.capture.scan.python.interpreter import is_session_name

    if name in instance.fields:
        return instance.fields[name]
    method = run.method(instance, name)
    if method is not None:
        is_property = any("property" in decorator for decorator in method.decorators)
        return run.call(method, (), {}) if is_property else method
    if isinstance(instance.kind, Class) and name in instance.kind.scope.names:
        return instance.kind.scope.names[name]
    return Session() if is_session_name(name) else UNKNOWN


def subscript(run: Interpreter, base: Value, key: Value, node: ast.Subscript) -> Value:
    """Return an item of a value."""
    match base:
        case Frame():
            return _item_of_frame(run, base, key, node)
        case Grouped():
            names = key if isinstance(key, list) else [key]
            return base._replace(only=tuple(n for n in names if isinstance(n, str)))
        case Col():
            return mixed([base, key], "TRANSFORMATION", base.name)
        case dict():
            return base.get(key, UNKNOWN) if isinstance(key, (str, int)) else UNKNOWN
        case list() | tuple() if not hasattr(base, "_fields"):
            is_there = isinstance(key, int) and -len(base) <= key < len(base)
            return base[key] if is_there else UNKNOWN
        case Dotted(name="os.environ"):
            return Text(HOLE, node.lineno)
        case Object():  # a feature view narrowed to some of its features
            return base
        case Task():
            return base
        case _:
            return UNKNOWN


def _item_of_frame(run: Interpreter, frame: Frame, key: Value, node: ast.Subscript) -> Value:
    match key:
        case Text():
            return column_of(run, frame, key, key.line)
        case tuple() if not isinstance(key, Col):  # df.loc[mask, ["a", "b"]]
            result: Value = frame
            for part in key:
                if part is not UNKNOWN and isinstance(result, Frame):
                    result = _item_of_frame(run, result, part, node)
            return result
        case list():
            columns = {}
            for name in key:
                if isinstance(name, Text):
                    columns[str(name)] = column_of(run, frame, name, name.line).deps
            return frame.only(columns)
        case Col():
            return frame.steered(resolved(run, key, frame, "filter"), "FILTER")
        case ColumnNames():
            return frame
        case _:
            return frame

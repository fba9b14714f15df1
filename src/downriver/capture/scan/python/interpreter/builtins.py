"""Attributes, subscripts, Python's built-in functions, and methods of texts, lists and dicts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.scan.located_text import RUNTIME_VALUE, LocatedText
from downriver.capture.scan.python import glue
from downriver.capture.scan.python.frames.columns import column_of, combined, list_columns, resolved
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter.interpreter import imported_value
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Class,
    ColumnExpression,
    ColumnNames,
    ColumnPresence,
    Function,
    FunctionChoice,
    GlueIo,
    GroupedFrame,
    ImportedName,
    Module,
    Object,
    SparkReader,
    SparkSessionValue,
    SparkWriter,
    Task,
    UnknownValue,
    Value,
    read_args,
)
from downriver.columns import DependencyKind
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_SAME_FRAME = frozenset({"loc", "iloc", "at", "na", "stat", "T"})
_COLUMN_LISTS = frozenset({"columns", "schema", "dtypes"})
_NO_COLUMNS = frozenset(
    {"index", "shape", "values", "size", "empty", "ndim", "sparkSession", "sql_ctx", "isStreaming",
     "storageLevel", "plot", "style", "attrs"}
)  # fmt: skip


def attribute(run: Interpreter, base: Value, name: str, node: ast.expr) -> Value:
    """Return an attribute of a value."""
    match base:
        case Frame():
            return _of_frame(run, base, name, node)
        case ImportedName():
            return ImportedName(f"{base.name}.{name}")
        case Module():
            return imported_value(base.scope.names.get(name, UNKNOWN), node.lineno)
        case SparkSessionValue():
            value = _of_unknown(name)
            return base if value is UNKNOWN or isinstance(value, SparkWriter) else value
        case Object():
            path = run.luigi.attribute(base, name)
            return _of_object(run, base, name) if path is None else path
        case ColumnExpression():
            return base  # `.str`, `.dt`: a method follows
        case Task():
            return base
        case GroupedFrame() if isinstance(name, str):
            return base._replace(only=(name,))
        case ColumnNames():
            return base
        case UnknownValue():
            return _of_unknown(name)
        case _:
            return UNKNOWN


def _of_frame(run: Interpreter, frame: Frame, name: str, node: ast.expr) -> Value:
    if name in _COLUMN_LISTS:
        return ColumnNames(frame)
    if name in ("write", "writeStream"):
        return SparkWriter(frame)
    if name in _SAME_FRAME:
        return frame
    if name == "rdd":
        run.recorder.add_blind_spot("opaque", "lineage of RDD operations is unknown", node.lineno)
        return UNKNOWN
    if name in _NO_COLUMNS:
        return UNKNOWN
    return column_of(run, frame, LocatedText(name, node.lineno), node.lineno)


def _of_object(run: Interpreter, instance: Object, name: str) -> Value:
    if name in instance.fields:
        return instance.fields[name]
    method = run.method(instance, name)
    if method is not None:
        is_property = any("property" in decorator for decorator in method.decorators)
        return run.call(method, (), {}) if is_property else method
    if isinstance(instance.kind, Class) and name in instance.kind.scope.names:
        return instance.kind.scope.names[name]
    return _of_unknown(name)


def _of_unknown(name: str) -> Value:
    """Return an attribute of an object of unknown type. `x.read.…` shows that `x` is a session."""
    from downriver.capture.scan.python.interpreter.interpreter import is_session_name

    if name in glue.READS | glue.WRITES:
        return GlueIo(name)
    if name in ("read", "readStream"):
        return SparkReader()
    if name in ("write", "writeStream"):
        return SparkWriter(UNKNOWN_FRAME)
    return SparkSessionValue() if is_session_name(name) else UNKNOWN


def subscript(run: Interpreter, base: Value, key: Value, node: ast.Subscript) -> Value:
    """Return an item of a value."""
    match base:
        case Frame():
            return _item_of_frame(run, base, key, node)
        case GroupedFrame():
            names = key if isinstance(key, list) else [key]
            return base._replace(only=tuple(n for n in names if isinstance(n, str)))
        case ColumnExpression():
            return combined([base, key], DependencyKind.TRANSFORMATION, base.name)
        case dict():
            return _entry(base, key)
        case list() | tuple() if not hasattr(base, "_fields"):
            is_there = isinstance(key, int) and -len(base) <= key < len(base)
            return base[key] if is_there else _any_function(base)
        case ImportedName(name="os.environ"):
            return LocatedText(RUNTIME_VALUE, node.lineno)
        case Object():  # a feature view with some of its features
            return base
        case Task():
            return base
        case _:
            return UNKNOWN


def _entry(entries: dict[Value, Value], key: Value) -> Value:
    if isinstance(key, (str, int)) and key in entries:
        return entries[key]
    return _any_function(entries.values())


def _any_function(values: Iterable[Value]) -> Value:
    """Return a choice between functions, when the key is unknown."""
    functions = tuple(value for value in values if isinstance(value, Function))
    return FunctionChoice(functions) if functions else UNKNOWN


def _item_of_frame(run: Interpreter, frame: Frame, key: Value, node: ast.Subscript) -> Value:
    match key:
        case LocatedText():
            return column_of(run, frame, key, key.line)
        case tuple() if not isinstance(key, ColumnExpression):  # df.loc[mask, ["a", "b"]]
            result: Value = frame
            for part in key:
                if part is not UNKNOWN and isinstance(result, Frame):
                    result = _item_of_frame(run, result, part, node)
            return result
        case list():
            columns = {}
            for name in key:
                if isinstance(name, LocatedText):
                    columns[str(name)] = column_of(run, frame, name, name.line).deps
            return frame.select(columns)
        case ColumnExpression():
            return frame.influenced(resolved(run, key, frame, "filter"), DependencyKind.FILTER)
        case ColumnNames():
            return frame
        case _:
            return frame


_TRIMS = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "removesuffix", "removeprefix"})
_FIELD = re.compile(r"\{(\w*)(?:![rsa])?(?::(?:[^{}]|\{[^{}]*\})*)?\}")


def text_method(run: Interpreter, base: LocatedText, name: str, node: ast.Call) -> Value:
    """Return the value of a method of a text."""
    args = read_args(run, node)
    if name == "format":
        return _formatted(base, args)
    known = all(isinstance(value, str) for value in args.given)
    if name in _TRIMS and known:
        skipped = base[: len(base) - len(base.lstrip())].count("\n") if "strip" in name else 0
        return LocatedText(getattr(str(base), name)(*args.given), base.line + skipped)
    if name == "replace" and len(args.given) == 2:
        old, new = args.given
        shown = new if isinstance(new, str) else RUNTIME_VALUE
        return LocatedText(base.replace(old, shown), base.line) if isinstance(old, str) else base
    if name == "join":
        parts = args.get("", 0)
        texts = parts if isinstance(parts, (list, tuple)) else [UNKNOWN]
        shown = str(base).join(str(t) if isinstance(t, str) else RUNTIME_VALUE for t in texts)
        return LocatedText(shown, args.line)
    if name == "read_text":
        return file_text(run, base)
    if name == "open":  # a path
        return _open(run, args._replace(given=[base, *args.given]))
    if name in ("split", "splitlines") and known:
        return [LocatedText(part, base.line) for part in getattr(str(base), name)(*args.given)]
    return UNKNOWN


def _formatted(text: LocatedText, args: Arguments) -> LocatedText:
    position = iter(args.given)

    def filled(match: re.Match[str]) -> str:
        key = match[1]
        value = args.get(key, int(key)) if key.isdigit() else args.named.get(key)
        if not key:
            value = next(position, None)
        return str(value) if isinstance(value, (str, int, float)) else RUNTIME_VALUE

    return LocatedText(_FIELD.sub(filled, text), text.line)


def file_text(run: Interpreter, path: LocatedText) -> Value:
    """Return the text of a file of the repository, unknown when it is not there."""
    file = run.recorder.context.read_file(str(path))
    return UNKNOWN if file is None else LocatedText(file.text, path.line, from_other_file=True)


_DATA_FILE = re.compile(
    r".*\.(?:csv|tsv|json|jsonl|ndjson|parquet|avro|orc|xml|xlsx?|pkl|pickle|feather|geojson|dat)"
    r"(?:\.(?:gz|bz2|zip|zst))?",
    re.IGNORECASE | re.DOTALL,
)


def _open(run: Interpreter, args: Arguments) -> Object:
    """Return an open file, and record it if its name is that of a file of data."""
    path, mode = args.get("file", 0), args.get("mode", 1)
    if isinstance(path, LocatedText) and not path.is_dynamic:
        run.recorder.understand()
        if _DATA_FILE.fullmatch(path) and isinstance(mode, str) and set(mode) & set("wax"):
            run.recorder.add_output(dataset_at(str(path)), None)
        elif _DATA_FILE.fullmatch(path):
            run.recorder.add_input(dataset_at(str(path)))
    return Object(ImportedName("open"), tuple(args.given), args.named)


def list_method(run: Interpreter, base: list[Value], name: str, node: ast.Call) -> Value:
    """Return the value of a method of a list, which may change the list."""
    args = read_args(run, node)
    if name == "append" and args.given:
        base.append(args.given[0])
    elif name == "extend" and args.given and isinstance(args.given[0], (list, tuple)):
        base.extend(args.given[0])
    elif name in ("issubset", "copy"):
        other = args.get("", 0)
        if isinstance(other, ColumnNames):
            names = [n for n in base if isinstance(n, str)]
            for column in names:
                run.recorder.reference_column(
                    other.frame, column, args.line, clause="other", optional=True
                )
            return ColumnPresence(frozenset(n.casefold() for n in names))
        return base
    return UNKNOWN


def dict_method(run: Interpreter, base: dict[Value, Value], name: str, node: ast.Call) -> Value:
    """Return the value of a method of a dictionary."""
    args = read_args(run, node)
    if name == "get":
        key = args.get("", 0)
        default = args.get("", 1)
        is_dynamic = isinstance(key, LocatedText) and key.is_dynamic
        if isinstance(key, (str, int)) and not is_dynamic:
            return base.get(key, default)
        return _any_function(base.values())
    if name == "items":
        return list(base.items())
    if name == "values":
        return list(base.values())
    return list(base) if name == "keys" else UNKNOWN


def function(run: Interpreter, name: str, args: Arguments) -> Value:
    """Return the value of a built-in function."""
    first = args.get("", 0)
    if name == "open":
        return _open(run, args)
    if name in ("list", "set", "tuple", "sorted", "frozenset"):
        if isinstance(first, ColumnNames):
            return first
        return (
            list(first) if isinstance(first, (list, tuple)) else ([] if first is None else UNKNOWN)
        )
    if name == "dict":
        return {**(first if isinstance(first, dict) else {}), **args.named}
    if name == "str" and isinstance(first, (str, int, float)):
        return LocatedText(str(first), args.line)
    if name == "hasattr" and isinstance(first, Frame) and isinstance(args.get("", 1), LocatedText):
        column = args.given[1]
        run.recorder.reference_column(first, column, args.line, clause="other", optional=True)
        return ColumnPresence(frozenset({column.casefold()}))
    if name == "getattr" and isinstance(first, Frame) and isinstance(args.get("", 1), LocatedText):
        return column_of(run, first, args.given[1], args.line)
    if name == "display":  # of notebooks
        return None
    return (
        combined(args.all(), DependencyKind.TRANSFORMATION) if list_columns(args.all()) else UNKNOWN
    )

"""Python's own functions, and the methods of texts, lists and dictionaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.scan.python.arguments import read_args
from downriver.capture.scan.python.columns import column_of, flat, mixed
from downriver.capture.scan.python.frames import Frame
from downriver.capture.scan.python.values import (
    HOLE,
    UNKNOWN,
    ColumnNames,
    Dotted,
    Object,
    Presence,
    Text,
    Value,
)

if TYPE_CHECKING:
    import ast

    from downriver.capture.scan.python.arguments import Args
    from downriver.capture.scan.python.interpreter import Interpreter

_TRIMS = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "removesuffix", "removeprefix"})
_FIELD = re.compile(r"\{(\w*)(?:![rsa])?(?::[^}]*)?\}")


def text_method(run: Interpreter, base: Text, name: str, node: ast.Call) -> Value:
    """Return what a method of a text returns."""
    args = read_args(run, node)
    if name == "format":
        return _formatted(base, args)
    known = all(isinstance(value, str) for value in args.given)
    if name in _TRIMS and known:
        skipped = base[: len(base) - len(base.lstrip())].count("\n") if "strip" in name else 0
        return Text(getattr(str(base), name)(*args.given), base.line + skipped)
    if name == "replace" and len(args.given) == 2:
        old, new = args.given
        shown = new if isinstance(new, str) else HOLE
        return Text(base.replace(old, shown), base.line) if isinstance(old, str) else base
    if name == "join":
        parts = args.get("", 0)
        texts = parts if isinstance(parts, (list, tuple)) else [UNKNOWN]
        shown = str(base).join(str(t) if isinstance(t, str) else HOLE for t in texts)
        return Text(shown, args.line)
    if name == "read_text":
        return file_text(run, base)
    if name in ("split", "splitlines") and known:
        return [Text(part, base.line) for part in getattr(str(base), name)(*args.given)]
    return UNKNOWN


def _formatted(text: Text, args: Args) -> Text:
    position = iter(args.given)

    def filled(found: re.Match[str]) -> str:
        key = found[1]
        value = args.get(key, int(key)) if key.isdigit() else args.named.get(key)
        if not key:
            value = next(position, None)
        return str(value) if isinstance(value, (str, int, float)) else HOLE

    return Text(_FIELD.sub(filled, text), text.line)


def file_text(run: Interpreter, path: Text) -> Value:
    """Return the text of a file of the repository, unknown when it is not there."""
    found = run.recorder.around.read_file(str(path))
    return UNKNOWN if found is None else Text(found.text, path.line, elsewhere=True)


def list_method(run: Interpreter, base: list[Value], name: str, node: ast.Call) -> Value:
    """Return what a method of a list returns; the list may change."""
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
                run.recorder.names_column(
                    other.frame, column, args.line, clause="other", maybe=True
                )
            return Presence(frozenset(n.casefold() for n in names))
        return base
    return UNKNOWN


def dict_method(run: Interpreter, base: dict[Value, Value], name: str, node: ast.Call) -> Value:
    """Return what a method of a dictionary returns."""
    args = read_args(run, node)
    if name == "get":
        key = args.get("", 0)
        default = args.get("", 1)
        return base.get(key, default) if isinstance(key, (str, int)) else UNKNOWN
    if name == "items":
        return list(base.items())
    if name == "values":
        return list(base.values())
    return list(base) if name == "keys" else UNKNOWN


def function(run: Interpreter, name: str, args: Args) -> Value:
    """Return what one of Python's own functions returns."""
    first = args.get("", 0)
    if name == "open":
        return Object(Dotted("open"), tuple(args.given), args.named)
    if name in ("list", "set", "tuple", "sorted", "frozenset"):
        if isinstance(first, ColumnNames):
            return first
        return (
            list(first) if isinstance(first, (list, tuple)) else ([] if first is None else UNKNOWN)
        )
    if name == "dict":
        return {**(first if isinstance(first, dict) else {}), **args.named}
    if name == "str" and isinstance(first, (str, int, float)):
        return Text(str(first), args.line)
    if name == "hasattr" and isinstance(first, Frame) and isinstance(args.get("", 1), Text):
        column = args.given[1]
        run.recorder.names_column(first, column, args.line, clause="other", maybe=True)
        return Presence(frozenset({column.casefold()}))
    if name == "getattr" and isinstance(first, Frame) and isinstance(args.get("", 1), Text):
        return column_of(run, first, args.given[1], args.line)
    if name == "display":  # of notebooks
        return None
    return mixed(args.all(), "TRANSFORMATION") if flat(args.all()) else UNKNOWN

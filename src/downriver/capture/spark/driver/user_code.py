"""The code of a Spark job: its constants, and whether it contains the data of a frame."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# Calls whose result depends only on their arguments.
_CONSTRUCTORS = frozenset(
    {"DataFrame", "Decimal", "Row", "array", "bytes", "date", "datetime", "dict", "float", "int",
     "list", "range", "str", "timedelta", "tuple", "zip", "enumerate", "Timestamp"}
)  # fmt: skip
_CALL = "createDataFrame"
_INSIDE = re.compile(r"[\w.-]+|(?<=')[^']*(?=')")  # words and numbers, and strings of SQL


class CodeFile(NamedTuple):
    """A parsed file: its calls that make frames, its assignments, and the text of its constants."""

    calls: tuple[ast.Call, ...]
    assigned: dict[str, list[ast.expr]]
    values: frozenset[str]  # also those inside of string constants, which may be SQL
    groups: tuple[frozenset[str], ...]  # values of one list, tuple or string


def is_library(frame: FrameType | None) -> bool:
    """Return whether a frame is code of PySpark, which calls its own methods: `toDF`, `first`."""
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("pyspark.")


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame that is not code of PySpark."""
    while is_library(frame):
        frame = None if frame is None else frame.f_back
    return frame


def writes_its_data(frame: FrameType | None) -> bool:
    """Return whether the data of a `createDataFrame` call is a constant in the code."""
    code = None if frame is None else read_code(frame.f_code.co_filename)
    if frame is None or code is None:
        return False
    calls = [
        call
        for call in code.calls
        if call.lineno <= frame.f_lineno <= (call.end_lineno or call.lineno)
    ]
    data = [_data(call) for call in calls]
    return bool(data) and all(value is not None and _is_written(value, code) for value in data)


def contains_together(values: set[str]) -> bool:
    """Return whether the code of the job contains these values: several of them in one list."""
    for filename in _user_files():
        code = read_code(filename)
        if code is None or not values <= code.values:
            continue
        if len(values) == 1 or any(values <= group for group in code.groups):
            return True
    return False


def _user_files() -> Iterator[str]:
    """Yield the files of the loaded modules, and the cells of a notebook, but no libraries."""
    own = os.path.dirname(sys.modules["downriver"].__file__ or "")
    libraries = (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), own)
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    for filename in dict.fromkeys([*list(linecache.cache), *loaded]):
        if filename and not filename.startswith(libraries) and "site-packages" not in filename:
            yield filename


def read_code(filename: str) -> CodeFile | None:
    """Return the parsed code of a file or notebook cell, if its source is known."""
    lines = linecache.getlines(filename)
    return _parsed("".join(lines)) if lines else None


@functools.lru_cache(maxsize=64)
def _parsed(source: str) -> CodeFile | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    calls: list[ast.Call] = []
    assigned: dict[str, list[ast.expr]] = {}
    values: set[str | None] = set()
    groups: list[set[str | None]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name == _CALL:
                calls.append(node)
            case ast.Assign(targets=[ast.Name(id=name)]):
                assigned.setdefault(name, []).append(node.value)
            case ast.AugAssign(target=ast.Name(id=name)):
                assigned.setdefault(name, []).append(node.value)
            case ast.Constant(value=value):
                values.add(value_text(value))
                if isinstance(value, str):
                    groups.append(set(map(value_text, _INSIDE.findall(value))))
                    values |= groups[-1]
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                constants = [each.value for each in elements if isinstance(each, ast.Constant)]
                groups.append(set(map(value_text, constants)))
    return CodeFile(
        tuple(calls),
        assigned,
        frozenset(filter(None, values)),
        tuple(frozenset(filter(None, group)) for group in groups if len(group) > 1),
    )


def value_text(value: object) -> str | None:
    """Return a scalar as text that is equal for equal values; None for any other value."""
    if value is None or isinstance(value, (bool, bytes, list, dict, set)):
        return None
    text = str(value)
    if len(text) > _LONGEST:
        return None
    try:
        return repr(float(text))
    except ValueError:
        return text.removesuffix(" 00:00:00")


_LONGEST = 200


def _data(call: ast.Call) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((keyword.value for keyword in call.keywords if keyword.arg == "data"), None)


def _is_written(value: ast.expr, code: CodeFile) -> bool:
    """Return whether a value consists of constants, and of names that have only such values."""
    known: set[str] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name) if name in known:
                pass
            case ast.Name(id=name) if name in code.assigned:
                known.add(name)
                waiting += code.assigned[name]
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name not in _CONSTRUCTORS:
                    return False
                waiting += [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.ListComp(elt=element, generators=generators):
                for generator in generators:
                    targets = ast.walk(generator.target)
                    known |= {each.id for each in targets if isinstance(each, ast.Name)}
                    waiting.append(generator.iter)
                waiting.append(element)
            case ast.Constant() | ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.UnaryOp():
                waiting += _parts(node)
            case ast.BinOp() | ast.JoinedStr() | ast.FormattedValue():
                waiting += _parts(node)
            case _:
                return False
    return True


def _parts(node: ast.expr) -> list[ast.expr]:
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]

"""The steps that derive frames and columns, in a canonical form.

Variables are replaced by their values. Two versions of code that differ only in layout, comments,
names of variables or the order of independent lines have equal steps. A change of a constant, a
function or a condition changes a step.
"""

from __future__ import annotations

import ast
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from downriver.capture.code import DerivationStep
from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.interpreter.values import (
    Class,
    ColumnExpression,
    Function,
    ImportedName,
    Module,
    Object,
    SparkSessionValue,
    Value,
)
from downriver.capture.sql import normalize_query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter

_LONGEST = 4_000  # characters; a longer expression is replaced by its hash
_DEEPEST = 60
# Steps that change neither rows nor columns.
_SILENT = frozenset({
    "alias", "cache", "persist", "unpersist", "checkpoint", "localCheckpoint", "repartition",
    "coalesce", "hint", "toPandas", "copy", "show", "printSchema", "repartitionByRange",
})  # fmt: skip
_SELECTING = frozenset({"select", "selectExpr", "agg"})
_QUERYING = frozenset({"sql", "read_sql", "read_sql_query", "query"})


def with_steps(run: Interpreter, node: ast.expr, value: Value) -> Value:
    """Return a frame or a column with the steps that derive it."""
    if isinstance(node, ast.Name) or not isinstance(value, (Frame, ColumnExpression)):
        return value
    if isinstance(node, ast.Call) and _is_own_function(run, node.func):
        derived = value  # the steps were recorded while the function was followed
    elif isinstance(value, Frame):
        steps = _source(run, node, value) or _steps_of(run, node)
        derived = msgspec.structs.replace(value, steps=steps)
    else:
        derived = value._replace(text=canonical_text(run, node))
    run.derived[node] = derived
    return derived


def with_assignment(
    run: Interpreter, frame: Frame, target: ast.Subscript, value: ast.expr
) -> Frame:
    """Return a frame after `frame[key] = value`."""
    key = target.slice.elts[-1] if isinstance(target.slice, ast.Tuple) else target.slice
    where = canonical_text(run, target.slice) if isinstance(target.slice, ast.Tuple) else ""
    columns = tuple(sorted(_names_in(run, key)))
    step = DerivationStep(columns, _bounded(f"set {where} {canonical_text(run, value)}"))
    return msgspec.structs.replace(frame, steps=(*frame.steps, step))


def with_condition(
    run: Interpreter, test: ast.expr, names: dict[str, Value], before: dict[str, Value]
) -> dict[str, Value]:
    """Return variables after an `if`; frames it changed get its condition as a step."""
    step = DerivationStep((), _bounded(f"if {canonical_text(run, test)}"))
    return {
        name: msgspec.structs.replace(value, steps=(*value.steps, step))
        if isinstance(value, Frame) and value.steps != getattr(before.get(name), "steps", None)
        else value
        for name, value in names.items()
    }


def _is_own_function(run: Interpreter, called: ast.expr) -> bool:
    """Whether a call is one of a function of the repository."""
    root = called
    while isinstance(root, ast.Attribute):
        root = root.value
    known = run.scope.find(root.id) if isinstance(root, ast.Name) else None
    if isinstance(known, Function):
        return root is called and not any(name.endswith("udf") for name in known.decorators)
    return isinstance(known, (Module, Object))


# Steps


def _source(run: Interpreter, node: ast.expr, frame: Frame) -> tuple[DerivationStep, ...]:
    """Return the step of reading data, equal for every way to write it; else nothing."""
    parts = [part for part in ast.walk(node) if part is not node]
    if any(isinstance(_value_at(run, part), Frame) for part in parts):
        return ()
    called = node.func if isinstance(node, ast.Call) else node
    name = getattr(called, "attr", getattr(called, "id", ""))
    if name in _QUERYING and isinstance(node, ast.Call):
        return (DerivationStep((), f"query({_argument_texts(run, node)})"),)
    return (DerivationStep((), f"read {' '.join(map(str, frame.datasets()))}"),)


def _value_at(run: Interpreter, node: ast.AST) -> Value:
    if isinstance(node, ast.Name):
        return run.scope.find(node.id)
    return run.derived.get(node)


def _steps_of(run: Interpreter, node: ast.expr) -> tuple[DerivationStep, ...]:
    match node:
        case ast.Name(id=name):
            value = run.scope.find(name)
            return (
                value.steps
                if isinstance(value, Frame)
                else (DerivationStep((), canonical_text(run, node)),)
            )
        case ast.Call(func=ast.Attribute(value=base, attr=name)):
            return (*_base_steps(run, base), *_call_steps(run, name, node))
        case ast.Attribute(value=base, attr=name):
            return (*_base_steps(run, base), *_step(name, ()))
        case ast.Subscript(value=base, slice=key):
            picked = tuple(sorted(_names_in(run, key)))
            if picked and not isinstance(key, (ast.Compare, ast.BoolOp, ast.BinOp, ast.Call)):
                return _base_steps(run, base)  # columns selected without change
            return (
                *_base_steps(run, base),
                DerivationStep((), _bounded(f"[{canonical_text(run, key)}]")),
            )
        case _:
            return (DerivationStep((), canonical_text(run, node)),)


def _base_steps(run: Interpreter, base: ast.expr) -> tuple[DerivationStep, ...]:
    """Return the steps of the object a method is called on."""
    known = run.derived.get(base)
    return known.steps if isinstance(known, Frame) else _steps_of(run, base)


def _call_steps(run: Interpreter, name: str, node: ast.Call) -> Iterator[DerivationStep]:
    if name in _SILENT:
        return
    if name in _SELECTING:
        for part in node.args:
            for item in part.elts if isinstance(part, ast.List) else [part]:
                yield from _selected(run, item)
        for option in node.keywords:
            yield DerivationStep((option.arg or "*",), canonical_text(run, option.value))
    elif name in ("withColumn", "insert"):
        at = 0 if name == "withColumn" else 1
        columns = tuple(_names_in(run, node.args[at])) if len(node.args) > at else ()
        yield DerivationStep(
            columns, _bounded(", ".join(canonical_text(run, a) for a in node.args[at + 1 :]))
        )
    elif name == "assign":
        for option in node.keywords:
            yield DerivationStep((option.arg or "*",), canonical_text(run, option.value))
    elif name not in _RENAMING:
        yield DerivationStep((), _bounded(f"{name}({_argument_texts(run, node)})"))


# Their effect shows in the names of the output columns.
_RENAMING = frozenset({"withColumnRenamed", "withColumnsRenamed", "rename", "drop", "toDF"})


def _selected(run: Interpreter, item: ast.expr) -> Iterator[DerivationStep]:
    """Yield the step of one selected column. A column selected without change has none."""
    value = run.derived.get(item)
    name = value.name if isinstance(value, ColumnExpression) else ""
    if isinstance(item, ast.Constant) and str(item.value).isidentifier():
        return
    text = canonical_text(run, item)
    if not isinstance(item, ast.Name) or name:
        yield DerivationStep((name,) if name else (), _bounded(text))


def _step(name: str, columns: tuple[str, ...]) -> Iterator[DerivationStep]:
    if name not in _SILENT:
        yield DerivationStep(columns, name)


def _names_in(run: Interpreter, key: ast.expr) -> Iterator[str]:
    for node in ast.walk(key):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name):
            value = run.scope.find(node.id)
            yield from (str(v) for v in _items(value) if isinstance(v, str))


def _items(value: Value) -> list[Value]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


# Expressions


def canonical_text(run: Interpreter, node: ast.AST, depth: int = 0) -> str:
    """Return an expression as text in which variables are replaced by their values."""
    if depth > _DEEPEST:
        return _digest(ast.dump(node))
    match node:
        case ast.Name(id=name):
            return _value_text(run.scope.find(name), name)
        case ast.Constant(value=value):
            return _constant(value)
        case ast.Attribute(value=base, attr=name):
            if isinstance(_value_at(run, base), Frame):
                return f"column {name!r}"
            return f"{canonical_text(run, base, depth + 1)}.{name}"
        case ast.Subscript(value=base, slice=key) if isinstance(_value_at(run, base), Frame):
            return f"column {canonical_text(run, key, depth + 1)}"
        case ast.Call(func=called, args=[ast.Constant(value=str(name))]) if _makes_column(
            run, called
        ):
            return f"column {name!r}"
        case ast.Call(func=called):
            return f"{canonical_text(run, called, depth + 1)}({_argument_texts(run, node, depth)})"
        case _:
            return f"{type(node).__name__}({', '.join(_fields(run, node, depth))})"


def _makes_column(run: Interpreter, called: ast.expr) -> bool:
    return canonical_text(run, called).rpartition(".")[2] in ("col", "column")


def _argument_texts(run: Interpreter, node: ast.Call, depth: int = 0) -> str:
    given = [canonical_text(run, part, depth + 1) for part in node.args]
    named = sorted(f"{o.arg}={canonical_text(run, o.value, depth + 1)}" for o in node.keywords)
    return _bounded(", ".join([*given, *named]))


def _fields(run: Interpreter, node: ast.AST, depth: int) -> Iterator[str]:
    for name, value in ast.iter_fields(node):
        if name == "ctx":
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield canonical_text(run, part, depth + 1)
            elif part is not None:
                yield repr(part)


def _value_text(value: Value, name: str) -> str:
    match value:
        case Frame(steps=steps):
            return f"frame:{_digest(repr(sorted(steps)))}"
        case ColumnExpression(text=text) if text:
            return text
        case ImportedName(name=full_name):
            return full_name
        case SparkSessionValue():
            return "session"
        case Function(node=node) | Class(node=node):
            return f"code:{_digest(_code(node))}"
        case LocatedText() | int() | float() | bool():
            return _constant(value)
        case list() | tuple() if not hasattr(value, "_fields"):
            return f"[{', '.join(_value_text(item, '?') for item in value)}]"
        case _:
            return name


def _code(node: ast.AST) -> str:
    """Return code without its docstring and comments."""
    body = getattr(node, "body", None)
    if isinstance(body, list):
        first = body[0] if body else None
        is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        body = body[1:] if is_text else body
        return "\n".join([ast.unparse(node.args) if hasattr(node, "args") else "",
                          *map(ast.unparse, body)])  # fmt: skip
    return ast.unparse(node)


def _constant(value: object) -> str:
    if isinstance(value, str) and len(value) > 12 and " " in value.strip():
        return repr(_normal(str(value)))
    return repr(str(value) if isinstance(value, str) else value)


@lru_cache(maxsize=1024)
def _normal(text: str) -> str:
    """Return a query in canonical form; any other text unchanged."""
    return normalize_query(text) or text


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]

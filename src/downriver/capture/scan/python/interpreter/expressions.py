"""Evaluates expressions: constants, texts, columns and frames."""

from __future__ import annotations

import ast
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from downriver.capture.scan.located_text import RUNTIME_VALUE, LocatedText
from downriver.capture.scan.python.frames.columns import merged, transformed, with_optional
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.frames.steps import with_steps
from downriver.capture.scan.python.interpreter.builtins import attribute, subscript
from downriver.capture.scan.python.interpreter.calls import call
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    ColumnExpression,
    ColumnNames,
    ColumnPresence,
    Function,
    NameScope,
    SparkSessionValue,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter

_PERCENT = re.compile(r"%(?:\((\w+)\))?[sdrif]")
_MOST_ROUNDS = 200
_CONDITIONS = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Call)


def evaluate(run: Interpreter, node: ast.expr) -> Value:
    """Return the value of an expression, as far as it is known."""
    if not run.step():
        return UNKNOWN
    value = _EXPRESSIONS.get(type(node), _unknown)(run, node)
    return with_steps(run, node, value)


def _unknown(run: Interpreter, node: ast.expr) -> Value:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            evaluate(run, child)
    return UNKNOWN


def _constant(run: Interpreter, node: ast.Constant) -> Value:
    return LocatedText(node.value, node.lineno) if isinstance(node.value, str) else node.value


def _name(run: Interpreter, node: ast.Name) -> Value:
    if run.scope.has(node.id):
        return run.scope.find(node.id)
    # Notebooks and spark-submit define a session with this name.
    return SparkSessionValue() if node.id in ("spark", "sqlContext") else UNKNOWN


def _attribute(run: Interpreter, node: ast.Attribute) -> Value:
    return attribute(run, evaluate(run, node.value), node.attr, node)


def _subscript(run: Interpreter, node: ast.Subscript) -> Value:
    base = evaluate(run, node.value)
    is_mask = isinstance(base, Frame) and isinstance(node.slice, _CONDITIONS)
    with run.recorder.clause("filter") if is_mask else nullcontext():
        key = evaluate(run, node.slice)
    return subscript(run, base, key, node)


def _sequence(run: Interpreter, node: ast.List | ast.Tuple | ast.Set) -> Value:
    items: list[Value] = []
    for part in node.elts:
        value = evaluate(run, part.value if isinstance(part, ast.Starred) else part)
        if isinstance(part, ast.Starred) and isinstance(value, (list, tuple)):
            items += value
        else:
            items.append(value)
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _dict(run: Interpreter, node: ast.Dict) -> Value:
    entries: dict[Value, Value] = {}
    for key, part in zip(node.keys, node.values, strict=True):
        value = evaluate(run, part)
        if key is None:
            entries.update(value if isinstance(value, dict) else {})
            continue
        known = evaluate(run, key)
        if isinstance(known, (str, int)):
            entries[known] = value
    return entries


# Text


def _join_text(run: Interpreter, node: ast.JoinedStr) -> Value:
    parts = [
        str(part.value) if isinstance(part, ast.Constant) else _shown(evaluate(run, part.value))
        for part in node.values
        if isinstance(part, (ast.Constant, ast.FormattedValue))
    ]
    return LocatedText("".join(parts), node.lineno)


def _shown(value: Value) -> str:
    return str(value) if isinstance(value, (str, int, float)) else RUNTIME_VALUE


def _binary(run: Interpreter, node: ast.BinOp) -> Value:
    left, right = evaluate(run, node.left), evaluate(run, node.right)
    is_order = isinstance(node.op, ast.RShift | ast.LShift)
    if is_order and run.airflow.order(left, right, reverse=isinstance(node.op, ast.LShift)):
        return right
    if isinstance(left, LocatedText) and isinstance(node.op, ast.Mod):
        return _formatted(left, right)
    if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
        return LocatedText(left + right, getattr(left, "line", node.lineno))
    if isinstance(node.op, ast.Add) and (
        isinstance(left, LocatedText) or isinstance(right, LocatedText)
    ):
        return LocatedText(_shown(left) + _shown(right), node.lineno)
    if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
        return left + right
    if isinstance(node.op, ast.Div) and isinstance(left, LocatedText):  # a path
        return LocatedText(f"{left.rstrip('/')}/{_shown(right)}", left.line)
    return transformed(run, [left, right])


def _formatted(text: LocatedText, given: Value) -> LocatedText:
    values = list(given) if isinstance(given, tuple) else [given]

    def filled(match: re.Match[str]) -> str:
        if match[1]:
            return _shown(given.get(match[1])) if isinstance(given, dict) else RUNTIME_VALUE
        return _shown(values.pop(0)) if values else RUNTIME_VALUE

    return LocatedText(_PERCENT.sub(filled, text), text.line)


# Columns and tests for them


def _compare(run: Interpreter, node: ast.Compare) -> Value:
    left = evaluate(run, node.left)
    rights = [evaluate(run, other) for other in node.comparators]
    names = rights[0]
    if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(names, ColumnNames):
        return _presence(run, left, names.frame, node, negated=isinstance(node.ops[0], ast.NotIn))
    if isinstance(node.ops[0], ast.LtE) and isinstance(names, ColumnNames):
        return _presence(run, left, names.frame, node, negated=False)
    return transformed(run, [left, *rights])


def _presence(
    run: Interpreter, left: Value, frame: Frame, node: ast.expr, *, negated: bool
) -> ColumnPresence:
    """Record columns that code tests for before it uses them."""
    names = [n for n in (left if isinstance(left, (list, tuple)) else [left]) if isinstance(n, str)]
    for name in names:
        run.recorder.reference_column(frame, name, node.lineno, clause="other", optional=True)
    return ColumnPresence(frozenset(name.casefold() for name in names), negated)


def _bool(run: Interpreter, node: ast.BoolOp) -> Value:
    values = []
    guard: frozenset[str] = frozenset()
    for part in node.values:  # `"x" in df.columns and …` guards the rest
        with run.recorder.guarded(guard if isinstance(node.op, ast.And) else frozenset()):
            values.append(evaluate(run, part))
        if isinstance(values[-1], ColumnPresence) and not values[-1].negated:
            guard |= values[-1].names
    asked = [v for v in values if isinstance(v, ColumnPresence)]
    if asked and isinstance(node.op, ast.And):
        return ColumnPresence(frozenset().union(*(v.names for v in asked)), asked[0].negated)
    if asked:
        return asked[0] if all(v.negated for v in asked) else UNKNOWN
    if isinstance(node.op, ast.Or):
        known = [v for v in values if v is not UNKNOWN and v is not None]
        if known and not any(isinstance(v, ColumnExpression) for v in known):
            return known[-1]
    return transformed(run, values)


def _unary(run: Interpreter, node: ast.UnaryOp) -> Value:
    value = evaluate(run, node.operand)
    if isinstance(value, ColumnPresence) and isinstance(node.op, ast.Not):
        return value._replace(negated=not value.negated)
    if isinstance(value, (int, float)) and isinstance(node.op, ast.USub):
        return -value
    return transformed(run, [value])


def _if_else(run: Interpreter, node: ast.IfExp) -> Value:
    from downriver.capture.scan.python.interpreter.statements import either

    test = evaluate(run, node.test)
    has = test.names if isinstance(test, ColumnPresence) and not test.negated else frozenset[str]()
    lacks = test.names if isinstance(test, ColumnPresence) and test.negated else frozenset[str]()
    with run.recorder.guarded(has):
        first = _guarded(evaluate(run, node.body), has)
    with run.recorder.guarded(lacks):
        second = _guarded(evaluate(run, node.orelse), lacks)
    if isinstance(first, ColumnExpression) and isinstance(second, ColumnExpression):
        name = first.name or second.name
        return merged([first, second], name)
    return either(first, second)


def _guarded(value: Value, guard: frozenset[str]) -> Value:
    """Return a column expression with the uses of guarded columns marked as optional."""
    if isinstance(value, ColumnExpression):
        return with_optional(value, guard)
    return value


# Comprehensions and the rest


def _comprehension(run: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    values: list[Value] = []
    first = node.generators[0]
    items = evaluate(run, first.iter)
    if isinstance(items, ColumnNames) and isinstance(node.elt, ast.Name):
        for condition in first.ifs:
            evaluate(run, condition)
        return items
    before, run.scope = run.scope, NameScope(run.scope)
    try:
        for item in rounds_of(run, items, node.lineno):
            values += _round(run, node, item)
    finally:
        run.scope = before
    return values if isinstance(items, (list, tuple)) else UNKNOWN


def rounds_of(run: Interpreter, items: Value, line: int) -> list[Value]:
    """Return the items of a loop. Loops over unknown items have one round."""
    if not isinstance(items, (list, tuple)) or hasattr(items, "_fields"):
        return [UNKNOWN]
    if len(items) > _MOST_ROUNDS:
        run.recorder.add_blind_spot(
            "too_large",
            f"only {_MOST_ROUNDS} of the {len(items)} iterations of a loop were read",
            line,
        )
    return list(items[:_MOST_ROUNDS])


def _round(
    run: Interpreter, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, item: Value
) -> list[Value]:
    from downriver.capture.scan.python.interpreter.statements import bind

    bind(run, node.generators[0].target, item)
    for inner in node.generators[1:]:
        evaluate(run, inner.iter)
        bind(run, inner.target, UNKNOWN)
    asked = [evaluate(run, c) for generator in node.generators for c in generator.ifs]
    names = frozenset[str]().union(*(v.names for v in asked if isinstance(v, ColumnPresence)))
    with run.recorder.guarded(names):
        value = _guarded(evaluate(run, node.elt), names)
    if isinstance(value, LocatedText) and value.casefold() in names:
        value = LocatedText(value, value.line, optional=True)
    return [value]


def _lambda(run: Interpreter, node: ast.Lambda) -> Value:
    return Function(node, run.scope)


def _await(run: Interpreter, node: ast.Await) -> Value:
    return evaluate(run, node.value)


def _yield(run: Interpreter, node: ast.Yield) -> Value:
    if node.value is not None:
        run.yielded.append(evaluate(run, node.value))
    return UNKNOWN


def _yield_from(run: Interpreter, node: ast.YieldFrom) -> Value:
    items = evaluate(run, node.value)
    is_list = isinstance(items, list | tuple) and not hasattr(items, "_fields")
    run.yielded += items if is_list else [items]
    return UNKNOWN


def _walrus(run: Interpreter, node: ast.NamedExpr) -> Value:
    value = evaluate(run, node.value)
    run.scope.names[node.target.id] = value
    return value


def _slice(run: Interpreter, node: ast.Slice) -> Value:
    return UNKNOWN


_EXPRESSIONS: dict[type[ast.expr], Callable[[Interpreter, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: call,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.JoinedStr: _join_text,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: _bool,
    ast.UnaryOp: _unary,
    ast.IfExp: _if_else,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Lambda: _lambda,
    ast.Await: _await,
    ast.NamedExpr: _walrus,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Slice: _slice,
}

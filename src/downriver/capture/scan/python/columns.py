"""Expressions over columns: what they use, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan.python.expression_text import expression_columns
from downriver.capture.scan.python.frames import NOTHING, Deps, Frame, through
from downriver.capture.scan.python.values import UNKNOWN, Col, Text, Use, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.interpreter import Interpreter


def column_of(run: Interpreter, frame: Frame, name: Text, line: int) -> Col:
    """Return a column of a frame, and note that it is named."""
    run.recorder.names_column(frame, name, line, maybe=name.maybe)
    return Col(frame.find(name), (), str(name).rpartition(".")[2])


def named_column(name: str, line: int, *, maybe: bool = False) -> Col:
    """Return a column by name, of the frame it will be used on."""
    return Col(NOTHING, (Use(name, "IDENTITY", line, maybe),), name.rpartition(".")[2])


def mixed(values: Iterable[Value], subtype: str, name: str = "") -> Col:
    """Return an expression made of others, each used in this way."""
    deps: Deps = NOTHING
    uses: list[Use] = []
    for value in flat(values):
        deps |= through(value.deps, subtype)
        uses += [use._replace(subtype=_stronger(use.subtype, subtype)) for use in value.uses]
    return Col(deps, tuple(uses), name)


def flat(values: Iterable[Value]) -> list[Col]:
    """Return the columns among values, those inside lists too."""
    found: list[Col] = []
    for value in values:
        if isinstance(value, Col):
            found.append(value)
        elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            found += flat(value)
    return found


def transformed(run: Interpreter, values: list[Value]) -> Value:
    """Return what an operator makes of values: a column if one of them is, else unknown."""
    return mixed(values, "TRANSFORMATION") if flat(values) else UNKNOWN


def united(values: Iterable[Col], name: str = "") -> Col:
    """Return several expressions as one, each used as it is."""
    deps: Deps = NOTHING
    uses: tuple[Use, ...] = ()
    for value in values:
        deps |= value.deps
        uses += value.uses
    return Col(deps, uses, name)


def resolved(run: Interpreter, column: Col, frame: Frame, clause: Clause) -> Deps:
    """Return what an expression depends on, used on a frame; note the columns it names there."""
    found = column.deps
    for use in column.uses:
        run.recorder.names_column(frame, use.name, use.line, clause=clause, maybe=use.maybe)
        found |= through(frame.find(use.name), use.subtype)
    return found


def _stronger(inner: str, outer: str) -> str:
    order = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")
    if outer not in order:
        return outer
    return inner if inner not in order else max(inner, outer, key=order.index)


def deps_of(run: Interpreter, value: Value, frame: Frame, clause: Clause) -> Deps:
    """Return what an argument depends on: a column, its name, or several."""
    if isinstance(value, Text):
        column = named_column(value, value.line, maybe=value.maybe)
        return resolved(run, column, frame, clause)
    found: Deps = NOTHING
    for column in flat([value]):
        found |= resolved(run, column, frame, clause)
    if isinstance(value, (list, tuple)) and not isinstance(value, Col):
        for part in value:
            if isinstance(part, (Text, list)):
                found |= deps_of(run, part, frame, clause)
    return found


def condition_deps(run: Interpreter, value: Value, frame: Frame, clause: Clause) -> Deps:
    """Return what a condition looks at; a text is an expression, not a name."""
    if isinstance(value, Text):
        return resolved(run, united(expression_columns(value)), frame, clause)
    return deps_of(run, value, frame, clause)

"""The arguments of a call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan.python.values import Value

if TYPE_CHECKING:
    from downriver.capture.code.job import Clause
    from downriver.capture.scan.python.interpreter import Interpreter


class Args(NamedTuple):
    """The arguments of a call, as far as they are known."""

    given: list[Value]
    named: dict[str, Value]
    line: int

    def get(self, name: str, position: int = -1) -> Value:
        """Return an argument by name or else by position; None when it is not given."""
        if name in self.named:
            return self.named[name]
        return self.given[position] if 0 <= position < len(self.given) else None

    def all(self) -> list[Value]:
        """Return every argument."""
        return [*self.given, *self.named.values()]


def line_of_call(node: ast.Call) -> int:
    """Return the line a call is written on: that of its name, in a chain over several lines."""
    return node.func.end_lineno or node.lineno


def read_args(run: Interpreter, node: ast.Call) -> Args:
    """Evaluate the arguments of a call."""
    from downriver.capture.scan.python.expressions import evaluate

    given: list[Value] = []
    for part in node.args:
        value = evaluate(run, part.value if isinstance(part, ast.Starred) else part)
        spread = isinstance(part, ast.Starred) and isinstance(value, (list, tuple))
        if spread and not hasattr(value, "_fields"):
            given += value
        else:
            given.append(value)
    named: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(run, keyword.value)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(value, dict):
            named.update({str(key): item for key, item in value.items()})
    return Args(given, named, line_of_call(node))


def clause_args(run: Interpreter, node: ast.Call, clause: Clause) -> Args:
    """Evaluate the arguments of a call that says what columns are named for."""
    with run.recorder.clause(clause):
        return read_args(run, node)

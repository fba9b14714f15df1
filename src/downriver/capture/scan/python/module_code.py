"""The top-level statements of a Python file, and the names they use of each other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan.python.module import (
    NotebookError,
    convert_databricks,
    read_notebook,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class _Statement(NamedTuple):
    """A top-level statement: its lines, what it defines and uses, and its code without layout."""

    first: int
    last: int
    defines: frozenset[str]
    uses: frozenset[str]
    code: str
    imports: bool


class ModuleCode(NamedTuple):
    """The top-level statements of a module."""

    statements: list[_Statement]

    def code_for(self, lines: Iterable[int]) -> set[str]:
        """Return the code of the statements at these lines, and of those that define their names.

        A line outside of all statements stands for the whole module.
        """
        todo = [s for line in lines for s in self.statements if s.first <= line <= s.last]
        todo = list(todo or self.statements)
        imported = frozenset().union(*(s.defines for s in self.statements if s.imports))
        codes: set[str] = set()
        while todo:
            statement = todo.pop()
            if statement.code not in codes:
                codes.add(statement.code)
                uses = statement.uses - imported
                todo += [s for s in self.statements if not uses.isdisjoint(s.defines)]
                todo += [s for s in self.statements if s.imports and statement.uses & s.defines]
        return codes


def read_module_code(path: str, text: str) -> ModuleCode | None:
    """Return the statements of a Python file or notebook; None when it does not parse."""
    try:
        if path.endswith(".ipynb"):
            notebook = read_notebook(text)
            return _parse(notebook.source, notebook.line_of)
        return _parse(convert_databricks(text))
    except (SyntaxError, NotebookError, ValueError, RecursionError):
        return None


def _parse(source: str, line_of: Callable[[int], int] = lambda line: line) -> ModuleCode:
    statements = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        names = [name for name in ast.walk(node) if isinstance(name, ast.Name)]
        statements.append(
            _Statement(
                line_of(min([node.lineno, *(d.lineno for d in _decorators(node))])),
                line_of(node.end_lineno or node.lineno),
                frozenset(_defined(node, names)),
                frozenset(name.id for name in names if isinstance(name.ctx, ast.Load)),
                ast.unparse(_without_docstrings(node)),
                isinstance(node, (ast.Import, ast.ImportFrom)),
            )
        )
    return ModuleCode(statements)


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return list(getattr(node, "decorator_list", ()))


def _defined(node: ast.stmt, names: list[ast.Name]) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    for inner in ast.walk(node):
        for alias in inner.names if isinstance(inner, (ast.Import, ast.ImportFrom)) else ():
            yield (alias.asname or alias.name).partition(".")[0]
    yield from (name.id for name in names if not isinstance(name.ctx, ast.Load))
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from _altered(node)


def _altered(node: ast.stmt) -> Iterator[str]:
    """Yield the objects whose methods a statement calls, or whose parts it sets."""
    for inner in ast.walk(node):
        part = inner.func if isinstance(inner, ast.Call) else inner
        is_set = isinstance(getattr(part, "ctx", None), ast.Store)
        if not isinstance(part, (ast.Attribute, ast.Subscript)) or not (
            is_set or part is not inner
        ):
            continue
        owner: ast.expr = part
        while isinstance(owner, (ast.Attribute, ast.Subscript)):
            owner = owner.value
        if isinstance(owner, ast.Name):
            yield owner.id


def _without_docstrings(node: ast.stmt) -> ast.stmt:
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not body:
            continue
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            inner.body = body[1:] or [ast.Pass()]
    return node

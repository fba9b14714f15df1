"""Other files of the repository that a module imports: their constants, functions and classes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from downriver.capture.code import CodeJob
from downriver.capture.scan.python.values import Scope, Text, Value
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from downriver.capture.scan.python.interpreter import Interpreter

_DEFINITIONS = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
_MOST_FILES = 100


class Modules:
    """The files one module has imported, each read once."""

    def __init__(self) -> None:
        self._scopes: dict[str, Scope | None] = {}

    def load(self, run: Interpreter, name: str, level: int) -> Scope | None:
        """Return what another file of the repository defines; None when it is not there."""
        file = run.recorder.around.find_module(name, level)
        if file is None or file.path == run.recorder.path:
            return None
        if file.path not in self._scopes and len(self._scopes) < _MOST_FILES:
            self._scopes[file.path] = None  # while it is read, lest two import each other
            self._scopes[file.path] = _read(run, file.path, file.text)
        return self._scopes.get(file.path)


def _read(run: Interpreter, path: str, text: str) -> Scope | None:
    from downriver.capture.scan.python.statements import run_block

    try:
        tree = ast.parse(text, filename=path)
    except (SyntaxError, ValueError):
        return None  # reported where the file itself is read
    scope = Scope(path=path)
    before, run.scope = run.scope, scope
    unseen = CodeJob(id=JobId("", path), integration="", kind="", path=path)
    try:
        with run.recorder.inside(unseen):  # what the file does itself is not done by who imports it
            run_block(run, [node for node in tree.body if isinstance(node, _DEFINITIONS)])
    finally:
        run.scope = before
    return scope


def imported_value(value: Value, line: int) -> Value:
    """Return a value of another file; its texts are named here by the line of the import."""
    if isinstance(value, Text):
        return Text(value, line, maybe=value.maybe, elsewhere=True)
    if isinstance(value, list):
        return [imported_value(item, line) for item in value]
    if isinstance(value, dict):
        return {imported_value(k, line): imported_value(v, line) for k, v in value.items()}
    return value

"""Follows a module's code without running it, with the repository's files it imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from downriver.capture.code import CodeJob
from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.airflow import AirflowDags
from downriver.capture.scan.python.assets import DecoratedAssets
from downriver.capture.scan.python.frames.frame import UNKNOWN_FRAME, Frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Class,
    Function,
    NameScope,
    Object,
    SparkSessionValue,
    Task,
    Value,
)
from downriver.capture.scan.python.pipelines.kedro import KedroNodes
from downriver.capture.scan.python.pipelines.luigi import LuigiTasks
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from downriver.capture.scan.python.recorder import JobRecorder
    from downriver.capture.scan.python.source_files import PythonFile

_DEEPEST_CALL = 12
_MOST_STEPS = 200_000
_SESSION_NAMES = frozenset({"spark", "_spark", "spark_session", "sqlContext", "session"})


class Interpreter:
    """Follows one module."""

    def __init__(self, recorder: JobRecorder) -> None:
        self.recorder = recorder
        self.scope = NameScope()
        self.views: dict[str, Frame] = {}
        self.airflow = AirflowDags(recorder)
        self.assets = DecoratedAssets()
        self.kedro = KedroNodes()
        self.luigi = LuigiTasks()
        self.modules = ImportedModules()
        self.line = 1  # of the current call
        self.returned: list[Value] = []
        self.yielded: list[Value] = []
        self.derived: dict[ast.AST, Value] = {}  # frames and columns, by their expression
        self.followed: dict[ast.AST, tuple[CodeJob, int]] = {}  # functions: their job, their call
        self.defined: list[tuple[Function, CodeJob]] = []  # functions with the job of their code
        self._running: list[ast.AST] = []
        self._called: set[ast.AST] = set()
        self._steps = 0

    def run(self, tree: ast.Module) -> None:
        """Follow a module, then its functions that were not called."""
        from downriver.capture.scan.python.interpreter.statements import run_block

        run_block(self, tree.body)
        self.assets.follow(self)
        self.luigi.follow(self)
        for function in self._uncalled(self.scope):
            if self.airflow.is_dag(function):
                self.airflow.run_dag(self, function, (), {})
            else:
                self.call(function, (), {})
        self.kedro.follow(self)
        while self.defined:  # functions inside functions: callbacks, closures
            inner, job = self.defined.pop(0)
            if inner.node not in self._called and not inner.scope.path:
                with self.recorder.inside(job):
                    self.call(inner, (), {})

    def step(self) -> bool:
        """Count a step; False once the limit is reached, which is recorded as a blind spot."""
        self._steps += 1
        if self._steps == _MOST_STEPS:
            self.recorder.add_blind_spot(
                "too_large", f"the file was read in part: it needs more than {_MOST_STEPS} steps", 1
            )
        return self._steps < _MOST_STEPS

    def _uncalled(self, scope: NameScope) -> list[Function]:
        functions: list[Function] = []
        for value in list(scope.names.values()):
            if isinstance(value, Function) and not (
                value.scope.path or value.node in self._called
            ):  # an imported function is read with its own file
                functions.append(value)
            elif isinstance(value, Class):
                functions += self._uncalled_methods(value)
        return functions

    def _uncalled_methods(self, kind: Class) -> list[Function]:
        """Return the methods of a class that were not called, bound to one new instance."""
        methods = [
            node
            for node in kind.node.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node not in self._called
        ]
        if not methods or kind.scope.path:
            return []
        instance = self.instantiate(kind, (), {})
        return [
            Function(node, kind.scope, instance) for node in methods if node not in self._called
        ]

    # Calls

    def call(
        self, function: Function, args: Sequence[Value], options: Mapping[str, Value]
    ) -> Value:
        """Follow a call of a function and return its value."""
        node = function.node
        self._called.add(node)
        if len(self._running) >= _DEEPEST_CALL and node not in self._running:
            self.recorder.add_blind_spot(
                "too_large", f"calls deeper than {_DEEPEST_CALL} levels were not read", self.line
            )
            return UNKNOWN
        if node in self._running or not self.step():
            return UNKNOWN
        scope = NameScope(function.scope, self._bound(function, args, options))
        before, self.scope = self.scope, scope
        returned_before, self.returned = self.returned, []
        yielded_before, self.yielded = self.yielded, []
        self._running.append(node)
        self.followed[node] = (self.recorder.job, self.line)
        try:
            if not function.scope.path:
                return self._body(function)
            last = node.end_lineno or node.lineno
            self.recorder.context.note_followed(function.scope.path, node.lineno, last)
            with self.recorder.called_from(self.line):
                return self._body(function)
        finally:
            self._running.pop()
            self.scope, self.returned, self.yielded = before, returned_before, yielded_before

    def _body(self, function: Function) -> Value:
        from downriver.capture.scan.python.interpreter.expressions import evaluate
        from downriver.capture.scan.python.interpreter.statements import either, run_block

        node = function.node
        if isinstance(node, ast.Lambda):
            return evaluate(self, node.body)
        run_block(self, node.body)
        if self.yielded:
            is_context = any(
                "contextmanager" in name or "fixture" in name for name in function.decorators
            )
            return self.yielded[-1] if is_context else self.yielded
        if not self.returned:
            return None
        result = self.returned[0]
        for other in self.returned[1:]:
            result = either(result, other)
        return result

    def _bound(
        self, function: Function, args: Sequence[Value], options: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Return the values of parameters: arguments, defaults, or unknown."""
        parameters = function.node.args
        positional = [*parameters.posonlyargs, *parameters.args]
        bound = self._defaults(function, positional)
        given = [function.owner, *args] if function.owner is not None else list(args)
        for parameter, value in zip(positional, given, strict=False):
            bound[parameter.arg] = _argument_value(value)
        for parameter in [*positional, *parameters.kwonlyargs]:
            if parameter.arg in options:
                bound[parameter.arg] = _argument_value(options[parameter.arg])
        if parameters.vararg is not None:
            bound[parameters.vararg.arg] = list(given[len(positional) :])
        if parameters.kwarg is not None:
            bound[parameters.kwarg.arg] = UNKNOWN
        return bound

    def _defaults(self, function: Function, positional: list[ast.arg]) -> dict[str, Value]:
        from downriver.capture.scan.python.interpreter.expressions import evaluate

        parameters = function.node.args
        bound = {p.arg: _default_value(p) for p in [*positional, *parameters.kwonlyargs]}
        late = positional[len(positional) - len(parameters.defaults) :]
        pairs = [
            *zip(late, parameters.defaults, strict=True),
            *zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True),
        ]
        for parameter, default in pairs:
            value = evaluate(self, default) if default is not None else None
            if value is not None:
                bound[parameter.arg] = value
        return bound

    def instantiate(
        self, kind: Class, args: Sequence[Value], options: Mapping[str, Value]
    ) -> Object:
        """Create an instance of a class and follow its `__init__`."""
        instance = Object(kind, tuple(args), options)
        setup = self.method(instance, "__init__")
        if setup is not None:
            self.call(setup, args, options)
        else:
            instance.fields.update(options)
        return instance

    def method(self, instance: Object, name: str) -> Function | None:
        """Return a method of an instance, from its class or a base class; None if missing."""
        classes: list[Value] = [instance.kind]
        while classes:
            kind = classes.pop(0)
            if not isinstance(kind, Class):
                continue
            for node in kind.node.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                    decorators = tuple(ast.unparse(d) for d in node.decorator_list)
                    owner = None if "staticmethod" in decorators else instance
                    return Function(node, kind.scope, owner, decorators)
            classes += kind.bases
        return None


def _argument_value(value: Value) -> Value:
    """Return the value a parameter gets: for a task, the value the task returns."""
    return value.returns if isinstance(value, Task) else value


def _default_value(parameter: ast.arg) -> Value:
    """Return the value of a parameter without an argument, from its annotation or its name."""
    annotation = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
    if "SparkSession" in annotation or parameter.arg in _SESSION_NAMES:
        return SparkSessionValue()
    if annotation.endswith("DataFrame"):
        return UNKNOWN_FRAME
    return UNKNOWN


def is_session_name(name: str) -> bool:
    """Whether a variable of this name is assumed to be a SparkSession."""
    return name in _SESSION_NAMES


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


class ImportedModules:
    """The files of the repository that one module imports. Each is read once."""

    def __init__(self) -> None:
        self.files: list[PythonFile] = []
        self._scopes: dict[str, NameScope | None] = {}

    def load(self, run: Interpreter, name: str, level: int) -> NameScope | None:
        """Return the scope of an imported file; None when it is not in the repository."""
        file = run.recorder.context.find_module(name, level)
        if file is None or file.path == run.recorder.path:
            return None
        if file.path not in self._scopes and len(self._scopes) < _MOST_FILES:
            self._scopes[file.path] = None  # files may import each other
            self._scopes[file.path] = _read(run, file)
        return self._scopes.get(file.path)


def _read(run: Interpreter, file: PythonFile) -> NameScope | None:
    from downriver.capture.scan.python.interpreter.statements import run_block

    try:
        tree = file.tree
    except SyntaxError:
        return None  # reported when the file itself is read
    run.modules.files.append(file)
    scope = NameScope(path=file.path)
    before, run.scope = run.scope, scope
    discarded = CodeJob(id=JobId("", file.path), integration="", kind="", path=file.path)
    try:
        with run.recorder.inside(discarded):  # lineage of the imported file belongs to its own job
            run_block(run, [node for node in tree.body if isinstance(node, _DEFINITIONS)])
    finally:
        run.scope = before
    return scope


def imported_value(value: Value, line: int) -> Value:
    """Return a value of another file. The line of its texts becomes the line of the import."""
    if isinstance(value, LocatedText):
        return LocatedText(value, line, optional=value.optional, from_other_file=True)
    if isinstance(value, list):
        return [imported_value(item, line) for item in value]
    if isinstance(value, dict):
        return {imported_value(k, line): imported_value(v, line) for k, v in value.items()}
    return value

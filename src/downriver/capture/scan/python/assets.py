"""Functions that are decorated as the producer of a table: Dagster, Databricks, SQLMesh."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python import storage
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.interpreter.values import (
    Function,
    ImportedName,
    Object,
    Value,
    read_args,
)
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments


class _Kind(NamedTuple):
    """A decorator: its system, the argument with the name of the table, and its parameters."""

    integration: str
    name: str
    position: int = -1
    reads_parameters: bool = False  # parameters of the function are tables


_DECORATORS = {
    "dagster.asset": _Kind("DAGSTER", "name", reads_parameters=True),
    "dlt.table": _Kind("DATABRICKS", "name"),
    "dlt.view": _Kind("DATABRICKS", "name"),
    "dlt.create_table": _Kind("DATABRICKS", "name"),
    "pyspark.pipelines.table": _Kind("DATABRICKS", "name"),
    "pyspark.pipelines.materialized_view": _Kind("DATABRICKS", "name"),
    "sqlmesh.model": _Kind("SQLMESH", "name", 0),
}
_HIDDEN = frozenset({"dagster.multi_asset", "dagster.graph_asset", "dagster.graph_multi_asset"})
_NO_TABLES = frozenset({"context", "config", "self", "cls", "_context"})


class DecoratedAssets:
    """The decorated functions of one file."""

    def __init__(self) -> None:
        self._assets: list[tuple[Function, _Kind, Arguments]] = []

    def keep(self, run: Interpreter, function: Function) -> None:
        """Keep a function that is decorated as the producer of a table."""
        node = function.node
        if isinstance(node, ast.Lambda) or function.scope.path:
            return
        for decorator, name in zip(node.decorator_list, function.decorators, strict=True):
            public = _public_name(name)
            if public in _HIDDEN:
                run.recorder.add_blind_spot(
                    "runs_elsewhere",
                    f"the tables that {node.name} produces are named by {public} at run time",
                    node.lineno,
                )
            kind = _DECORATORS.get(public)
            if kind is not None:
                call = decorator if isinstance(decorator, ast.Call) else None
                empty = ast.copy_location(ast.Call(decorator, [], []), decorator)
                self._assets.append((function, kind, read_args(run, call or empty)))

    def follow(self, run: Interpreter) -> None:
        """Follow the decorated functions, each as a job of its own."""
        for function, kind, args in self._assets:
            self._follow(run, function, kind, args)

    def _follow(self, run: Interpreter, function: Function, kind: _Kind, args: Arguments) -> None:
        recorder = run.recorder
        given = args.get(kind.name, kind.position)
        line = function.node.lineno
        is_known = given is None or (isinstance(given, LocatedText) and not given.is_dynamic)
        name = str(given) if isinstance(given, LocatedText) and is_known else function.name
        job = recorder.new_job(
            JobId(recorder.context.namespace, name), kind.integration, "ASSET", line
        )
        with recorder.inside(job):
            named = _parameters(run, function, args) if kind.reads_parameters else {}
            result = run.call(function, (), named)
            if not is_known:
                recorder.add_blind_spot(
                    "dynamic_name", "writes a table whose name is only known at run time", line
                )
                return
            table = recorder.context.dataset_for(_qualified(name, args))
            recorder.add_output(table, result if isinstance(result, Frame) else None)


def _public_name(name: str) -> str:
    """Return the name that users import: `dagster.asset` for `dagster._core.asset`."""
    root, _, rest = name.partition(".")
    last = rest.rpartition(".")[2]
    if root == "pyspark":
        return name
    return f"{root}.{last}" if last else name


def _qualified(name: str, args: Arguments) -> str:
    prefix = args.get("key_prefix")
    parts = prefix if isinstance(prefix, list) else [prefix]
    return ".".join([*(str(part) for part in parts if isinstance(part, str)), name])


def _parameters(run: Interpreter, function: Function, args: Arguments) -> dict[str, Value]:
    """Read the tables that the parameters name, and those of `deps` and `ins`."""
    renamed = args.get("ins")
    frames: dict[str, Value] = {}
    for parameter in [*function.node.args.args, *function.node.args.kwonlyargs]:
        annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
        if parameter.arg in _NO_TABLES or "Context" in annotation or "Resource" in annotation:
            continue
        if "Config" in annotation:
            continue
        source: Value = renamed.get(parameter.arg) if isinstance(renamed, dict) else None
        table = _key(source) or parameter.arg
        dataset = run.recorder.context.dataset_for(table)
        frames[parameter.arg] = storage.read_dataset(run, dataset, "pandas")
    deps = args.get("deps") or args.get("non_argument_deps")
    for dep in deps if isinstance(deps, list) else []:
        name = str(dep) if isinstance(dep, LocatedText) else _key(dep)
        name = dep.name if isinstance(dep, Function) else name
        if name:
            run.recorder.add_input(run.recorder.context.dataset_for(name))
    return frames


def _key(value: Value) -> str:
    """Return the key of `AssetIn("orders")`, `AssetKey(…)` or `AssetIn(key=…)`."""
    if not isinstance(value, Object) or not isinstance(value.kind, ImportedName):
        return ""
    key = value.argument("key") or value.argument("path")
    if isinstance(key, Object):
        return _key(key)
    if isinstance(key, list):
        return ".".join(str(part) for part in key)
    return str(key) if isinstance(key, str) else ""

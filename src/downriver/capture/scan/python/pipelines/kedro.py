"""Kedro: each node of a pipeline is a job; its data catalog names the datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python import storage
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Function,
    ImportedName,
    Value,
)
from downriver.capture.scan.python.sql_text import run_sql
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments

_NODES = frozenset({"node", "Node"})
_PIPELINES = frozenset({"pipeline", "Pipeline"})


class KedroNode(NamedTuple):
    """A function with the names of the datasets it reads and writes."""

    function: Value
    inputs: Value
    outputs: Value
    name: str
    line: int
    is_own: bool  # whether the file that is read creates it, not an imported file


class KedroPipeline(NamedTuple):
    """A list of nodes."""

    nodes: tuple[KedroNode, ...]


class KedroNodes:
    """The nodes that one file creates."""

    def __init__(self) -> None:
        self._nodes: list[KedroNode] = []

    def create(self, run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
        """Return a node or a pipeline; None if a call creates neither."""
        if not target.name.startswith("kedro."):
            return None
        run.recorder.understand()
        if target.last in _NODES:
            return self._node(run, args)
        return self._pipeline(run, args) if target.last in _PIPELINES else None

    def _node(self, run: Interpreter, args: Arguments) -> KedroNode:
        function = args.get("func", 0)
        given = args.get("name", 3)
        name = str(given) if isinstance(given, str) else _name_of(function)
        node = KedroNode(
            function,
            args.get("inputs", 1),
            args.get("outputs", 2),
            name,
            args.line,
            not run.recorder.is_in_other_file,
        )
        self._nodes.append(node)
        return node

    def _pipeline(self, run: Interpreter, args: Arguments) -> KedroPipeline:
        """Return a pipeline; a namespace and mappings of names make new nodes of the given ones."""
        parts = args.get("pipe") or args.get("nodes", 0)
        is_list = isinstance(parts, (list, tuple)) and not hasattr(parts, "_fields")
        nodes: list[KedroNode] = []
        for part in parts if is_list else [parts]:
            nodes += part.nodes if isinstance(part, KedroPipeline) else []
            nodes += [part] if isinstance(part, KedroNode) else []
        namespace = args.get("namespace")
        renamed = {**_names(args.get("inputs")), **_names(args.get("outputs"))}
        if namespace is None and not renamed:
            return KedroPipeline(tuple(nodes))
        prefix = str(namespace) if isinstance(namespace, str) else ""
        self._nodes = [node for node in self._nodes if not any(node is old for old in nodes)]
        moved = tuple(
            node._replace(
                inputs=_mapped(node.inputs, prefix, renamed),
                outputs=_mapped(node.outputs, prefix, renamed),
                name=f"{prefix}.{node.name}" if prefix else node.name,
                line=args.line if not node.is_own else node.line,
                is_own=not run.recorder.is_in_other_file,
            )
            for node in nodes
        )
        self._nodes += moved
        return KedroPipeline(moved)

    def follow(self, run: Interpreter) -> None:
        """Follow the functions of the nodes, each as a job of its own."""
        for node in self._nodes:
            if node.is_own:
                _follow(run, node)


def _name_of(function: Value) -> str:
    if isinstance(function, (Function, ImportedName)):
        return function.name if isinstance(function, Function) else function.last
    return "node"


def _names(mapping: Value) -> dict[str, str]:
    """Return the names that a pipeline keeps or renames, from a text, a list or a dictionary."""
    if isinstance(mapping, dict):
        return {str(old): str(new) for old, new in mapping.items()}
    names = mapping if isinstance(mapping, (list, tuple)) else [mapping]
    return {str(name): str(name) for name in names if isinstance(name, str)}


def _mapped(names: Value, prefix: str, renamed: Mapping[str, str]) -> Value:
    if isinstance(names, dict):
        return {key: _mapped(value, prefix, renamed) for key, value in names.items()}
    if isinstance(names, (list, tuple)):
        return [_mapped(name, prefix, renamed) for name in names]
    if not isinstance(names, LocatedText) or _is_parameter(names):
        return names
    name = renamed.get(names) or (f"{prefix}.{names}" if prefix else str(names))
    return LocatedText(name, names.line)


def _is_parameter(name: str) -> bool:
    return name == "parameters" or name.startswith("params:")


def _follow(run: Interpreter, node: KedroNode) -> None:
    recorder = run.recorder
    job_id = JobId(recorder.context.namespace, node.name)
    with recorder.inside(recorder.new_job(job_id, "KEDRO", "NODE", node.line)):
        given, named = _arguments(run, node)
        result: Value = UNKNOWN
        if isinstance(node.function, Function):
            run.line = node.line
            result = run.call(node.function, given, named)
        _write(run, node, node.outputs, result)


def _arguments(run: Interpreter, node: KedroNode) -> tuple[list[Value], dict[str, Value]]:
    """Read the inputs of a node: by position for a text or a list, by name for a dictionary."""
    names = node.inputs
    if isinstance(names, dict):
        return [], {str(key): _read(run, node, name) for key, name in names.items()}
    listed = names if isinstance(names, (list, tuple)) else [names]
    return [_read(run, node, name) for name in listed if name is not None], {}


def _read(run: Interpreter, node: KedroNode, name: Value) -> Value:
    if not isinstance(name, LocatedText) or name.is_dynamic:
        message = "reads a dataset whose name is only known at run time"
        run.recorder.add_blind_spot("dynamic_name", message, node.line)
        return UNKNOWN
    if _is_parameter(name):
        return UNKNOWN
    context = run.recorder.context
    found = context.kedro.find(name, context.dataset_for)
    if found.query is not None:
        return run_sql(run, LocatedText(found.query, node.line, from_other_file=True))
    if found.dataset is None:
        message = f"the path or table of {name} in the catalog is not known"
        run.recorder.add_blind_spot("dynamic_path", message, node.line)
        return UNKNOWN
    return storage.read_dataset(run, found.dataset, "pandas")


def _write(run: Interpreter, node: KedroNode, names: Value, result: Value) -> None:
    if isinstance(names, dict):
        for key, name in names.items():
            _write(run, node, name, result.get(key) if isinstance(result, dict) else UNKNOWN)
        return
    if isinstance(names, (list, tuple)):
        several = isinstance(result, (list, tuple)) and len(result) == len(names)
        for at, name in enumerate(names):
            _write(run, node, name, result[at] if several else UNKNOWN)
        return
    if names is None:
        return
    context = run.recorder.context
    if not isinstance(names, LocatedText) or names.is_dynamic:
        message = "writes a dataset whose name is only known at run time"
        run.recorder.add_blind_spot("dynamic_name", message, node.line)
        return
    found = context.kedro.find(names, context.dataset_for)
    if found.dataset is None:
        message = f"the path or table of {names} in the catalog is not known"
        run.recorder.add_blind_spot("dynamic_path", message, node.line)
        return
    run.recorder.add_output(found.dataset, result if isinstance(result, Frame) else None)

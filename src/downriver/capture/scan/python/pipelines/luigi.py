"""Luigi: each task is a job. It writes the targets of `output` and reads those of `requires`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Class,
    ImportedName,
    Object,
    Value,
)
from downriver.capture.scan.python.sql_text import run_sql
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.scan.python.interpreter.interpreter import Interpreter

_FILES = frozenset({
    "LocalTarget", "File", "S3Target", "S3FlagTarget", "S3EmrTarget", "ReadableS3Target",
    "AtomicS3File", "HdfsTarget", "HdfsFlagTarget", "WebHdfsTarget", "GCSTarget", "GCSFlagTarget",
    "AtomicGCSFile", "FTPRemoteTarget", "RemoteTarget", "AzureBlobTarget", "DropboxTarget",
})  # fmt: skip
# Targets that are tables: the names and positions of the arguments for table and schema.
_TABLES: dict[str, tuple[tuple[str, int], ...]] = {
    "PostgresTarget": (("table", 4),),
    "RedshiftTarget": (("table", 4),),
    "MySqlTarget": (("table", 4),),
    "MSSqlTarget": (("table", 4),),
    "PrestoTarget": (("table", 3),),
    "SQLAlchemyTarget": (("target_table", 1),),
    "BigQueryTarget": (("project_id", 0), ("dataset_id", 1), ("table_id", 2)),
    "BigqueryTarget": (("project_id", 0), ("dataset_id", 1), ("table_id", 2)),
    "HiveTableTarget": (("database", 1), ("table", 0)),
    "HivePartitionTarget": (("database", 2), ("table", 0)),
    "ExternalHiveTarget": (("database", 2), ("table", 0)),
}
_NO_DATA = frozenset({"WrapperTask", "ExternalTask", "Config", "Parameter", "Target"})
_NOT_TASKS = ("Parameter", "Target", "Config", "Client", "FileSystem", "Error", "Exception")
_TABLE_FIELDS = frozenset({"table", "target_table"})  # of tasks that copy or query into a table


class LuigiTasks:
    """The tasks that one file defines."""

    def follow(self, run: Interpreter) -> None:
        """Follow the tasks of the file that is read, each as a job of its own."""
        for value in list(run.scope.names.values()):
            if isinstance(value, Class) and not value.scope.path and is_task(value):
                _follow(run, value)

    def method(self, run: Interpreter, task: Object, name: str) -> Value | None:
        """Return the targets of `self.input()`, or the file of a target; None for others."""
        if isinstance(task.kind, Class) and is_task(task.kind):
            if name == "input":
                return _input(run, task)
            return Object(ImportedName("luigi.Target")) if name == "output" else None
        if name == "open" and _target_kind(task) is not None:
            run.recorder.understand()  # the task has the target as an input or output
            return Object(ImportedName("open"), (), {"file": task.argument("path")})
        return None

    def attribute(self, target: Object, name: str) -> Value | None:
        """Return the path of a target; None for any other attribute."""
        if name in ("path", "fn") and _target_kind(target) in _FILES:
            return target.argument("path")
        return None


def is_task(kind: Class) -> bool:
    """Whether a class derives from a task of Luigi."""
    return any(
        base.startswith("luigi.") and not base.endswith(_NOT_TASKS) for base in _base_names(kind)
    )


def _base_names(kind: Class) -> Iterator[str]:
    """Yield the full names of the imported classes that a class derives from."""
    for base in kind.bases:
        if isinstance(base, ImportedName):
            yield base.name
        elif isinstance(base, Class):
            yield from _base_names(base)


def _follow(run: Interpreter, kind: Class) -> None:
    lasts = {base.rpartition(".")[2] for base in _base_names(kind)}
    if not lasts.isdisjoint(_NO_DATA):
        return  # an external or wrapper task: its data belongs to other tasks
    recorder = run.recorder
    line = kind.node.lineno
    job = recorder.new_job(JobId(recorder.context.namespace, kind.node.name), "LUIGI", "TASK", line)
    with recorder.inside(job):
        run.line = line
        task = run.instantiate(kind, (), {})
        for required in _required(run, task):
            if isinstance(required, Object) and isinstance(required.kind, Class):
                job.after.append(JobId(recorder.context.namespace, required.kind.node.name))
        for target in _flat(_input(run, task)):
            _record(run, target, line, is_output=False)
        if run.method(task, "output") is not None:
            for target in _flat(_output(run, task)):
                _record(run, target, line, is_output=True)
        _write_table(run, kind, task)
        for name in ("run", "main"):  # `main` is the code of a task of Spark
            body = run.method(task, name)
            if body is not None:
                run.call(body, (), {})


def _write_table(run: Interpreter, kind: Class, task: Object) -> None:
    """Record the table and the query of a task that copies or queries into a table."""
    for name in _TABLE_FIELDS:
        value = kind.scope.names.get(name)
        if isinstance(value, LocatedText) and not value.is_dynamic:
            run.recorder.add_output(run.recorder.context.dataset_for(str(value)), None)
    method = run.method(task, "query")
    query = kind.scope.names.get("query") if method is None else run.call(method, (), {})
    if isinstance(query, LocatedText) and not query.is_dynamic:
        run_sql(run, query)
    elif method is not None or query is not None:
        message = "the query is only known at run time"
        run.recorder.add_blind_spot("dynamic_sql", message, kind.node.lineno)


def _required(run: Interpreter, task: Object) -> list[Value]:
    """Return the tasks that a task requires, by its method or by `@requires(…)`."""
    tasks: list[Value] = []
    if isinstance(task.kind, Class):
        for decorator in task.kind.node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("requires"):
                tasks += [_named_task(run, task.kind, argument) for argument in decorator.args]
    method = run.method(task, "requires")
    if method is not None:
        tasks += _flat(run.call(method, (), {}))
    return tasks


def _named_task(run: Interpreter, kind: Class, node: ast.expr) -> Value:
    named = kind.scope.find(node.id) if isinstance(node, ast.Name) else None
    return Object(named) if isinstance(named, Class) else UNKNOWN


def _input(run: Interpreter, task: Object) -> Value:
    """Return the targets of the required tasks, or those of the task's own `input`."""
    own = run.method(task, "input")
    if own is not None:
        return run.call(own, (), {})
    targets = [
        target
        for required in _required(run, task)
        for target in _flat(_output(run, required))
        if target is not None
    ]
    return targets[0] if len(targets) == 1 else targets


def _output(run: Interpreter, task: Value) -> Value:
    if not isinstance(task, Object):
        return UNKNOWN
    method = run.method(task, "output")
    return run.call(method, (), {}) if method is not None else []


def _flat(value: Value) -> list[Value]:
    """Return the items of nested lists and dictionaries."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [item for part in value for item in _flat(part)]
    return [] if value is None else [value]


def _target_kind(value: Value) -> str | None:
    """Return the kind of a target: `LocalTarget`; None for another value."""
    if isinstance(value, Object) and isinstance(value.kind, ImportedName):
        return value.kind.last if value.kind.name.startswith("luigi.") else None
    return None


def _record(run: Interpreter, target: Value, line: int, *, is_output: bool) -> None:
    dataset = _dataset(run, target)
    if dataset is None:
        verb = "writes" if is_output else "reads"
        message = f"{verb} a target whose path or table is only known at run time"
        run.recorder.add_blind_spot("dynamic_path", message, line)
    elif is_output:
        run.recorder.add_output(dataset, None)
    else:
        run.recorder.add_input(dataset)


def _dataset(run: Interpreter, target: Value) -> DatasetId | None:
    """Return the dataset of a target; None if its path or table is not known."""
    kind = _target_kind(target)
    if kind in _FILES:
        path = target.argument("path")
        known = isinstance(path, LocatedText) and not path.is_dynamic
        return dataset_at(str(path)) if known else None
    if kind not in _TABLES:
        return None
    parts = [target.argument(name, position) for name, position in _TABLES[kind]]
    given = [part for part in parts if part is not None]
    if parts[-1] is None or not all(
        isinstance(part, LocatedText) and not part.is_dynamic for part in given
    ):
        return None
    return run.recorder.context.dataset_for(".".join(map(str, given)))

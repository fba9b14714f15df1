"""Airflow: DAGs, tasks, their datasets and their order."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.scan.located_text import LocatedText
from downriver.capture.scan.python.airflow_operators import (
    has_data,
    record_configuration,
    record_transfer,
)
from downriver.capture.scan.python.frames.frame import Frame
from downriver.capture.scan.python.interpreter.values import (
    UNKNOWN,
    Class,
    Dag,
    Function,
    ImportedName,
    Object,
    Task,
    Value,
)
from downriver.capture.scan.python.sql_text import looks_like_statement, run_sql
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.capture.code import CodeJob
    from downriver.capture.scan.python.interpreter.interpreter import Interpreter
    from downriver.capture.scan.python.interpreter.values import Arguments
    from downriver.capture.scan.python.recorder import JobRecorder

_QUERIES = (
    "sql", "query", "hql", "bql", "select_sql", "insert_sql", "configuration", "params_sql", "sqls",
    "select_query", "ddl", "statement", "statements", "preoperator", "mysql_preoperator",
    "source_sql",
)  # fmt: skip
_SQL_ARGUMENTS = ("sql", "hql", "bql")
_EXTERNAL_OPERATORS = (
    "Bash", "Docker", "Kubernetes", "SparkSubmit", "Databricks", "Dataproc", "Emr", "Glue", "SSH",
    "Ecs", "CloudRun", "Livy", "Papermill", "Lambda", "Batch", "DbtCloud",
)  # fmt: skip
_URIS = frozenset({"Dataset", "Asset", "DatasetAlias", "AssetAlias"})


class _Group(NamedTuple):
    """A task group. Its name is a prefix of the names of its tasks."""

    prefix: str


class AirflowDags:
    """The DAGs of one file."""

    def __init__(self, recorder: JobRecorder) -> None:
        self._recorder = recorder
        self._dags: list[Dag] = []  # the innermost last
        self._groups: list[_Group] = []
        self._owners: dict[JobId, list[str]] = {}
        self._jobs: dict[JobId, CodeJob] = {}
        self._options: dict[ast.AST, Arguments] = {}  # arguments of decorators

    # DAGs

    def is_dag(self, function: Function) -> bool:
        """Whether a function is decorated as a DAG."""
        return any(name.endswith((".dag", "decorators.dag")) for name in function.decorators)

    def is_task(self, function: Function) -> bool:
        """Whether a function is decorated as a task."""
        return any(".task" in f".{n}" and _is_airflow(n) for n in function.decorators)

    def keep_options(self, run: Interpreter, function: Function) -> Function:
        """Keep the arguments of a `@dag` or `@task` decorator."""
        from downriver.capture.scan.python.interpreter.values import read_args

        node = function.node
        if isinstance(node, ast.Lambda) or not (self.is_dag(function) or self.is_task(function)):
            return function
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call):
                self._options[node] = read_args(run, decorator)
        return function

    def run_dag(
        self,
        run: Interpreter,
        function: Function,
        args: Sequence[Value],
        options: Mapping[str, Value],
    ) -> Value:
        """Follow a function decorated with `@dag`."""
        given = self._options.get(function.node)
        name = given.get("dag_id", 0) if given is not None else None
        dag = self._dag(name if isinstance(name, str) else function.name, given, _line(function))
        self._dags.append(dag)
        try:
            run.call(function, args, options)
        finally:
            self._dags.pop()
        return dag

    def _dag(self, name: str, args: Arguments | None, line: int) -> Dag:
        recorder = self._recorder
        job_id = JobId(recorder.context.namespace, name)
        if job_id not in self._jobs:
            job = self._jobs[job_id] = recorder.new_job(job_id, "AIRFLOW", "DAG", line)
            if args is not None:
                job.owners = self._owners[job_id] = _owners(args)
                job.tags = [tag for tag in args.get("tags") or [] if isinstance(tag, str)]
                described = args.get("description") or args.get("doc_md")
                job.description = str(described) if isinstance(described, str) else ""
                for dataset in self._datasets(args.get("schedule")):
                    job.add_input(dataset)
        return Dag(job_id)

    @contextmanager
    def inside(self, value: Value) -> Iterator[None]:
        """Follow the body of `with DAG(…)` or of a task group. Other values have no effect."""
        stack: list[Any] = []
        if isinstance(value, Dag):
            stack = self._dags
        elif isinstance(value, _Group):
            stack = self._groups
        stack.append(value)
        try:
            yield
        finally:
            stack.pop()

    # Tasks

    def create(self, run: Interpreter, target: ImportedName, args: Arguments) -> Value | None:
        """Return the DAG, task or group that a call creates; None for any other call."""
        if target.last in ("chain", "chain_linear") and _is_airflow(target.name):
            return self._chain(args.given)
        if target.last == "cross_downstream" and _is_airflow(target.name):
            self.order(args.get("", 0), args.get("", 1), reverse=False)
            return UNKNOWN
        if target.last == "TaskGroup":
            name = args.get("group_id", 0)
            return _Group(f"{name}." if isinstance(name, str) else "")
        if target.last == "DAG" and _is_airflow(target.name):
            name = args.get("dag_id", 0)
            named = str(name) if isinstance(name, str) else _stem(self._recorder.path)
            return self._dag(named, args, args.line)
        kind = target.name.removesuffix(".partial").rpartition(".")[2]
        if isinstance(args.get("task_id"), LocatedText) and kind[:1].isupper():
            return self._operator(run, kind, args)
        return None

    def _operator(self, run: Interpreter, kind: str, args: Arguments) -> Task:
        job = self._task(args.get("task_id"), args, args.line)
        with self._recorder.inside(job):
            self._recorder.understand()
            self._follow_queries(run, args)
            self._follow_callable(run, args.get("python_callable"), args)
            record_transfer(self._recorder, kind, args)
            record_configuration(self._recorder, args)
            self._report_unread(kind, job, args)
        return Task(job.id)

    def create_own(self, run: Interpreter, kind: Class, args: Arguments) -> Task:
        """Follow an operator whose class is in the repository."""
        job = self._task(args.get("task_id"), args, args.line)
        with self._recorder.inside(job):
            self._follow_queries(run, args)
            instance = run.instantiate(kind, args.given, args.named)
            for name, value in args.named.items():
                instance.fields.setdefault(name, value)
            execute = run.method(instance, "execute")
            if execute is not None:
                run.call(execute, (), {})
            self._report_unread(kind.node.name, job, args)
        return Task(job.id)

    def _follow_callable(self, run: Interpreter, function: Value, args: Arguments) -> None:
        if isinstance(function, Function):
            given, named = args.get("op_args"), args.get("op_kwargs")
            run.call(
                function,
                given if isinstance(given, list) else [],
                {str(k): v for k, v in named.items()} if isinstance(named, dict) else {},
            )
        elif function is not None and not self._recorder.job.spots:
            self._recorder.add_blind_spot(
                "runs_elsewhere",
                "the function of the task is not in the repository: its lineage is unknown",
                args.line,
            )

    def _report_unread(self, kind: str, job: CodeJob, args: Arguments) -> None:
        """Add a blind spot for an operator whose data is unknown."""
        if job.inputs or job.outputs or job.spots or not has_data(kind, args):
            return
        if isinstance(args.get("python_callable"), Function):
            return
        if any(word in kind for word in _EXTERNAL_OPERATORS):
            reason = "it runs code outside of this file"
        elif any(args.get(name) is not None for name in _QUERIES):
            return  # a query without tables
        else:
            reason = "its arguments contain no known dataset; declare inlets and outlets"
        self._recorder.add_blind_spot(
            "runs_elsewhere", f"lineage of {kind} is unknown: {reason}", args.line
        )

    def _task(self, name: Value, args: Arguments, line: int) -> CodeJob:
        dag = args.get("dag")
        if not isinstance(dag, Dag):
            dag = self._dags[-1] if self._dags else self._dag(_stem(self._recorder.path), None, 1)
        prefix = "".join(group.prefix for group in self._groups)
        job_id = JobId(dag.job.namespace, f"{dag.job.name}.{prefix}{name}")
        job = self._recorder.new_job(job_id, "AIRFLOW", "TASK", line)
        job.parent = dag.job
        job.owners = _owners(args) or self._owners.get(dag.job, [])
        self._jobs[job_id] = job
        for dataset in self._datasets(args.get("inlets")):
            job.add_input(dataset)
        for dataset in self._datasets(args.get("outlets")):
            job.add_output(dataset)
        return job

    def _follow_queries(self, run: Interpreter, args: Arguments) -> None:
        for name in _QUERIES:
            for text in _texts(args.get(name)):
                query = self._query(text, args.line)
                if query is not None and looks_like_statement(query):
                    run_sql(run, query)
            if name in _SQL_ARGUMENTS and args.get(name) is UNKNOWN:
                self._recorder.add_blind_spot(
                    "dynamic_sql", "the query is only known at run time", args.line
                )

    def _query(self, text: LocatedText, line: int) -> LocatedText | None:
        """Return the text of a query. A query in a file makes that file the task's code."""
        if not text.strip().endswith((".sql", ".hql")):
            return text
        file = self._recorder.context.read_file(str(text).strip())
        if file is None:
            self._recorder.add_blind_spot("missing_file", f"the file {text} was not found", line)
            return None
        job = self._recorder.job
        if job.path != self._recorder.path and job.path != file.path:
            # The job keeps the path of its first file.
            return LocatedText(file.text, line, from_other_file=True)
        job.path, job.line = file.path, 1
        return LocatedText(file.text, 1)

    def call_task(self, run: Interpreter, function: Function, args: Arguments) -> Task:
        """Follow a call of a function decorated with `@task`."""
        given = self._options.get(function.node) or args._replace(given=[], named={})
        name = given.get("task_id")
        job = self._task(name if isinstance(name, str) else function.name, given, _line(function))
        for value in args.all():
            self.order(value, Task(job.id), reverse=False)
        with self._recorder.inside(job):
            returned = run.call(function, args.given, args.named)
        return Task(job.id, returned if isinstance(returned, (str, list, dict, Frame)) else UNKNOWN)

    # Order

    def order(self, left: Value, right: Value, *, reverse: bool) -> bool:
        """Record that tasks run after others; False when the values are not tasks."""
        before, after = _tasks(left), _tasks(right)
        if reverse:
            before, after = after, before
        for task in after:
            job = self._jobs.get(task.job)
            for other in before:
                if job is not None and other.job not in job.after and other.job != job.id:
                    job.after.append(other.job)
        return bool(before and after)

    def _chain(self, steps: list[Value]) -> Value:
        for first, second in pairwise(steps):
            self.order(first, second, reverse=False)
        return UNKNOWN

    def _datasets(self, value: Value) -> list[DatasetId]:
        """Return the datasets of inlets, outlets or a schedule."""
        datasets: list[DatasetId] = []
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, Object) and isinstance(item.kind, ImportedName):
                datasets += self._dataset(item)
            elif isinstance(item, LocatedText) and "://" in item:
                datasets.append(dataset_at(str(item)))
        return datasets

    def _dataset(self, item: Object) -> list[DatasetId]:
        assert isinstance(item.kind, ImportedName)  # noqa: S101
        place = item.argument("uri") or item.argument("url") or item.argument("name")
        if item.kind.last in _URIS or item.kind.last == "File":
            return [dataset_at(str(place))] if isinstance(place, str) else []
        if item.kind.last == "Table":
            parts = [item.argument(name, -1) for name in ("database", "cluster", "name")]
            table = ".".join(str(part) for part in (parts[0], parts[2]) if isinstance(part, str))
            return [self._recorder.context.dataset_for(table)] if table else []
        return []


def _is_airflow(name: str) -> bool:
    return name.partition(".")[0] in ("airflow", "cosmos") or "airflow" in name or name in (
        "task", "dag", "DAG", "chain",
    )  # fmt: skip


def _tasks(value: Value) -> list[Task]:
    if isinstance(value, Task):
        return [value]
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [task for item in value for task in _tasks(item)]
    return []


def _texts(value: Value) -> list[LocatedText]:
    """Return the texts of an argument: a text, a list, or `query` and `sql` of a dictionary."""
    if isinstance(value, LocatedText):
        return [value]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, dict):
        return [text for key in ("query", "sql") for text in _texts(value.get(key))]
    return []


def _owners(args: Arguments) -> list[str]:
    defaults = args.get("default_args")
    owner = args.get("owner") or (defaults.get("owner") if isinstance(defaults, dict) else None)
    return [str(owner)] if isinstance(owner, str) else []


def _line(function: Function) -> int:
    return function.node.lineno


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]

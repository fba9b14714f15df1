"""Airflow: inlets and outlets of tasks, by a callback, a plugin or a decorator."""

from __future__ import annotations

import functools
import os
import time
from typing import TYPE_CHECKING, Any, TypeVar

from downriver.capture.emit import guarded
from downriver.errors import MissingDependencyError
from downriver.model.ids import JobId, RunId
from downriver.sdk.decorators import list_datasets
from downriver.sdk.orchestrators.task_run import TaskRun, job_namespace, record_task, run_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from downriver.sdk.decorators import DatasetNames

F = TypeVar("F", bound="Callable[..., Any]")
_PROVIDER_NAMESPACES = ("AIRFLOW__OPENLINEAGE__NAMESPACE", "OPENLINEAGE_NAMESPACE")


def record_success(context: Mapping[str, Any]) -> None:
    """Record a task with its inlets and outlets. Use it as `on_success_callback`."""
    with guarded("reading the context of an Airflow task"):
        record_task(_task_run(context, "COMPLETE"))


def record_failure(context: Mapping[str, Any]) -> None:
    """Record a task that failed. Use it as `on_failure_callback`."""
    with guarded("reading the context of an Airflow task"):
        record_task(_task_run(context, "FAIL"))


def apply_lineage(inlets: DatasetNames = None, outlets: DatasetNames = None) -> Callable[[F], F]:
    """Record what a Python task reads and writes, beside the inlets and outlets of the task.

    Put it below `@task`, or around the function of a PythonOperator.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                if state := _state_after(error):
                    _record_current(state, inlets, outlets, error)
                raise
            _record_current("COMPLETE", inlets, outlets, None)
            return result

        return wrapper  # type: ignore[return-value]

    return decorate


def _state_after(error: BaseException) -> str:
    """Return the state of a run that raised; "" if it did not end: Airflow continues it later."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"TaskDeferred", "AirflowRescheduleException"}:
        return ""
    return "ABORT" if "AirflowSkipException" in kinds else "FAIL"


def _record_current(
    state: str, inlets: DatasetNames, outlets: DatasetNames, error: BaseException | None
) -> None:
    with guarded("reading the context of an Airflow task"):
        try:
            from airflow.sdk import get_current_context
        except ImportError:  # Airflow 2
            from airflow.operators.python import get_current_context
        context = {**get_current_context(), **({} if error is None else {"exception": error})}
        task = _task_run(context, state)
        task.inputs = [*list_datasets(task.inputs), *list_datasets(inlets)]
        task.outputs = [*list_datasets(task.outputs), *list_datasets(outlets)]
        record_task(task)


def _task_run(context: Mapping[str, Any], state: str) -> TaskRun:
    task, instance = context["task"], context["ti"]
    home = _namespace()
    dag_run = context.get("dag_run")
    dag_id, dag_run_id = str(instance.dag_id), str(getattr(instance, "run_id", ""))
    if not dag_run_id and dag_run is not None:
        dag_run_id = str(dag_run.run_id)
    error = context.get("exception")
    provided = _run_of_provider(instance)
    dag = RunId(JobId(home, dag_id), run_id(dag_id, dag_run_id))
    return TaskRun(
        integration="AIRFLOW",
        job=JobId(home, f"{dag_id}.{instance.task_id}"),
        run=provided
        or run_id(dag_id, dag_run_id, instance.task_id, instance.map_index, instance.try_number),
        state=state,
        started_at=_micros(getattr(instance, "start_date", None)),
        ended_at=time.time_ns() // 1000,
        inputs=list(getattr(task, "inlets", None) or ()),
        outputs=list(getattr(task, "outlets", None) or ()),
        parent=None if provided else dag,  # the provider states the parent
        error="" if error is None else str(error),
    )


def _namespace() -> str:
    """Return the namespace of the OpenLineage provider, so that both record the same jobs."""
    stated = (os.environ.get(name) for name in _PROVIDER_NAMESPACES)
    return next(filter(None, stated), "") or job_namespace("airflow")


def _run_of_provider(instance: Any) -> str:
    """Return the id that the OpenLineage provider gives a run; "" if it is not installed."""
    try:
        from airflow.providers.openlineage.plugins.macros import lineage_run_id
    except ImportError:
        return ""
    try:
        return str(lineage_run_id(instance))
    except (AttributeError, LookupError, NameError, TypeError, ValueError):
        # Another version of the provider. With Airflow 3, some leave a variable unbound.
        return ""


def _micros(moment: Any) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1_000_000)


def __getattr__(name: str) -> Any:
    """Return the plugin on access: only its definition needs Airflow."""
    if name == "LineagePlugin":
        return _plugin()
    raise AttributeError(name)


@functools.cache
def _plugin() -> Any:
    """Return a plugin with a listener for every task of the installation."""
    try:
        from airflow.listeners import hookimpl
        from airflow.plugins_manager import AirflowPlugin
    except ImportError as exc:
        raise MissingDependencyError("apache-airflow", "") from exc

    class TaskListener:
        @hookimpl  # type: ignore[untyped-decorator,unused-ignore]
        def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:
            del previous_state
            _record_instance(task_instance, "COMPLETE", None)

        @hookimpl  # type: ignore[untyped-decorator,unused-ignore]
        def on_task_instance_failed(
            self, previous_state: Any, task_instance: Any, error: Any
        ) -> None:
            del previous_state
            _record_instance(task_instance, "FAIL", error)

    return type(
        "LineagePlugin", (AirflowPlugin,), {"name": "downriver", "listeners": [TaskListener()]}
    )


def _record_instance(instance: Any, state: str, error: Any) -> None:
    with guarded("reading an Airflow task"):
        task = getattr(instance, "task", None)
        if task is not None:  # None in the scheduler, which runs no tasks
            context = {"task": task, "ti": instance, "exception": error}
            record_task(_task_run(context, state))

"""Prefect: hooks for the states of flows and tasks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.model.ids import JobId, RunId
from downriver.sdk.decorators import list_datasets
from downriver.sdk.orchestrators.task_run import TaskRun, job_namespace, record_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.sdk.decorators import DatasetNames

    Hook = Callable[[Any, Any, Any], None]


def lineage_hook(inputs: DatasetNames = None, outputs: DatasetNames = None) -> Hook:
    """Return a hook for `on_completion`, `on_failure` and `on_cancellation` of a flow or task.

    The assets of a `@materialize` task are outputs, and its `asset_deps` are inputs.
    """

    def record_state(subject: Any, run: Any, state: Any) -> None:
        with guarded("reading a Prefect run"):
            record_task(_task_run(subject, run, state, inputs, outputs))

    return record_state


def _task_run(
    subject: Any, run: Any, state: Any, inputs: DatasetNames, outputs: DatasetNames
) -> TaskRun:
    home, parent = job_namespace("prefect"), None
    name = str(subject.name)
    if flow_run := getattr(run, "flow_run_id", None):
        flow = _flow_name()
        name = f"{flow}.{name}"
        parent = RunId(JobId(home, flow), str(flow_run))
    return TaskRun(
        integration="PREFECT",
        job=JobId(home, name),
        run=str(run.id),
        state=_state(state),
        started_at=_micros(getattr(run, "start_time", None)),
        ended_at=_micros(getattr(state, "timestamp", None)) or time.time_ns() // 1000,
        inputs=[*_keys(getattr(subject, "asset_deps", ())), *list_datasets(inputs)],
        outputs=[*_keys(getattr(subject, "assets", ())), *list_datasets(outputs)],
        parent=parent,
        error=str(getattr(state, "message", None) or ""),
    )


def _keys(assets: Any) -> list[str]:
    """Return the URIs of assets."""
    return [str(getattr(asset, "key", asset)) for asset in assets or ()]


def _flow_name() -> str:
    from prefect.runtime import flow_run

    return str(flow_run.flow_name or "flow")


def _state(state: Any) -> str:
    if state.is_completed():
        return "COMPLETE"
    return "ABORT" if state.is_cancelled() else "FAIL"


def _micros(moment: Any) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1_000_000)

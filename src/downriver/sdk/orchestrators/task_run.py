"""A run of a task of an orchestrator, as events. All hooks end here."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec

from downriver import settings
from downriver.capture.emit import guarded
from downriver.capture.functions.runs import Dataset
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId, RunId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.dataset import SCHEMA, SchemaField, render_schema
from downriver.openlineage.facets.job import (
    ERROR_MESSAGE,
    JOB_TYPE,
    PARENT,
    render_error_message,
    render_job_type,
    render_parent_run,
)
from downriver.sdk.decorators import list_datasets, resolve_offline
from downriver.sdk.delivery import flush_shared, shared_emitter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.wire import WireDataset
    from downriver.sdk.decorators import DatasetNames

_FLUSH_SECONDS = 10.0


class TaskRun(msgspec.Struct, kw_only=True):
    """The end of a task, as its orchestrator reports it. Times are in µs since the epoch."""

    integration: str
    job: JobId
    run: str
    state: str  # COMPLETE, FAIL or ABORT
    ended_at: int
    started_at: int | None = None
    inputs: DatasetNames = ()
    outputs: DatasetNames = ()
    output_facets: dict[str, Facets] = {}  # by the name of an output, as declared
    parent: RunId | None = None
    error: str = ""


def record_task(task: TaskRun) -> None:
    """Send the start and end of a run, and wait until they are sent: the process may end next."""
    with guarded(f"recording a run of {task.integration.title()}"):
        emitter = shared_emitter()
        inputs = list(_datasets(task.inputs, {}))
        outputs = list(_datasets(task.outputs, task.output_facets))
        facets: Facets = {JOB_TYPE: render_job_type(task.integration, "TASK")}
        run_facets: Facets = {}
        if task.parent is not None:
            run_facets[PARENT] = render_parent_run(task.parent, task.parent)
        if task.started_at is not None:
            emitter.emit(
                run_event(
                    task.job, task.run, "START", task.started_at, facets=facets,
                    run_facets=run_facets,
                )
            )  # fmt: skip
        if task.state == "FAIL" and task.error:
            run_facets = {**run_facets, ERROR_MESSAGE: render_error_message(task.error)}
        written = outputs if task.state == "COMPLETE" else []
        emitter.emit(
            run_event(
                task.job, task.run, task.state, task.ended_at, inputs=inputs, outputs=written,
                facets=facets, run_facets=run_facets,
            )
        )  # fmt: skip
        flush_shared(_FLUSH_SECONDS)


def run_id(*parts: object) -> str:
    """Return the id of a run that an orchestrator identifies by several values."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, parts))))


def job_namespace(default: str) -> str:
    """Return DOWNRIVER_NAMESPACE, else the name of the orchestrator."""
    return settings.read_text(settings.NAMESPACE) or default


def _datasets(names: DatasetNames, facets: dict[str, Facets]) -> Iterator[WireDataset]:
    for end in list_datasets(names):
        if isinstance(end, Dataset):
            fields = [
                SchemaField(str(f.get("name", "")), str(f.get("type", "")) or None)
                for f in end.schema_fields
            ]
            schema = {SCHEMA: render_schema(fields)} if fields else {}
            yield dataset(
                DatasetId(end.namespace, end.name), {**schema, **facets.get(end.name, {})}
            )
            continue
        node = resolve_offline(end)
        if not isinstance(node, DatasetId):
            raise InvalidRequestError("dataset", f"{end!r} is a job, not a dataset")
        yield dataset(node, facets.get(end))

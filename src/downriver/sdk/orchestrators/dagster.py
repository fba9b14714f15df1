"""Dagster: hooks that record the assets of each step, from the events of its run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import dagster

from downriver.capture.emit import guarded
from downriver.model.facts import ColumnTransformation
from downriver.model.ids import DEFAULT_NAMESPACE, DatasetId, JobId, RunId
from downriver.openlineage.facets.column_lineage import (
    COLUMN_LINEAGE,
    ColumnInput,
    OutputLineage,
    render_column_lineage,
)
from downriver.openlineage.facets.dataset import (
    SCHEMA,
    SYMLINKS,
    SchemaField,
    render_schema,
    render_symlinks,
)
from downriver.openlineage.naming import dataset_at
from downriver.sdk.orchestrators.task_run import TaskRun, job_namespace, record_task, run_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from downriver.openlineage.facets.base import Facets

_INPUT_VERSION = "dagster/input_data_version/"  # tag of a materialization: one for each input
_ASSETS = dagster.DagsterEventType.ASSET_MATERIALIZATION
_STARTS = dagster.DagsterEventType.STEP_START
_DERIVED = ColumnTransformation(
    direct=True, subtype="TRANSFORMATION", description="", masking=False, confidence="declared"
)


def _record(context: dagster.HookContext, state: str) -> None:
    with guarded("reading a Dagster step"):
        record_task(_task_run(context, state))


@dagster.success_hook(name="downriver_success")
def record_success(context: dagster.HookContext) -> None:
    """Record a step with the assets that it made and read."""
    _record(context, "COMPLETE")


@dagster.failure_hook(name="downriver_failure")
def record_failure(context: dagster.HookContext) -> None:
    """Record a step that failed."""
    _record(context, "FAIL")


LINEAGE_HOOKS = frozenset({record_success, record_failure})


def _task_run(context: Any, state: str) -> TaskRun:
    """Return the step, with its assets if it has any."""
    home, step = job_namespace("dagster"), str(context.step_key)
    started: int | None = None
    inputs: list[str] = []
    outputs: dict[str, Facets] = {}
    records = context.instance.all_logs(context.run_id, of_type={_ASSETS, _STARTS})
    for record in records:
        event = record.dagster_event
        if event is None or event.step_key != step:
            continue
        if event.event_type is _STARTS:
            started = int(record.timestamp * 1_000_000)
            continue
        made = event.step_materialization_data.materialization
        outputs[_name(made.asset_key.path)] = _facets(made.metadata)
        inputs += _inputs(made.tags or {})
    error = context.op_exception if state == "FAIL" else None
    return TaskRun(
        integration="DAGSTER",
        job=JobId(home, f"{context.job_name}.{step}"),
        run=run_id(context.run_id, step),
        state=state,
        started_at=started,
        ended_at=time.time_ns() // 1000,
        inputs=[name for name in dict.fromkeys(inputs) if name not in outputs],
        outputs=list(outputs),
        output_facets=outputs,
        parent=RunId(JobId(home, str(context.job_name)), str(context.run_id)),
        error="" if error is None else str(error),
    )


def _name(path: Iterable[str]) -> str:
    """Return the name of an asset: `shop/orders` is the table `shop.orders`."""
    return ".".join(path)


def _inputs(tags: Mapping[str, str]) -> Iterator[str]:
    for tag in tags:
        if tag.startswith(_INPUT_VERSION):
            yield tag.removeprefix(_INPUT_VERSION).replace("/", ".")


def _facets(metadata: Mapping[str, Any]) -> Facets:
    """Return columns, their sources and the location from the metadata of an asset."""
    facets: Facets = {}
    values = {name: getattr(value, "value", value) for name, value in metadata.items()}
    schema = values.get("dagster/column_schema")
    if isinstance(schema, dagster.TableSchema):
        facets[SCHEMA] = render_schema(SchemaField(c.name, c.type) for c in schema.columns)
    lineage = values.get("dagster/column_lineage")
    if isinstance(lineage, dagster.TableColumnLineage):
        fields = {
            column: [
                ColumnInput(_dataset(one.asset_key.path), one.column_name, _DERIVED)
                for one in sources
            ]
            for column, sources in lineage.deps_by_column.items()
        }
        facets[COLUMN_LINEAGE] = render_column_lineage(OutputLineage(fields))
    location = values.get("dagster/uri")
    if isinstance(location, str) and location:
        facets[SYMLINKS] = render_symlinks([dataset_at(location)], "LOCATION")
    return facets


def _dataset(path: Iterable[str]) -> DatasetId:
    return DatasetId(DEFAULT_NAMESPACE, _name(path))

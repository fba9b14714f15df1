"""The events of a function's run: START, COMPLETE, FAIL and ABORT."""

from __future__ import annotations

import datetime as dt
import time
import traceback
from typing import TYPE_CHECKING, Any

from downriver.model.facts import ColumnTransformation
from downriver.model.ids import EVERY_FIELD, RunId
from downriver.openlineage.events import RUN_EVENT, dataset, job_event, run_event
from downriver.openlineage.facets.base import PRODUCER
from downriver.openlineage.facets.column_lineage import (
    COLUMN_LINEAGE,
    ColumnInput,
    OutputLineage,
    render_column_lineage,
)
from downriver.openlineage.facets.dataset import (
    OUTPUT_STATISTICS,
    SCHEMA,
    SchemaField,
    render_output_statistics,
    render_schema,
)
from downriver.openlineage.facets.description import DOCUMENTATION, render_description
from downriver.openlineage.facets.job import (
    ERROR_MESSAGE,
    JOB_TYPE,
    PARENT,
    render_error_message,
    render_job_type,
    render_parent_run,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import msgspec

    from downriver.capture.functions.runs import ColumnLineage, DatasetUse, FrameShape, FunctionRun
    from downriver.model.ids import DatasetId, JobId
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.wire import Event, WireDataset

_LONGEST_TRACE = 20_000


def render_start(run: FunctionRun, description: str) -> Event:
    """Return the START event of a call. It has no datasets: a call that fails has moved no data."""
    return _render(run, "START", _job_facets(description), _run_facets(run), [], [])


def render_complete(
    run: FunctionRun, description: str, columns: Sequence[ColumnLineage], names: Names
) -> Event:
    """Return the COMPLETE event of a call, with the datasets it read and wrote."""
    outputs = [_output(output, columns, names) for output in run.outputs]
    inputs = [dataset(read.dataset, _schema(read.shape)) for read in run.inputs]
    return _render(run, "COMPLETE", _job_facets(description), _run_facets(run), inputs, outputs)


def render_end(run: FunctionRun, description: str, error: BaseException) -> Event:
    """Return the FAIL event of a call that raised, or ABORT if it was interrupted."""
    state = "FAIL" if isinstance(error, Exception) else "ABORT"
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    stack = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    facets = {**_run_facets(run), ERROR_MESSAGE: render_error_message(message, stack)}
    return _render(run, state, _job_facets(description), facets, [], [])


def _render(
    run: FunctionRun,
    state: str,
    job_facets: Facets,
    run_facets: Facets,
    inputs: list[WireDataset],
    outputs: list[WireDataset],
) -> Event:
    return run_event(
        run.job,
        run.id,
        state,
        time.time_ns() // 1000,
        inputs=inputs,
        outputs=outputs,
        facets=job_facets,
        run_facets=run_facets,
    )


def _job_facets(description: str) -> Facets:
    facets: Facets = {JOB_TYPE: render_job_type("PYTHON", "FUNCTION")}
    if description:
        facets[DOCUMENTATION] = render_description("Job", description)
    return facets


def _run_facets(run: FunctionRun) -> Facets:
    if run.parent is None:
        return {}
    parent, root = run.parent, run.root
    return {PARENT: render_parent_run(RunId(parent.job, parent.id), RunId(root.job, root.id))}


def _schema(shape: FrameShape) -> Facets:
    if not shape.fields:
        return {}
    return {SCHEMA: render_schema(SchemaField(name, kind) for name, kind in shape.fields)}


def _output(output: DatasetUse, columns: Sequence[ColumnLineage], names: Names) -> WireDataset:
    facets = _schema(output.shape)
    if columns:
        facets[COLUMN_LINEAGE] = render_columns(columns, names)
    rows = output.shape.rows
    statistics: Facets = {}
    if rows is not None:
        statistics[OUTPUT_STATISTICS] = render_output_statistics(rows=rows)
    return dataset(output.dataset, facets, output_facets=statistics)


if TYPE_CHECKING:
    Names = Callable[[str], DatasetId]


def render_columns(columns: Sequence[ColumnLineage], names: Names) -> msgspec.Raw:
    """Return the columnLineage facet of declared columns, each written as `dataset.column`."""
    fields = {
        column.output_column.rpartition(".")[2]: [
            _column_input(source, column.transformation, names) for source in column.input_columns
        ]
        for column in columns
    }
    return render_column_lineage(OutputLineage(fields))


def _column_input(source: str, transformation: str, names: Names) -> ColumnInput:
    table, _, field = source.rpartition(".")
    return ColumnInput(
        names(table or source),
        field if table else EVERY_FIELD,
        ColumnTransformation(
            direct=True,
            subtype="TRANSFORMATION",
            description=transformation,
            masking=False,
            confidence="",
        ),
    )


def render_documented(
    job: JobId, output: DatasetId, columns: Sequence[ColumnLineage], names: Names
) -> Event:
    """Return the event that declares how a job computes the columns of a dataset."""
    inputs = {
        names(source.rpartition(".")[0] or source): None
        for column in columns
        for source in column.input_columns
    }
    facets = {COLUMN_LINEAGE: render_columns(columns, names)}
    return job_event(
        job,
        time.time_ns() // 1000,
        inputs=[dataset(source) for source in inputs],
        outputs=[dataset(output, facets)],
    )


def create_lineage_event(
    event_type: str,
    job_namespace: str,
    job_name: str,
    run_id: str,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return an OpenLineage run event as a dictionary, with the current time."""
    return {
        "eventType": event_type,
        "eventTime": dt.datetime.now(dt.timezone.utc).isoformat(),
        "run": {"runId": run_id},
        "job": {"namespace": job_namespace, "name": job_name},
        "inputs": [_named(entry) for entry in inputs],
        "outputs": [_named(entry) for entry in outputs],
        "producer": PRODUCER,
        "schemaURL": RUN_EVENT,
    }


def _named(entry: Mapping[str, Any]) -> dict[str, Any]:
    facets = entry.get("facets", {})
    return {"namespace": entry["namespace"], "name": entry["name"], "facets": facets}

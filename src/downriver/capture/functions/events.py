"""The events of a function's run: START, COMPLETE, FAIL and ABORT."""

from __future__ import annotations

import datetime as dt
import time
import traceback
from typing import TYPE_CHECKING, Any

from downriver.openlineage.produce import (
    PRODUCER,
    Facets,
    dataset,
    facet,
    render_job_event,
    render_run_event,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from downriver.capture.functions.runs import ColumnLineage, DatasetUse, FrameShape, FunctionRun
    from downriver.model.ids import DatasetId, JobId

_RUN_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_LONGEST_TRACE = 20_000


def render_start(run: FunctionRun, description: str) -> bytes:
    """Return the event of a call. It names no data yet: what fails has moved none."""
    return _render(run, "START", _job_facets(description), _run_facets(run), [], [])


def render_complete(
    run: FunctionRun, description: str, columns: Sequence[ColumnLineage], names: Names
) -> bytes:
    """Return the event of a call that returned, with what it read and wrote."""
    outputs = [_output(output, columns, names) for output in run.outputs]
    inputs = [dataset(read.dataset, _schema(read.described)) for read in run.inputs]
    return _render(run, "COMPLETE", _job_facets(description), _run_facets(run), inputs, outputs)


def render_end(run: FunctionRun, description: str, error: BaseException) -> bytes:
    """Return the event of a call that raised: a failure, or someone who stopped it."""
    state = "FAIL" if isinstance(error, Exception) else "ABORT"
    told = facet(
        "ErrorMessageRunFacet",
        "1-0-1",
        message=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        programmingLanguage="python",
        stackTrace="".join(traceback.format_exception(error))[-_LONGEST_TRACE:],
    )
    facets = {**_run_facets(run), "errorMessage": told}
    return _render(run, state, _job_facets(description), facets, [], [])


def _render(
    run: FunctionRun,
    state: str,
    job_facets: Facets,
    run_facets: Facets,
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
) -> bytes:
    return render_run_event(
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
    facets: Facets = {
        "jobType": facet(
            "JobTypeJobFacet",
            "2-0-3",
            processingType="BATCH",
            integration="PYTHON",
            jobType="FUNCTION",
        )
    }
    if description:
        facets["documentation"] = facet("DocumentationJobFacet", "1-1-0", description=description)
    return facets


def _run_facets(run: FunctionRun) -> Facets:
    if run.parent is None:
        return {}
    return {
        "parent": facet(
            "ParentRunFacet",
            "1-1-0",
            run={"runId": run.parent.id},
            job=_job(run.parent),
            root={"run": {"runId": run.root.id}, "job": _job(run.root)},
        )
    }


def _job(run: FunctionRun) -> dict[str, str]:
    return {"namespace": run.job.namespace, "name": run.job.name}


def _schema(described: FrameShape) -> Facets:
    fields = [{"name": name, "type": kind} for name, kind in described.fields]
    return {"schema": facet("SchemaDatasetFacet", "1-1-1", fields=fields)} if fields else {}


def _output(output: DatasetUse, columns: Sequence[ColumnLineage], names: Names) -> dict[str, Any]:
    facets = _schema(output.described)
    if columns:
        facets["columnLineage"] = render_columns(columns, names)
    rows = output.described.rows
    statistics: Facets = {}
    if rows is not None:
        statistics["outputStatistics"] = facet(
            "OutputStatisticsOutputDatasetFacet", "1-0-2", rowCount=rows
        )
    return dataset(output.dataset, facets, output_facets=statistics)


if TYPE_CHECKING:
    Names = Callable[[str], DatasetId]


def render_columns(columns: Sequence[ColumnLineage], names: Names) -> dict[str, Any]:
    """Return the columnLineage facet of what someone says of columns, one `dataset.column` each."""
    return facet(
        "ColumnLineageDatasetFacet",
        "1-2-0",
        fields={
            column.output_column.rpartition(".")[2]: {
                "inputFields": [
                    _input_field(source, column.transformation, names)
                    for source in column.input_columns
                ]
            }
            for column in columns
        },
    )


def _input_field(source: str, transformation: str, names: Names) -> dict[str, Any]:
    table, _, field = source.rpartition(".")
    owner = names(table or source)
    how = {"type": "DIRECT", "subtype": "TRANSFORMATION", "description": transformation}
    return {
        "namespace": owner.namespace,
        "name": owner.name,
        "field": field if table else "*",
        "transformations": [{**how, "masking": False}],
    }


def render_documented(
    job: JobId, output: DatasetId, columns: Sequence[ColumnLineage], names: Names
) -> bytes:
    """Return the event in which someone says how a job makes the columns of a dataset."""
    inputs = {
        names(source.rpartition(".")[0] or source): None
        for column in columns
        for source in column.input_columns
    }
    facets = {"columnLineage": render_columns(columns, names)}
    return render_job_event(
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
    """Return an OpenLineage run event as a dictionary, with the time it is now."""
    return {
        "eventType": event_type,
        "eventTime": dt.datetime.now(dt.timezone.utc).isoformat(),
        "run": {"runId": run_id},
        "job": {"namespace": job_namespace, "name": job_name},
        "inputs": [_named(entry) for entry in inputs],
        "outputs": [_named(entry) for entry in outputs],
        "producer": PRODUCER,
        "schemaURL": _RUN_EVENT,
    }


def _named(entry: Mapping[str, Any]) -> dict[str, Any]:
    facets = entry.get("facets", {})
    return {"namespace": entry["namespace"], "name": entry["name"], "facets": facets}

"""The events that Downriver itself produces, built as typed events from ids and facets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.base import PRODUCER, Facets
from downriver.openlineage.facets.column_lineage import LINEAGE, render_dataset_lineage
from downriver.openlineage.facets.custom import (
    PIPELINE,
    WAIVERS,
    flow_facet_name,
    render_flow,
    render_pipeline,
    render_waivers,
)
from downriver.openlineage.facets.dataset import SAME, render_same
from downriver.openlineage.facets.description import DOCUMENTATION, render_description
from downriver.openlineage.facets.job import (
    JOB_DEPENDENCIES,
    JOB_TYPE,
    render_dependencies,
    render_job_type,
)
from downriver.openlineage.wire import (
    Event,
    WireDataset,
    WireEvent,
    WireJob,
    WireRun,
    make_event,
    render_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.model.flows import Flow
    from downriver.model.ids import NodeId

_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
RUN_EVENT = f"{_SPEC}/RunEvent"
_STREAMING = frozenset({"stream", "streaming", "realtime", "cdc"})


def dataset(
    dataset_id: DatasetId,
    facets: Facets | None = None,
    *,
    input_facets: Facets | None = None,
    output_facets: Facets | None = None,
) -> WireDataset:
    """Return a dataset of an event; the last two parameters are facets of one run."""
    return WireDataset(
        namespace=dataset_id.namespace,
        name=dataset_id.name,
        facets=facets or None,
        inputFacets=input_facets or None,
        outputFacets=output_facets or None,
    )


def dataset_event(dataset_id: DatasetId, at: int, facets: Facets) -> Event:
    """Return a DatasetEvent: facts about a dataset, independent of a job."""
    wire = WireEvent(
        eventTime=render_time(at),
        producer=PRODUCER,
        schemaURL=f"{_SPEC}/DatasetEvent",
        dataset=dataset(dataset_id, facets),
    )
    return make_event(wire, at)


def job_event(
    job: JobId,
    at: int,
    *,
    inputs: Iterable[WireDataset] = (),
    outputs: Iterable[WireDataset] = (),
    facets: Facets | None = None,
) -> Event:
    """Return a JobEvent: what a job is declared to do, without a run."""
    wire = WireEvent(
        eventTime=render_time(at),
        producer=PRODUCER,
        schemaURL=f"{_SPEC}/JobEvent",
        job=WireJob(job.namespace, job.name, facets or {}),
        inputs=list(inputs),
        outputs=list(outputs),
    )
    return make_event(wire, at)


def run_event(
    job: JobId,
    run: str,
    state: str,
    at: int,
    *,
    inputs: Iterable[WireDataset] = (),
    outputs: Iterable[WireDataset] = (),
    facets: Facets | None = None,
    run_facets: Facets | None = None,
) -> Event:
    """Return a RunEvent: what a run of a job did."""
    wire = WireEvent(
        eventType=state,
        eventTime=render_time(at),
        producer=PRODUCER,
        schemaURL=RUN_EVENT,
        run=WireRun(run, run_facets or None),
        job=WireJob(job.namespace, job.name, facets or {}),
        inputs=list(inputs),
        outputs=list(outputs),
    )
    return make_event(wire, at)


def flow_event(flow: Flow, source: NodeId, target: NodeId, at: int) -> Event:
    """Return the event of a registered flow between two datasets, two jobs, or one of each."""
    facets: Facets = {flow_facet_name(source): render_flow(flow, source)}
    match source, target:
        case DatasetId(), DatasetId():
            lineage = render_dataset_lineage([source])
            return dataset_event(target, at, {LINEAGE: lineage, **facets})
        case DatasetId(), JobId():
            return job_event(target, at, inputs=[dataset(source)], facets=facets)
        case JobId(), DatasetId():
            return job_event(source, at, outputs=[dataset(target, facets)])
    before, after = _job(source), _job(target)
    facets = {JOB_DEPENDENCIES: render_dependencies([before]), **facets}
    return job_event(after, at, facets=facets)


def _job(node: NodeId) -> JobId:
    return JobId(node.namespace, node.name)


def pipeline_event(
    job: JobId, at: int, steps: Sequence[Flow], schedule: str | None, description: str
) -> Event:
    """Return the event of a registered pipeline; each of its steps is an event of its own."""
    facets: Facets = {
        JOB_TYPE: render_job_type("DOWNRIVER", "PIPELINE", streaming=_is_streaming(steps)),
        PIPELINE: render_pipeline(steps, schedule),
    }
    if description:
        facets[DOCUMENTATION] = render_description("Job", description)
    return job_event(job, at, facets=facets)


def _is_streaming(flows: Iterable[Flow]) -> bool:
    return any(flow.flow_type.lower() in _STREAMING for flow in flows)


def same_event(dataset_id: DatasetId, other: DatasetId, at: int, *, same: bool) -> Event:
    """Return the event that records whether two names are one dataset."""
    return dataset_event(dataset_id, at, {SAME: render_same(other, same=same)})


def waiver_event(
    changed: DatasetId, at: int, changes: Sequence[str], waived: Sequence[dict[str, Any]]
) -> Event:
    """Return the event that records which rules were waived for a change, by whom and why."""
    return dataset_event(changed, at, {WAIVERS: render_waivers(changes, waived)})

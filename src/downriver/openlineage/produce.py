"""The events that Downriver writes itself: from ids and facets to OpenLineage JSON."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from downriver import __version__
from downriver.model.flows import Flow
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.base import AssetFacet
from downriver.openlineage.facets.code import CodeFacet
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from downriver.model.ids import NodeId

PRODUCER = f"https://github.com/downriver/downriver/tree/{__version__}"
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
_FACETS = "https://openlineage.io/spec/facets"

Facets = dict[str, dict[str, Any]]


def facet(name: str, version: str, /, **content: Any) -> dict[str, Any]:
    """Return a facet with the two fields every facet carries."""
    return {"_producer": PRODUCER, "_schemaURL": f"{_FACETS}/{version}/{name}.json", **content}


def dataset(
    dataset_id: DatasetId,
    facets: Facets | None = None,
    *,
    input_facets: Facets | None = None,
    output_facets: Facets | None = None,
) -> dict[str, Any]:
    """Return a dataset as events name it; the last two speak of one run's input or output."""
    return {
        "namespace": dataset_id.namespace,
        "name": dataset_id.name,
        **({"facets": facets} if facets else {}),
        **({"inputFacets": input_facets} if input_facets else {}),
        **({"outputFacets": output_facets} if output_facets else {}),
    }


def code_facet(code: CodeFacet) -> dict[str, Any]:
    """Return our facet that tells where a job's code is and which columns it names."""
    content = msgspec.to_builtins(code)
    if not code.raw:
        del content["raw"]
    return facet("DownriverCode", "1-0-0", **content)


def asset_facet(asset: AssetFacet) -> dict[str, Any]:
    """Return our facet that tells what a dataset or job was registered as."""
    return facet("DownriverAsset", "1-0-0", **msgspec.to_builtins(asset))


def render_dataset_event(dataset_id: DatasetId, at: int, facets: Facets) -> bytes:
    """Return a DatasetEvent: what is known of a dataset, whoever writes it."""
    return msgspec.json.encode(
        {
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": f"{_SPEC}/DatasetEvent",
            "dataset": dataset(dataset_id, facets),
        }
    )


def render_job_event(
    job: JobId,
    at: int,
    *,
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
    facets: Facets | None = None,
) -> bytes:
    """Return a JobEvent: what a job is declared to do, without a run that was seen doing it."""
    return msgspec.json.encode(
        {
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": f"{_SPEC}/JobEvent",
            "job": {"namespace": job.namespace, "name": job.name, "facets": facets or {}},
            "inputs": inputs,
            "outputs": outputs,
        }
    )


def render_run_event(
    job: JobId,
    run: str,
    state: str,
    at: int,
    *,
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
    facets: Facets | None = None,
    run_facets: Facets | None = None,
) -> bytes:
    """Return a RunEvent: what a run of a job was seen to do."""
    return msgspec.json.encode(
        {
            "eventType": state,
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": f"{_SPEC}/RunEvent",
            "run": {"runId": run, **({"facets": run_facets} if run_facets else {})},
            "job": {"namespace": job.namespace, "name": job.name, "facets": facets or {}},
            "inputs": inputs,
            "outputs": outputs,
        }
    )


PREFIX = "downriver_flow_"
_STREAMING = frozenset({"stream", "streaming", "realtime", "cdc"})


class FlowFacet(msgspec.Struct, kw_only=True, gc=False):
    """What was said of one flow, on the node it ends at."""

    source: str = ""
    sourceId: str = ""  # noqa: N815
    targetId: str = ""  # noqa: N815
    flowType: str = ""  # noqa: N815
    transformation: str = ""
    schedule: str | None = None
    pipeline: str | None = None
    metadata: dict[str, Any] = {}

    def flow(self) -> Flow:
        """Return the flow as it was registered."""
        return Flow(
            source_id=self.sourceId,
            target_id=self.targetId,
            flow_type=self.flowType,
            transformation=self.transformation,
            schedule=self.schedule,
            metadata=self.metadata,
            pipeline=self.pipeline,
        )


def facet_name(source: NodeId) -> str:
    """Return the facet that tells of the flow from one source: each flow has its own."""
    return PREFIX + hashlib.sha256(str(source).encode()).hexdigest()[:16]


_decode = msgspec.json.Decoder(FlowFacet).decode


def read_flow(body: bytes) -> FlowFacet:
    """Return what a facet says of a flow; one that cannot be read says nothing."""
    try:
        return _decode(body)
    except msgspec.DecodeError:
        return FlowFacet()


def read_flows(facets: Mapping[str, bytes]) -> list[FlowFacet]:
    """Return the flows that end at a node, from its facets."""
    return [read_flow(body) for name, body in facets.items() if name.startswith(PREFIX)]


def render_flow_event(flow: Flow, source: NodeId, target: NodeId, at: int) -> bytes:
    """Return the event that says where a flow goes, whatever its two ends are."""
    told = {facet_name(source): _flow_facet(flow, source)}
    match source, target:
        case DatasetId(), DatasetId():
            link = {"type": "DATASET", "namespace": source.namespace, "name": source.name}
            lineage = facet("LineageDatasetFacet", "1-0-0", inputs=[link])
            return render_dataset_event(target, at, {"lineage": lineage, **told})
        case DatasetId(), JobId():
            return render_job_event(target, at, inputs=[dataset(source)], outputs=[], facets=told)
        case JobId(), DatasetId():
            return render_job_event(source, at, inputs=[], outputs=[dataset(target, told)])
    upstream = [{"job": {"namespace": source.namespace, "name": source.name}}]
    order = facet("JobDependenciesRunFacet", "1-0-1", upstream=upstream)
    return render_job_event(
        _job(target), at, inputs=[], outputs=[], facets={"jobDependencies": order, **told}
    )


def _job(node: NodeId) -> JobId:
    return JobId(node.namespace, node.name)


def render_pipeline_event(
    job: JobId, at: int, flows: list[Flow], schedule: str | None, description: str
) -> bytes:
    """Return the event of a pipeline itself: its steps are events of their own."""
    facets: Facets = {
        "jobType": facet(
            "JobTypeJobFacet",
            "2-0-3",
            processingType="STREAMING" if _is_streaming(flows) else "BATCH",
            integration="DOWNRIVER",
            jobType="PIPELINE",
        ),
        "downriver_pipeline": facet(
            "DownriverPipeline",
            "1-0-0",
            schedule=schedule,
            steps=[msgspec.to_builtins(flow) for flow in flows],
        ),
    }
    if description:
        facets["documentation"] = facet("DocumentationJobFacet", "1-1-0", description=description)
    return render_job_event(job, at, inputs=[], outputs=[], facets=facets)


def _is_streaming(flows: list[Flow]) -> bool:
    return any(flow.flow_type.lower() in _STREAMING for flow in flows)


def _flow_facet(flow: Flow, source: NodeId) -> dict[str, Any]:
    content = FlowFacet(
        source=str(source),
        sourceId=flow.source_id,
        targetId=flow.target_id,
        flowType=flow.flow_type,
        transformation=flow.transformation,
        schedule=flow.schedule,
        pipeline=flow.pipeline,
        metadata=flow.metadata,
    )
    return facet("DownriverFlow", "1-0-0", **msgspec.to_builtins(content))


WAIVERS = "downriver_waivers"
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent"


def render_waiver_event(
    changed: DatasetId, at: int, changes: Sequence[str], waived: Sequence[dict[str, Any]]
) -> bytes:
    """Return a DatasetEvent that says which rules were waived for which changes."""
    content = facet("DownriverWaivers", "1-0-0", changes=list(changes), waived=list(waived))
    return msgspec.json.encode(
        {
            "eventTime": render_time(at),
            "producer": PRODUCER,
            "schemaURL": _SCHEMA,
            "dataset": dataset(changed, {WAIVERS: content}),
        }
    )

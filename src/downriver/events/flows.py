"""Flows on the wire: a dataset that says of itself what it derives from, and how."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.events.render import (
    Facets,
    dataset,
    facet,
    render_dataset_event,
    render_job_event,
)
from downriver.model.flows import Flow
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.model.ids import NodeId

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

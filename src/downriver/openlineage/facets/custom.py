"""The facets that Downriver defines itself: code, builds, blind spots, assets, flows, waivers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.flows import Flow
from downriver.openlineage.facets.base import parse_facet, render_facet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.model.ids import NodeId

CODE = "downriver_code"
BUILD = "downriver_build"
BLIND_SPOTS = "downriver_blindSpots"
INFERRED = "downriver_inferred"
ASSET = "downriver_asset"
FLOW_PREFIX = "downriver_flow_"
PIPELINE = "downriver_pipeline"
WAIVERS = "downriver_waivers"
DELETED = "downriver_deleted"
RESTORED = "downriver_restored"
RECORD = "downriver_record"
REDACTION = "downriver_redaction"
RUN_ARGUMENTS = "downriver_runArguments"
EVIDENCE_PREFIX = "downriver_evidence_"


class CodeReference(msgspec.Struct):
    """One place where code names a column of a dataset.

    A `conditional` reference uses the column only if it exists, or selects it together with all
    other columns.
    """

    namespace: str = ""
    name: str = ""
    field: str = ""
    line: int = 0
    clause: str = "other"
    conditional: bool = False
    text: str = ""


class CodeFacet(msgspec.Struct):
    """The code of a job: its file, its first line, and `raw`, the template it was rendered from."""

    path: str = ""
    line: int = 0
    references: list[CodeReference] | None = None
    raw: str = ""


class ContractColumn(msgspec.Struct, frozen=True):
    """A column that a contract promises."""

    name: str = ""
    type: str = ""


class BuildFacet(msgspec.Struct, rename="camel", frozen=True):
    """How a job builds its table. `contract` is None when the columns are not enforced."""

    materialized: str = ""
    on_schema_change: str = ""
    contract: list[ContractColumn] | None = None


class BlindSpotEntry(msgspec.Struct, frozen=True, order=True):
    """A part of a job whose lineage is unknown, because capture could not read it."""

    kind: str = "unknown"
    message: str = ""
    line: int = 0


class _BlindSpots(msgspec.Struct):
    spots: list[BlindSpotEntry] | None = None


class AssetFacet(msgspec.Struct, omit_defaults=True):
    """The asset that a dataset or job was registered as."""

    id: str = ""
    assetType: str = ""  # noqa: N815
    name: str = ""
    sourceRef: str = ""  # noqa: N815


class FlowFacet(msgspec.Struct, kw_only=True, gc=False):
    """A registered flow. The facet is attached to the node where the flow ends."""

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


class RecordFacet(msgspec.Struct, omit_defaults=True):
    """Data that a user registered for a namespace, a source, a tag or a dataset."""

    owner: str = ""
    description: str = ""
    type: str = ""
    url: str = ""
    physicalName: str = ""  # noqa: N815
    sourceName: str = ""  # noqa: N815
    schemaLocation: str = ""  # noqa: N815


class _RunArguments(msgspec.Struct):
    arguments: dict[str, Any] = {}


def render_deleted(reason: str = "", by: str = "") -> msgspec.Raw:
    """Return the facet that hides a dataset or job until a later event mentions it again."""
    fields = {name: text for name, text in (("reason", reason), ("by", by)) if text}
    return render_facet("DownriverDeleted", "1-0-0", **fields)


def render_restored(by: str = "") -> msgspec.Raw:
    """Return the facet that shows a hidden dataset or job again."""
    return render_facet("DownriverRestored", "1-0-0", **({"by": by} if by else {}))


class _Redaction(msgspec.Struct):
    entries: dict[str, str] = {}


def render_redaction(entries: Mapping[int, str], reason: str = "", by: str = "") -> msgspec.Raw:
    """Return the facet that names redacted entries of the log, with the hashes of their bodies."""
    fields = {name: text for name, text in (("reason", reason), ("by", by)) if text}
    hashes = {str(seq): digest for seq, digest in entries.items()}
    return render_facet("DownriverRedaction", "1-0-0", entries=hashes, **fields)


def parse_redaction(body: bytes) -> dict[int, bytes]:
    """Return the redacted entries of the log, with the hashes of their bodies."""
    entries = parse_facet(body, _Redaction).entries
    try:
        return {int(seq): bytes.fromhex(digest) for seq, digest in entries.items()}
    except ValueError:
        return {}


def parse_record(body: bytes | None) -> RecordFacet:
    """Return the registered data."""
    return parse_facet(body or b"{}", RecordFacet)


def render_record(record: RecordFacet) -> msgspec.Raw:
    """Return the facet with the registered data."""
    return render_facet("DownriverRecord", "1-0-0", **msgspec.to_builtins(record))


def parse_run_arguments(body: bytes | None) -> dict[str, str]:
    """Return the arguments with which a run was created."""
    arguments = parse_facet(body or b"{}", _RunArguments).arguments
    return {name: str(value) for name, value in arguments.items()}


def render_run_arguments(arguments: Mapping[str, str]) -> msgspec.Raw:
    """Return the facet with the arguments with which a run was created."""
    return render_facet("DownriverRunArguments", "1-0-0", arguments=dict(arguments))


def parse_code(facets: Mapping[str, bytes]) -> CodeFacet | None:
    """Return the code facet among the facets of a job, if there is one."""
    body = facets.get(CODE)
    return None if body is None else parse_facet(body, CodeFacet)


def render_code(code: CodeFacet) -> msgspec.Raw:
    """Return the facet with the file of a job's code and the columns that the code names."""
    content = msgspec.to_builtins(code)
    if not code.raw:
        del content["raw"]
    return render_facet("DownriverCode", "1-0-0", **content)


def parse_build(facets: Mapping[str, bytes]) -> BuildFacet | None:
    """Return the build facet among the facets of a job, if there is one."""
    body = facets.get(BUILD)
    return None if body is None else parse_facet(body, BuildFacet)


def render_build(build: BuildFacet) -> msgspec.Raw:
    """Return the facet with how a job builds its table."""
    return render_facet("DownriverBuild", "1-0-0", **msgspec.to_builtins(build))


def parse_blind_spots(body: bytes) -> list[BlindSpotEntry]:
    """Return the parts of a job that could not be read."""
    return parse_facet(body, _BlindSpots).spots or []


def render_blind_spots(spots: Iterable[BlindSpotEntry]) -> msgspec.Raw:
    """Return the facet that lists the parts of a job that could not be read.

    Send it also when the list is empty: it replaces the list of an earlier version of the job.
    """
    return render_facet("DownriverBlindSpots", "1-0-0", spots=list(spots))


def render_inferred(facet: str) -> msgspec.Raw:
    """Return the facet that marks an event as derived from `facet` of a producer's event."""
    return render_facet("DownriverInferred", "1-0-0", facet=facet)


def parse_asset(body: bytes) -> AssetFacet:
    """Return the asset that a node was registered as."""
    return parse_facet(body, AssetFacet)


def render_asset(asset: AssetFacet) -> msgspec.Raw:
    """Return the facet of the asset that a dataset or job was registered as."""
    return render_facet("DownriverAsset", "1-0-0", **msgspec.to_builtins(asset))


def flow_facet_name(source: NodeId) -> str:
    """Return the name of the facet for the flow from `source`: each flow has its own facet."""
    return FLOW_PREFIX + hashlib.sha256(str(source).encode()).hexdigest()[:16]


_decode_flow = msgspec.json.Decoder(FlowFacet).decode


def parse_flow(body: bytes) -> FlowFacet:
    """Return the flow of a facet; a malformed facet gives an empty flow."""
    try:
        return _decode_flow(body)
    except msgspec.DecodeError:
        return FlowFacet()


def parse_flows(facets: Mapping[str, bytes]) -> list[FlowFacet]:
    """Return the flows that end at a node, from its facets."""
    return [parse_flow(body) for name, body in facets.items() if name.startswith(FLOW_PREFIX)]


def render_flow(flow: Flow, source: NodeId) -> msgspec.Raw:
    """Return the facet of a registered flow."""
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
    return render_facet("DownriverFlow", "1-0-0", **msgspec.to_builtins(content))


def render_pipeline(steps: Sequence[Flow], schedule: str | None) -> msgspec.Raw:
    """Return the facet of a registered pipeline with its steps."""
    return render_facet(
        "DownriverPipeline",
        "1-0-0",
        schedule=schedule,
        steps=[msgspec.to_builtins(step) for step in steps],
    )


def render_waivers(changes: Sequence[str], waived: Sequence[dict[str, Any]]) -> msgspec.Raw:
    """Return the facet that records which rules were waived for which changes."""
    return render_facet("DownriverWaivers", "1-0-0", changes=list(changes), waived=list(waived))


class _Waivers(msgspec.Struct):
    changes: list[str] | None = None
    waived: list[Any] | None = None


def parse_waivers(body: bytes) -> tuple[list[str], list[Any]]:
    """Return the changes for which rules were waived, and the waivers."""
    facet = parse_facet(body, _Waivers)
    return facet.changes or [], facet.waived or []


def render_evidence(record: Mapping[str, Any]) -> msgspec.Raw:
    """Return the facet that records an evidence pack of a dataset. Each pack has its own facet."""
    return render_facet("DownriverEvidence", "1-0-0", **record)

"""A trace as the metadata file that DataHub's `file` source reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.openlineage.wire import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.export.formats import DerivedColumn, ExportedGraph
    from downriver.model.answers import TraceEdge, TraceNode

_ACTOR = "urn:li:corpuser:downriver"
_ENVIRONMENT = "PROD"
_PLATFORMS = {
    "abfs": "abs", "abfss": "abs", "gs": "gcs", "sqlserver": "mssql", "awsathena": "athena",
    "awsglue": "glue", "model": "mlflow",
}  # fmt: skip
_ESCAPES = (("%", "%25"), (",", "%2C"), ("(", "%28"), (")", "%29"), ("\u241f", "%E2%90%9F"))
_IN_BUCKETS = frozenset({"s3", "gcs", "abs", "hdfs"})
_CONFIDENCE = {"exact": 1.0, "declared": 0.9, "inferred": 0.7, "ambiguous": 0.4}


def render_datahub(piece: ExportedGraph) -> str:
    """Return one proposal for each dataset with upstreams: the upstreams, column by column."""
    nodes = {node.id: node for node in piece.trace.nodes}
    proposals = [
        _proposal(nodes[target], edges, piece.columns_of(nodes[target]), nodes)
        for target, edges in piece.upstreams().items()
        if target in nodes
    ]
    return msgspec.json.format(msgspec.json.encode(proposals), indent=2).decode() + "\n"


def _proposal(
    target: TraceNode,
    edges: list[TraceEdge],
    columns: list[DerivedColumn],
    nodes: dict[str, TraceNode],
) -> dict[str, Any]:
    urn = dataset_urn(target.namespace, target.name)
    listed_edges = [edge for edge in edges if edge.source in nodes]
    return {
        "entityType": "dataset",
        "entityUrn": urn,
        "changeType": "UPSERT",
        "aspectName": "upstreamLineage",
        "aspect": {
            "json": {
                "upstreams": [_upstream(nodes[edge.source], edge) for edge in listed_edges],
                "fineGrainedLineages": list(_columns(urn, columns)),
            }
        },
    }


def _upstream(source: TraceNode, edge: TraceEdge) -> dict[str, Any]:
    return {
        "auditStamp": {"time": parse_time(edge.last_seen, "last_seen") // 1000, "actor": _ACTOR},
        "dataset": dataset_urn(source.namespace, source.name),
        "type": "TRANSFORMED",
    }


def _columns(urn: str, columns: list[DerivedColumn]) -> Iterator[dict[str, Any]]:
    for derived in columns:
        if derived.sources:
            yield {
                "upstreamType": "FIELD_SET",
                "upstreams": [
                    _field_urn(dataset_urn(source.namespace, source.name), field)
                    for source, field in derived.sources
                ],
                "downstreamType": "FIELD",
                "downstreams": [_field_urn(urn, derived.field)],
                "transformOperation": derived.derivation.transformation,
                "confidenceScore": _CONFIDENCE.get(derived.derivation.confidence, 0.5),
            }


def dataset_urn(namespace: str, name: str) -> str:
    """Return the URN of a dataset in DataHub: its platform, its name there, and PROD."""
    scheme, separator, host = namespace.partition("://")
    platform = _PLATFORMS.get(scheme, scheme) or "downriver"
    if platform in _IN_BUCKETS and separator:
        name = f"{host}/{name.strip('/')}"
    platform = "downriver" if platform == "default" else platform
    return f"urn:li:dataset:(urn:li:dataPlatform:{_part(platform)},{_part(name)},{_ENVIRONMENT})"


def _field_urn(dataset: str, field: str) -> str:
    return f"urn:li:schemaField:({dataset},{_part(field)})"


def _part(text: str) -> str:
    """Escape the characters that DataHub does not allow in a URN."""
    for char, code in _ESCAPES:
        text = text.replace(char, code)
    return text

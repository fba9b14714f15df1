"""Flows as calls give them and as captured SQL has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.sql import ColumnEdge
from downriver.errors import InvalidRequestError
from downriver.model.answers import MappingStruct
from downriver.model.flows import Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.service import SqlCapture


class SqlFlows(MappingStruct, kw_only=True):
    """What capturing a statement registered."""

    source_tables: list[str]
    target_tables: list[str]
    flows_registered: list[dict[str, str]]
    flow_count: int
    columns: list[ColumnEdge]
    complete: bool
    blind_spots: list[str]


def make_flow(flow: Flow | Mapping[str, Any]) -> Flow:
    """Return a flow from one, or from a dictionary with its fields; others are refused."""
    if isinstance(flow, Flow):
        return flow
    given = dict(flow)
    for name, other in (("source", "source_id"), ("target", "target_id")):
        if name in given:
            given.setdefault(other, given.pop(name))
    unknown = given.keys() - set(Flow.__struct_fields__)
    if unknown:
        raise InvalidRequestError("flow", f"has no {', '.join(sorted(map(str, unknown)))}")
    for name in ("source_id", "target_id"):
        if not isinstance(given.get(name), str):
            raise InvalidRequestError(name, "missing; write it like table:orders or api:stripe")
    said = {name: value for name, value in given.items() if value is not None}
    said["metadata"] = dict(said.get("metadata", {}))
    return Flow(**said)


def sql_flows(capture: SqlCapture, transformation: str) -> SqlFlows:
    """Return the flows of a statement: from each table it reads to each it writes."""
    found = capture.lineage
    pairs = {
        (source, target)
        for statement in found.statements
        for source in statement.inputs
        for target in statement.outputs
    }
    flows = [
        {"source": source, "target": target, "transformation": transformation}
        for source, target in sorted(pairs)
    ]
    return SqlFlows(
        source_tables=found.inputs,
        target_tables=found.outputs,
        flows_registered=flows,
        flow_count=len(flows),
        columns=[*found.column_edges, *found.dataset_edges],
        complete=found.complete,
        blind_spots=[spot.message for spot in found.blind_spots],
    )

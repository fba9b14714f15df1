"""Flows from arguments of calls, and from captured SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.sql import ColumnEdge
from downriver.errors import InvalidRequestError
from downriver.model.answers import MappingStruct
from downriver.model.flows import Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.service.capture import SqlCapture


class SqlFlows(MappingStruct, kw_only=True):
    """The flows that capturing a SQL statement registered."""

    source_tables: list[str]
    target_tables: list[str]
    flows_registered: list[dict[str, str]]
    flow_count: int
    columns: list[ColumnEdge]
    complete: bool
    blind_spots: list[str]


def make_flow(flow: Flow | Mapping[str, Any]) -> Flow:
    """Return a flow, given as one or as a dictionary of its fields. Unknown fields are an error."""
    if isinstance(flow, Flow):
        return flow
    given = dict(flow)
    for name, other in (("source", "source_id"), ("target", "target_id")):
        if name in given:
            given.setdefault(other, given.pop(name))
    unknown = given.keys() - set(Flow.__struct_fields__)
    if unknown:
        raise InvalidRequestError("flow", f"unknown fields: {', '.join(sorted(map(str, unknown)))}")
    for name in ("source_id", "target_id"):
        if not isinstance(given.get(name), str):
            raise InvalidRequestError(name, "missing; write it like table:orders or api:stripe")
    fields = {name: value for name, value in given.items() if value is not None}
    fields["metadata"] = dict(fields.get("metadata", {}))
    return Flow(**fields)


def sql_flows(capture: SqlCapture, transformation: str) -> SqlFlows:
    """Return the flows of a script: from each table a statement reads to each it writes."""
    sql_lineage = capture.lineage
    pairs = {
        (source, target)
        for statement in sql_lineage.statements
        for source in statement.inputs
        for target in statement.outputs
    }
    flows = [
        {"source": source, "target": target, "transformation": transformation}
        for source, target in sorted(pairs)
    ]
    return SqlFlows(
        source_tables=sql_lineage.inputs,
        target_tables=sql_lineage.outputs,
        flows_registered=flows,
        flow_count=len(flows),
        columns=[*sql_lineage.column_edges, *sql_lineage.dataset_edges],
        complete=sql_lineage.complete,
        blind_spots=[spot.message for spot in sql_lineage.blind_spots],
    )

"""How a column is made: the columns next to it, job by job."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from downriver.model.flows import ColumnDerivation

if TYPE_CHECKING:
    from downriver.model.answers import Trace, TraceEdge


def list_derivations(answer: Trace) -> list[ColumnDerivation]:
    """Return what makes the root of a trace, one entry for each job, in order of their names."""
    names = {node.id: f"{node.name}.{node.field}" for node in answer.nodes}
    by_job: defaultdict[str | None, list[TraceEdge]] = defaultdict(list)
    for edge in answer.edges:
        if edge.target == answer.root.id:
            by_job[edge.job].append(edge)
    return [
        _derivation(names[answer.root.id], job, edges, names)
        for job, edges in sorted(by_job.items(), key=lambda item: item[0] or "")
    ]


def _derivation(
    column: str, job: str | None, edges: list[TraceEdge], names: dict[str, str]
) -> ColumnDerivation:
    direct = [edge for edge in edges if edge.type != "INDIRECT"]
    indirect = [edge for edge in edges if edge.type == "INDIRECT"]
    told = [edge.description for edge in direct if edge.description]
    kinds = [edge.subtype for edge in direct or indirect if edge.subtype]
    return ColumnDerivation(
        output_column=column,
        input_columns=list(dict.fromkeys(names[edge.source] for edge in direct)),
        indirect_columns=list(dict.fromkeys(names[edge.source] for edge in indirect)),
        transformation="; ".join(dict.fromkeys(told or kinds)),
        job=job,
        status="stale" if all(edge.status == "stale" for edge in edges) else "active",
        confidence=edges[0].confidence,
    )

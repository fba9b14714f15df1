"""A query's lineage put into the job that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.code.job import CodeJob, Edge, Spot

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql import ColumnEdge, SqlLineage
    from downriver.model.ids import DatasetId


def add_sql(
    job: CodeJob,
    lineage: SqlLineage,
    dataset_for: Callable[[str], DatasetId],
    *,
    result: DatasetId | None = None,
    first_line: int = 1,
) -> None:
    """Add what a script reads, writes and derives; what a query returns goes to `result`.

    `first_line` is the line of the file that the script begins on.
    """
    for table in lineage.inputs:
        job.reads(dataset_for(table))
    for table in lineage.outputs:
        job.writes(dataset_for(table))
    if result is not None:
        job.writes(result)
    for edge in [*lineage.column_edges, *lineage.dataset_edges]:
        target = dataset_for(edge.target.table) if edge.target.table else result
        if target is not None:
            job.edges.append(_edge(edge, dataset_for(edge.source.table), target))
    for spot in lineage.blind_spots:
        job.cannot_see(Spot(spot.kind, spot.message, max(spot.line, 1) + first_line - 1))


def _edge(edge: ColumnEdge, source: DatasetId, target: DatasetId) -> Edge:
    return Edge(
        source=source,
        source_field=edge.source.column,
        target=target,
        target_field=edge.target.column,
        subtype=edge.subtype,
        masking=edge.masking,
        confidence=edge.resolution,
        expression=edge.expression,
    )

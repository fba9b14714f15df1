"""A query's lineage put into the job that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.code.job import CodeJob, Edge, Spot
from downriver.capture.sql.jinja import render_template
from downriver.capture.sql.limits import Budget, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql import ColumnEdge, SqlLineage, Template
    from downriver.model.ids import DatasetId


def put_query(job: CodeJob, sql: str, template: Template | None = None) -> None:
    """Keep a job's query: as it runs, and as the template it is rendered from, if it is one."""
    if template is None or not any(mark in sql for mark in ("{{", "{%", "{#")):
        job.sql = sql
        return
    job.raw = sql
    # Of two renderings the second answers yes to what only a run can tell: it has all there is.
    job.sql = render_template(sql, template, Budget(Limits())).texts[-1]


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

"""SQL lineage as an OpenLineage event."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.openlineage.facets.base import BLIND_SPOTS
from downriver.openlineage.produce import Facets, dataset, facet, render_job_event, render_run_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql.result import ColumnEdge, SqlLineage
    from downriver.model.ids import DatasetId, JobId

_LONGEST_SQL = 200_000


class SqlJob(NamedTuple):
    """Who runs a script, and what else is known of it."""

    job: JobId
    sql: str
    description: str = ""
    path: str = ""


def render_sql_event(
    lineage: SqlLineage,
    about: SqlJob,
    at: int,
    name_of: Callable[[str], DatasetId],
    *,
    run: str | None = None,
) -> bytes:
    """Return the event of a script: declared by its text, or observed when `run` is given."""
    inputs = [dataset(name_of(name)) for name in lineage.inputs]
    outputs = [
        dataset(name_of(name), {"columnLineage": _column_lineage(name, lineage, name_of)})
        for name in lineage.outputs
    ]
    facets = _job_facets(lineage, about, name_of)
    if run is None:
        return render_job_event(about.job, at, inputs=inputs, outputs=outputs, facets=facets)
    return render_run_event(
        about.job, run, "COMPLETE", at, inputs=inputs, outputs=outputs, facets=facets
    )


def _job_facets(lineage: SqlLineage, about: SqlJob, name_of: Callable[[str], DatasetId]) -> Facets:
    facets: Facets = {
        "sql": facet(
            "SQLJobFacet", "1-1-0", query=about.sql[:_LONGEST_SQL], dialect=lineage.dialect
        ),
        "jobType": facet(
            "JobTypeJobFacet", "2-0-3", processingType="BATCH", integration="SQL", jobType="QUERY"
        ),
    }
    if about.description:
        facets["documentation"] = facet(
            "DocumentationJobFacet", "1-1-0", description=about.description
        )
    if about.path:
        facets["sourceCodeLocation"] = facet(
            "SourceCodeLocationJobFacet", "1-0-1", type="file", url=f"file:{about.path}",
            path=about.path,
        )  # fmt: skip
    # Also when there are none: what was stated of an earlier text must not go on.
    facets[BLIND_SPOTS] = facet(
        "DownriverBlindSpots",
        "1-0-0",
        spots=[
            {"kind": spot.kind, "message": spot.message, "line": spot.line}
            for spot in lineage.blind_spots
        ],
    )
    if len(lineage.outputs) > 1:
        # Several outputs: say which input feeds which, or all would seem to feed all.
        facets["lineage"] = facet("LineageJobFacet", "1-0-0", entries=_entries(lineage, name_of))
    return facets


def _column_lineage(
    output: str, lineage: SqlLineage, name_of: Callable[[str], DatasetId]
) -> dict[str, Any]:
    fields: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for edge in lineage.column_edges:
        if edge.target.table == output:
            fields[edge.target.column].append(_input_field(edge, name_of))
    return facet(
        "ColumnLineageDatasetFacet",
        "1-2-0",
        fields={name: {"inputFields": inputs} for name, inputs in fields.items()},
        dataset=[
            _input_field(edge, name_of)
            for edge in lineage.dataset_edges
            if edge.target.table == output
        ],
    )


def _entries(lineage: SqlLineage, name_of: Callable[[str], DatasetId]) -> list[dict[str, Any]]:
    entries = []
    for output in lineage.outputs:
        sources = sorted(
            {name for s in lineage.statements if output in s.outputs for name in s.inputs}
        )
        fields: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for edge in lineage.column_edges:
            if edge.target.table == output:
                fields[edge.target.column].append(
                    {"type": "DATASET", **_input_field(edge, name_of)}
                )
        wide = [
            {"type": "DATASET", **_input_field(edge, name_of)}
            for edge in lineage.dataset_edges
            if edge.target.table == output
        ]
        entries.append(
            {
                "type": "DATASET",
                **dataset(name_of(output)),
                "inputs": [{"type": "DATASET", **dataset(name_of(n))} for n in sources] + wide,
                "fields": {name: {"inputs": inputs} for name, inputs in fields.items()},
            }
        )
    return entries


def _input_field(edge: ColumnEdge, name_of: Callable[[str], DatasetId]) -> dict[str, Any]:
    return {
        **dataset(name_of(edge.source.table)),
        "field": edge.source.column,
        "transformations": [
            {
                "type": edge.type,
                "subtype": edge.subtype,
                "description": edge.expression,
                "masking": edge.masking,
                "confidence": edge.resolution,
            }
        ],
    }

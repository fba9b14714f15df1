"""SQL lineage as an OpenLineage event."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from downriver.model.facts import ColumnTransformation
from downriver.openlineage.events import dataset, job_event, run_event
from downriver.openlineage.facets.column_lineage import (
    COLUMN_LINEAGE,
    LINEAGE,
    ColumnInput,
    JobOutput,
    OutputLineage,
    render_column_lineage,
    render_job_lineage,
)
from downriver.openlineage.facets.custom import (
    BLIND_SPOTS,
    INFERRED,
    BlindSpotEntry,
    render_blind_spots,
    render_inferred,
)
from downriver.openlineage.facets.description import DOCUMENTATION, render_description
from downriver.openlineage.facets.job import (
    JOB_TYPE,
    SOURCE_CODE_LOCATION,
    SQL,
    render_job_type,
    render_source_code_location,
    render_sql,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql.result import ColumnEdge, SqlLineage
    from downriver.model.ids import DatasetId, JobId
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.wire import Event

    NameOf = Callable[[str], DatasetId]


class SqlJob(NamedTuple):
    """The job that runs a script, with its SQL, description and file."""

    job: JobId
    sql: str
    description: str = ""
    path: str = ""


def render_sql_event(
    lineage: SqlLineage, about: SqlJob, at: int, name_of: NameOf, *, run: str | None = None
) -> Event:
    """Return the event of a script: a job event, or a run event when `run` is given."""
    inputs = [dataset(name_of(name)) for name in lineage.inputs]
    lineage_of = {name: _output_lineage(name, lineage, name_of) for name in lineage.outputs}
    outputs = [
        dataset(name_of(name), {COLUMN_LINEAGE: render_column_lineage(output)})
        for name, output in lineage_of.items()
    ]
    facets = _job_facets(lineage, about)
    if len(lineage.outputs) > 1:
        facets[LINEAGE] = render_job_lineage(
            {
                name_of(name): JobOutput(
                    [name_of(source) for source in _sources(name, lineage)], output
                )
                for name, output in lineage_of.items()
            }
        )
    if run is None:
        return job_event(about.job, at, inputs=inputs, outputs=outputs, facets=facets)
    return run_event(about.job, run, "COMPLETE", at, inputs=inputs, outputs=outputs, facets=facets)


def render_inferred_event(lineage: SqlLineage, about: SqlJob, at: int, name_of: NameOf) -> Event:
    """Return an event with the datasets in the SQL of another producer's event.

    The job keeps the facets that its producer has sent.
    """
    event = render_sql_event(_inferred(lineage), about, at, name_of)
    if event.wire.job is UNSET:
        return event
    facets = event.wire.job.facets or {}
    kept = {name: facets[name] for name in (BLIND_SPOTS, LINEAGE) if name in facets}
    return job_event(
        about.job,
        at,
        inputs=event.wire.inputs or (),
        outputs=event.wire.outputs or (),
        facets=kept | {INFERRED: render_inferred(SQL)},
    )


def _inferred(lineage: SqlLineage) -> SqlLineage:
    """Return lineage in which no column edge is more certain than inferred."""

    def lowered(edges: list[ColumnEdge]) -> list[ColumnEdge]:
        return [
            replace(edge, resolution="inferred") if edge.resolution == "exact" else edge
            for edge in edges
        ]

    return replace(
        lineage,
        statements=[
            replace(
                statement,
                column_edges=lowered(statement.column_edges),
                dataset_edges=lowered(statement.dataset_edges),
            )
            for statement in lineage.statements
        ],
    )


def _job_facets(lineage: SqlLineage, about: SqlJob) -> Facets:
    facets: Facets = {
        SQL: render_sql(about.sql, lineage.dialect),
        JOB_TYPE: render_job_type("SQL", "QUERY"),
        BLIND_SPOTS: render_blind_spots(
            BlindSpotEntry(spot.kind, spot.message, spot.line) for spot in lineage.blind_spots
        ),
    }
    if about.description:
        facets[DOCUMENTATION] = render_description("Job", about.description)
    if about.path:
        facets[SOURCE_CODE_LOCATION] = render_source_code_location(about.path)
    return facets


def _sources(output: str, lineage: SqlLineage) -> list[str]:
    """Return the tables that the statements which write `output` read."""
    return sorted({name for s in lineage.statements if output in s.outputs for name in s.inputs})


def _output_lineage(output: str, lineage: SqlLineage, name_of: NameOf) -> OutputLineage:
    fields: dict[str, list[ColumnInput]] = {}
    for edge in lineage.column_edges:
        if edge.target.table == output:
            fields.setdefault(edge.target.column, []).append(_column_input(edge, name_of))
    rows = [
        _column_input(edge, name_of)
        for edge in lineage.dataset_edges
        if edge.target.table == output
    ]
    return OutputLineage(fields, rows)


def _column_input(edge: ColumnEdge, name_of: NameOf) -> ColumnInput:
    return ColumnInput(
        name_of(edge.source.table),
        edge.source.column,
        ColumnTransformation(
            direct=edge.type == "DIRECT",
            subtype=edge.subtype,
            description=edge.expression,
            masking=edge.masking,
            confidence=edge.resolution,
        ),
    )

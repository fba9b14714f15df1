"""Renders jobs and datasets read from code as OpenLineage events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.facts import ColumnTransformation
from downriver.model.ids import EVERY_FIELD
from downriver.openlineage.events import (
    dataset,
    dataset_event,
    job_event,
    run_event,
)
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
    BUILD,
    CODE,
    CodeFacet,
    CodeReference,
    render_blind_spots,
    render_build,
    render_code,
)
from downriver.openlineage.facets.dataset import (
    SCHEMA,
    SYMLINKS,
    SchemaField,
    render_schema,
    render_symlinks,
)
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    OWNERSHIP,
    TAGS,
    render_description,
    render_owners,
    render_tags,
)
from downriver.openlineage.facets.job import (
    JOB_DEPENDENCIES,
    JOB_TYPE,
    PARENT,
    SOURCE_CODE_LOCATION,
    SQL,
    render_dependencies,
    render_job_type,
    render_parent_job,
    render_source_code_location,
    render_sql,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.code.job import CodeEdge, CodeJob, ColumnReference, DatasetNote
    from downriver.capture.code.revision import SourceRevision
    from downriver.model.ids import DatasetId
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.wire import Event, WireDataset

_MOST_REFERENCES = 5_000


def render_job(
    job: CodeJob,
    at: int,
    notes: Mapping[DatasetId, DatasetNote] | None = None,
    facets: Facets | None = None,
    revision: SourceRevision | None = None,
) -> Event:
    """Return the event that declares a job with the lineage of its code."""
    return job_event(
        job.id,
        at,
        inputs=[dataset(source) for source in job.inputs],
        outputs=_outputs(job, notes or {}),
        facets={**_job_facets(job, revision), **(facets or {})},
    )


def render_run(job: CodeJob, run: str, state: str, at: int) -> Event:
    """Return the event of one run of a job, with the lineage of its code."""
    return run_event(
        job.id,
        run,
        state,
        at,
        inputs=[dataset(source) for source in job.inputs],
        outputs=_outputs(job, {}) if state == "COMPLETE" else [],
    )


def render_dataset_note(note: DatasetNote, at: int) -> Event:
    """Return the event with the schema, documentation and tags that code gives a dataset."""
    return dataset_event(note.id, at, render_dataset_facets(note))


def render_dataset_facets(note: DatasetNote) -> Facets:
    """Return the facets of a dataset note."""
    facets: Facets = {}
    if note.columns:
        facets[SCHEMA] = render_schema(
            SchemaField(column.name, column.type or None, column.description or None)
            for column in note.columns
        )
    if note.description:
        facets[DOCUMENTATION] = render_description("Dataset", note.description)
    if note.owners:
        facets[OWNERSHIP] = render_owners("Dataset", note.owners)
    if note.tags or note.column_tags:
        facets[TAGS] = render_tags("Dataset", note.tags, note.column_tags, source="CODE")
    if note.aliases:
        facets[SYMLINKS] = render_symlinks(note.aliases)
    return facets


def _job_facets(job: CodeJob, revision: SourceRevision | None) -> Facets:
    facets: Facets = {
        JOB_TYPE: render_job_type(job.integration, job.kind),
        CODE: render_code(_code(job)),
        BLIND_SPOTS: render_blind_spots(job.spots),
    }
    if job.path:
        facets[SOURCE_CODE_LOCATION] = render_source_code_location(job.path, *(revision or ()))
    if job.build is not None:
        facets[BUILD] = render_build(job.build)
    if job.sql:
        facets[SQL] = render_sql(job.sql, job.dialect)
    if job.description:
        facets[DOCUMENTATION] = render_description("Job", job.description)
    if job.owners:
        facets[OWNERSHIP] = render_owners("Job", job.owners)
    if job.tags:
        facets[TAGS] = render_tags("Job", job.tags, source="CODE")
    if job.parent is not None:
        facets[PARENT] = render_parent_job(job.parent)
    if job.after:
        facets[JOB_DEPENDENCIES] = render_dependencies(job.after)
    if len(job.outputs) > 1 and job.edges:
        facets[LINEAGE] = render_job_lineage(
            {target: _job_output(_edges_to(target, job)) for target in job.outputs}
        )
    return facets


def _code(job: CodeJob) -> CodeFacet:
    references = sorted(job.references, key=lambda r: (r.line, r.dataset, r.field))[
        :_MOST_REFERENCES
    ]
    return CodeFacet(
        path=job.path,
        line=job.line,
        references=[_reference(r) for r in references],
        raw=job.raw or "",
    )


def _reference(reference: ColumnReference) -> CodeReference:
    return CodeReference(
        namespace=reference.dataset.namespace,
        name=reference.dataset.name,
        field=reference.field,
        line=reference.line,
        clause=reference.clause,
        conditional=reference.conditional,
        text=reference.text,
    )


def _outputs(job: CodeJob, notes: Mapping[DatasetId, DatasetNote]) -> list[WireDataset]:
    outputs = []
    for target in job.outputs:
        edges = _edges_to(target, job)
        facets = render_dataset_facets(notes[target]) if target in notes else {}
        if edges:
            facets[COLUMN_LINEAGE] = render_column_lineage(_output_lineage(edges))
        outputs.append(dataset(target, facets))
    return outputs


def _edges_to(target: DatasetId, job: CodeJob) -> list[CodeEdge]:
    return sorted({edge for edge in job.edges if edge.target == target})


def _job_output(edges: list[CodeEdge]) -> JobOutput:
    return JobOutput(sorted({edge.source for edge in edges}), _output_lineage(edges))


def _output_lineage(edges: list[CodeEdge]) -> OutputLineage:
    fields: dict[str, list[ColumnInput]] = {}
    rows: list[ColumnInput] = []
    for edge in edges:
        if edge.target_field == EVERY_FIELD and edge.type == "INDIRECT":
            rows.append(_column_input(edge))
        else:
            fields.setdefault(edge.target_field, []).append(_column_input(edge))
    return OutputLineage(fields, rows)


def _column_input(edge: CodeEdge) -> ColumnInput:
    return ColumnInput(
        edge.source,
        edge.source_field,
        ColumnTransformation(
            direct=edge.type != "INDIRECT",
            subtype=edge.subtype,
            description=edge.expression,
            masking=edge.masking,
            confidence=edge.confidence,
        ),
    )

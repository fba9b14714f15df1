"""Renders jobs and datasets read from code as OpenLineage events."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from downriver.model.ids import EVERY_FIELD
from downriver.openlineage.facets.base import BLIND_SPOTS
from downriver.openlineage.facets.code import CODE, CodeFacet, CodeReference
from downriver.openlineage.produce import (
    Facets,
    code_facet,
    dataset,
    facet,
    render_dataset_event,
    render_job_event,
    render_run_event,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.capture.code.job import CodeEdge, CodeJob, ColumnReference, DatasetNote
    from downriver.model.ids import DatasetId, JobId

_LONGEST_SQL = 200_000
_MOST_REFERENCES = 5_000


def render_job(
    job: CodeJob,
    at: int,
    notes: Mapping[DatasetId, DatasetNote] | None = None,
    facets: Facets | None = None,
) -> bytes:
    """Return the event that declares a job with the lineage of its code."""
    return render_job_event(
        job.id,
        at,
        inputs=[dataset(source) for source in job.inputs],
        outputs=_outputs(job, notes or {}),
        facets={**_job_facets(job), **(facets or {})},
    )


def render_run(job: CodeJob, run: str, state: str, at: int) -> bytes:
    """Return the event of one run of a job, with the lineage of its code."""
    return render_run_event(
        job.id,
        run,
        state,
        at,
        inputs=[dataset(source) for source in job.inputs],
        outputs=_outputs(job, {}) if state == "COMPLETE" else [],
    )


def render_dataset_note(note: DatasetNote, at: int) -> bytes:
    """Return the event with the schema, documentation and tags that code gives a dataset."""
    return render_dataset_event(note.id, at, render_dataset_facets(note))


def render_dataset_facets(note: DatasetNote) -> Facets:
    """Return the facets of a dataset note."""
    facets: Facets = {}
    if note.columns:
        facets["schema"] = facet(
            "SchemaDatasetFacet",
            "1-2-0",
            fields=[
                {"name": c.name, **_given(type=c.type, description=c.description)}
                for c in note.columns
            ],
        )
    if note.description:
        facets["documentation"] = facet(
            "DocumentationDatasetFacet", "1-1-0", description=note.description
        )
    if note.owners:
        facets["ownership"] = _ownership("OwnershipDatasetFacet", note.owners)
    if note.tags or note.column_tags:
        facets["tags"] = facet("TagsDatasetFacet", "1-0-0", tags=list(_dataset_tags(note)))
    if note.aliases:
        facets["symlinks"] = facet(
            "SymlinksDatasetFacet",
            "1-0-1",
            identifiers=[{**dataset(alias), "type": "TABLE"} for alias in note.aliases],
        )
    return facets


def _dataset_tags(note: DatasetNote) -> Iterable[dict[str, str]]:
    for tag in note.tags:
        yield {"key": tag, "value": "true", "source": "CODE"}
    for column, tags in note.column_tags.items():
        for tag in tags:
            yield {"key": tag, "value": "true", "source": "CODE", "field": column}


def _given(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _ownership(name: str, owners: list[str]) -> dict[str, Any]:
    return facet(name, "1-0-1", owners=[{"name": owner} for owner in owners])


def _job_facets(job: CodeJob) -> Facets:
    facets: Facets = {
        "jobType": facet(
            "JobTypeJobFacet", "2-0-3",
            processingType="BATCH", integration=job.integration, jobType=job.kind,
        ),
        CODE: code_facet(_code(job)),
        # Also without blind spots: an empty facet replaces the one of an earlier version.
        BLIND_SPOTS: facet(
            "DownriverBlindSpots", "1-0-0",
            spots=[{"kind": s.kind, "message": s.message, "line": s.line} for s in job.spots],
        ),
    }  # fmt: skip
    if job.path:
        facets["sourceCodeLocation"] = facet(
            "SourceCodeLocationJobFacet", "1-0-1",
            type="file", url=f"file:{job.path}", path=job.path,
        )  # fmt: skip
    if job.sql:
        facets["sql"] = facet(
            "SQLJobFacet", "1-1-0", query=job.sql[:_LONGEST_SQL], dialect=job.dialect
        )
    if job.description:
        facets["documentation"] = facet(
            "DocumentationJobFacet", "1-1-0", description=job.description
        )
    if job.owners:
        facets["ownership"] = _ownership("OwnershipJobFacet", job.owners)
    if job.tags:
        tags = [{"key": tag, "value": "true", "source": "CODE"} for tag in job.tags]
        facets["tags"] = facet("TagsJobFacet", "1-0-0", tags=tags)
    if job.parent is not None:
        facets["parent"] = facet("ParentRunFacet", "1-1-0", job=_job_name(job.parent))
    if job.after:
        facets["jobDependencies"] = facet(
            "JobDependenciesRunFacet", "1-0-0", upstream=[{"job": _job_name(j)} for j in job.after]
        )
    if len(job.outputs) > 1 and job.edges:
        # Without this facet every input would seem to feed every output.
        facets["lineage"] = facet("LineageJobFacet", "1-0-0", entries=_entries(job))
    return facets


def _job_name(job: JobId) -> dict[str, str]:
    return {"namespace": job.namespace, "name": job.name}


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


def _outputs(job: CodeJob, notes: Mapping[DatasetId, DatasetNote]) -> list[dict[str, Any]]:
    outputs = []
    for target in job.outputs:
        edges = [edge for edge in job.edges if edge.target == target]
        facets = render_dataset_facets(notes[target]) if target in notes else {}
        if edges:
            facets["columnLineage"] = _column_lineage(edges)
        outputs.append(dataset(target, facets))
    return outputs


def _column_lineage(edges: list[CodeEdge]) -> dict[str, Any]:
    fields, of_dataset = _by_field(edges)
    return facet(
        "ColumnLineageDatasetFacet",
        "1-2-0",
        fields={name: {"inputFields": inputs} for name, inputs in fields.items()},
        dataset=of_dataset,
    )


def _entries(job: CodeJob) -> list[dict[str, Any]]:
    entries = []
    for target in job.outputs:
        edges = [edge for edge in job.edges if edge.target == target]
        fields, of_dataset = _by_field(edges)
        sources = sorted({edge.source for edge in edges})
        entries.append(
            {
                "type": "DATASET",
                **dataset(target),
                "inputs": [{"type": "DATASET", **dataset(s)} for s in sources]
                + [{"type": "DATASET", **source} for source in of_dataset],
                "fields": {
                    name: {"inputs": [{"type": "DATASET", **i} for i in inputs]}
                    for name, inputs in fields.items()
                },
            }
        )
    return entries


def _by_field(
    edges: list[CodeEdge],
) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """Return the sources of each column, and the sources that decide which rows there are."""
    fields: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    of_dataset: list[dict[str, Any]] = []
    for edge in sorted(set(edges)):
        of_rows = edge.target_field == EVERY_FIELD and edge.type == "INDIRECT"
        (of_dataset if of_rows else fields[edge.target_field]).append(_input_field(edge))
    return fields, of_dataset


def _input_field(edge: CodeEdge) -> dict[str, Any]:
    return {
        **dataset(edge.source),
        "field": edge.source_field,
        "transformations": [
            {
                "type": edge.type,
                "subtype": edge.subtype,
                "description": edge.expression,
                "masking": edge.masking,
                "confidence": edge.confidence,
            }
        ],
    }

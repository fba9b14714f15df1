"""Renders a job read from code as readable lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.code import CodeJob
    from downriver.model.ids import DatasetId


def job_lines(job: CodeJob, home: str) -> Iterator[str]:
    """Yield all fields of a job. A dataset outside of the namespace `home` has its namespace."""

    def name(dataset: DatasetId) -> str:
        return dataset.name if dataset.namespace == home else f"{dataset.namespace}|{dataset.name}"

    marks = [f"owners={job.owners}"] * bool(job.owners) + [f"tags={job.tags}"] * bool(job.tags)
    yield " ".join([f"job {job.id.name} {job.kind} {job.path}:{job.line}", *marks])
    if job.parent is not None:
        yield f"  in {job.parent.name}"
    if job.after:
        yield f"  after {', '.join(other.name for other in job.after)}"
    if job.inputs:
        yield f"  reads {', '.join(map(name, job.inputs))}"
    if job.outputs:
        yield f"  writes {', '.join(map(name, job.outputs))}"
    for edge in sorted(set(job.edges)):
        confidence = "" if edge.confidence == "exact" else f" {edge.confidence}"
        yield (
            f"  {name(edge.source)}.{edge.source_field} -> "
            f"{name(edge.target)}.{edge.target_field}: {edge.subtype}{confidence}"
        )
    for reference in sorted(job.references, key=lambda r: (r.line, r.dataset, r.field, r.clause)):
        conditional = " conditional" if reference.conditional else ""
        yield (
            f"  :{reference.line} {reference.clause} "
            f"{name(reference.dataset)}.{reference.field}{conditional}"
        )
    for spot in job.spots:
        yield f"  ? {spot.kind}:{spot.line} {spot.message}"

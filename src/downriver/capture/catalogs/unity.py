"""Lineage of Unity Catalog: rows of `system.access.column_lineage` and `table_lineage`."""

from __future__ import annotations

from typing import Any

from downriver.capture.entries import (
    CatalogExport,
    ExportedJob,
    UnreadRecord,
    read_records,
    text_of,
)
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.naming import dataset_at

_NAMESPACE = "unitycatalog"


def parse_unity(text: str, name: str, workspace: str = "") -> CatalogExport:
    """Return the jobs of rows that were exported as CSV, JSON or JSON lines."""
    namespace = f"{_NAMESPACE}://{workspace}" if workspace else _NAMESPACE
    records = read_records(text, name)
    known = [r for r in records if isinstance(r, dict) and "target_table_full_name" in r]
    if records and not known:
        reason = f"{name}: no column target_table_full_name: not rows of system.access.*_lineage"
        raise InvalidRequestError("FILE", reason)
    export = CatalogExport("unity")
    jobs: dict[JobId, ExportedJob] = {}
    for place, record in enumerate(records, 1):
        if not isinstance(record, dict):
            export.unread.append(UnreadRecord(f"{name}: row {place}", "not an object"))
            continue
        source, target = _end(record, "source", namespace), _end(record, "target", namespace)
        if source is None and target is None:
            reason = "has neither a source nor a target"
            export.unread.append(UnreadRecord(f"{name}: row {place}", reason))
            continue
        job_id = _job(record, namespace, target or source)
        job = jobs.setdefault(job_id, ExportedJob(id=job_id))
        if source is not None and source not in job.inputs:
            job.inputs.append(source)
        if target is not None:
            columns = job.outputs.setdefault(target, {})
            field, column = text_of(record, "target_column_name"), _column(record)
            if source is not None and field and column:
                sources = columns.setdefault(field, [])
                if (source, column) not in sources:
                    sources.append((source, column))
    export.jobs = list(jobs.values())
    return export


def _column(record: dict[str, Any]) -> str:
    return text_of(record, "source_column_name")


def _end(record: dict[str, Any], end: str, namespace: str) -> DatasetId | None:
    """Return the table of one end of a row, or the path if there is no table."""
    if table := text_of(record, f"{end}_table_full_name"):
        return DatasetId(namespace, table)
    path = text_of(record, f"{end}_path")
    return dataset_at(path) if path else None


def _job(record: dict[str, Any], namespace: str, about: DatasetId | None) -> JobId:
    """Return the job, notebook or query of a row; without one, a job with the table's name."""
    kind, number = text_of(record, "entity_type").lower(), text_of(record, "entity_id")
    if kind and number:
        return JobId(namespace, f"{kind}/{number}")
    return JobId(namespace, f"lineage of {about.name if about else ''}")

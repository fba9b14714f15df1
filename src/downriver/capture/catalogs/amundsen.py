"""Amundsen: the CSV files that databuilder reads, with tables, columns, owners and lineage."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from downriver.capture.entries import (
    CatalogExport,
    ExportedJob,
    ExportedTable,
    UnreadRecord,
    read_records,
    text_of,
)
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.dataset import SchemaField

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY = re.compile(r"([^:]+)://([^./]+)\.([^/]+)/([^/]+)(?:/(.+))?")


def parse_amundsen(text: str, name: str) -> CatalogExport:
    """Return the content of one CSV file; its columns determine the kind of file."""
    records = read_records(text, name)
    export = CatalogExport("amundsen")
    known = set(records[0]) if records and isinstance(records[0], dict) else set()
    read = next((read for columns, read in _FILES if columns <= known), None)
    if read is None:
        reason = f"{name}: not a CSV file of Amundsen's databuilder: its columns are unknown"
        raise InvalidRequestError("FILE", reason)
    tables: dict[DatasetId, ExportedTable] = {}
    jobs: dict[JobId, ExportedJob] = {}
    for place, record in enumerate(records, 2):
        try:
            read(record, tables, jobs)
        except ValueError as exc:
            export.unread.append(UnreadRecord(f"{name}:{place}", str(exc)))
    export.tables, export.jobs = list(tables.values()), list(jobs.values())
    return export


_Tables = dict[DatasetId, ExportedTable]
_Jobs = dict[JobId, ExportedJob]


def _table(record: dict[str, Any], tables: _Tables) -> ExportedTable:
    database = text_of(record, "database") or text_of(record, "db_name")
    cluster = text_of(record, "cluster")
    schema = text_of(record, "schema") or text_of(record, "schema_name")
    name = text_of(record, "table_name") or text_of(record, "name")
    if not (database and schema and name):
        raise ValueError("no database, schema or table")
    table_id = DatasetId(f"{database}://{cluster}", f"{schema}.{name}")
    return tables.setdefault(table_id, ExportedTable(id=table_id))


def _read_table(record: dict[str, Any], tables: _Tables, jobs: _Jobs) -> None:
    del jobs
    table = _table(record, tables)
    table.description = text_of(record, "description") or text_of(record, "table_desc")
    table.kind = "VIEW" if text_of(record, "is_view").lower() == "true" else "TABLE"
    table.tags += [tag.strip() for tag in text_of(record, "tags").split(",") if tag.strip()]


def _read_column(record: dict[str, Any], tables: _Tables, jobs: _Jobs) -> None:
    del jobs
    about = text_of(record, "description") or None
    field = SchemaField(text_of(record, "name"), text_of(record, "col_type") or None, about)
    _table(record, tables).columns.append(field)


def _read_owner(record: dict[str, Any], tables: _Tables, jobs: _Jobs) -> None:
    del jobs
    owners = text_of(record, "owners").split(",")
    _table(record, tables).owners += [owner.strip() for owner in owners if owner.strip()]


def _read_table_lineage(record: dict[str, Any], tables: _Tables, jobs: _Jobs) -> None:
    del tables
    source, _ = _of_key(text_of(record, "source_table_key"))
    target, _ = _of_key(text_of(record, "target_table_key"))
    _job(target, source, jobs)


def _read_column_lineage(record: dict[str, Any], tables: _Tables, jobs: _Jobs) -> None:
    del tables
    source, column = _of_key(text_of(record, "source_column_key"))
    target, field = _of_key(text_of(record, "target_column_key"))
    if not column or not field:
        raise ValueError("a key of a column has no column")
    _job(target, source, jobs).outputs[target].setdefault(field, []).append((source, column))


def _job(target: DatasetId, source: DatasetId, jobs: _Jobs) -> ExportedJob:
    """Return the job of a table: Amundsen does not name jobs."""
    job_id = JobId("amundsen", f"lineage of {target.name}")
    job = jobs.setdefault(job_id, ExportedJob(id=job_id, kind="LINEAGE"))
    job.outputs.setdefault(target, {})
    if source not in job.inputs:
        job.inputs.append(source)
    return job


def _of_key(key: str) -> tuple[DatasetId, str]:
    """Return the table and the column of `database://cluster.schema/table/column`."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"{key!r} is not DATABASE://CLUSTER.SCHEMA/TABLE")
    return DatasetId(f"{match[1]}://{match[2]}", f"{match[3]}.{match[4]}"), match[5] or ""


_FILES: tuple[tuple[set[str], Callable[[dict[str, Any], _Tables, _Jobs], None]], ...] = (
    ({"source_column_key", "target_column_key"}, _read_column_lineage),
    ({"source_table_key", "target_table_key"}, _read_table_lineage),
    ({"col_type", "table_name"}, _read_column),
    ({"owners", "table_name"}, _read_owner),
    ({"database", "cluster"}, _read_table),
)

"""What every catalog exports: tables with columns and tags, and lineage between them."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError
from downriver.model.facts import ColumnTransformation
from downriver.openlineage.events import dataset, dataset_event, job_event
from downriver.openlineage.facets.column_lineage import (
    ColumnInput,
    OutputLineage,
    render_column_lineage,
)
from downriver.openlineage.facets.dataset import (
    DATASET_TYPE,
    SCHEMA,
    SYMLINKS,
    SchemaField,
    render_dataset_type,
    render_schema,
    render_symlinks,
)
from downriver.openlineage.facets.description import render_description, render_owners, render_tags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.ids import DatasetId, JobId
    from downriver.openlineage import Event
    from downriver.openlineage.facets.base import Facets

_DECLARED = ColumnTransformation(
    direct=True, subtype="TRANSFORMATION", description="", masking=False, confidence="declared"
)


class ExportedTable(msgspec.Struct, kw_only=True):
    """A table as a catalog describes it."""

    id: DatasetId
    kind: str = ""
    description: str = ""
    columns: list[SchemaField] = []
    owners: list[str] = []
    tags: list[str] = []
    column_tags: dict[str, list[str]] = {}
    other_names: list[DatasetId] = []


class ExportedJob(msgspec.Struct, kw_only=True):
    """A job in a catalog: its input and output tables, and the columns of the outputs."""

    id: JobId
    inputs: list[DatasetId] = []
    outputs: dict[DatasetId, dict[str, list[tuple[DatasetId, str]]]] = {}


class UnreadRecord(NamedTuple):
    """A record of an export that could not be read."""

    where: str
    reason: str


class CatalogExport(msgspec.Struct):
    """The content of an export, and the records that could not be read."""

    source: str
    tables: list[ExportedTable] = []
    jobs: list[ExportedJob] = []
    unread: list[UnreadRecord] = []


def render_export(export: CatalogExport, at: int) -> Iterator[Event]:
    """Yield an event for each table and each job of an export."""
    for table in export.tables:
        yield dataset_event(table.id, at, _facets(table, export.source))
    for job in export.jobs:
        outputs = [
            dataset(target, {"columnLineage": _column_lineage(columns)} if columns else None)
            for target, columns in job.outputs.items()
        ]
        yield job_event(job.id, at, inputs=[dataset(one) for one in job.inputs], outputs=outputs)


def _facets(table: ExportedTable, source: str) -> Facets:
    facets: Facets = {}
    if table.columns:
        facets[SCHEMA] = render_schema(table.columns)
    if table.kind:
        facets[DATASET_TYPE] = render_dataset_type(table.kind)
    if table.description:
        facets["documentation"] = render_description("Dataset", table.description)
    if table.owners:
        facets["ownership"] = render_owners("Dataset", table.owners)
    if table.tags or table.column_tags:
        facets["tags"] = render_tags("Dataset", table.tags, table.column_tags, source=source)
    if table.other_names:
        facets[SYMLINKS] = render_symlinks(table.other_names)
    return facets


def _column_lineage(columns: dict[str, list[tuple[DatasetId, str]]]) -> msgspec.Raw:
    fields = {
        field: [ColumnInput(source, column, _DECLARED) for source, column in sources]
        for field, sources in columns.items()
    }
    return render_column_lineage(OutputLineage(fields))


def read_records(text: str, name: str) -> list[Any]:
    """Return the records of a JSON array, of JSON lines, or of CSV with a heading."""
    start = text.lstrip()[:1]
    try:
        if start == "[":
            return list(msgspec.json.decode(text, type=list[Any]))
        if start == "{":
            return [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
    except msgspec.DecodeError as exc:
        raise InvalidRequestError("FILE", f"{name}: not JSON: {exc}") from exc
    return list(csv.DictReader(io.StringIO(text)))


def text_of(record: dict[str, Any], name: str) -> str:
    """Return a text of a record, "" when it is missing or null."""
    value = record.get(name)
    return value.strip() if isinstance(value, str) else ""

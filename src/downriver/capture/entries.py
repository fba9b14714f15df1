"""Exports of other systems: datasets with columns and tags, and the jobs between them."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from downriver.errors import InvalidRequestError
from downriver.model.facts import ColumnTransformation
from downriver.openlineage.events import dataset, dataset_event, job_event
from downriver.openlineage.facets.column_lineage import (
    COLUMN_LINEAGE,
    LINEAGE,
    ColumnInput,
    JobOutput,
    OutputLineage,
    render_column_lineage,
    render_dataset_lineage,
    render_job_lineage,
)
from downriver.openlineage.facets.custom import (
    BLIND_SPOTS,
    BlindSpotEntry,
    render_blind_spots,
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
    render_dependencies,
    render_job_type,
    render_parent_job,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.model.ids import DatasetId, JobId
    from downriver.openlineage import Event
    from downriver.openlineage.facets.base import Facets

_DECLARED = ColumnTransformation(
    direct=True, subtype="TRANSFORMATION", description="", masking=False, confidence="declared"
)
_COPIED = _DECLARED._replace(subtype="IDENTITY")


class ExportedTable(msgspec.Struct, kw_only=True):
    """A dataset as another system describes it. `sources` are datasets that it derives from."""

    id: DatasetId
    kind: str = ""
    description: str = ""
    columns: list[SchemaField] = []
    owners: list[str] = []
    tags: list[str] = []
    column_tags: dict[str, list[str]] = {}
    other_names: list[DatasetId] = []
    sources: list[DatasetId] = []


ColumnSources: TypeAlias = dict[str, list[tuple["DatasetId", str]]]


class ExportedJob(msgspec.Struct, kw_only=True):
    """A job of another system: its inputs and outputs, and the sources of columns of the outputs.

    `origins` has the inputs of an output, if it does not derive from all of them. `upstream` are
    the jobs that run before this one.
    """

    id: JobId
    kind: str = ""
    streaming: bool = False
    description: str = ""
    inputs: list[DatasetId] = []
    outputs: dict[DatasetId, ColumnSources] = {}
    origins: dict[DatasetId, list[DatasetId]] = {}
    blind_spots: list[BlindSpotEntry] = []
    upstream: list[JobId] = []
    parent: JobId | None = None


class UnreadRecord(NamedTuple):
    """A record of an export that could not be read."""

    where: str
    reason: str


class CatalogExport(msgspec.Struct):
    """The content of an export, and the records that could not be read.

    `source` is the name of the system in tags and types of jobs.
    """

    source: str
    tables: list[ExportedTable] = []
    jobs: list[ExportedJob] = []
    unread: list[UnreadRecord] = []


def merge_exports(exports: Sequence[CatalogExport]) -> CatalogExport:
    """Return several exports of one system as one. A dataset has the columns and tags of all."""
    merged = CatalogExport(exports[0].source)
    tables: dict[DatasetId, ExportedTable] = {}
    for export in exports:
        for table in export.tables:
            known = tables.setdefault(table.id, table)
            if known is not table:
                _add_table(known, table)
        merged.jobs += export.jobs
        merged.unread += export.unread
    merged.tables = list(tables.values())
    return merged


def _add_table(known: ExportedTable, other: ExportedTable) -> None:
    known.kind = known.kind or other.kind
    known.description = known.description or other.description
    known.columns = [*known.columns, *other.columns]
    known.owners = [*known.owners, *other.owners]
    known.tags = [*known.tags, *other.tags]
    known.column_tags = {**other.column_tags, **known.column_tags}
    known.other_names = [*known.other_names, *other.other_names]


def render_export(export: CatalogExport, at: int) -> Iterator[Event]:
    """Yield an event for each table and each job of an export."""
    for table in export.tables:
        yield dataset_event(table.id, at, _facets(table, export.source))
    for job in export.jobs:
        outputs = [
            dataset(target, {COLUMN_LINEAGE: _column_lineage(columns)} if columns else None)
            for target, columns in job.outputs.items()
        ]
        inputs = [dataset(one) for one in job.inputs]
        facets = _job_facets(job, export.source)
        yield job_event(job.id, at, inputs=inputs, outputs=outputs, facets=facets)


def _job_facets(job: ExportedJob, source: str) -> Facets:
    kind = job.kind or "JOB"
    facets: Facets = {JOB_TYPE: render_job_type(source.upper(), kind, streaming=job.streaming)}
    if job.description:
        facets[DOCUMENTATION] = render_description("Job", job.description)
    if len(job.outputs) > 1 and job.origins:
        outputs = {
            target: JobOutput(sources, OutputLineage(_column_inputs(job.outputs.get(target, {}))))
            for target, sources in job.origins.items()
        }
        facets[LINEAGE] = render_job_lineage(outputs)
    if job.blind_spots:
        facets[BLIND_SPOTS] = render_blind_spots(job.blind_spots)
    if job.upstream:
        facets[JOB_DEPENDENCIES] = render_dependencies(job.upstream)
    if job.parent is not None:
        facets[PARENT] = render_parent_job(job.parent)
    return facets


def _facets(table: ExportedTable, source: str) -> Facets:
    facets: Facets = {}
    if table.columns:
        facets[SCHEMA] = render_schema(table.columns)
    if table.kind:
        facets[DATASET_TYPE] = render_dataset_type(table.kind)
    if table.description:
        facets[DOCUMENTATION] = render_description("Dataset", table.description)
    if table.owners:
        facets[OWNERSHIP] = render_owners("Dataset", table.owners)
    if table.tags or table.column_tags:
        facets[TAGS] = render_tags("Dataset", table.tags, table.column_tags, source=source)
    if table.other_names:
        facets[SYMLINKS] = render_symlinks(table.other_names)
    if table.sources:
        facets[LINEAGE] = render_dataset_lineage(table.sources)
    return facets


def _column_lineage(columns: ColumnSources) -> msgspec.Raw:
    return render_column_lineage(OutputLineage(_column_inputs(columns)))


def _column_inputs(columns: ColumnSources) -> dict[str, list[ColumnInput]]:
    return {
        field: [ColumnInput(source, column, _DECLARED) for source, column in sources]
        for field, sources in columns.items()
    }


def copied_inputs(source: DatasetId, names: Iterable[str]) -> dict[str, list[ColumnInput]]:
    """Return the sources of columns that are unchanged copies of another dataset's columns."""
    return {name: [ColumnInput(source, name, _COPIED)] for name in names}


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

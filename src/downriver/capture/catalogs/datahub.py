"""DataHub: metadata files, with change proposals (MCP) or change events (MCE)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import msgspec

from downriver.capture.entries import (
    CatalogExport,
    ExportedJob,
    ExportedTable,
    UnreadRecord,
    read_records,
)
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.dataset import SchemaField

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATASET = re.compile(r"urn:li:dataset:\(urn:li:dataPlatform:([^,]+),(.*),([^,()]+)\)")
_FIELD = re.compile(r"urn:li:schemaField:\((urn:li:dataset:\(.*\)),([^()]*)\)")
_JOB = re.compile(r"urn:li:dataJob:\(urn:li:dataFlow:\(([^,]+),(.{0,2000}),([^,()]+)\),(.*)\)")
_VERSIONED_PATH = re.compile(r"\[[^\[\]]*\]\.?")  # of a version 2 field path: `[type=string].name`
# The platform has the bucket in the name; the namespace of OpenLineage has it instead.
_BUCKETS = {"s3": "s3", "gcs": "gs", "abs": "abfs"}


class _Aspect(NamedTuple):
    urn: str
    name: str
    content: dict[str, Any]


def parse_datahub(text: str, name: str) -> CatalogExport:
    """Return the datasets, data jobs and lineage of a metadata file."""
    records = read_records(text, name)
    export = CatalogExport("datahub")
    reading = _Reading(export)
    read = 0
    for place, record in enumerate(records):
        try:
            for aspect in _aspects(record):
                read += 1
                reading.add(aspect)
        except (ValueError, TypeError, KeyError, AttributeError, msgspec.DecodeError) as exc:
            export.unread.append(UnreadRecord(f"{name}: record {place}", str(exc)))
    if not read and not export.unread:
        reason = f"{name}: no record has an aspect: not a metadata file of DataHub"
        raise InvalidRequestError("FILE", reason)
    export.tables, export.jobs = list(reading.tables.values()), list(reading.jobs.values())
    return export


def _aspects(record: Any) -> Iterator[_Aspect]:
    if not isinstance(record, dict):
        return
    if isinstance(record.get("aspectName"), str):
        body = record.get("aspect") or {}
        content = body.get("json", body)
        if isinstance(body.get("value"), str):
            content = msgspec.json.decode(body["value"])
        yield _Aspect(str(record["entityUrn"]), record["aspectName"], dict(content or {}))
        return
    for snapshot in (record.get("proposedSnapshot") or {}).values():
        for aspect in snapshot.get("aspects") or ():
            for kind, content in aspect.items():
                short = kind.rpartition(".")[2]
                yield _Aspect(snapshot["urn"], short[:1].lower() + short[1:], content)


class _Reading:
    def __init__(self, export: CatalogExport) -> None:
        self.tables: dict[DatasetId, ExportedTable] = {}
        self.jobs: dict[JobId, ExportedJob] = {}
        self._export = export

    def add(self, aspect: _Aspect) -> None:
        """Add the content of one aspect. Aspects without lineage, columns or labels are skipped."""
        if aspect.urn.startswith("urn:li:dataset:"):
            table_id = dataset_of(aspect.urn)
            table = self.tables.setdefault(table_id, ExportedTable(id=table_id))
            _TABLE_ASPECTS.get(aspect.name, _pass_over)(self, table, aspect.content)
        elif aspect.urn.startswith("urn:li:dataJob:"):
            job_id = _job_of(aspect.urn)
            job = self.jobs.setdefault(job_id, ExportedJob(id=job_id, kind="DATAJOB"))
            if aspect.name == "dataJobInputOutput":
                self._add_input_output(job, aspect.content)
            elif aspect.name == "dataJobInfo":
                job.description = str(aspect.content.get("description") or "")

    def add_upstreams(self, table: ExportedTable, content: dict[str, Any]) -> None:
        """Add the lineage of a table. DataHub names no job here, so each table gets a job."""
        job_id = JobId("datahub", f"lineage of {table.id.name}")
        job = self.jobs.setdefault(job_id, ExportedJob(id=job_id, kind="LINEAGE"))
        job.inputs += [dataset_of(one["dataset"]) for one in content.get("upstreams") or ()]
        columns = job.outputs.setdefault(table.id, {})
        for lineage in content.get("fineGrainedLineages") or ():
            sources = [_field_of(urn) for urn in lineage.get("upstreams") or () if _is_field(urn)]
            for urn in lineage.get("downstreams") or ():
                if _is_field(urn):
                    columns.setdefault(_field_of(urn)[1], []).extend(sources)

    def _add_input_output(self, job: ExportedJob, content: dict[str, Any]) -> None:
        for key, urn_of in (("inputDatasets", str), ("inputDatasetEdges", _destination)):
            job.inputs += [dataset_of(urn_of(one)) for one in content.get(key) or ()]
        job.inputs = list(dict.fromkeys(job.inputs))
        for key, urn_of in (("outputDatasets", str), ("outputDatasetEdges", _destination)):
            for one in content.get(key) or ():
                job.outputs.setdefault(dataset_of(urn_of(one)), {})
        for lineage in content.get("fineGrainedLineages") or ():
            sources = [_field_of(urn) for urn in lineage.get("upstreams") or () if _is_field(urn)]
            for urn in lineage.get("downstreams") or ():
                if _is_field(urn):
                    target, field = _field_of(urn)
                    job.outputs.setdefault(target, {}).setdefault(field, []).extend(sources)


def _pass_over(reading: _Reading, table: ExportedTable, content: dict[str, Any]) -> None:
    del reading, table, content


def _add_schema(reading: _Reading, table: ExportedTable, content: dict[str, Any]) -> None:
    del reading
    for field in content.get("fields") or ():
        name = _path(field["fieldPath"])
        kind = field.get("nativeDataType")
        table.columns.append(SchemaField(name, kind, field.get("description")))
        if tags := _tags(field.get("globalTags")):
            table.column_tags[name] = tags


def _add_field_tags(reading: _Reading, table: ExportedTable, content: dict[str, Any]) -> None:
    del reading
    for field in content.get("editableSchemaFieldInfo") or ():
        if tags := _tags(field.get("globalTags")):
            table.column_tags.setdefault(_path(field["fieldPath"]), []).extend(tags)


def _add_properties(reading: _Reading, table: ExportedTable, content: dict[str, Any]) -> None:
    del reading
    table.description = str(content.get("description") or table.description)


def _add_tags(reading: _Reading, table: ExportedTable, content: dict[str, Any]) -> None:
    del reading
    table.tags += _tags(content)


def _add_owners(reading: _Reading, table: ExportedTable, content: dict[str, Any]) -> None:
    del reading
    table.owners += [o["owner"].rpartition(":")[2] for o in content.get("owners") or ()]


_TABLE_ASPECTS = {
    "upstreamLineage": _Reading.add_upstreams,
    "schemaMetadata": _add_schema,
    "editableSchemaMetadata": _add_field_tags,
    "datasetProperties": _add_properties,
    "editableDatasetProperties": _add_properties,
    "globalTags": _add_tags,
    "ownership": _add_owners,
}


def dataset_of(urn: str) -> DatasetId:
    """Return the dataset of a URN. Its namespace is the platform: DataHub has no host."""
    match = _DATASET.fullmatch(urn)
    if match is None:
        raise ValueError(f"{urn!r} is not the URN of a dataset")
    platform, name = unquote(match[1]), unquote(match[2])
    if platform in _BUCKETS and "/" in name:
        bucket, _, path = name.partition("/")
        return DatasetId(f"{_BUCKETS[platform]}://{bucket}", path)
    return DatasetId(platform, name)


def _is_field(urn: str) -> bool:
    return _FIELD.fullmatch(urn) is not None


def _field_of(urn: str) -> tuple[DatasetId, str]:
    match = _FIELD.fullmatch(urn)
    if match is None:
        raise ValueError(f"{urn!r} is not the URN of a column")
    return dataset_of(match[1]), _path(unquote(match[2]))


def _path(path: str) -> str:
    return _VERSIONED_PATH.sub("", path)


def _job_of(urn: str) -> JobId:
    match = _JOB.fullmatch(urn)
    if match is None:
        raise ValueError(f"{urn!r} is not the URN of a data job")
    return JobId(unquote(match[1]), f"{unquote(match[2])}.{unquote(match[4])}")


def _destination(edge: dict[str, Any]) -> str:
    return str(edge["destinationUrn"])


def _tags(content: Any) -> list[str]:
    tags = content.get("tags") or () if isinstance(content, dict) else ()
    return [unquote(one["tag"]).removeprefix("urn:li:tag:").lower() for one in tags]

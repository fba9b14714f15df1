"""Apache Atlas: entities and lineage in the JSON shapes of its REST API, version 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.entries import CatalogExport, ExportedJob, ExportedTable, UnreadRecord
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.dataset import SchemaField
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    pass

_NAMESPACE = "atlas"
_COLUMN_LISTS = ("columns", "partitionKeys", "fields")
_NOT_DATA = ("_column", "_db", "_storagedesc", "_instance", "_index", "_foreign_key", "_bucket",
             "_directory", "_schema", "_namespace")  # fmt: skip


def parse_atlas(text: str | bytes, name: str) -> CatalogExport:
    """Return the datasets and processes of entities, or of an answer about lineage."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidRequestError("FILE", f"{name}: not JSON: {exc}") from exc
    entities = _Entities(content)
    if not entities.listed:
        reason = f"{name}: no entity with a typeName: not entities or lineage of Apache Atlas"
        raise InvalidRequestError("FILE", reason)
    return entities.export(name)


class _Entities:
    """The entities of a document, and how they refer to each other."""

    def __init__(self, content: Any) -> None:
        self.listed: list[dict[str, Any]] = []
        self._by_guid: dict[str, dict[str, Any]] = {}
        self._relations: list[tuple[str, str]] = []
        self._read(content)

    def _read(self, content: Any) -> None:
        if isinstance(content, list):
            for entry in content:
                self._read(entry)
            return
        if not isinstance(content, dict):
            return
        if isinstance(content.get("typeName"), str) and isinstance(content.get("attributes"), dict):
            self._add(content)
            return
        for key in ("entity", "entities"):
            if key in content:
                self._read(content[key])
        for key in ("referredEntities", "guidEntityMap"):
            entries = content.get(key)
            for guid, entry in entries.items() if isinstance(entries, dict) else ():
                if isinstance(entry, dict):
                    self._add({"guid": guid, **entry})
        for relation in content.get("relations") or ():
            if isinstance(relation, dict):
                ends = relation.get("fromEntityId"), relation.get("toEntityId")
                self._relations.append((str(ends[0]), str(ends[1])))

    def _add(self, entity: dict[str, Any]) -> None:
        self.listed.append(entity)
        if isinstance(entity.get("guid"), str):
            self._by_guid[entity["guid"]] = entity

    def export(self, name: str) -> CatalogExport:
        """Return what the entities say."""
        export = CatalogExport("atlas")
        jobs: dict[JobId, ExportedJob] = {}
        tables: dict[DatasetId, ExportedTable] = {}
        for place, entity in enumerate(self.listed):
            if not _qualified_name(entity):
                reason = f"{entity.get('typeName')}: no qualifiedName"
                export.unread.append(UnreadRecord(f"{name}: entity {place}", reason))
            elif _is_process(entity):
                self._add_process(entity, jobs)
            elif not _is_column(entity) and not _is_part(entity):
                table = self._table(entity)
                tables[table.id] = table
        for start, end in self._relations:
            self._add_relation(start, end, jobs)
        export.tables = list(tables.values())
        export.jobs = list(jobs.values())
        return export

    def _table(self, entity: dict[str, Any]) -> ExportedTable:
        attributes = entity["attributes"]
        columns, tags = [], {}
        for key in _COLUMN_LISTS:
            for column in self._all(attributes.get(key)):
                about = column.get("attributes") or {}
                field = str(about.get("name") or "")
                if field:
                    kind = about.get("type") or about.get("data_type")
                    columns.append(SchemaField(field, _text(kind) or None, _description(about)))
                    if labels := _tags(column):
                        tags[field] = labels
        owner = _text(attributes.get("owner"))
        return ExportedTable(
            id=_dataset(entity),
            kind=_kind(entity["typeName"]),
            description=_description(attributes) or "",
            columns=columns,
            owners=[owner] if owner else [],
            tags=_tags(entity),
            column_tags=tags,
        )

    def _add_process(self, entity: dict[str, Any], jobs: dict[JobId, ExportedJob]) -> None:
        """Add a process. One between columns belongs to the process that it names, if any."""
        attributes = entity["attributes"]
        inputs, outputs = (self._all(attributes.get(key)) for key in ("inputs", "outputs"))
        between_columns = any(map(_is_column, (*inputs, *outputs)))
        owner = next(iter(self._all(attributes.get("query"))), entity)
        job_id = _job(owner if between_columns else entity)
        job = jobs.setdefault(job_id, ExportedJob(id=job_id, kind="PROCESS"))
        if not between_columns:
            job.description = _description(attributes) or job.description
            job.inputs += [one for one in map(_dataset, inputs) if one not in job.inputs]
            for written in map(_dataset, outputs):
                job.outputs.setdefault(written, {})
            return
        for output in filter(_is_column, outputs):
            target, field = _column(output)
            sources = job.outputs.setdefault(target, {}).setdefault(field, [])
            for source in map(_column, filter(_is_column, inputs)):
                sources.append(source)
                if source[0] not in job.inputs:
                    job.inputs.append(source[0])

    def _add_relation(self, start: str, end: str, jobs: dict[JobId, ExportedJob]) -> None:
        """Add an edge of an answer about lineage: a dataset and a process, in either order."""
        ends = self._by_guid.get(start), self._by_guid.get(end)
        if ends[0] is None or ends[1] is None:
            return
        source, target = ends[0], ends[1]
        if _is_process(target) and not _is_process(source) and not _is_column(source):
            job = jobs.setdefault(_job(target), ExportedJob(id=_job(target), kind="PROCESS"))
            if _dataset(source) not in job.inputs:
                job.inputs.append(_dataset(source))
        elif _is_process(source) and not _is_process(target) and not _is_column(target):
            job = jobs.setdefault(_job(source), ExportedJob(id=_job(source), kind="PROCESS"))
            job.outputs.setdefault(_dataset(target), {})

    def _all(self, references: Any) -> list[dict[str, Any]]:
        """Return the entities that references name: by guid, or by their unique attributes."""
        several = references if isinstance(references, list) else [references]
        found = []
        for reference in several:
            if not isinstance(reference, dict):
                continue
            entity = self._by_guid.get(str(reference.get("guid")), reference)
            if _qualified_name(entity):
                found.append(entity)
        return found


def _qualified_name(entity: dict[str, Any]) -> str:
    for key in ("attributes", "uniqueAttributes"):
        attributes = entity.get(key)
        if isinstance(attributes, dict) and isinstance(attributes.get("qualifiedName"), str):
            return str(attributes["qualifiedName"])
    return ""


def _is_process(entity: dict[str, Any]) -> bool:
    attributes = entity.get("attributes")
    kind = str(entity.get("typeName", ""))
    has_ends = isinstance(attributes, dict) and ("inputs" in attributes or "outputs" in attributes)
    return has_ends or kind == "Process" or kind.endswith(("_process", "_column_lineage"))


def _is_column(entity: dict[str, Any]) -> bool:
    return str(entity.get("typeName", "")).endswith("_column")


def _is_part(entity: dict[str, Any]) -> bool:
    return str(entity.get("typeName", "")).endswith(_NOT_DATA)


def _dataset(entity: dict[str, Any]) -> DatasetId:
    """Return the dataset of `db.table@cluster`, or of a path."""
    attributes = entity.get("attributes")
    path = _text(attributes.get("path")) if isinstance(attributes, dict) else ""
    name, _, cluster = _qualified_name(entity).rpartition("@")
    name, cluster = (name, cluster) if name else (cluster, "")
    for text in (path, name):
        if "://" in text:
            return dataset_at(text)
    system = str(entity.get("typeName", "")).partition("_")[0].lower()
    system = _NAMESPACE if system in ("dataset", "") else system
    if system == _NAMESPACE:  # a plain DataSet: the namespace is behind the last @
        return DatasetId(cluster or _NAMESPACE, name)
    return DatasetId(f"{system}://{cluster}" if cluster else system, name)


def _column(entity: dict[str, Any]) -> tuple[DatasetId, str]:
    """Return the table and the column of `db.table.column@cluster`."""
    name, _, cluster = _qualified_name(entity).rpartition("@")
    table, _, field = name.rpartition(".")
    kind = str(entity["typeName"]).removesuffix("_column") + "_table"
    unique = {"qualifiedName": f"{table}@{cluster}"}
    return _dataset({"typeName": kind, "uniqueAttributes": unique}), field


def _job(entity: dict[str, Any]) -> JobId:
    return JobId(_NAMESPACE, _qualified_name(entity))


def _tags(entity: dict[str, Any]) -> list[str]:
    """Return the classifications of an entity: objects in an entity, names in its header."""
    found = entity.get("classifications") or entity.get("classificationNames") or ()
    names = (c.get("typeName") if isinstance(c, dict) else c for c in found)
    return [name.lower() for name in names if isinstance(name, str)]


def _kind(type_name: str) -> str:
    if "topic" in type_name:
        return "TOPIC"
    if "path" in type_name or "object" in type_name:
        return "FILE"
    return "VIEW" if "view" in type_name else "TABLE"


def _description(attributes: dict[str, Any]) -> str | None:
    texts = (_text(attributes.get(key)) for key in ("userDescription", "description", "comment"))
    return next(filter(None, texts), None)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

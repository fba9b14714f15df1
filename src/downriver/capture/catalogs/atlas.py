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
    from collections.abc import Iterable

_NAMESPACE = "atlas"
_COLUMN_LISTS = ("columns", "partitionKeys", "fields")
_NOT_DATA = ("_column", "_db", "_storagedesc", "_instance", "_index", "_foreign_key", "_bucket",
             "_directory", "_schema", "_namespace")  # fmt: skip


def parse_atlas(text: str | bytes, name: str) -> CatalogExport:
    """Return the datasets and processes of entities, or of an answer about lineage."""
    return parse_entities(text, name).export(name)


def parse_entities(text: str | bytes, name: str) -> AtlasEntities:
    """Return the entities of a document with at least one entity."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidRequestError("FILE", f"{name}: not JSON: {exc}") from exc
    entities = AtlasEntities(content)
    if not entities.listed:
        reason = f"{name}: no entity with a typeName: not entities or lineage of Apache Atlas"
        raise InvalidRequestError("FILE", reason)
    return entities


class AtlasEntities:
    """The entities of a document, and how they refer to each other."""

    def __init__(self, content: Any) -> None:
        self.listed: list[dict[str, Any]] = []
        self._by_guid: dict[str, dict[str, Any]] = {}
        self._relations: list[tuple[str, str]] = []
        self._unread: dict[UnreadRecord, None] = {}
        self._name = ""
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
        """Return the datasets and processes that the entities describe."""
        self._name = name
        self._unread = {}
        jobs: dict[JobId, ExportedJob] = {}
        tables: dict[DatasetId, ExportedTable] = {}
        columns = self._columns_by_table()
        for place, entity in enumerate(self.listed):
            if not qualified_name(entity):
                reason = f"{entity.get('typeName')}: no qualifiedName"
                self._unread[UnreadRecord(f"{name}: entity {place}", reason)] = None
            elif is_process(entity):
                self._add_process(entity, jobs)
            elif is_dataset(entity):
                table = self._table(entity, columns)
                tables[table.id] = table
        for start, end in self._relations:
            self._add_relation(start, end, jobs)
        return CatalogExport("atlas", list(tables.values()), list(jobs.values()), [*self._unread])

    def id_of(self, entity: dict[str, Any]) -> DatasetId | JobId:
        """Return the dataset or job of an entity; of a column, its dataset."""
        if is_process(entity):
            ends = (*self._all(entity, "inputs"), *self._all(entity, "outputs"))
            return self._job_of(entity, between_columns=any(map(_is_column, ends)))
        return self._column(entity)[0] if _is_column(entity) else _dataset(entity)

    def _columns_by_table(self) -> dict[DatasetId, list[dict[str, Any]]]:
        """Return the columns that name their table, although the table does not list them."""
        columns: dict[DatasetId, list[dict[str, Any]]] = {}
        for entity in self.listed:
            if _is_column(entity) and qualified_name(entity):
                columns.setdefault(self._column(entity)[0], []).append(entity)
        return columns

    def _table(
        self, entity: dict[str, Any], by_table: dict[DatasetId, list[dict[str, Any]]]
    ) -> ExportedTable:
        attributes = entity["attributes"]
        fields: dict[str, SchemaField] = {}
        tags = {}
        listed = [column for key in _COLUMN_LISTS for column in self._all(entity, key)]
        for column in (*listed, *by_table.get(_dataset(entity), ())):
            about = column.get("attributes") or {}
            field = str(about.get("name") or "")
            if field and field not in fields:
                kind = about.get("type") or about.get("data_type")
                fields[field] = SchemaField(field, _text(kind) or None, _description(about))
                if labels := _tags(column):
                    tags[field] = labels
        owner = _text(attributes.get("owner"))
        return ExportedTable(
            id=_dataset(entity),
            kind=_kind(entity["typeName"]),
            description=_description(attributes) or "",
            columns=list(fields.values()),
            owners=[owner] if owner else [],
            tags=_tags(entity),
            column_tags=tags,
        )

    def _add_process(self, entity: dict[str, Any], jobs: dict[JobId, ExportedJob]) -> None:
        """Add a process. A process between columns belongs to the process that it names, if any."""
        attributes = entity["attributes"]
        inputs, outputs = (self._all(entity, key) for key in ("inputs", "outputs"))
        between_columns = any(map(_is_column, (*inputs, *outputs)))
        job_id = self._job_of(entity, between_columns=between_columns)
        job = jobs.setdefault(job_id, ExportedJob(id=job_id, kind="PROCESS"))
        if not between_columns:
            job.description = _description(attributes) or job.description
            job.inputs += [one for one in map(_dataset, inputs) if one not in job.inputs]
            for written in map(_dataset, outputs):
                job.outputs.setdefault(written, {})
            return
        for output in filter(_is_column, outputs):
            target, field = self._column(output)
            sources = job.outputs.setdefault(target, {}).setdefault(field, [])
            for source in map(self._column, filter(_is_column, inputs)):
                sources.append(source)
                if source[0] not in job.inputs:
                    job.inputs.append(source[0])

    def _job_of(self, entity: dict[str, Any], *, between_columns: bool) -> JobId:
        owner = next(iter(self._all(entity, "query")), entity) if between_columns else entity
        return _job(owner)

    def _add_relation(self, start: str, end: str, jobs: dict[JobId, ExportedJob]) -> None:
        """Add an edge of an answer about lineage: a dataset and a process, in either order."""
        ends = self._by_guid.get(start), self._by_guid.get(end)
        if ends[0] is None or ends[1] is None:
            return
        source, target = ends[0], ends[1]
        if is_process(target) and not is_process(source) and not _is_column(source):
            job = jobs.setdefault(_job(target), ExportedJob(id=_job(target), kind="PROCESS"))
            if _dataset(source) not in job.inputs:
                job.inputs.append(_dataset(source))
        elif is_process(source) and not is_process(target) and not _is_column(target):
            job = jobs.setdefault(_job(source), ExportedJob(id=_job(source), kind="PROCESS"))
            job.outputs.setdefault(_dataset(target), {})

    def _all(self, entity: dict[str, Any], key: str) -> list[dict[str, Any]]:
        """Return the entities that an attribute refers to: by guid, or by unique attributes."""
        references = _attribute(entity, key)
        several = references if isinstance(references, list) else [references]
        entities = []
        for reference in several:
            if not isinstance(reference, dict):
                continue
            target = self._by_guid.get(str(reference.get("guid")), reference)
            if qualified_name(target):
                entities.append(target)
            else:
                where = f"{self._name}: {entity.get('typeName')} {qualified_name(entity)}"
                reason = f"{key}: no entity with guid {reference.get('guid')} and no qualifiedName"
                self._unread[UnreadRecord(where, reason)] = None
        return entities

    def _column(self, entity: dict[str, Any]) -> tuple[DatasetId, str]:
        """Return the table and the column, from attributes or from `db.table.column@cluster`."""
        attributes = entity.get("attributes")
        named = _text(attributes.get("name")) if isinstance(attributes, dict) else ""
        table = _attribute(entity, "table")
        if isinstance(table, dict):
            table = self._by_guid.get(str(table.get("guid")), table)
            if qualified_name(table) and named:
                return _dataset(table), named
        before, at, after = qualified_name(entity).rpartition("@")
        name, cluster = (before, at + after) if at else (after, "")
        separator = "#" if "#" in name else "."
        owner, _, field = name.rpartition(separator)
        kind = str(entity["typeName"]).removesuffix("_column") + "_table"
        unique = {"qualifiedName": owner + cluster}
        return _dataset({"typeName": kind, "uniqueAttributes": unique}), field


def _attribute(entity: dict[str, Any], key: str) -> Any:
    """Return an attribute, or the relationship with the same name."""
    for group in ("attributes", "relationshipAttributes"):
        attributes = entity.get(group)
        if isinstance(attributes, dict) and attributes.get(key):
            return attributes[key]
    return None


def qualified_name(entity: dict[str, Any]) -> str:
    """Return the qualified name of an entity, "" if it has none."""
    for key in ("attributes", "uniqueAttributes"):
        attributes = entity.get(key)
        if isinstance(attributes, dict) and isinstance(attributes.get("qualifiedName"), str):
            return str(attributes["qualifiedName"])
    return ""


def is_process(entity: dict[str, Any]) -> bool:
    """Return whether an entity is a process, between datasets or between columns."""
    kind = str(entity.get("typeName", ""))
    groups: Iterable[Any] = (entity.get("attributes"), entity.get("relationshipAttributes"))
    has_ends = any(isinstance(g, dict) and ("inputs" in g or "outputs" in g) for g in groups)
    return has_ends or kind == "Process" or kind.endswith(("_process", "_column_lineage"))


def is_dataset(entity: dict[str, Any]) -> bool:
    """Return whether an entity is data, neither a process nor a part of a dataset or a system."""
    return not is_process(entity) and not str(entity.get("typeName", "")).endswith(_NOT_DATA)


def _is_column(entity: dict[str, Any]) -> bool:
    return str(entity.get("typeName", "")).endswith("_column")


def _dataset(entity: dict[str, Any]) -> DatasetId:
    """Return the dataset of `db.table@cluster`, or of a path."""
    attributes = entity.get("attributes")
    path = _text(attributes.get("path")) if isinstance(attributes, dict) else ""
    name, _, cluster = qualified_name(entity).rpartition("@")
    name, cluster = (name, cluster) if name else (cluster, "")
    for text in (path, name):
        if "://" in text:
            return dataset_at(text)
    system = str(entity.get("typeName", "")).partition("_")[0].lower()
    system = _NAMESPACE if system in ("dataset", "") else system
    if system == _NAMESPACE:  # a plain DataSet: the namespace is behind the last @
        return DatasetId(cluster or _NAMESPACE, name)
    return DatasetId(f"{system}://{cluster}" if cluster else system, name)


def _job(entity: dict[str, Any]) -> JobId:
    return JobId(_NAMESPACE, qualified_name(entity))


def _tags(entity: dict[str, Any]) -> list[str]:
    """Return the classifications of an entity: objects in an entity, names in its header."""
    classifications = entity.get("classifications") or entity.get("classificationNames") or ()
    names = (c.get("typeName") if isinstance(c, dict) else c for c in classifications)
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

"""OpenMetadata: lineage of an entity, and lists of tables, as its API gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.entries import CatalogExport, ExportedJob, ExportedTable, UnreadRecord
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.dataset import SchemaField

if TYPE_CHECKING:
    pass

_NAMESPACE = "openmetadata"
_KINDS = {"dashboard": "DASHBOARD", "topic": "TOPIC", "mlmodel": "MODEL", "container": "FILE"}
_EDGES = ("upstreamEdges", "downstreamEdges")


def parse_openmetadata(text: str, name: str) -> CatalogExport:
    """Return the tables and the lineage of an answer of the API."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidRequestError("FILE", f"{name}: not JSON: {exc}") from exc
    reading = _Reading(CatalogExport(_NAMESPACE), name)
    reading.read(content)
    if not reading.tables and not reading.export.unread:
        reason = f"{name}: no entity with a fullyQualifiedName: not an answer of OpenMetadata"
        raise InvalidRequestError("FILE", reason)
    reading.export.tables = list(reading.tables.values())
    reading.export.jobs = list(reading.jobs.values())
    return reading.export


class _Reading:
    def __init__(self, export: CatalogExport, name: str) -> None:
        self.export = export
        self.tables: dict[DatasetId, ExportedTable] = {}
        self.jobs: dict[JobId, ExportedJob] = {}
        self._name = name
        self._names: dict[str, str] = {}  # fully qualified names by id
        self._pipelines: set[str] = set()

    def read(self, content: Any) -> None:
        if not isinstance(content, dict):
            return
        nodes = content.get("nodes")
        listed = nodes.values() if isinstance(nodes, dict) else nodes or ()
        for entry in (content.get("entity"), *listed, *(content.get("data") or ())):
            self._add(entry.get("entity", entry) if isinstance(entry, dict) else None)
        if "fullyQualifiedName" in content:
            self._add(content)
        for key in _EDGES:
            edges = content.get(key) or ()
            for edge in edges.values() if isinstance(edges, dict) else edges:
                self._add_edge(edge)

    def _add(self, entity: Any) -> None:
        if not isinstance(entity, dict) or not isinstance(entity.get("fullyQualifiedName"), str):
            return
        name = entity["fullyQualifiedName"]
        self._names[str(entity.get("id"))] = name
        kind = str(entity.get("type") or entity.get("entityType") or "table").lower()
        if kind == "pipeline":
            self._pipelines.add(name)
            return
        columns = [c for c in entity.get("columns") or () if isinstance(c, dict) and c.get("name")]
        owners = [o for o in entity.get("owners") or () if isinstance(o, dict)]
        self.tables[_dataset(name)] = ExportedTable(
            id=_dataset(name),
            kind=_KINDS.get(kind, "TABLE"),
            description=str(entity.get("description") or ""),
            columns=[
                SchemaField(
                    c["name"], c.get("dataTypeDisplay") or c.get("dataType"), c.get("description")
                )
                for c in columns
            ],
            owners=[str(o.get("name")) for o in owners if o.get("name")],
            tags=_tags(entity),
            column_tags={c["name"]: tags for c in columns if (tags := _tags(c))},
        )

    def _add_edge(self, edge: Any) -> None:
        ends = [self._end(edge, key) for key in ("fromEntity", "toEntity")]
        if not ends[0] or not ends[1]:
            reason = "an edge between entities that are not in the file"
            self.export.unread.append(UnreadRecord(self._name, reason))
            return
        source, target = ends
        details = edge.get("lineageDetails") or edge
        pipeline = details.get("pipeline")
        job_name = pipeline.get("fullyQualifiedName") if isinstance(pipeline, dict) else None
        if source in self._pipelines or target in self._pipelines:
            job = self._job(source if source in self._pipelines else target)
            if source in self._pipelines:
                job.outputs.setdefault(_dataset(target), {})
            elif _dataset(source) not in job.inputs:
                job.inputs.append(_dataset(source))
            return
        job = self._job(job_name or f"lineage of {target}")
        if _dataset(source) not in job.inputs:
            job.inputs.append(_dataset(source))
        columns = job.outputs.setdefault(_dataset(target), {})
        origins = job.origins.setdefault(_dataset(target), [])
        origins.append(_dataset(source))
        for lineage in details.get("columnsLineage") or details.get("columns") or ():
            field = _column(str(lineage.get("toColumn") or ""), target)
            sources = [_column(str(one), source) for one in lineage.get("fromColumns") or ()]
            if field:
                column_sources = columns.setdefault(field, [])
                column_sources += [(_dataset(source), column) for column in sources if column]

    def _job(self, name: str) -> ExportedJob:
        job_id = JobId(_NAMESPACE, name)
        return self.jobs.setdefault(job_id, ExportedJob(id=job_id, kind="PIPELINE"))

    def _end(self, edge: Any, key: str) -> str:
        """Return the name of an end. It is an id in older answers and an object in newer ones."""
        end = edge.get(key) if isinstance(edge, dict) else None
        if isinstance(end, dict):
            name = self._names.get(str(end.get("id")), "")
            return str(end.get("fullyQualifiedName") or end.get("fqn") or name)
        return self._names.get(str(end), "")


def _dataset(name: str) -> DatasetId:
    """Return the dataset of `service.database.schema.table`."""
    service, *rest = _parts(name)
    return DatasetId(f"{_NAMESPACE}://{service}", ".".join(rest) or service)


def _column(name: str, table: str) -> str:
    """Return the column of a name that starts with that of its table."""
    return name[len(table) + 1 :] if name.startswith(f"{table}.") else ""


def _parts(name: str) -> list[str]:
    """Return the parts of a name. Parts with dots are in quotes."""
    parts, part, quoted = [], "", False
    for char in name:
        if char == '"':
            quoted = not quoted
        elif char == "." and not quoted:
            parts.append(part)
            part = ""
        else:
            part += char
    return [*parts, part]


def _tags(entity: dict[str, Any]) -> list[str]:
    """Return the tags of an entity: `PII.Sensitive` is `pii.sensitive`."""
    tags = (one.get("tagFQN") for one in entity.get("tags") or () if isinstance(one, dict))
    return [tag.lower() for tag in tags if isinstance(tag, str)]

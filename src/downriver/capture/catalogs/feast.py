"""Feast: the registry of an applied feature repository, and features declared in YAML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.catalogs.feast_sources import FeatureSource, read_query, read_source
from downriver.capture.code.yaml_documents import YamlError, load_values
from downriver.capture.entries import CatalogExport, ExportedJob, ExportedTable, UnreadRecord
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry
from downriver.openlineage.facets.dataset import SchemaField

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.entries import ColumnSources

_SYSTEM = "feast"
_VIEWS = ("featureViews", "streamFeatureViews")
_FIRST_LINE = re.compile(r"^\{$", re.MULTILINE)
_KINDS = (*_VIEWS, "onDemandFeatureViews", "featureServices")


def parse_feast(text: str, name: str, namespace: str = "") -> CatalogExport:
    """Return feature views, on-demand views and services as jobs that write a dataset each.

    The text is the output of `feast registry-dump`, or YAML with `features`. `namespace` is that of
    tables in a warehouse.
    """
    content = _decode(text, name)
    if isinstance(content, dict) and any(isinstance(content.get(k), list) for k in _KINDS):
        return _Registry(content, name, namespace).export()
    if isinstance(content, dict) and isinstance(content.get("features"), list):
        return _declared_features(content, name, namespace)
    reason = f"{name}: not the output of `feast registry-dump`, and not YAML with features"
    raise InvalidRequestError("FILE", reason)


def _decode(text: str, name: str) -> Any:
    start = _FIRST_LINE.search(text)  # some versions of Feast print a warning before it
    try:
        return msgspec.json.decode(text[start.start() :] if start else text)
    except (msgspec.DecodeError, RecursionError):
        pass  # YAML, or neither JSON nor YAML
    try:
        return load_values(text)
    except YamlError as exc:
        raise InvalidRequestError("FILE", f"{name}:{exc.line}: {exc.reason}") from exc


class _Registry:
    def __init__(self, content: dict[str, Any], name: str, namespace: str) -> None:
        self._content = content
        self._name = name
        self._namespace = namespace
        self._project = _text(content, "project") or _SYSTEM
        self._export = CatalogExport(_SYSTEM)

    def export(self) -> CatalogExport:
        """Return the views and services of the registry."""
        for kind in _VIEWS:
            for spec in self._specs(kind):
                self._add_view(spec)
        for spec in self._specs("onDemandFeatureViews"):
            self._add_on_demand_view(spec)
        for spec in self._specs("featureServices"):
            self._add_service(spec)
        return self._export

    def _specs(self, kind: str) -> Iterator[dict[str, Any]]:
        for place, entry in enumerate(_list(self._content, kind)):
            spec = entry.get("spec") if isinstance(entry, dict) else None
            if isinstance(spec, dict) and _text(spec, "name"):
                yield spec
            else:
                where = f"{self._name}: {kind}[{place}]"
                self._export.unread.append(UnreadRecord(where, "no spec with a name"))

    def _add_view(self, spec: dict[str, Any]) -> None:
        columns = [*_list(spec, "features"), *self._keys(spec)]
        job, target = self._add(spec, "FEATURE_VIEW", columns)
        batch_source = spec.get("batchSource") or _inner(spec.get("streamSource"))
        source = read_source(batch_source, self._namespace)
        job.inputs += source.inputs
        stream = read_source(spec.get("streamSource"), self._namespace)
        job.inputs += [one for one in stream.inputs if one not in job.inputs]
        if not job.inputs:
            job.blind_spots.append(BlindSpotEntry("unknown_source", source.gap))
        job.outputs[target] = _columns(source, [_text(c, "name") for c in columns], batch_source)

    def _keys(self, spec: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the join keys of a view: its own columns, else those of its entities."""
        own = _list(spec, "entityColumns")
        if own:
            return own
        named = set(_list(spec, "entities"))
        entities = [e for e in self._specs_of_entities() if _text(e, "name") in named]
        return [{"name": key} for e in entities if (key := _text(e, "joinKey"))]

    def _specs_of_entities(self) -> Iterator[dict[str, Any]]:
        for entry in _list(self._content, "entities"):
            if isinstance(entry, dict) and isinstance(entry.get("spec"), dict):
                yield entry["spec"]

    def _add_on_demand_view(self, spec: dict[str, Any]) -> None:
        job, target = self._add(spec, "ON_DEMAND_FEATURE_VIEW", _list(spec, "features"))
        sources = spec.get("sources")
        for entry in sources.values() if isinstance(sources, dict) else ():
            view = _at(entry, "featureViewProjection", "featureViewName") or _at(
                entry, "featureView", "spec", "name"
            )
            request = _at(entry, "requestDataSource", "name")
            if isinstance(view, str):
                job.inputs.append(self._dataset(view))
            elif isinstance(request, str):
                job.inputs.append(self._dataset(f"requests/{request}"))
        message = "the columns of a transformation in Python are not read"
        job.blind_spots.append(BlindSpotEntry("not_read", message))
        job.outputs[target] = {}

    def _add_service(self, spec: dict[str, Any]) -> None:
        columns: ColumnSources = {}
        listed: list[dict[str, Any]] = []
        job, target = self._add(spec, "FEATURE_SERVICE", listed, "feature_services/")
        for projection in _list(spec, "features"):
            view = self._dataset(_text(projection, "featureViewName"))
            job.inputs.append(view)
            for column in _list(projection, "featureColumns"):
                listed.append(column)
                columns.setdefault(_text(column, "name"), []).append((view, _text(column, "name")))
        self._export.tables[-1].columns = _fields(listed)
        job.outputs[target] = columns

    def _add(
        self, spec: dict[str, Any], kind: str, columns: list[dict[str, Any]], prefix: str = ""
    ) -> tuple[ExportedJob, DatasetId]:
        """Add a dataset and the job that makes it."""
        name, about = _text(spec, "name"), _text(spec, "description")
        target = self._dataset(prefix + name)
        owner = _text(spec, "owner")
        table = ExportedTable(id=target, kind="TABLE", description=about, columns=_fields(columns))
        table.owners = [owner] if owner else []
        tags = spec.get("tags")
        table.tags = [f"{k}:{v}" for k, v in tags.items()] if isinstance(tags, dict) else []
        self._export.tables.append(table)
        job = ExportedJob(id=JobId(_SYSTEM, f"{self._project}.{name}"), kind=kind)
        job.description = about
        self._export.jobs.append(job)
        return job, target

    def _dataset(self, name: str) -> DatasetId:
        return DatasetId(f"feast://{self._project}", name)


def _declared_features(content: dict[str, Any], name: str, namespace: str) -> CatalogExport:
    """Return features that state their source table and a transformation in SQL."""
    project = _text(content, "project") or _SYSTEM
    export = CatalogExport(_SYSTEM)
    for place, feature in enumerate(content["features"]):
        title = _text(feature, "name")
        source, query = _text(feature, "source"), _text(feature, "transformation")
        if not title or not (source or query):
            reason = "no name, or neither source nor transformation"
            export.unread.append(UnreadRecord(f"{name}: features[{place}]", reason))
            continue
        target = DatasetId(f"feast://{project}", title)
        job = ExportedJob(id=JobId(_SYSTEM, f"{project}.{title}"), kind="FEATURE")
        read = read_query(query, namespace or "default") if query else FeatureSource()
        job.inputs += read.inputs
        source_id = DatasetId(namespace or "default", source)
        job.inputs += [source_id] if source and source_id not in job.inputs else []
        field, gap = read.column_of(title) if query else (None, "the feature has no transformation")
        if field is None or read.gap:
            job.blind_spots.append(BlindSpotEntry("unknown_columns", read.gap or gap))
        job.outputs[target] = {title: read.columns.get(field, [])} if field else {}
        table = ExportedTable(id=target, kind="TABLE", description=_text(feature, "description"))
        table.columns = [SchemaField(title, _text(feature, "dtype") or None, None)]
        export.tables.append(table)
        export.jobs.append(job)
    return export


def _columns(source: FeatureSource, names: list[str], given: Any) -> ColumnSources:
    """Return the sources of each feature. Feast renames columns by `fieldMapping`."""
    mapping = given.get("fieldMapping") if isinstance(given, dict) else None
    renamed = {new: old for old, new in mapping.items()} if isinstance(mapping, dict) else {}
    found: ColumnSources = {}
    for name in names:
        column = renamed.get(name, name)
        if source.table is not None:
            found[name] = [(source.table, column)]
        elif sources := source.columns.get(column):
            found[name] = sources
    return found


def _inner(source: Any) -> Any:
    """Return the batch source of a push or stream source."""
    return source.get("batchSource") if isinstance(source, dict) else None


def _fields(columns: list[dict[str, Any]]) -> list[SchemaField]:
    named = {_text(c, "name"): _text(c, "valueType").lower() or None for c in columns}
    return [SchemaField(name, kind, None) for name, kind in named.items() if name]


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _list(value: Any, key: str) -> list[Any]:
    content = _at(value, key)
    return content if isinstance(content, list) else []


def _text(value: Any, key: str) -> str:
    content = _at(value, key)
    return content.strip() if isinstance(content, str) else ""

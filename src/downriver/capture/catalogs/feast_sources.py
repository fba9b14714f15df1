"""Data sources of Feast: files, tables, queries and topics as datasets."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.sql import parse_sql_lineage
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from downriver.capture.entries import ColumnSources

_DIALECTS = {
    "bigquery": "bigquery", "snowflake": "snowflake", "redshift": "redshift", "athena": "athena",
    "trino": "trino", "spark": "spark", "postgres": "postgres",
}  # fmt: skip


class FeatureSource(msgspec.Struct):
    """The source of a view: a whole table, or the columns that a query returns.

    `computed` are the columns of the query that are not copies of a column of its inputs.
    """

    inputs: list[DatasetId] = []
    table: DatasetId | None = None
    columns: ColumnSources = {}
    computed: list[str] = []
    gap: str = ""

    def column_of(self, feature: str) -> tuple[str | None, str]:
        """Return the query's column for a feature, or the reason why there is none."""
        if feature in self.columns:
            return feature, ""
        if len(self.computed) == 1:
            return self.computed[0], ""
        return None, f"no column of the transformation is {feature}"


def read_source(source: Any, namespace: str) -> FeatureSource:
    """Return the source that a data source of a registry reads. `namespace` is that of tables."""
    if not isinstance(source, dict):
        return FeatureSource(gap="the view has no source")
    if isinstance(source.get("batchSource"), dict):
        return read_source(source["batchSource"], namespace)
    for key, options in source.items():
        system = key.removesuffix("Options")
        if system == key or not isinstance(options, dict):
            continue
        if system == "custom":
            system, options = _custom(source, options)
        feature_source = _read_options(system, options, namespace)
        if feature_source is not None:
            return feature_source
    title = source.get("name") or source.get("type")
    return FeatureSource(gap=f"the source {title} names no file, table, query or topic")


def _read_options(system: str, options: dict[str, Any], namespace: str) -> FeatureSource | None:
    path = _text(options, "uri") or _text(options, "path") or _text(options, "fileUrl")
    query, table = _text(options, "query"), _text(options, "table")
    if path:
        return _whole(dataset_at(path))
    if query:
        return read_query(query, namespace or system, _DIALECTS.get(system))
    if table:
        parts = (_text(options, "database"), _text(options, "schema"), table)
        qualified = [part for part in parts if part] if table.count(".") == 0 else [table]
        return _whole(DatasetId(namespace or system, ".".join(qualified)))
    if topic := _text(options, "topic"):
        broker = _text(options, "kafkaBootstrapServers").partition(",")[0]
        return _whole(DatasetId(f"kafka://{broker}" if broker else "kafka", topic))
    if stream := _text(options, "streamName"):
        return _whole(DatasetId("kinesis", stream))
    return None


def _whole(table: DatasetId) -> FeatureSource:
    return FeatureSource([table], table)


def _custom(source: dict[str, Any], options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the system and the options of a source that is a plugin of Feast."""
    class_path = _text(source, "dataSourceClassType").lower()
    system = next((name for name in _DIALECTS if name in class_path), "custom")
    try:
        content = msgspec.json.decode(base64.b64decode(_text(options, "configuration")))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return system, {}
    return system, content if isinstance(content, dict) else {}


def read_query(query: str, namespace: str, dialect: str | None = None) -> FeatureSource:
    """Return the tables of a query and the sources of each of its columns."""
    lineage = parse_sql_lineage(query, dialect=dialect)
    columns: ColumnSources = {}
    copied = set()
    for edge in lineage.column_edges:
        if edge.type == "DIRECT":
            source = (DatasetId(namespace, edge.source.table), edge.source.column)
            columns.setdefault(edge.target.column, []).append(source)
            copied |= {edge.target.column} if edge.subtype == "IDENTITY" else set()
    gaps = "; ".join(spot.message for spot in lineage.blind_spots)
    return FeatureSource(
        [DatasetId(namespace, table) for table in lineage.inputs],
        columns=columns,
        computed=[name for name in columns if name not in copied],
        gap=gaps,
    )


def _text(value: dict[str, Any], key: str) -> str:
    content = value.get(key)
    return content.strip() if isinstance(content, str) else ""

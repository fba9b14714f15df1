"""Change events of Debezium: the table of a record, and changes of its schema."""

from __future__ import annotations

from typing import Any, NamedTuple

from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.dataset import SchemaField

NAMESPACE = "kafka-connect"
# `connector` of the source block -> the scheme of the tables' namespace.
SCHEMES = {
    "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql", "sqlserver": "mssql",
    "oracle": "oracle", "mongodb": "mongodb", "db2": "db2", "vitess": "vitess",
    "cockroachdb": "cockroachdb", "informix": "informix", "spanner": "spanner",
}  # fmt: skip
_NAME_PARTS = ("db", "schema", "table", "collection")
_WITHOUT_SCHEMA = frozenset({"mysql", "mariadb", "vitess", "mongodb"})


class ChangedTable(NamedTuple):
    """A table that a record comes from. `fields` is None if the record does not have the schema.

    `schema_change` is "" for a change of a row, else `CREATE`, `ALTER` or `DROP`.
    """

    table: DatasetId
    topic: DatasetId
    job: JobId
    fields: tuple[SchemaField, ...] | None = None
    schema_change: str = ""


def read_change(body: dict[str, Any], schema: object, topic: DatasetId) -> ChangedTable | None:
    """Return the table of a change event; None if the record is not a change event."""
    source = body.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("connector"), str):
        return None
    connector, server = source["connector"], str(source.get("name") or source["connector"])
    if connector not in SCHEMES:
        return None
    job = JobId(NAMESPACE, server)
    changes = body.get("tableChanges")
    if isinstance(changes, list) and changes and isinstance(changes[0], dict):
        return _schema_change(changes[0], connector, server, topic)
    if "op" not in body and "before" not in body and "after" not in body:
        return None
    table = DatasetId(table_namespace(connector, server), _table_name(source, connector))
    return ChangedTable(table, topic, job, _fields(schema))


def table_namespace(connector: str, server: str) -> str:
    """Return the namespace of a connector's tables, without a host: change events name none."""
    return f"{SCHEMES[connector]}://{server}"


def _table_name(source: dict[str, Any], connector: str) -> str:
    parts = {name: source[name] for name in _NAME_PARTS if isinstance(source.get(name), str)}
    if connector in _WITHOUT_SCHEMA:
        parts.pop("schema", None)
    return ".".join(part for part in parts.values() if part)


def _schema_change(
    change: dict[str, Any], connector: str, server: str, topic: DatasetId
) -> ChangedTable:
    name = str(change.get("id", "")).replace('"', "").replace("`", "")
    table = change.get("table")
    columns = table.get("columns") if isinstance(table, dict) else None
    fields = None
    if isinstance(columns, list):
        fields = tuple(
            SchemaField(column["name"], _type_name(column))
            for column in columns
            if isinstance(column, dict) and isinstance(column.get("name"), str)
        )
    return ChangedTable(
        DatasetId(table_namespace(connector, server), name),
        topic,
        JobId(NAMESPACE, server),
        fields,
        schema_change=str(change.get("type", "ALTER")),
    )


def _type_name(column: dict[str, Any]) -> str | None:
    kind = column.get("typeExpression") or column.get("typeName")
    return kind if isinstance(kind, str) else None


def _fields(schema: object) -> tuple[SchemaField, ...] | None:
    """Return the columns in the schema of a record: the fields of its `after`."""
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        return None
    for part in schema["fields"]:
        if isinstance(part, dict) and part.get("field") == "after":
            columns = part.get("fields")
            return tuple(
                SchemaField(field["field"], field.get("name") or field.get("type"))
                for field in (columns if isinstance(columns, list) else ())
                if isinstance(field, dict) and isinstance(field.get("field"), str)
            )
    return None

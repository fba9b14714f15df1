"""Apache Iceberg: the snapshots and schemas of a table from its catalog, with PyIceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.commits import TableCommit, TableLog, first_of, numbers
from downriver.errors import InvalidRequestError, MissingDependencyError
from downriver.model.ids import DatasetId
from downriver.openlineage.facets.dataset import SchemaField
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS = ("added-records", "deleted-records")


def read_iceberg_log(
    table: str, *, catalog: str, properties: Mapping[str, str], after: int = 0
) -> TableLog:
    """Return the snapshots of a table that were committed after a time in µs.

    Without properties, PyIceberg's own configuration (`~/.pyiceberg.yaml`) defines the catalog.
    """
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
    except ImportError as exc:
        raise MissingDependencyError("pyiceberg", "iceberg") from exc
    try:
        iceberg_table = load_catalog(catalog, **dict(properties)).load_table(table)
    except (NoSuchTableError, NoSuchNamespaceError) as exc:
        raise InvalidRequestError("table", f"catalog {catalog!r} has no table {table}") from exc
    except (ImportError, OSError, ValueError, TypeError) as exc:
        raise InvalidRequestError("catalog", f"{catalog!r} cannot be opened: {exc}") from exc
    metadata = iceberg_table.metadata
    schemas: dict[int | None, Any] = {schema.schema_id: schema for schema in metadata.schemas}
    labels: dict[int, list[str]] = {}
    for name, ref in metadata.refs.items():
        if name == "main":  # it moves with every commit
            continue
        labels.setdefault(ref.snapshot_id, []).append(name)
    commits = [
        _commit(snapshot, schemas.get(snapshot.schema_id), labels.get(snapshot.snapshot_id, []))
        for snapshot in sorted(
            iceberg_table.snapshots(), key=lambda snapshot: snapshot.timestamp_ms
        )
        if snapshot.timestamp_ms * 1000 > after
    ]
    place = dataset_at(iceberg_table.location())
    alias = DatasetId(f"iceberg://{catalog}", table)
    return TableLog("ICEBERG", place, table, tuple(commits), aliases=(alias,))


def _commit(snapshot: Any, schema: Any, labels: list[str]) -> TableCommit:
    summary = snapshot.summary
    entries = dict(summary.additional_properties) if summary is not None else {}
    metrics = numbers(entries.items())
    operation = summary.operation.value if summary is not None else "append"
    return TableCommit(
        version=str(snapshot.snapshot_id),
        at=snapshot.timestamp_ms * 1000,
        operation=operation.upper(),
        fields=None if schema is None else tuple(_field(field) for field in schema.fields),
        rows=first_of(metrics, *_ROWS),
        size=first_of(metrics, "added-files-size"),
        user=str(entries.get("user", "")),
        engine=str(entries.get("engine-name", "")),
        job=str(entries.get("spark.app.name", "")),
        parameters=tuple(
            (name, value) for name, value in entries.items() if not value.replace(".", "").isdigit()
        ),
        metrics=metrics,
        labels=tuple(sorted(labels)),
    )


def _field(field: Any) -> SchemaField:
    inner = getattr(field.field_type, "fields", None)
    if inner:
        return SchemaField(field.name, "struct", fields=[_field(part) for part in inner])
    return SchemaField(field.name, str(field.field_type))

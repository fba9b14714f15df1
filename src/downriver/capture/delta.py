"""Delta Lake: the versions of a table from its transaction log. Spark is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.commits import TableCommit, TableLog, first_of, numbers
from downriver.errors import InvalidRequestError, MissingDependencyError
from downriver.openlineage.facets.dataset import SchemaField
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS = (
    "num_added_rows", "num_output_rows", "num_deleted_rows", "numOutputRows",
    "num_updated_rows", "numDeletedRows", "numUpdatedRows", "num_copied_rows",
)  # fmt: skip
_SIZES = ("numOutputBytes", "num_output_bytes")
_OWN_KEYS = frozenset(
    {"timestamp", "operation", "operationParameters", "operationMetrics", "version", "job",
     "engineInfo", "clientVersion", "readVersion", "isBlindAppend", "isolationLevel", "userName",
     "userId", "txnId", "notebook", "clusterId"}
)  # fmt: skip


def read_delta_log(
    location: str, *, after: int = -1, options: Mapping[str, str] | None = None
) -> TableLog:
    """Return the commits of the table at a path or URL that are later than version `after`.

    Log entries may have been cleaned up: schemas of such versions are unknown.
    """
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError as exc:
        raise MissingDependencyError("deltalake", "delta") from exc
    try:
        table = DeltaTable(location, storage_options=dict(options or {}) or None)
        history = [entry for entry in table.history() if int(entry["version"]) > after]
    except (DeltaError, OSError, ValueError) as exc:
        raise InvalidRequestError(
            "table", f"{location}: not a readable Delta table: {exc}"
        ) from exc
    commits, unread = [], []
    for entry in sorted(history, key=lambda entry: int(entry["version"])):
        version = int(entry["version"])
        try:
            table.load_as_version(version)
            fields: tuple[SchemaField, ...] | None = _fields(table.schema().to_json())
        except (DeltaError, OSError, ValueError):
            fields = None
            unread.append(f"version {version}: the log no longer has its schema")
        commits.append(_commit(entry, fields))
    dataset = dataset_at(table.table_uri if "://" in table.table_uri else location)
    title = dataset.name.rstrip("/").rpartition("/")[2] or dataset.name
    return TableLog("DELTA", dataset, title, tuple(commits), unread=tuple(unread))


def _commit(entry: Mapping[str, Any], fields: tuple[SchemaField, ...] | None) -> TableCommit:
    metrics = numbers((entry.get("operationMetrics") or {}).items())
    parameters = entry.get("operationParameters") or {}
    custom = {name: value for name, value in entry.items() if name not in _OWN_KEYS}
    operation = str(entry.get("operation", "WRITE"))
    restores = str(parameters.get("version", "")) if operation == "RESTORE" else ""
    return TableCommit(
        version=str(entry["version"]),
        at=int(entry.get("timestamp", 0)) * 1000,
        operation=operation,
        fields=fields,
        rows=first_of(metrics, *_ROWS),
        size=first_of(metrics, *_SIZES),
        user=str(entry.get("userName") or entry.get("userId") or ""),
        engine=str(entry.get("engineInfo") or entry.get("clientVersion") or ""),
        job=_job(entry.get("job")),
        parameters=tuple((name, str(value)) for name, value in {**parameters, **custom}.items()),
        metrics=metrics,
        restores=restores,
    )


def _job(value: object) -> str:
    """Return the job that a commit names: Databricks writes an object, other writers a name."""
    if isinstance(value, dict):
        return str(value.get("jobName") or value.get("jobId") or "")
    return value if isinstance(value, str) else ""


def _fields(schema: str) -> tuple[SchemaField, ...]:
    return tuple(_field(field) for field in msgspec.json.decode(schema).get("fields", []))


def _field(field: Mapping[str, Any]) -> SchemaField:
    kind = field.get("type")
    if isinstance(kind, dict):
        inner = [_field(part) for part in kind.get("fields", [])]
        return SchemaField(str(field["name"]), str(kind.get("type", "")), fields=inner or None)
    return SchemaField(str(field["name"]), str(kind))

"""Tables of the AWS Glue Data Catalog: the JSON of `aws glue get-tables`."""

from __future__ import annotations

from typing import Any

import msgspec

from downriver.capture.entries import CatalogExport, ExportedTable, UnreadRecord
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId
from downriver.openlineage.facets.dataset import SchemaField
from downriver.openlineage.naming import dataset_at

# Crawlers and Hive write these for internal use. The other parameters are tags that users set.
_CRAWLER_TAGS = ("classification", "UPDATED_BY_CRAWLER")


class _Column(msgspec.Struct, rename="pascal"):
    name: str
    type: str | None = None
    comment: str | None = None
    parameters: dict[str, Any] | None = None


class _Storage(msgspec.Struct, rename="pascal"):
    columns: list[_Column] | None = None
    location: str | None = None


class _Table(msgspec.Struct, rename="pascal"):
    name: str
    database_name: str
    catalog_id: str | None = None
    description: str | None = None
    owner: str | None = None
    table_type: str | None = None
    storage_descriptor: _Storage | None = None
    partition_keys: list[_Column] | None = None
    parameters: dict[str, Any] | None = None


class _Answer(msgspec.Struct, rename="pascal"):
    table_list: list[Any]


def parse_glue(text: str, name: str, region: str = "") -> CatalogExport:
    """Return the tables of an answer of Glue. The location of a table is another name of it."""
    try:
        records = msgspec.json.decode(text, type=_Answer).table_list
    except msgspec.DecodeError as exc:
        reason = f"{name}: not the JSON of `aws glue get-tables`: {exc}"
        raise InvalidRequestError("FILE", reason) from exc
    export = CatalogExport("glue")
    for place, record in enumerate(records):
        try:
            export.tables.append(_table(msgspec.convert(record, _Table), region))
        except msgspec.ValidationError as exc:
            export.unread.append(UnreadRecord(f"{name}: TableList[{place}]", str(exc)))
    return export


def _table(table: _Table, region: str) -> ExportedTable:
    storage = table.storage_descriptor or _Storage()
    columns = [*(storage.columns or ()), *(table.partition_keys or ())]
    location = storage.location or ""
    return ExportedTable(
        id=DatasetId(
            f"arn:aws:glue:{region}:{table.catalog_id or ''}",
            f"table/{table.database_name}/{table.name}",
        ),
        kind="VIEW" if "VIEW" in (table.table_type or "") else "TABLE",
        description=table.description or "",
        columns=[SchemaField(c.name, c.type, c.comment) for c in columns],
        owners=[table.owner] if table.owner else [],
        tags=_tags(table.parameters or {}),
        column_tags={c.name: tags for c in columns if (tags := _column_tags(c))},
        other_names=[dataset_at(location)] if "://" in location else [],
    )


def _tags(parameters: dict[str, Any]) -> list[str]:
    return [f"{key.lower()}:{parameters[key]}" for key in _CRAWLER_TAGS if parameters.get(key)]


def _column_tags(column: _Column) -> list[str]:
    parameters = column.parameters or {}
    return [
        key.lower() if str(value).lower() == "true" else f"{key.lower()}:{value}"
        for key, value in sorted(parameters.items())
    ]

"""Reads the names of the tables that exist from a list, dbt's catalog.json or a database."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.capture.inventory.databases import list_tables, without_password
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FIELD = "--inventory"


class TableInventory(NamedTuple):
    """The tables that a source lists, as `database.schema.table`, and what the source is."""

    source: str
    tables: list[str]


def read_inventory(place: str) -> TableInventory:
    """Return the tables that a database (a SQLAlchemy URL) or a file lists."""
    if "://" in place:
        return TableInventory(without_password(place), _distinct(list_tables(place)))
    path = Path(place)
    try:
        text = path.read_text("utf-8-sig")
    except OSError as exc:
        raise InvalidRequestError(_FIELD, f"{place}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidRequestError(_FIELD, f"{place}: not text in UTF-8") from exc
    tables = _distinct(_parse(path, text))
    if not tables:
        raise InvalidRequestError(_FIELD, f"{place}: lists no table")
    return TableInventory(place, tables)


def _parse(path: Path, text: str) -> Iterator[str]:
    if path.suffix == ".json":
        yield from _parse_json(path, text)
    elif path.suffix == ".csv":
        yield from _parse_csv(path, text)
    else:
        yield from (line.partition("#")[0].strip() for line in text.splitlines())


def _parse_json(path: Path, text: str) -> Iterator[str]:
    """Yield the names in a list of names, or the relations in dbt's catalog.json."""
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError as exc:
        raise InvalidRequestError(_FIELD, f"{path}: not JSON: {exc}") from exc
    match content:
        case list() if all(isinstance(name, str) for name in content):
            yield from content
        case {"nodes": dict() as nodes, "sources": dict() as sources}:
            for entry in (*nodes.values(), *sources.values()):
                yield _relation(path, entry)
        case _:
            reason = "neither a list of names nor dbt's catalog.json"
            raise InvalidRequestError(_FIELD, f"{path}: {reason}")


def _relation(path: Path, entry: Any) -> str:
    match entry:
        case {"metadata": {"schema": str(schema), "name": str(name)} as metadata}:
            return _join(metadata.get("database"), schema, name)
        case _:
            raise InvalidRequestError(_FIELD, f"{path}: a node without metadata.schema and name")


_TABLE = ("table_name", "table", "name")
_SCHEMA = ("table_schema", "schema", "schema_name")
_DATABASE = ("table_catalog", "database", "catalog", "table_database")


def _parse_csv(path: Path, text: str) -> Iterator[str]:
    """Yield the names in an export of `information_schema.tables`, or in a single column."""
    rows = csv.reader(text.splitlines())
    header = [cell.strip().casefold() for cell in next(rows, [])]
    places = [
        next((header.index(name) for name in names if name in header), None)
        for names in (_DATABASE, _SCHEMA, _TABLE)
    ]
    if places[2] is None:
        raise InvalidRequestError(_FIELD, f"{path}: no column table_name, table or name")
    for row in rows:
        cells = [row[at] if at is not None and at < len(row) else "" for at in places]
        yield _join(*cells)


def _join(*parts: str | None) -> str:
    return ".".join(part.strip() for part in parts if part and part.strip())


def _distinct(names: Iterable[str]) -> list[str]:
    return sorted({name.strip() for name in names if name.strip()})

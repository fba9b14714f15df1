"""Tables and views for Trino over the Parquet files of `lake export --parquet`. Needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from downriver.errors import InvalidRequestError
from downriver.lake import schemas
from downriver.lake.duckdb_views import DERIVED

if TYPE_CHECKING:
    from downriver.lake.schemas import LakeTable

_LAYERS = ("silver", "gold")


def render_trino(location: str, schema: str) -> str:
    """Return statements that create a table for each folder, and the views for common questions.

    `location` is the URL of the exported folder, and `schema` is `CATALOG.SCHEMA` of Trino's Hive
    connector.
    """
    parts = schema.split(".")
    if len(parts) != 2 or not all(parts):
        raise InvalidRequestError("--schema", f"{schema!r} is not CATALOG.SCHEMA")
    home = ".".join(exp.to_identifier(part, quoted=True).sql("trino") for part in parts)
    statements = [f"CREATE SCHEMA IF NOT EXISTS {home}", f"USE {home}"]
    statements += [
        _table(layer, table, location.rstrip("/"))
        for layer in _LAYERS
        for table in schemas.LAYERS[layer]
    ]
    statements += [sqlglot.transpile(view, read="duckdb", write="trino")[0] for view in DERIVED]
    return ";\n".join(statements) + ";\n"


def _table(layer: str, table: LakeTable, location: str) -> str:
    columns = ", ".join(f'"{name}" {_type(kind)}' for name, kind in table.columns)
    folder = f"{location}/{layer}/{table.name}".replace("'", "''")
    options = f"external_location = '{folder}', format = 'PARQUET'"
    return f'CREATE TABLE IF NOT EXISTS "{layer}_{table.name}" ({columns}) WITH ({options})'


def _type(kind: str) -> str:
    """Return a type of Spark in Trino's SQL. Times are in UTC: Hive tables have no time zones."""
    local = kind.replace("TIMESTAMP", "TIMESTAMP_NTZ")
    return str(exp.DataType.build(local, dialect="spark").sql(dialect="trino"))

"""Tables behind a database connection, named as OpenLineage names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEMES = {"postgresql": "postgres", "mariadb": "mysql", "mssql": "mssql"}
_PORTS = {"postgres": 5432, "mysql": 3306, "mssql": 1433, "redshift": 5439}


def table_at(table: str, connection: Any, names: Callable[[str], DatasetId]) -> DatasetId:
    """Return a table of the database that a connection, an engine or a URL leads to."""
    url = _url(connection)
    parts = urlsplit(url) if url else None
    if parts is None or not parts.hostname:
        return names(table)
    kind = parts.scheme.partition("+")[0].lower()
    scheme = _SCHEMES.get(kind, kind)
    port = parts.port or _PORTS.get(scheme)
    home = f"{scheme}://{parts.hostname}" + (f":{port}" if port else "")
    database = parts.path.strip("/")
    return DatasetId(home, f"{database}.{table}" if database else table)


def _url(connection: Any) -> str:
    """Return the address of a connection, as SQLAlchemy tells it; a driver's own tells none."""
    if isinstance(connection, str):
        return connection if "://" in connection else ""
    engine = getattr(connection, "engine", connection)
    url = getattr(engine, "url", None)
    render = getattr(url, "render_as_string", None)
    return str(render(hide_password=True)) if render is not None else ""

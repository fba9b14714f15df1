"""Temporary stores for measurements."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def sqlite_file() -> Iterator[str]:
    """Yield the path of a SQLite store that does not exist yet."""
    with tempfile.TemporaryDirectory(prefix="downriver-bench-") as folder:
        yield str(Path(folder) / "lineage.db")


@contextmanager
def postgres_database(server_url: str) -> Iterator[str]:
    """Yield the URL of an empty database on a running server."""
    name = f"bench_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

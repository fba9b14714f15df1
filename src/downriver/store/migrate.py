"""Numbered SQL migrations: `migrations/<dialect>/NNNN_what.sql`, applied once each, in order."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

from downriver.errors import StoreVersionError


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    sql: str


def list_migrations(dialect: str) -> list[Migration]:
    """Return every migration of a dialect in order."""
    folder = resources.files("downriver.store") / "migrations" / dialect
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name
    )
    return [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in files
    ]


def pending(dialect: str, applied: int) -> list[Migration]:
    """Return the migrations a store at number `applied` still needs."""
    migrations = list_migrations(dialect)
    if applied > migrations[-1].number:
        raise StoreVersionError(applied, migrations[-1].number)
    return [migration for migration in migrations if migration.number > applied]

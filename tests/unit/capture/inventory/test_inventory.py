"""The tables that exist are read from files and from real databases."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import duckdb
import psycopg
import pytest

from downriver.capture.inventory import read_inventory
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

DDL = (
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.orders (id int)",
    "CREATE VIEW shop.open_orders AS SELECT id FROM shop.orders",
)


def test_postgres_lists_tables_and_views_and_no_partitions(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        for statement in DDL:
            connection.execute(statement)
        connection.execute("CREATE TABLE public.days (at date) PARTITION BY RANGE (at)")
        connection.execute(
            "CREATE TABLE days_2026 PARTITION OF days"
            " FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')"
        )
    found = read_inventory(postgres_database)
    database = postgres_database.partition("?")[0].rpartition("/")[2]
    assert found.tables == sorted(
        f"{database}.{name}" for name in ("shop.orders", "shop.open_orders", "public.days")
    )
    same = postgres_database.replace("postgresql://", "postgresql+psycopg://")
    assert read_inventory(same).tables == found.tables


def test_duckdb_lists_tables_and_views(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(path)) as connection:
        for statement in DDL:
            connection.execute(statement)
    found = read_inventory(f"duckdb:///{path}")
    assert found.tables == ["warehouse.shop.open_orders", "warehouse.shop.orders"]


def test_another_database_needs_sqlalchemy(tmp_path: Path) -> None:
    import sqlalchemy

    url = f"sqlite:///{tmp_path / 'shop.db'}"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE orders (id int)"))
    engine.dispose()
    assert read_inventory(url).tables == ["orders"]


CATALOG = {
    "nodes": {"model.shop.a": {"metadata": {"database": "db", "schema": "main", "name": "a"}}},
    "sources": {"source.shop.b": {"metadata": {"database": None, "schema": "raw", "name": "b"}}},
}


@pytest.mark.parametrize(
    ("name", "text", "tables"),
    [
        ("tables.txt", "shop.b\n# a comment\n\n shop.a  # another\n", ["shop.a", "shop.b"]),
        ("tables.json", '["b.c", "a"]', ["a", "b.c"]),
        ("catalog.json", json.dumps(CATALOG), ["db.main.a", "raw.b"]),
        ("tables.csv", "TABLE_SCHEMA,TABLE_NAME,TABLE_TYPE\nshop,a,VIEW\n", ["shop.a"]),
        ("one.csv", "\ufefftable\norders\n", ["orders"]),
    ],
)  # fmt: skip
def test_a_file_lists_tables(tmp_path: Path, name: str, text: str, tables: list[str]) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    found = read_inventory(str(tmp_path / name))
    assert (found.tables, found.source) == (tables, str(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt", "# nothing\n"), ("a.json", "{"), ("a.json", '{"x": 1}'), ("a.csv", "who\nann\n")],
)
def test_a_file_without_tables_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidRequestError):
        read_inventory(str(tmp_path / name))


def test_an_error_does_not_show_the_password(tmp_path: Path) -> None:
    for url in ("postgresql://ann:secret@127.0.0.1:1/shop", f"duckdb:///{tmp_path}/none.duckdb"):
        with pytest.raises(InvalidRequestError) as error:
            read_inventory(url)
        assert "secret" not in error.value.message
    with pytest.raises(InvalidRequestError):
        read_inventory(str(tmp_path / "missing.txt"))

"""Paths, tables and JDBC URLs have the names of OpenLineage, without secrets."""

from __future__ import annotations

import pytest

from downriver.capture.spark.io.paths import name_jdbc, name_paths, short_name
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("/data/orders", "file", "/data/orders"),
        ("file:/data/orders/", "file", "/data/orders"),
        ("file:///data//orders", "file", "/data/orders"),
        ("s3a://lake/raw/orders", "s3://lake", "raw/orders"),
        ("s3n://lake", "s3://lake", "/"),
        ("gs://lake/orders", "gs://lake", "orders"),
        ("hdfs://nn:8020/orders", "hdfs://nn:8020", "/orders"),
        ("abfss://box@acct.dfs.core.windows.net/o", "abfss://box@acct.dfs.core.windows.net", "o"),
        ("dbfs:/orders", "dbfs", "/orders"),
        ("/data/orders/day=2026-01-01/hour=3", "file", "/data/orders"),
        ("/data/a=b/orders", "file", "/data/a=b/orders"),
        ("/data/orders/day=1/part-00000-5f2c.c000.snappy.parquet", "file", "/data/orders"),
        ("/data/orders/part-00000", "file", "/data/orders/part-00000"),
        ("/data/part-of-it.csv", "file", "/data/part-of-it.csv"),
        ("/data/with space#1/o", "file", "/data/with space#1/o"),
    ],
)
def test_a_path_is_a_dataset_without_its_partitions(uri: str, namespace: str, name: str) -> None:
    assert dataset_at(uri) == DatasetId(namespace, name)


def test_a_glob_is_the_folder_above_it() -> None:
    expanded = ["/data/2026/01/a.csv", "/data/2026/02/b.csv"]
    assert name_paths(expanded, "/data/2026/*/") == [DatasetId("file", "/data/2026")]
    assert name_paths(expanded, "/data/{2025,2026}/0[12]") == [DatasetId("file", "/data")]


def test_files_of_one_folder_are_that_folder() -> None:
    assert name_paths(["/in/a.csv", "/in/b.csv"]) == [DatasetId("file", "/in")]


def test_a_file_by_itself_is_a_dataset() -> None:
    assert name_paths(["/in/a.csv"]) == [DatasetId("file", "/in/a.csv")]


def test_each_folder_is_a_dataset() -> None:
    assert name_paths(["/in/a", "/in/b"]) == [
        DatasetId("file", "/in/a"),
        DatasetId("file", "/in/b"),
    ]


def test_partitions_of_one_dataset_are_one() -> None:
    assert name_paths(["/in/o/d=1", "/in/o/d=2"]) == [DatasetId("file", "/in/o")]


def test_very_many_folders_are_their_common_folder() -> None:
    assert name_paths([f"/in/{n}/o" for n in range(100)]) == [DatasetId("file", "/in")]


@pytest.mark.parametrize(
    ("url", "table", "namespace", "name"),
    [
        (
            "jdbc:postgresql://db.example.org/shop",
            "orders",
            "postgres://db.example.org:5432",
            "shop.public.orders",
        ),
        (
            "jdbc:postgresql://me:secret@db:6543/shop?user=me&password=secret",
            'sales."orders"',
            "postgres://db:6543",
            "shop.sales.orders",
        ),
        ("jdbc:mysql://db/shop?password=secret", "`orders`", "mysql://db:3306", "shop.orders"),
        (
            "jdbc:sqlserver://db:1433;databaseName=shop;user=me;password=secret",
            "[dbo].[orders]",
            "mssql://db:1433",
            "shop.dbo.orders",
        ),
        ("jdbc:oracle:thin:me/secret@//db:1521/shop", "ORDERS", "oracle://db:1521", "shop.ORDERS"),
        (
            "jdbc:derby:memory:shop;create=true;password=secret",
            "orders",
            "derby:memory:shop",
            "orders",
        ),
        ("jdbc:sqlite:/var/shop.db", "orders", "sqlite:/var/shop.db", "orders"),
    ],
)
def test_a_jdbc_url_names_its_tables_without_credentials(
    url: str, table: str, namespace: str, name: str
) -> None:
    found = name_jdbc(url).table(table)
    assert found == DatasetId(namespace, name)
    assert "secret" not in str(found)
    assert "me" not in found.namespace.replace("memory", "")


def test_a_short_name_is_the_end_of_the_name() -> None:
    orders = DatasetId("file", "/data/sales/orders")
    assert short_name(orders) == "orders"
    assert short_name(orders, 2) == "sales.orders"
    assert short_name(DatasetId("s3://lake", "/")) == "s3://lake"

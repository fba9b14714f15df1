"""The datasets that golden Spark cases read: a few rows each, in every format."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_DAY = date(2026, 1, 1)
DERBY = "jdbc:derby:memory:shop;create=true"

_PARQUET: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "customers": (
        "id int, name string, email string, country string, born date, balance double",
        [
            (1, "Ann", "ann@example.org", "DE", _DAY, 10.0),
            (2, "Bob", "bob@example.org", "FR", _DAY, 20.0),
            (3, "Cem", "cem@example.org", "DE", _DAY, None),
        ],
    ),
    "orders": (
        "order_id int, customer_id int, amount double, status string, day date, tags array<string>",
        [
            (1, 1, 5.0, "paid", _DAY, ["a", "b"]),
            (2, 1, 7.5, "open", _DAY, ["b"]),
            (3, 2, 2.5, "paid", _DAY, []),
            (4, 9, 1.0, "paid", _DAY, None),
        ],
    ),
    "baskets": (
        "id int, items array<struct<sku:string,qty:int,price:double>>, "
        "labels map<string,string>, address struct<city:string,zip:string>",
        [(1, [("x", 1, 2.0), ("y", 2, 3.0)], {"k": "v"}, ("Bonn", "53111"))],
    ),
    "months": (
        "shop string, jan int, feb int, mar int",
        [("north", 1, 2, 3), ("south", 4, None, 6)],
    ),
    "staff": (
        "id int, boss int, name string, pay int",
        [(1, None, "Zoe", 9), (2, 1, "Yan", 5), (3, 2, "Xia", 4)],
    ),
}


def prepare(spark: Any, folder: Path) -> None:
    """Write the datasets."""
    for name, (schema, rows) in _PARQUET.items():
        spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(folder / name))
    orders = spark.read.parquet(str(folder / "orders"))
    flat = orders.drop("tags").coalesce(1)
    flat.write.csv(str(folder / "orders_csv"), header=True)
    flat.write.json(str(folder / "orders_json"))
    flat.write.orc(str(folder / "orders_orc"))
    orders.coalesce(1).select("status").write.text(str(folder / "notes"))
    flat.write.partitionBy("status", "customer_id").parquet(str(folder / "sales"))
    flat.write.jdbc(DERBY, "orders")


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    **{
        name: lambda spark, folder, name=name: spark.read.parquet(str(folder / name))
        for name in _PARQUET
    },
    "sales": lambda spark, folder: spark.read.parquet(str(folder / "sales")),
}

"""A store with tables and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.impact.estate import Estate

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store")) as opened:
        yield opened


@pytest.fixture
def estate(lineage: Lineage) -> Estate:
    return Estate(lineage)


@pytest.fixture
def shop(estate: Estate) -> Estate:
    """Orders, staged by name and by star, and marts of both."""
    estate.table(
        "raw.orders",
        {"id": "int", "order_total": "decimal(10,2)", "legacy": "varchar", "customer": "int"},
    )
    estate.table("raw.customers", {"id": "int", "name": "varchar"})
    estate.sql(
        "stg_orders",
        "create table stg.orders as\nselect id,\n  order_total,\n  legacy, customer\n"
        "from raw.orders",
    )
    estate.sql("stg_star", "create table stg.star as select * from raw.orders")
    estate.sql(
        "doubled", "create table mart.doubled as select id, order_total * 2 as d from stg.orders"
    )
    estate.sql("ids", "create table mart.ids as select id from stg.orders")
    estate.sql(
        "sums",
        "create table mart.sums as select customer, sum(order_total) s from stg.star group by 1",
    )
    estate.sql(
        "names",
        "create table mart.names as select name, o.id from raw.orders o"
        " join raw.customers c on c.id = o.customer where o.legacy is null",
    )
    return estate

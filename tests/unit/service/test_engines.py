"""Events of Trino and Flink, as their listeners send them, to the route that they send them to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.http.test_app import TestClient

from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parents[2] / "golden" / "openlineage"


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path)) as opened:
        with TestClient(build_app(opened)) as client:
            for case in ("trino_insert_complete", "flink_sql_start"):
                body = (GOLDEN / case / "event.json").read_bytes()
                assert client.post("/api/v1/lineage", content=body).status_code == 201
        yield opened


def test_columns_of_trino_are_traced(lineage: Lineage) -> None:
    found = lineage.trace("mart.revenue_daily.revenue", "upstream")
    assert {(node.name, node.field) for node in found.nodes} == {
        ("iceberg.mart.revenue_daily", "revenue"),
        ("hive.shop.orders", "amount"),
    }


def test_a_topic_of_flink_has_the_name_of_its_table_too(lineage: Lineage) -> None:
    by_topic, by_table = (
        lineage.trace(name, "downstream")
        for name in ("shop.payments.v1", "default_catalog.default_database.payments")
    )
    assert {node.id for node in by_topic.nodes} == {node.id for node in by_table.nodes}
    assert "shop.spend_by_customer.v1" in {node.name for node in by_topic.nodes} | {
        alias.rpartition(":")[2] for node in by_topic.nodes for alias in node.aliases
    }


def test_both_are_listed_as_received(lineage: Lineage) -> None:
    received = {one.name: one.last_job or "" for one in lineage.integrations().integrations}
    assert received["trino"].startswith("job:trino://trino.internal:8080:")
    assert received["flink"].startswith("job:flink-jobs:insert-into_")

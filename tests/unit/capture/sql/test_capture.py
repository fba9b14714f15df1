"""Captured SQL becomes lineage that can be traced."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from downriver import lineage as open_tracker
from downriver import parse_sql_lineage
from downriver.errors import EntityNotFoundError
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLEAN = """INSERT INTO orders_clean
SELECT order_id, customer_id, amount_cents / 100.0 AS amount_usd, created_at
FROM raw_orders
WHERE amount_cents > 0 AND customer_id IS NOT NULL"""

SUMMARY = """INSERT INTO customer_order_summary
SELECT c.customer_id, c.email, COUNT(o.order_id) AS total_orders,
       SUM(o.amount_usd) AS lifetime_value
FROM orders_clean o JOIN customers c ON o.customer_id = c.customer_id
GROUP BY c.customer_id, c.email"""


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path)) as opened:
        yield opened


def _schema_event(namespace: str, name: str, *columns: str) -> bytes:
    schema = {"fields": [{"name": column} for column in columns]}
    return json.dumps(
        {
            "eventTime": "2026-01-01T00:00:00Z",
            "dataset": {"namespace": namespace, "name": name, "facets": {"schema": schema}},
        }
    ).encode()


def _columns(lineage: Lineage, entity: str, direction: str = "downstream") -> list[str]:
    """The columns downstream of a column."""
    first, *others = lineage.trace(entity, direction).nodes
    assert first.id == lineage.trace(entity, direction).root.id
    return [f"{node.name}.{node.field}" for node in others]


def test_captured_statements_connect_into_a_chain_of_columns(lineage: Lineage) -> None:
    for sql in (CLEAN, SUMMARY):
        assert lineage.capture.sql(sql).registered
    answer = lineage.trace("raw_orders.amount_cents")
    reached = {(node.name, node.field): node for node in answer.nodes}
    value = reached["customer_order_summary", "lifetime_value"]
    assert (value.derivation, value.transformation) == ("DIRECT", "AGGREGATION")
    assert reached["orders_clean", "*"].derivation == "INDIRECT"  # the filter concerns every column
    assert answer.complete


def test_a_file_makes_a_job_event_and_a_run_makes_a_run_event(lineage: Lineage) -> None:
    lineage.capture.sql(CLEAN)
    assert {edge.confidence for edge in lineage.trace("raw_orders").edges} == {"declared"}
    lineage.capture.sql(CLEAN, ran=True)
    assert {edge.confidence for edge in lineage.trace("raw_orders").edges} == {"exact"}


def test_schemas_come_from_the_catalog(lineage: Lineage) -> None:
    lineage.ingest([_schema_event("pg", "shop.orders", "id", "total")])
    found = lineage.capture.sql("CREATE TABLE copy AS SELECT * FROM shop.orders").lineage
    assert [str(edge.target) for edge in found.column_edges] == ["copy.id", "copy.total"]
    assert lineage.trace("orders.total").root.namespace == "pg"  # not a second orders


def test_a_star_is_resolved_when_the_schema_becomes_known(lineage: Lineage) -> None:
    lineage.capture.sql("CREATE TABLE copy AS SELECT * FROM shop.orders")
    lineage.capture.sql("CREATE TABLE mart AS SELECT upper(total) AS label FROM copy")
    with pytest.raises(EntityNotFoundError):
        lineage.trace("shop.orders.total")
    assert _columns(lineage, "mart.label", "upstream") == ["copy.total", "shop.orders.*"]
    lineage.ingest([_schema_event("default", "shop.orders", "id", "total")])
    assert _columns(lineage, "mart.label", "upstream") == ["copy.total", "shop.orders.total"]
    assert _columns(lineage, "shop.orders.total") == ["copy.total", "mart.label"]
    # Until the schema of `copy` is known, nothing shows that it has a column `id`.
    assert _columns(lineage, "shop.orders.id") == ["copy.*"]
    lineage.ingest([_schema_event("default", "copy", "id", "total")])
    assert _columns(lineage, "shop.orders.id") == ["copy.id"]
    with pytest.raises(EntityNotFoundError):
        lineage.trace("shop.orders.unknown")


def test_columns_excluded_from_a_star_stay_excluded_with_a_schema(
    lineage: Lineage,
) -> None:
    sql = "CREATE TABLE safe AS SELECT * EXCEPT (email) FROM customers"
    (unknown,) = lineage.capture.sql(sql, dialect="bigquery").lineage.column_edges
    assert (str(unknown.source), unknown.expression) == ("customers.*", "* EXCEPT (email)")
    lineage.ingest([_schema_event("default", "customers", "id", "email")])
    (known,) = lineage.capture.sql(sql, dialect="bigquery").lineage.column_edges
    assert (str(known.source), str(known.target)) == ("customers.id", "safe.id")


def test_a_script_with_two_outputs_keeps_their_inputs_apart(lineage: Lineage) -> None:
    lineage.capture.sql("INSERT INTO x SELECT a FROM s; INSERT INTO y SELECT b FROM t;", job="both")
    datasets = [node.name for node in lineage.trace("s").nodes if node.kind == "dataset"]
    assert datasets == ["s", "x"]


def test_temporary_tables_are_replaced_by_the_tables_they_read(lineage: Lineage) -> None:
    lineage.capture.sql(
        "CREATE TEMP TABLE x AS SELECT a FROM s; INSERT INTO y (a) SELECT a FROM x;"
        "INSERT INTO z (b) SELECT b FROM t;",
        job="both",
    )
    datasets = [node.name for node in lineage.trace("s").nodes if node.kind == "dataset"]
    assert datasets == ["s", "y"]


def test_a_blind_spot_disappears_when_the_statement_is_fixed(lineage: Lineage) -> None:
    lineage.capture.sql("INSERT INTO t SELECT a FROM s; EXECUTE IMMEDIATE v_sql", job="proc")
    assert [spot.kind for spot in lineage.trace("s").blind_spots] == ["dynamic_sql"]
    lineage.capture.sql("INSERT INTO t SELECT a FROM s", job="proc")
    assert lineage.trace("s").complete


def test_a_dry_run_registers_nothing(lineage: Lineage) -> None:
    assert not lineage.capture.sql(CLEAN, dry_run=True).registered
    assert lineage.admin.status().counts.events == 0


def test_the_tracker_returns_what_the_requirements_ask_for(tmp_path: Path) -> None:
    async def capture() -> dict:
        tracker = open_tracker(str(tmp_path))
        result = await tracker.capture_sql_lineage(sql=SUMMARY, transformation="Aggregate orders")
        await tracker.close()
        return {key: result[key] for key in ("source_tables", "target_tables", "flow_count")} | {
            "flows": result["flows_registered"]
        }

    found = asyncio.run(capture())
    assert sorted(found["source_tables"]) == ["customers", "orders_clean"]
    assert found["target_tables"] == ["customer_order_summary"]
    assert found["flow_count"] == 2
    assert found["flows"][0]["transformation"] == "Aggregate orders"


def test_without_a_schema_every_edge_is_reported_with_its_resolution() -> None:
    found = parse_sql_lineage("SELECT a, t.b FROM t JOIN u ON t.id = u.id", dialect="postgres")
    sure = {str(edge.source): edge.resolution for edge in found.column_edges}
    assert sure == {"t.a": "ambiguous", "u.a": "ambiguous", "t.b": "exact"}


@pytest.mark.parametrize("sql", ["", ";", "-- nothing", "SELEC", "(" * 3000, "'", "\x00\xff", "{{"])
def test_text_that_is_not_sql_raises_nothing(sql: str) -> None:
    parse_sql_lineage(sql)

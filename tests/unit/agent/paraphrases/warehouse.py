"""The graph that the messages are about: a small warehouse with columns, tags and owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from downriver import Tracker

SQL = (
    "CREATE TABLE raw_orders (order_id INT, customer_id INT, amount_cents INT, created_at DATE)",
    "CREATE TABLE raw_customers (customer_id INT, email TEXT, name TEXT)",
    "CREATE TABLE orders_clean AS SELECT order_id, customer_id, "
    "amount_cents / 100.0 AS amount_usd, created_at FROM raw_orders",
    "CREATE TABLE customers_clean AS SELECT customer_id, lower(email) AS email, name "
    "FROM raw_customers",
    "CREATE TABLE revenue_daily AS SELECT created_at AS day, sum(amount_usd) AS revenue "
    "FROM orders_clean GROUP BY created_at",
    "CREATE TABLE customer_360 AS SELECT c.customer_id, c.email, o.amount_usd "
    "FROM customers_clean c JOIN orders_clean o ON c.customer_id = o.customer_id",
)
FLOWS = (
    ("api:stripe", "table:raw_payments"),
    ("table:raw_payments", "table:payments_usd"),
    ("table:payments_usd", "table:revenue_daily"),
    ("table:revenue_daily", "dashboard:revenue"),
    ("table:revenue_daily", "table:executive_kpis"),
    ("table:customer_360", "model:churn_v3"),
    ("model:churn_v3", "table:churn_scores"),
    ("topic:clicks", "table:raw_clicks"),
    ("s3://lake/raw/events", "table:events_clean"),
    ("table:prod.public.customers", "table:raw_customers"),
    ("table:DW.DIM_STORE", "table:DW.FCT_SALES"),
    ("table:Sales Orders", "table:Revenue by Region"),
)
TAGS = {"revenue_daily": "certified"}
OWNERS = {"customer_360": "Dana"}
PII = ("customers_clean", "email")


def fill(tracker: Tracker) -> None:
    """Register the warehouse."""
    for statement in SQL:
        tracker.sync.capture_sql_lineage(statement)
    for source, target in FLOWS:
        tracker.sync.register_flow(source, target, transformation="feeds")
    for name, tag in TAGS.items():
        _describe(tracker, name, {"tags": {"tags": [{"key": tag, "value": "true"}]}})
    for name, owner in OWNERS.items():
        _describe(tracker, name, {"ownership": {"owners": [{"name": owner}]}})
    table, column = PII
    tag = {"key": "pii", "value": "true", "field": column}
    _describe(tracker, table, {"tags": {"tags": [tag]}})


def _describe(tracker: Tracker, name: str, facets: dict[str, Any]) -> None:
    base = {"_producer": "https://example.com", "_schemaURL": "https://example.com/facet.json"}
    event = {
        "eventTime": "2026-02-01T00:00:00Z",
        "producer": "https://example.com",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
        "dataset": {
            "namespace": "default",
            "name": name,
            "facets": {key: {**base, **facet} for key, facet in facets.items()},
        },
    }
    tracker.sync.backend.send([msgspec.json.encode(event)])

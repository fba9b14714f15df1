"""The orders of a shop: staging tables, facts, revenue and the value of customers."""

from __future__ import annotations

import random

import duckdb

from bench.incidents.pipeline import Pipeline, Step


def load_orders(db: duckdb.DuckDBPyConnection, chance: random.Random, night: int) -> None:
    count = 4000 + chance.randrange(-150, 150) + 10 * night
    seed = chance.random()
    db.execute(f"select setseed({seed})")
    db.execute(
        "create or replace table raw_customers as select i as customer_id, "
        "'c' || i || '@mail.example' as email, "
        "case when random() < 0.6 then 'DE' when random() < 0.6 then 'FR' else 'IT' end as country,"
        " case when random() < 0.02 then null else date '2024-01-01' + cast(i % 700 as int) end "
        "as signed_up from range(800) t(i)"
    )
    db.execute(
        "create or replace table raw_orders as select i as order_id, "
        "cast(floor(random() * 800) as bigint) as customer_id, "
        "round(5 + random() * 200, 2) as total, "
        "case when random() < 0.8 then 'completed' when random() < 0.5 then 'open' else 'returned' "
        f"end as status, date '2026-03-02' + {night} - cast(floor(random() * 30) as int) "
        f"as ordered_on from range({count}) t(i)"
    )
    db.execute(
        "create or replace table raw_items as select i as item_id, "
        f"cast(floor(random() * {count}) as bigint) as order_id, 1 + i % 3 as quantity, "
        f"'sku' || (i % 50) as sku from range({3 * count}) t(i)"
    )


ORDERS = Pipeline(
    "orders",
    (
        Step("load_customers", "raw_customers"),
        Step("load_orders", "raw_orders"),
        Step("load_items", "raw_items"),
        Step(
            "stg_customers",
            "stg_customers",
            "select customer_id, lower(email) as email, country, signed_up from raw_customers",
        ),
        Step(
            "stg_orders",
            "stg_orders",
            "select order_id, customer_id, total, ordered_on from raw_orders "
            "where status = 'completed'",
        ),
        Step(
            "stg_items",
            "stg_items",
            "select order_id, sum(quantity) as quantity, count(distinct sku) as skus "
            "from raw_items group by order_id",
        ),
        Step(
            "fct_orders",
            "fct_orders",
            "select o.order_id, o.customer_id, c.country, o.total, i.quantity, o.ordered_on "
            "from stg_orders o left join stg_customers c on o.customer_id = c.customer_id "
            "left join stg_items i on o.order_id = i.order_id",
        ),
        Step(
            "customer_value",
            "customer_value",
            "select customer_id, country, sum(total) as spend, count(order_id) as orders, "
            "max(ordered_on) as last_order_on from fct_orders group by customer_id, country",
        ),
        Step(
            "revenue_report",
            "revenue_report",
            "select country, ordered_on, sum(total) as revenue, sum(quantity) as pieces "
            "from fct_orders group by country, ordered_on",
        ),
    ),
    load_orders,
    ("revenue_report", "customer_value"),
)

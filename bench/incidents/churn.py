"""Churn of subscribers: sources, features, predictions and the revenue at risk."""

from __future__ import annotations

import random

import duckdb

from bench.incidents.pipeline import Pipeline, Step


def load_churn(db: duckdb.DuckDBPyConnection, chance: random.Random, night: int) -> None:
    weeks = 12
    db.execute(f"select setseed({chance.random()})")
    customers = 1200 + 3 * night
    db.execute(
        "create or replace table raw_crm as select i as customer_id, "
        "case when i % 3 = 0 then 'pro' else 'basic' end as plan, "
        f"date '2025-01-01' + cast(i % 400 as int) as signup from range({customers}) t(i)"
    )
    db.execute(
        "create or replace table raw_usage as select i // 12 as customer_id, i % 12 as week, "
        "round(random() * 300) as minutes, "
        "case when random() < 0.03 then null else date '2026-03-01' - cast(floor(random() * 40) as "
        f"int) end as last_login from range({customers * weeks}) t(i)"
    )
    db.execute(
        "create or replace table raw_tickets as select i as ticket_id, "
        f"cast(floor(random() * {customers}) as bigint) as customer_id, random() < 0.1 as urgent, "
        "round(random() * 72, 1) as hours_waited "
        f"from range({900 + chance.randrange(-40, 40)}) t(i)"
    )
    db.execute(
        "create or replace table raw_invoices as select i as invoice_id, "
        f"i % {customers} as customer_id, round(10 + random() * 90, 2) as amount, "
        "case when random() < 0.9 then 'paid' else 'open' end as state, "
        f"cast(floor(random() * 30) as int) as days_to_pay from range({2 * customers}) t(i)"
    )


CHURN = Pipeline(
    "churn",
    (
        Step("load_crm", "raw_crm"),
        Step("load_usage", "raw_usage"),
        Step("load_tickets", "raw_tickets"),
        Step("load_invoices", "raw_invoices"),
        Step(
            "clean_customers",
            "customers",
            "select customer_id, plan, signup from raw_crm where customer_id is not null",
        ),
        Step(
            "clean_usage",
            "usage",
            "select customer_id, avg(minutes) as minutes, max(last_login) as last_login "
            "from raw_usage group by customer_id",
        ),
        Step(
            "clean_tickets",
            "tickets",
            "select customer_id, count(ticket_id) as tickets, avg(hours_waited) as hours_waited "
            "from raw_tickets group by customer_id",
        ),
        Step(
            "clean_payments",
            "payments",
            "select customer_id, sum(amount) as spend, avg(days_to_pay) as days_to_pay "
            "from raw_invoices where state = 'paid' group by customer_id",
        ),
        Step(
            "churn_features",
            "features",
            "select c.customer_id, c.plan, u.minutes, u.last_login, coalesce(t.tickets, 0) "
            "as tickets, t.hours_waited, p.spend, p.days_to_pay from customers c "
            "left join usage u on c.customer_id = u.customer_id "
            "left join tickets t on c.customer_id = t.customer_id "
            "left join payments p on c.customer_id = p.customer_id",
        ),
        Step(
            "predict",
            "predictions",
            "select customer_id, plan, 1 / (1 + exp(minutes / 100 - tickets + spend / 100)) "
            "as churn_probability from features where minutes is not null and spend is not null",
        ),
        Step(
            "revenue_at_risk",
            "revenue_at_risk",
            "select r.plan, count(r.customer_id) as customers, "
            "sum(p.spend * r.churn_probability) as at_risk from predictions r "
            "join payments p on r.customer_id = p.customer_id group by r.plan",
        ),
    ),
    load_churn,
    ("predictions", "revenue_at_risk"),
)

"""Capture the lineage of ETL statements when they run."""

import asyncio

from downriver import lineage

JOBS = [
    (
        """
        INSERT INTO orders_clean
        SELECT order_id, customer_id, amount_cents / 100.0 AS amount_usd, created_at
        FROM raw_orders
        WHERE amount_cents > 0 AND customer_id IS NOT NULL
        """,
        "Normalize amounts, drop orders without a customer",
    ),
    (
        """
        INSERT INTO customer_order_summary
        SELECT c.customer_id, c.email, COUNT(o.order_id) AS total_orders,
               SUM(o.amount_usd) AS lifetime_value
        FROM orders_clean o JOIN customers c ON o.customer_id = c.customer_id
        GROUP BY c.customer_id, c.email
        """,
        "Sum up the orders of each customer",
    ),
]


async def run_job(tracker, sql, description):
    """Run a statement (omitted here) and capture its lineage."""
    result = await tracker.capture_sql_lineage(sql=sql, transformation=description)
    print(f"{', '.join(result['source_tables'])} -> {', '.join(result['target_tables'])}")


async def main():
    tracker = lineage()
    for sql, description in JOBS:
        await run_job(tracker, sql, description)
    found = await tracker.trace_downstream("raw_orders.amount_cents")
    for column in found["downstream_consumers"]:
        print(column["depth"], column["name"], column["transformation"])
    await tracker.close()


asyncio.run(main())

"""Mail yesterday's revenue to the finance team."""

from __future__ import annotations

import pendulum
from airflow.decorators import dag, task
from airflow.providers.postgres.hooks.postgres import PostgresHook
from airflow.utils.email import send_email

REVENUE = """
    select ordered_on, count(*) as orders, sum(order_total) as revenue
    from analytics.fct_orders
    where ordered_on = %(day)s
    group by ordered_on
"""


@dag(
    dag_id="daily_revenue_report",
    schedule="0 6 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    default_args={"owner": "finance-data"},
)
def daily_revenue_report() -> None:
    @task
    def read_revenue(ds: str | None = None) -> list[tuple]:
        hook = PostgresHook(postgres_conn_id="warehouse")
        return hook.get_records(REVENUE, parameters={"day": ds})

    @task
    def mail(rows: list[tuple]) -> None:
        for day, orders, revenue in rows:
            send_email("finance@example.com", f"Revenue of {day}", f"{orders} orders, {revenue} €")

    mail(read_revenue())


daily_revenue_report()

"""Four weeks of a shop's lineage events with faults in the last night, one event for each line.

    python3 examples/drift/history.py > history.jsonl

Every night orders and customers are loaded, cleaned and joined, and revenue is summed up for a
dashboard; at weekends there are half the orders. In the last night only a quarter of the orders
arrive, a column is renamed, many e-mail addresses are missing, and the sum fails.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

Json = dict[str, Any]
START = dt.datetime(2026, 3, 2, 2, tzinfo=dt.timezone.utc)  # a Monday
NIGHTS = 28
PRODUCER = "https://github.com/acme/pipelines"
WAREHOUSE = "postgres://warehouse:5432"
OWNERS = {"raw.orders": "ingest", "raw.customers": "ingest", "marts.revenue": "finance"}
CUSTOMERS = {"customer_id": "bigint", "email": "text", "country": "text"}
RENAMED = {"cust_id": "bigint", "email": "text", "country": "text"}
ORDERS = {"order_id": "bigint", "customer_id": "bigint", "amount": "numeric"}
CLEAN = {"order_id": "bigint", "email_hash": "text", "email": "text", "amount": "numeric"}
REVENUE = {"country": "text", "revenue": "numeric"}
JOINED_BY = {
    "namespace": WAREHOUSE,
    "name": "raw.customers",
    "field": "customer_id",
    "transformations": [{"type": "INDIRECT", "subtype": "JOIN"}],
}


def table(
    name: str, columns: dict[str, str], came_from: dict[str, str] | None = None, **output: Json
) -> Json:
    """Return a dataset with its schema, owner, tags and column lineage."""
    facets: Json = {"schema": {"fields": [{"name": n, "type": t} for n, t in columns.items()]}}
    if name in OWNERS:
        facets["ownership"] = {"owners": [{"name": OWNERS[name], "type": "team"}]}
    if name == "raw.customers":
        facets["tags"] = {"tags": [{"key": "pii", "value": "true", "field": "email"}]}
    if name == "marts.revenue":
        facets["tags"] = {"tags": [{"key": "certified", "value": "true"}]}
    if came_from:
        fields = {c: _source(of) for c, of in came_from.items()}
        facets["columnLineage"] = {"fields": fields, "dataset": [JOINED_BY]}
    return {"namespace": WAREHOUSE, "name": name, "facets": facets, "outputFacets": output}


def _source(of: str) -> Json:
    name, _, field = of.removeprefix("sha256 ").rpartition(".")
    masked = of.startswith("sha256 ")
    how: Json = {"type": "DIRECT", "subtype": "IDENTITY"}
    if masked:
        how = {"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": True}
    source = {"namespace": WAREHOUSE, "name": name, "field": field, "transformations": [how]}
    return {"inputFields": [source]}


def statistics(rows: int, **nulls: int) -> Json:
    """Return the statistics of a write."""
    found: Json = {"outputStatistics": {"rowCount": rows}}
    if nulls:
        counted = {name: {"nullCount": count} for name, count in nulls.items()}
        found["dataQualityMetrics"] = {"rowCount": rows, "columnMetrics": counted}
    return found


def run(
    night: int,
    job: str,
    minute: int,
    reads: Sequence[str],
    writes: Sequence[Json],
    error: str = "",
) -> Iterator[Json]:
    """Yield the two events of a run."""
    begin = START + dt.timedelta(days=night, minutes=minute)
    for state, at in (
        ("START", begin),
        ("FAIL" if error else "COMPLETE", begin + dt.timedelta(minutes=4)),
    ):
        ends = state != "START"
        failed = {"errorMessage": {"message": error, "programmingLanguage": "SQL"}}
        yield {
            "eventType": state,
            "eventTime": at.isoformat().replace("+00:00", "Z"),
            "producer": PRODUCER,
            "run": {"runId": f"{job}-{night:02}", "facets": failed if error and ends else {}},
            "job": {"namespace": "shop", "name": job},
            "inputs": [{"namespace": WAREHOUSE, "name": name} for name in reads],
            "outputs": list(writes) if ends and not error else [],
        }


def nights() -> Iterator[Json]:
    """Yield every event in order."""
    chance = random.Random(7)  # noqa: S311 — noise, not a secret
    for night in range(NIGHTS):
        bad = night == NIGHTS - 1
        busy = 1.0 if night % 7 < 5 else 0.5
        orders = round(20_000 * busy * chance.gauss(1, 0.03) * (0.25 if bad else 1))
        missing = round(5_000 * (0.31 if bad else 0.01 * chance.uniform(0.6, 1.4)))
        yield from run(
            night,
            "load_orders",
            0,
            ["shop.orders"],
            [table("raw.orders", ORDERS, **statistics(orders))],
        )
        yield from run(
            night,
            "load_customers",
            5,
            ["crm.customers"],
            [
                table(
                    "raw.customers",
                    RENAMED if bad else CUSTOMERS,
                    **statistics(5_000, email=missing),
                )
            ],
        )
        if not bad:  # the cleaning job of the last night does not start
            yield from run(
                night,
                "clean_orders",
                20,
                ["raw.orders", "raw.customers"],
                [
                    table(
                        "staging.orders",
                        CLEAN,
                        {
                            "order_id": "raw.orders.order_id",
                            "amount": "raw.orders.amount",
                            "email": "raw.customers.email",
                            "email_hash": "sha256 raw.customers.email",
                        },
                        **statistics(round(orders * 0.98)),
                    )
                ],
            )
        yield from run(
            night,
            "sum_revenue",
            40,
            ["staging.orders", "raw.customers"],
            [
                table(
                    "marts.revenue",
                    REVENUE,
                    {
                        "revenue": "staging.orders.amount",
                        "country": "raw.customers.country",
                    },
                    **statistics(40),
                )
            ],
            error="column c.customer_id does not exist" if bad else "",
        )
        if not bad:
            yield from run(
                night,
                "revenue_dashboard",
                50,
                ["marts.revenue"],
                [{"namespace": "looker", "name": "revenue"}],
            )


if __name__ == "__main__":
    for event in nights():
        print(json.dumps(event))

"""Generates the sources: exports of a CRM, a product, a help desk and a billing system.

The same seed gives the same rows. The data has typical defects: duplicate customers, several
spellings of a plan, weeks without a login, refunded amounts.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from lake import Lake

TODAY = date(2026, 6, 30)
SEED = 20260630
CUSTOMERS = 2_000
WEEKS = 26
MONTHS = 12
PLANS = {"basic": 19.0, "team": 49.0, "business": 129.0}
PRIORITIES = ["low", "normal", "urgent"]


def generate(spark: SparkSession, lake: Lake) -> dict[str, int]:
    """Write the four sources, and return how many rows each has."""
    random = np.random.default_rng(SEED)
    customers = make_customers(random)
    unhappiness = make_unhappiness(random, customers)
    usage = make_usage(random, customers, unhappiness)
    tickets = make_tickets(random, customers, unhappiness)
    invoices = make_invoices(random, customers, unhappiness)
    customers = with_churn(random, customers, unhappiness)

    exports = twice(random, customers)
    exports.to_csv(empty(lake.raw("customers")) / "crm.csv", index=False)
    usage.to_json(empty(lake.raw("usage_logs")) / "weeks.json", orient="records", lines=True)
    tickets.to_parquet(empty(lake.raw("support_tickets")) / "tickets.parquet", index=False)
    frame = spark.createDataFrame(invoices)
    frame.write.mode("overwrite").option("driver", lake.jdbc_driver).jdbc(
        lake.billing_url, "INVOICES"
    )
    return {
        "customers": len(exports),
        "usage_logs": len(usage),
        "support_tickets": len(tickets),
        "invoices": len(invoices),
    }


def make_customers(random: np.random.Generator) -> pd.DataFrame:
    """Return the customers with their plans and sign-up dates."""
    plans = random.choice(list(PLANS), CUSTOMERS, p=[0.5, 0.35, 0.15])
    spelled = [random.choice([plan, plan.upper(), f" {plan.title()} "]) for plan in plans]
    days = random.integers(60, 1500, CUSTOMERS)
    return pd.DataFrame(
        {
            "customer_id": np.arange(1, CUSTOMERS + 1),
            "name": [f"Customer {number}" for number in range(1, CUSTOMERS + 1)],
            "country": random.choice(["DE", "FR", "US", "BR", "IN"], CUSTOMERS),
            "plan": spelled,
            "signup_date": [(TODAY - timedelta(days=int(ago))).isoformat() for ago in days],
        }
    )


def make_unhappiness(random: np.random.Generator, customers: pd.DataFrame) -> np.ndarray:
    """Return a hidden score per customer that influences all sources and the churn."""
    return random.beta(1.6, 3.2, len(customers))


def make_usage(
    random: np.random.Generator, customers: pd.DataFrame, unhappiness: np.ndarray
) -> pd.DataFrame:
    """Return a row for each customer and week: sessions, minutes, and the last login, if any."""
    weeks = np.tile(np.arange(WEEKS), len(customers))
    who = np.repeat(np.arange(len(customers)), WEEKS)
    fading = 1 - unhappiness[who] * weeks / WEEKS
    sessions = random.poisson(6 * fading**2)
    minutes = sessions * random.gamma(3.0, 6.0, len(who))
    starts = [TODAY - timedelta(weeks=WEEKS - int(week)) for week in weeks]
    logins = [
        f"{start + timedelta(days=int(day))}T{int(hour):02}:00:00" if some else None
        for start, day, hour, some in zip(
            starts,
            random.integers(0, 7, len(who)),
            random.integers(7, 20, len(who)),
            sessions > 0,
            strict=True,
        )
    ]
    return pd.DataFrame(
        {
            "customer_id": customers["customer_id"].to_numpy()[who],
            "week": [start.isoformat() for start in starts],
            "last_login": logins,
            "sessions": sessions,
            "minutes": minutes.round(1),
        }
    )


def make_tickets(
    random: np.random.Generator, customers: pd.DataFrame, unhappiness: np.ndarray
) -> pd.DataFrame:
    """Return the support tickets, with their priority and waiting time."""
    who = np.repeat(np.arange(len(customers)), random.poisson(4 * unhappiness))
    days = random.integers(0, 180, len(who))
    return pd.DataFrame(
        {
            "ticket_id": np.arange(1, len(who) + 1),
            "customer_id": customers["customer_id"].to_numpy()[who],
            "opened_at": pd.Timestamp(TODAY) - pd.to_timedelta(days, unit="D"),
            "priority": random.choice(PRIORITIES, len(who), p=[0.4, 0.45, 0.15]),
            "hours_waited": random.gamma(2.0, 9.0, len(who)).round(1),
        }
    )


def make_invoices(
    random: np.random.Generator, customers: pd.DataFrame, unhappiness: np.ndarray
) -> pd.DataFrame:
    """Return a row for each customer and month: what was billed, and when it was paid."""
    who = np.repeat(np.arange(len(customers)), MONTHS)
    months = np.tile(np.arange(MONTHS), len(customers))
    price = customers["plan"].str.strip().str.lower().map(PLANS).to_numpy()[who]
    issued = [TODAY - timedelta(days=30 * (MONTHS - int(month))) for month in months]
    late = random.poisson(12 * unhappiness[who] ** 2)
    refunded = random.random(len(who)) < 0.01
    return pd.DataFrame(
        {
            "invoice_id": np.arange(1, len(who) + 1),
            "customer_id": customers["customer_id"].to_numpy()[who],
            "issued_on": issued,
            "paid_on": [
                day + timedelta(days=int(by)) for day, by in zip(issued, late, strict=True)
            ],
            "amount": np.where(refunded, -price, price),
        }
    )


def with_churn(
    random: np.random.Generator, customers: pd.DataFrame, unhappiness: np.ndarray
) -> pd.DataFrame:
    """Return the customers with a flag for those who left."""
    left = random.random(len(customers)) < 1 / (1 + np.exp(-12 * (unhappiness - 0.55)))
    return customers.assign(churned=left)


def twice(random: np.random.Generator, customers: pd.DataFrame) -> pd.DataFrame:
    """Return the customers with some of them exported twice."""
    again = random.choice(len(customers), len(customers) // 50, replace=False)
    return pd.concat([customers, customers.iloc[again]])


def empty(folder: str) -> Path:
    """Return an empty folder at this path."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for old in path.iterdir():
        old.unlink()
    return path

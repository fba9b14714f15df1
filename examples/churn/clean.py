"""Clean the sources: no duplicates, one spelling, no impossible values."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def clean_customers(customers: DataFrame) -> DataFrame:
    """Return each customer once, with the plan in one spelling and without the name."""
    return customers.dropDuplicates(["customer_id"]).select(
        "customer_id",
        "country",
        F.lower(F.trim("plan")).alias("plan"),
        "signup_date",
        "churned",
    )


def clean_usage(usage_logs: DataFrame) -> DataFrame:
    """Return each customer's weeks, with at most one week of minutes."""
    return usage_logs.where(F.col("customer_id").isNotNull()).select(
        "customer_id",
        "week",
        "last_login",
        "sessions",
        F.least("minutes", F.lit(7 * 24 * 60.0)).alias("minutes"),
    )


def clean_tickets(support_tickets: DataFrame) -> DataFrame:
    """Return each ticket once, with a flag for urgent ones."""
    return support_tickets.dropDuplicates(["ticket_id"]).select(
        "ticket_id",
        "customer_id",
        F.to_date("opened_at").alias("opened_on"),
        (F.col("priority") == "urgent").alias("urgent"),
        "hours_waited",
    )


def clean_invoices(invoices: DataFrame) -> DataFrame:
    """Return the payments, without refunds."""
    return invoices.where("amount > 0").select(
        "invoice_id",
        "customer_id",
        "paid_on",
        "amount",
        F.datediff("paid_on", "issued_on").alias("days_to_pay"),
    )


# For each source: the name of its clean table, and the function that cleans it.
CLEANERS: dict[str, tuple[str, Callable[[DataFrame], DataFrame]]] = {
    "customers": ("customers", clean_customers),
    "usage_logs": ("usage", clean_usage),
    "support_tickets": ("tickets", clean_tickets),
    "invoices": ("payments", clean_invoices),
}

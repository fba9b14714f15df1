"""The features of the model: one row per customer."""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

NAMES = [
    "tenure_days",
    "days_since_last_login",
    "minutes_4w_avg",
    "minutes_trend",
    "support_tickets",
    "urgent_tickets",
    "avg_hours_waited",
    "avg_days_to_pay",
    "monthly_spend",
]
TARGET = "churned"
COUNTS = ["support_tickets", "urgent_tickets"]


def build_features(
    customers: DataFrame, usage: DataFrame, tickets: DataFrame, payments: DataFrame, today: date
) -> DataFrame:
    """Return the features of every customer; without tickets the counts are 0, not null."""
    joined = (
        customers.join(usage_features(usage, today), "customer_id", "left")
        .join(ticket_features(tickets), "customer_id", "left")
        .join(payment_features(payments), "customer_id", "left")
        .withColumn("tenure_days", F.datediff(F.lit(today), "signup_date"))
    )
    return joined.select("customer_id", "plan", *NAMES, TARGET).na.fill(0, COUNTS)


def usage_features(usage: DataFrame, today: date) -> DataFrame:
    """Return the days since the last login, and how usage changed recently."""
    weeks = Window.partitionBy("customer_id").orderBy("week")
    rolling = usage.withColumn("recent", F.avg("minutes").over(weeks.rowsBetween(-3, 0)))
    return (
        rolling.groupBy("customer_id")
        .agg(
            F.datediff(F.lit(today), F.max("last_login")).alias("days_since_last_login"),
            F.max_by("recent", "week").alias("minutes_4w_avg"),
            F.avg("minutes").alias("minutes_avg"),
        )
        .withColumn("minutes_trend", F.col("minutes_4w_avg") / (F.col("minutes_avg") + 1))
    )


def ticket_features(tickets: DataFrame) -> DataFrame:
    """Return the number of tickets of each customer, and the average waiting time."""
    return tickets.groupBy("customer_id").agg(
        F.count("ticket_id").alias("support_tickets"),
        F.count_if("urgent").alias("urgent_tickets"),
        F.avg("hours_waited").alias("avg_hours_waited"),
    )


def payment_features(payments: DataFrame) -> DataFrame:
    """Return the average payment of each customer, and the average delay."""
    return payments.groupBy("customer_id").agg(
        F.avg("days_to_pay").alias("avg_days_to_pay"),
        F.avg("amount").alias("monthly_spend"),
    )

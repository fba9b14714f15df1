"""Read the sources and write a profile of their columns."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lake import Lake

USAGE = "customer_id long, week date, last_login timestamp, sessions int, minutes double"
CUSTOMERS = (
    "customer_id long, name string, country string, plan string, signup_date date, churned boolean"
)


def read_sources(spark: SparkSession, lake: Lake) -> dict[str, DataFrame]:
    """Return every source with its declared types."""
    billing = spark.read.option("driver", lake.jdbc_driver)
    return {
        "customers": spark.read.schema(CUSTOMERS).csv(lake.raw("customers"), header=True),
        "usage_logs": spark.read.schema(USAGE).json(lake.raw("usage_logs")),
        "support_tickets": spark.read.parquet(lake.raw("support_tickets")),
        "invoices": billing.jdbc(lake.billing_url, "INVOICES").toDF(
            "invoice_id", "customer_id", "issued_on", "paid_on", "amount"
        ),
    }


def profile(sources: dict[str, DataFrame]) -> DataFrame:
    """Return a row for each column of each source: the number of rows and of nulls."""
    return reduce(DataFrame.unionByName, (profile_of(name, df) for name, df in sources.items()))


def profile_of(name: str, source: DataFrame) -> DataFrame:
    """Return the profile of one source, computed in one pass."""
    nulls = [F.count_if(F.col(column).isNull()).alias(column) for column in source.columns]
    return (
        source.agg(F.count("*").alias("rows"), *nulls)
        .unpivot("rows", tuple(source.columns), "column", "nulls")
        .select(F.lit(name).alias("source"), "column", "rows", "nulls")
    )


def write_profile(sources: dict[str, DataFrame], lake: Lake) -> None:
    """Write the profile of the sources."""
    profile(sources).coalesce(1).write.mode("overwrite").parquet(lake.table("source_profile"))


def count_nulls(spark: SparkSession, lake: Lake) -> dict[str, int]:
    """Return the number of nulls of each column that has any, from the written profile."""
    found = spark.read.parquet(lake.table("source_profile")).where("nulls > 0")
    return {f"nulls in {row.source}.{row.column}": row.nulls for row in found.collect()}

"""Daily revenue, and the part of it that is at risk of churn."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

DAILY_REVENUE = """
INSERT OVERWRITE DIRECTORY '{folder}' USING parquet
SELECT
  p.paid_on                                         AS day,
  c.plan,
  count(DISTINCT p.customer_id)                     AS customers,
  round(sum(p.amount), 2)                           AS revenue,
  round(sum(p.amount * r.churn_probability), 2)     AS revenue_at_risk
FROM payments p
JOIN customers c ON c.customer_id = p.customer_id
JOIN predictions r ON r.customer_id = p.customer_id
GROUP BY p.paid_on, c.plan
"""


def write_daily_revenue(spark: SparkSession, folder: str, **views: DataFrame) -> None:
    """Write the table from `payments`, `customers` and `predictions`."""
    for name, frame in views.items():
        frame.createOrReplaceTempView(name)
    spark.sql(DAILY_REVENUE.format(folder=folder))

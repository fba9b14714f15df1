"""Features of the customer lifetime value model."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SOURCE = "analytics.fct_orders"
TARGET = "s3://shop-models/customer_ltv/features"


def build_features(orders: DataFrame) -> DataFrame:
    features = orders.groupBy("customer_id").agg(
        F.count("order_id").alias("orders"),
        F.max("ordered_on").alias("last_order_on"),
    )
    if "order_total" in orders.columns:
        spend = orders.groupBy("customer_id").agg(F.sum("order_total").alias("spend"))
        features = features.join(spend, on="customer_id", how="left")
    return features


def main() -> None:
    spark = SparkSession.builder.appName("customer_ltv_model").getOrCreate()
    orders = spark.table(SOURCE).select("*")
    build_features(orders).write.mode("overwrite").parquet(TARGET)


if __name__ == "__main__":
    main()

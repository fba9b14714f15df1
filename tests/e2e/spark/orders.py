"""A small pipeline, captured in several ways by tests: `orders.py FOLDER [--fail]`."""

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812


def main(folder: str) -> None:
    spark = (
        SparkSession.builder.appName("orders")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    orders, customers = prepare(spark, folder)
    joined = orders.join(customers, orders.customer_id == customers.id).where("amount > 0")
    joined.groupBy("region").agg(
        F.sum("amount").alias("revenue"), F.countDistinct("customer_id").alias("buyers")
    ).write.mode("overwrite").parquet(f"{folder}/by_region")
    latest = Window.partitionBy("customer_id").orderBy(F.desc("ordered_at"))
    ranked = orders.withColumn("nth", F.row_number().over(latest))
    ranked.withColumn(
        "size", F.when(F.col("amount") > 100, F.lit("large")).otherwise(F.col("status"))
    ).write.mode("overwrite").saveAsTable("ranked")
    spark.sql(
        "CREATE TABLE latest USING parquet AS "
        "SELECT customer_id, amount * 2 AS twice, upper(status) AS status FROM ranked WHERE nth = 1"
    )
    customers.createOrReplaceTempView("people")
    spark.sql("INSERT INTO latest SELECT id, cast(0 AS double), name FROM people")
    if "--fail" in sys.argv:
        raise RuntimeError("the pipeline failed at its end")
    spark.stop()


def prepare(spark: SparkSession, folder: str):
    spark.createDataFrame(
        [(1, 7, 50.0, "paid", "2026-01-01"), (2, 7, 150.0, "open", "2026-01-02")],
        "id int, customer_id int, amount double, status string, ordered_at string",
    ).write.mode("overwrite").parquet(f"{folder}/orders")
    spark.createDataFrame([(7, "Ada", "north")], "id int, name string, region string").write.mode(
        "overwrite"
    ).parquet(customers_path(folder))
    return (
        spark.read.parquet(f"{folder}/orders"),
        spark.read.parquet(customers_path(folder)),
    )


def customers_path(folder: str) -> str:
    return f"{folder}/customers"


if __name__ == "__main__":
    main(sys.argv[1])

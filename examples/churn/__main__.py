"""Predicts which customers will leave: a pipeline on Spark, tracked by `track(spark)`.

    python examples/churn [FOLDER]

All data is written under FOLDER (default: churn-lake). The lineage goes to DOWNRIVER_URL or
DOWNRIVER_STORE if one is set, otherwise to the nearest `.downriver/`. It can be run again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import clean
import features
import ingest
import model
import raw
import revenue
from downriver.spark import Tracker, local_session, track, tracked
from lake import Lake
from progress import report, stage


def main() -> None:
    """Run every stage and print its result."""
    lake = Lake(Path(sys.argv[1] if len(sys.argv) > 1 else "churn-lake").resolve())
    stage("start Spark")
    spark = start(lake)
    try:
        report(f"Spark {spark.version}")
        stage("generate raw data")
        report(**raw.generate(spark, lake))
        run(spark, track(spark), lake)
    finally:
        spark.stop()


def start(lake: Lake) -> SparkSession:
    """Return a session for a short job, with the log of Derby in the lake."""
    lake.root.mkdir(parents=True, exist_ok=True)
    java = f"-XX:TieredStopAtLevel=1 -Dderby.stream.error.file='{lake.root / 'derby.log'}'"
    conf = {
        "spark.driver.extraJavaOptions": java,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }
    spark: SparkSession = local_session("churn", conf=conf)
    return spark


def run(spark: SparkSession, tracker: Tracker, lake: Lake) -> None:
    """Run the pipeline; each stage is a tracked block."""
    stage("ingest and profile")
    with tracked(spark, job="churn.ingest"):
        sources = ingest.read_sources(spark, lake)
        ingest.write_profile(sources, lake)
        report(**ingest.count_nulls(spark, lake))

    stage("clean")
    with tracked(spark, job="churn.clean"):
        tables = write_clean(spark, sources, lake)
        report(*tables)

    stage("build features")
    with tracked(spark, job="churn.features"):
        built = features.build_features(**tables, today=raw.TODAY)
        built.write.mode("overwrite").parquet(lake.table("churn_features"))
        report(f"{len(features.NAMES)} features a customer")

    stage("train the model")
    with tracked(spark, job="churn.train"):
        table = spark.read.parquet(lake.table("churn_features"))
        trained = model.train(tracker, table, lake.model)
        report(**trained.metrics)

    stage("predict churn")
    with tracked(spark, job="churn.predict"):
        predictions = model.predict(spark, trained, table)
        predictions.write.mode("overwrite").parquet(lake.table("churn_predictions"))
        report("churn_probability", "churn_label")

    stage("daily revenue in SQL")
    with tracked(spark, job="churn.revenue"):
        revenue.write_daily_revenue(
            spark,
            lake.table("daily_revenue"),
            payments=tables["payments"],
            customers=tables["customers"],
            predictions=spark.read.parquet(lake.table("churn_predictions")),
        )
        report(*spark.read.parquet(lake.table("daily_revenue")).columns)


def write_clean(
    spark: SparkSession, sources: dict[str, DataFrame], lake: Lake
) -> dict[str, DataFrame]:
    """Write the cleaned sources, and return them as read back."""
    tables = {}
    for source, (name, cleaned) in clean.CLEANERS.items():
        cleaned(sources[source]).write.mode("overwrite").parquet(lake.clean(name))
        tables[name] = spark.read.parquet(lake.clean(name))
    return tables


if __name__ == "__main__":
    main()

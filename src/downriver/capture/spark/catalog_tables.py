"""The tables of a Spark catalog, as an inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def list_catalog_tables(spark: SparkSession | None = None) -> list[str]:
    """Return the tables and views of the current catalog, without temporary views.

    Without a session, the active one is used, or one with Spark's own configuration is started.
    """
    if spark is None:
        spark = _open_session()
    catalog = spark.catalog.currentCatalog()
    prefix = "" if catalog == "spark_catalog" else f"{catalog}."
    # listTables reads every table, and fails if one of them cannot be read.
    return sorted(
        f"{prefix}{database}.{table.tableName}"
        for (database,) in spark.sql("SHOW DATABASES").collect()
        for table in spark.sql(f"SHOW TABLES IN {_quote(database)}").collect()
        if not table.isTemporary
    )


def _quote(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _open_session() -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError as exc:
        raise MissingDependencyError("pyspark", "spark") from exc
    return SparkSession.builder.getOrCreate()

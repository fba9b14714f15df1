"""How the graph differs between two versions of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from downriver.lake import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENDS = ["source_namespace", "source_name", "target_namespace", "target_name"]


def diff_edges(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return the edges that came, went, or changed between active and stale."""
    key = ["kind", *_ENDS, "job_namespace", "job_name"]
    one = before.select(*key, f.col("status").alias("was"))
    other = after.select(*key, f.col("status").alias("status"))
    changed = _outer(one, other, key).where(~f.col("was").eqNullSafe(f.col("status")))
    change = f.when(f.col("was").isNull(), "came").when(f.col("status").isNull(), "went")
    found = changed.withColumn("change", change.otherwise(f.col("status")))
    return tables.EDGE_CHANGES.select(found)


def diff_column_edges(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return the column edges that came or went."""
    key = tables.COLUMN_EDGES.column_names[:6]
    one = before.select(*key, f.lit(True).alias("was"))
    other = after.select(*key, f.lit(True).alias("is"))
    changed = _outer(one, other, key).where("was IS NULL OR is IS NULL")
    change = f.when(f.col("was").isNull(), "came").otherwise("went")
    return tables.COLUMN_EDGE_CHANGES.select(changed.withColumn("change", change))


def _outer(one: DataFrame, other: DataFrame, key: list[str]) -> DataFrame:
    a, b = one.alias("a"), other.alias("b")
    same = [f.col(f"a.{name}").eqNullSafe(f.col(f"b.{name}")) for name in key]
    # A job may be null on both sides, so either side's name will do, and it may be neither's.
    named = [f.coalesce(f"a.{name}", f"b.{name}").alias(name) for name in key]
    values = [c for c in (*one.columns, *other.columns) if c not in key]
    return a.join(b, same, "full").select(*named, *values)

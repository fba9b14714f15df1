"""Gold: nodes, edges and column edges of the graph, and the difference between two versions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.schemas import TableTransform
from downriver.lake.silver.facts import JOB
from downriver.lake.silver.transforms import enum_name, with_seen_times
from downriver.model.facts import FROM_JOB, TO_JOB, EdgeKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DAY = 86_400_000_000
_FLOW = (EdgeKind.READS, EdgeKind.WRITES, EdgeKind.DERIVES)


def gold_nodes(nodes: DataFrame) -> DataFrame:
    """Return all datasets and jobs."""
    kind = f.when(f.col("kind") == JOB, "job").otherwise("dataset")
    listed = with_seen_times(nodes.where(f.col("kind") <= JOB))
    return schemas.GRAPH_NODES.select(listed.withColumn("kind", kind))


def gold_edges(edges: DataFrame, stale_days: int) -> DataFrame:
    """Return the edges between nodes, with job and status.

    An edge is stale when its job read or wrote other data `stale_days` after the edge was last
    seen.
    """
    with_job = _with_job(edges)
    flows = with_job.where(_is_one_of("kind", _FLOW) & f.col("job_name").isNotNull())
    last = flows.groupBy("job_namespace", "job_name").agg(f.max("last_at").alias("job_last_at"))
    aged = with_job.join(last, ["job_namespace", "job_name"], "left")
    stale = f.col("job_last_at") - f.col("last_at") > stale_days * _DAY
    rows = with_seen_times(aged).withColumns(
        {
            "status": f.when(stale, "stale").otherwise("active"),
            "source_kind": _job_or_dataset(FROM_JOB),
            "target_kind": _job_or_dataset(TO_JOB),
        }
    )
    return schemas.GRAPH_EDGES.select(rows.withColumn("kind", enum_name("kind", EdgeKind)))


def _with_job(edges: DataFrame) -> DataFrame:
    kind = f.col("kind")
    of = {
        part: f.when(kind == int(EdgeKind.READS), f.col(f"target_{part}"))
        .when(kind == int(EdgeKind.WRITES), f.col(f"source_{part}"))
        .otherwise(f.col(f"via_{part}"))
        for part in ("namespace", "name")
    }
    return edges.withColumns({"job_namespace": of["namespace"], "job_name": of["name"]})


def _is_one_of(column: str, kinds: tuple[EdgeKind, ...]) -> Column:
    return f.col(column).isin(*map(int, kinds))


def _job_or_dataset(jobs: tuple[EdgeKind, ...]) -> Column:
    return f.when(_is_one_of("kind", jobs), "job").otherwise("dataset")


def gold_column_edges(derives: DataFrame) -> DataFrame:
    """Return one row for each pair of columns, with all kinds of derivation."""
    kind = f.when(f.col("subtype") != "", f.col("subtype")).otherwise(
        f.when(f.col("direct"), "DIRECT").otherwise("INDIRECT")
    )
    ends = schemas.COLUMN_EDGES.column_names[:6]
    job = f.struct("job_namespace", "job_name")
    merged = derives.groupBy(*ends).agg(
        f.array_sort(f.collect_set(kind)).alias("kinds"),
        f.max("direct").alias("direct"),
        f.min("masking").alias("masking"),
        f.countDistinct(f.when(f.col("job_name").isNotNull(), job)).alias("jobs"),
        f.min("first_seen").alias("first_seen"),
        f.max("last_seen").alias("last_seen"),
        f.max("observed").alias("observed"),
    )
    return schemas.COLUMN_EDGES.select(merged)


def graph_transforms(stale_days: int) -> tuple[TableTransform, ...]:
    """Return the transforms of nodes and edges; `stale_days` as in `gold_edges`."""
    return (
        TableTransform(schemas.GRAPH_NODES, ("facts.nodes",), gold_nodes),
        TableTransform(
            schemas.GRAPH_EDGES, ("facts.edges",), partial(gold_edges, stale_days=stale_days)
        ),
    )


COLUMN_EDGES_TRANSFORM = TableTransform(
    schemas.COLUMN_EDGES, ("silver.derives",), gold_column_edges
)


_ENDS = ["source_namespace", "source_name", "target_namespace", "target_name"]


def diff_edges(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return the edges that were added, removed, or changed between active and stale."""
    key = ["kind", *_ENDS, "job_namespace", "job_name"]
    one = before.select(*key, f.col("status").alias("was"))
    other = after.select(*key, f.col("status").alias("status"))
    changed = _full_join(one, other, key).where(~f.col("was").eqNullSafe(f.col("status")))
    change = f.when(f.col("was").isNull(), "added").when(f.col("status").isNull(), "removed")
    rows = changed.withColumn("change", change.otherwise(f.col("status")))
    return schemas.EDGE_CHANGES.select(rows)


def diff_column_edges(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return the column edges that were added or removed."""
    key = schemas.COLUMN_EDGES.column_names[:6]
    one = before.select(*key, f.lit(True).alias("was"))
    other = after.select(*key, f.lit(True).alias("is"))
    changed = _full_join(one, other, key).where("was IS NULL OR is IS NULL")
    change = f.when(f.col("was").isNull(), "added").otherwise("removed")
    return schemas.COLUMN_EDGE_CHANGES.select(changed.withColumn("change", change))


def _full_join(one: DataFrame, other: DataFrame, key: list[str]) -> DataFrame:
    a, b = one.alias("a"), other.alias("b")
    same = [f.col(f"a.{name}").eqNullSafe(f.col(f"b.{name}")) for name in key]
    # The job may be null on both sides, so the key columns may be null too.
    named = [f.coalesce(f"a.{name}", f"b.{name}").alias(name) for name in key]
    values = [c for c in (*one.columns, *other.columns) if c not in key]
    return a.join(b, same, "full").select(*named, *values)

"""Gold: the graph as it stands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from downriver.lake import tables
from downriver.lake.folding import JOB
from downriver.lake.recipes import Recipe
from downriver.lake.silver import seen, word
from downriver.model.facts import EdgeKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DAY = 86_400_000_000
_FROM_JOB = (EdgeKind.WRITES, EdgeKind.EXPLICIT, EdgeKind.PARENT, EdgeKind.PRECEDES)
_TO_JOB = (EdgeKind.READS, EdgeKind.PARENT, EdgeKind.PRECEDES)
_FLOW = (EdgeKind.READS, EdgeKind.WRITES, EdgeKind.DERIVES)


def gold_nodes(nodes: DataFrame) -> DataFrame:
    """Return every dataset and job."""
    kind = f.when(f.col("kind") == JOB, "job").otherwise("dataset")
    return tables.GRAPH_NODES.select(seen(nodes).withColumn("kind", kind))


def gold_edges(edges: DataFrame, stale_days: int) -> DataFrame:
    """Return how nodes are joined, by which job, and whether that still holds.

    An edge is stale when its job was seen to read or write days after the edge was last seen.
    """
    behind = _with_job(edges)
    flows = behind.where(_is_one_of("kind", _FLOW) & f.col("job_name").isNotNull())
    last = flows.groupBy("job_namespace", "job_name").agg(f.max("last_at").alias("job_last_at"))
    aged = behind.join(last, ["job_namespace", "job_name"], "left")
    stale = f.col("job_last_at") - f.col("last_at") > stale_days * _DAY
    found = seen(aged).withColumns(
        {
            "status": f.when(stale, "stale").otherwise("active"),
            "source_kind": _job_or_dataset(_FROM_JOB),
            "target_kind": _job_or_dataset(_TO_JOB),
        }
    )
    return tables.GRAPH_EDGES.select(found.withColumn("kind", word("kind", EdgeKind)))


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
    """Return which column feeds which, in all the ways known together."""
    kind = f.when(f.col("subtype") != "", f.col("subtype")).otherwise(
        f.when(f.col("direct"), "DIRECT").otherwise("INDIRECT")
    )
    ends = tables.COLUMN_EDGES.column_names[:6]
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
    return tables.COLUMN_EDGES.select(merged)


def graph_recipes(stale_days: int) -> tuple[Recipe, ...]:
    """Return how the graph is made; `stale_days` as in `gold_edges`."""
    return (
        Recipe(tables.GRAPH_NODES, ("facts.nodes",), gold_nodes),
        Recipe(tables.GRAPH_EDGES, ("facts.edges",), partial(gold_edges, stale_days=stale_days)),
        Recipe(tables.COLUMN_EDGES, ("silver.derives",), gold_column_edges),
    )

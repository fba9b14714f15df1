"""Gold: how the graph has grown and how its runs went, day by day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import tables
from downriver.lake.recipes import Recipe

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIGURES = (
    "datasets",
    "jobs",
    "edges",
    "column_edges",
    "with_column_lineage",
    "with_schema",
    "schema_changes",
    "runs",
    "failed_runs",
    "ended_runs",
    "failed_checks",
)


def gold_daily_kpis(
    nodes: DataFrame,
    edges: DataFrame,
    column_edges: DataFrame,
    versions: DataFrame,
    runs: DataFrame,
    quality: DataFrame,
) -> DataFrame:
    """Return a row for every day on which anything was seen.

    What is known is counted by the end of the day, by when it was first seen; runs and checks on
    the day itself. So a build of later events adds rows, and changes none but those that late
    events speak of.
    """
    # Every fact as (day, what it counts towards): one shuffle, whatever the number of figures.
    told = [
        _first(nodes.where("kind = 'dataset'"), "datasets"),
        _first(nodes.where("kind = 'job'"), "jobs"),
        _first(edges, "edges"),
        _first(column_edges, "column_edges"),
        _first(_of_target(column_edges), "with_column_lineage"),
        _first(versions.where("version = 1"), "with_schema"),
        _first(versions.where("version > 1"), "schema_changes"),
        _on("last_seen", runs, "runs"),
        _on("last_seen", runs.where("state IN ('fail', 'abort')"), "failed_runs"),
        _on("last_seen", runs.where("state IN ('complete', 'fail', 'abort')"), "ended_runs"),
        _on("seen_at", quality.where("NOT success"), "failed_checks"),
    ]
    facts = told[0]
    for more in told[1:]:
        facts = facts.union(more)
    daily = facts.groupBy("day").pivot("what", list(_FIGURES)).count().fillna(0)
    so_far = Window.orderBy("day").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    growing = ("datasets", "jobs", "edges", "column_edges", "with_schema", "with_column_lineage")
    found = daily.withColumns(
        {
            "new_datasets": f.col("datasets"),
            "new_edges": f.col("edges"),
            **{name: f.sum(name).over(so_far) for name in growing},
            "failure_rate": _rate("failed_runs", "ended_runs"),
        }
    )
    return tables.DAILY_KPIS.select(found)


def _of_target(column_edges: DataFrame) -> DataFrame:
    target = [f.col("target_namespace"), f.col("target_name")]
    return column_edges.groupBy(*target).agg(f.min("first_seen").alias("first_seen"))


def _first(frame: DataFrame, what: str) -> DataFrame:
    return _on("first_seen", frame, what)


def _on(moment: str, frame: DataFrame, what: str) -> DataFrame:
    return frame.select(f.to_date(moment).alias("day"), f.lit(what).alias("what"))


def _rate(part: str, whole: str) -> Column:
    return f.when(f.col(whole) > 0, f.col(part) / f.col(whole))


KPI_RECIPES = (
    Recipe(
        tables.DAILY_KPIS,
        (
            "gold.nodes",
            "gold.edges",
            "gold.column_edges",
            "silver.schema_versions",
            "silver.runs",
            "silver.quality",
        ),
        gold_daily_kpis,
    ),
)

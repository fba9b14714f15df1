"""Gold: health, freshness and failure rates of datasets and jobs, coverage, and daily KPIs.

Ages are measured from the last event in the lake and not from the clock, so a build of the same
events gives the same tables.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.schemas import TableTransform
from downriver.openlineage.facets.job import READ_CALLS, READ_JOB_TYPE, READ_PLANS, SPARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

_NAME = ["namespace", "name"]
_JOB = ["job_namespace", "job_name"]


def gold_dataset_health(
    datasets: DataFrame,
    jobs: DataFrame,
    reads: DataFrame,
    writes: DataFrame,
    ends: DataFrame,
    versions: DataFrame,
    stale_days: int,
) -> DataFrame:
    """Return the readers and writers of every dataset, and its missing metadata.

    An orphan has no reader, no writer and no column edge. A dead dataset was last seen
    `stale_days` before the last event of the lake. An unknown downstream is a job that
    reads the dataset and has no output, unless its type or name shows that it only reads.
    """
    # As `only_reads` in `openlineage/facets/job.py`.
    by_call = (f.upper("integration") == SPARK) & f.col("name").rlike(READ_CALLS)
    by_plan = f.col("name").rlike(READ_PLANS)
    only_read = jobs.where((f.col("job_type") == READ_JOB_TYPE) | by_call | by_plan).select(
        f.col("namespace").alias("job_namespace"), f.col("name").alias("job_name")
    )
    known_ends = writes.select(*_JOB).union(only_read).distinct().withColumn("ends", f.lit(0))
    readers = reads.join(known_ends, _JOB, "left")
    read = readers.groupBy(*_NAME).agg(
        f.count("*").alias("readers"),
        f.sum(f.coalesce("ends", f.lit(1))).alias("unknown_downstreams"),
    )
    written = writes.groupBy(*_NAME).agg(f.count("*").alias("writers"))
    sources = ends.where("end = 'source'").select(*_NAME, f.lit(True).alias("is_source"))
    targets = ends.where("end = 'target'").select(*_NAME, f.lit(True).alias("is_target"))
    schema_rows = versions.where("current").select(*_NAME, f.lit(True).alias("has_schema"))
    joined = datasets
    for part in (read, written, sources, targets, schema_rows):
        joined = joined.join(part, _NAME, "left")
    zeros = {"readers": 0, "writers": 0, "unknown_downstreams": 0}
    flags = {"is_source": False, "is_target": False, "has_schema": False}
    known = joined.fillna({**zeros, **flags})
    alone = (f.col("readers") == 0) & (f.col("writers") == 0)
    last = f.max("last_seen").over(Window.partitionBy())
    judged = known.withColumns(
        {
            "orphan": alone & ~f.col("is_source") & ~f.col("is_target"),
            "dead": f.col("last_seen") < last - f.expr(f"INTERVAL {stale_days} DAYS"),
            "has_owner": f.coalesce(f.size("owners") > 0, f.lit(False)),
            "has_column_lineage": f.col("is_target"),
        }
    )
    return schemas.DATASET_HEALTH.select(judged)


def gold_coverage(
    health: DataFrame, jobs: DataFrame, reads: DataFrame, writes: DataFrame
) -> DataFrame:
    """Return one row with the coverage of the graph."""
    ends = jobs.join(_jobs_of(reads, "reads"), _NAME, "left").join(
        _jobs_of(writes, "writes"), _NAME, "left"
    )
    of_jobs = ends.agg(
        f.count("*").alias("jobs"),
        f.count("reads").alias("jobs_with_inputs"),
        f.count("writes").alias("jobs_with_outputs"),
    )
    written = f.col("writers") > 0
    of_datasets = health.agg(
        f.count("*").alias("datasets"),
        f.count_if("has_schema").alias("with_schema"),
        f.count_if("has_owner").alias("with_owner"),
        f.count_if(written).alias("written"),
        f.count_if(written & f.col("has_column_lineage")).alias("written_with_column_lineage"),
        f.count_if("orphan").alias("orphans"),
        f.count_if("dead").alias("dead"),
    )
    return schemas.COVERAGE.select(of_datasets.crossJoin(of_jobs))


def _jobs_of(edges: DataFrame, name: str) -> DataFrame:
    jobs = edges.select(f.col("job_namespace").alias("namespace"), f.col("job_name").alias("name"))
    return jobs.distinct().withColumn(name, f.lit(1))


def write_rhythm(writes: DataFrame, runs: DataFrame) -> DataFrame:
    """Return the last write of each dataset, and its usual interval.

    The interval is the median time between the ends of its writers' completed runs. A dataset
    without such a run has a row too: a row of an earlier build is only replaced, never removed.
    """
    done = runs.where("state = 'complete'").select(*_JOB, f.col("ended_at").alias("at"))
    times = writes.join(done, _JOB, "left").select(*_NAME, "at").distinct()
    before = f.lag("at").over(Window.partitionBy(*_NAME).orderBy("at"))
    gaps = times.withColumn("gap", _seconds("at") - _seconds(before))
    rhythm = gaps.groupBy(*_NAME).agg(
        f.max("at").alias("last_written"),
        f.count("at").alias("writes"),
        f.percentile("gap", 0.5).alias("usual_seconds"),
    )
    return schemas.WRITE_RHYTHM.select(rhythm)


def gold_freshness(rhythm: DataFrame, jobs: DataFrame) -> DataFrame:
    """Return the last write of each dataset and its delay at the time of the last run.

    `jobs` are the rows of `gold.failure_rates`: each has the time of the last run of a job.
    """
    last_event = jobs.agg(f.max("last_seen").alias("now"))
    overdue = _seconds("now") - _seconds("last_written") - f.col("usual_seconds")
    judged = (
        rhythm.where("writes > 0")
        .crossJoin(last_event)
        .withColumn("late_seconds", f.greatest(overdue, f.lit(0.0)))
    )
    return schemas.FRESHNESS.select(judged)


def _seconds(moment: str | Column) -> Column:
    return f.unix_micros(moment) / 1_000_000


def gold_failure_rates(runs: DataFrame) -> DataFrame:
    """Return the counts and failure rate of the runs of every job."""
    ended = f.col("state").isin("complete", "fail", "abort")
    bad = f.col("state").isin("fail", "abort")
    rows = runs.groupBy(*_JOB).agg(
        f.count("*").alias("runs"),
        f.count_if(ended).alias("ended"),
        f.count_if(bad).alias("failed"),
        f.percentile("seconds", 0.5).alias("usual_seconds"),
        f.max("last_seen").alias("last_seen"),
        f.max_by("error", f.when(f.col("error").isNotNull(), f.struct("last_seen", "run"))).alias(
            "last_error"
        ),
    )
    rate = f.when(f.col("ended") > 0, f.col("failed") / f.col("ended"))
    return schemas.FAILURE_RATES.select(rows.withColumn("failure_rate", rate))


def gold_schema_drift(versions: DataFrame) -> DataFrame:
    """Return the columns that each schema version added, removed and retyped."""
    in_order = Window.partitionBy(*_NAME).orderBy("version")
    types = f.map_from_entries(
        f.array_distinct(f.transform("fields", lambda x: f.struct(x["path"], x["type"])))
    )
    pairs = versions.select(
        *_NAME,
        "version",
        f.col("first_seen").alias("seen_at"),
        f.array_distinct(f.transform("fields", lambda x: x["path"])).alias("now"),
        types.alias("types"),
    )
    compared = pairs.withColumns(
        {"before": f.lag("now").over(in_order), "old": f.lag("types").over(in_order)}
    ).where("before IS NOT NULL")
    changed = lambda path: f.col("types")[path] != f.col("old")[path]  # noqa: E731
    rows = compared.withColumns(
        {
            "added": f.array_except("now", "before"),
            "removed": f.array_except("before", "now"),
            "retyped": f.filter(f.array_intersect("now", "before"), changed),
        }
    )
    return schemas.SCHEMA_DRIFT.select(rows)


_ENDED = "state IN ('complete', 'fail', 'abort')"
_FAILED = "state IN ('fail', 'abort')"


class CountedFigure(NamedTuple):
    """A figure of a day: the number of rows of a table that meet a condition, by a time."""

    name: str
    table: str
    moment: str
    condition: str = "true"


_COUNTED = (
    CountedFigure("datasets", "gold.nodes", "first_seen", "kind = 'dataset'"),
    CountedFigure("jobs", "gold.nodes", "first_seen", "kind = 'job'"),
    CountedFigure("edges", "gold.edges", "first_seen"),
    CountedFigure("column_edges", "gold.column_edges", "first_seen"),
    CountedFigure("with_schema", "silver.schema_versions", "first_seen", "version = 1"),
    CountedFigure("schema_changes", "silver.schema_versions", "first_seen", "version > 1"),
    CountedFigure("runs", "silver.runs", "last_seen"),
    CountedFigure("failed_runs", "silver.runs", "last_seen", _FAILED),
    CountedFigure("ended_runs", "silver.runs", "last_seen", _ENDED),
    CountedFigure("failed_checks", "silver.quality", "seen_at", "NOT success"),
)
_WITH_COLUMN_LINEAGE = "with_column_lineage"
FIGURES = (*(figure.name for figure in _COUNTED), _WITH_COLUMN_LINEAGE)
COUNTED_TABLES = tuple(dict.fromkeys(figure.table for figure in _COUNTED))


def daily_counts(*tables: DataFrame) -> DataFrame:
    """Return the figures of each day, from the tables of `COUNTED_TABLES`."""
    rows = {
        name: table.withColumn("n", f.lit(1))
        for name, table in zip(COUNTED_TABLES, tables, strict=True)
    }
    return sum_counts(figures_by_day(rows))


def figures_by_day(tables: Mapping[str, DataFrame]) -> list[DataFrame]:
    """Return the figures of rows, as (day, figure, n). `n` is a column of the rows."""
    counted = [_figures_of(name, table) for name, table in tables.items()]
    if (column_edges := tables.get("gold.column_edges")) is not None:
        first = column_edges.groupBy("target_namespace", "target_name", "n").agg(
            f.min("first_seen").alias("first_seen")
        )
        day = f.to_date("first_seen").alias("day")
        counted.append(first.select(day, f.lit(_WITH_COLUMN_LINEAGE).alias("figure"), "n"))
    return counted


def _figures_of(name: str, rows: DataFrame) -> DataFrame:
    """Return the figures of the rows of one table, read once."""
    entries = [
        f.when(
            f.expr(figure.condition),
            f.struct(f.to_date(figure.moment).alias("day"), f.lit(figure.name).alias("figure")),
        )
        for figure in _COUNTED
        if figure.table == name
    ]
    counted = f.explode(f.array_compact(f.array(*entries))).alias("counted")
    return rows.select(counted, "n").select("counted.*", "n")


def sum_counts(parts: Sequence[DataFrame]) -> DataFrame:
    """Return the sum of counts by day and figure."""
    rows = reduce(lambda whole, part: whole.unionAll(part), parts)
    summed = rows.groupBy("day", "figure").agg(f.sum("n").alias("n"))
    return schemas.DAILY_COUNTS.select(summed.where("n != 0"))


def gold_daily_kpis(counts: DataFrame) -> DataFrame:
    """Return one row for every day with events.

    Entities are counted up to the end of the day, by the day they were first seen; runs and checks
    on the day itself. Later events add rows; only late events change existing ones.
    """
    daily = counts.groupBy("day").pivot("figure", list(FIGURES)).agg(f.sum("n")).fillna(0)
    so_far = Window.orderBy("day").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    growing = ("datasets", "jobs", "edges", "column_edges", "with_schema", "with_column_lineage")
    rows = daily.withColumns(
        {
            "new_datasets": f.col("datasets"),
            "new_edges": f.col("edges"),
            **{name: f.sum(name).over(so_far) for name in growing},
            "failure_rate": _rate("failed_runs", "ended_runs"),
        }
    )
    return schemas.DAILY_KPIS.select(rows)


def _rate(part: str, whole: str) -> Column:
    return f.when(f.col(whole) > 0, f.col(part) / f.col(whole))


# Each row depends on one entity only. The other tables have a row for a dataset or day and depend
# on the time of the last event, so every build writes them as a whole.
ENTITY_HEALTH_TRANSFORMS = (
    TableTransform(schemas.FAILURE_RATES, ("silver.runs",), gold_failure_rates),
    TableTransform(schemas.SCHEMA_DRIFT, ("silver.schema_versions",), gold_schema_drift),
    TableTransform(schemas.WRITE_RHYTHM, ("silver.writes", "silver.runs"), write_rhythm),
)


def summary_transforms(stale_days: int) -> tuple[tuple[TableTransform, ...], ...]:
    """Return the transforms of whole tables, in the order in which they are written.

    A dataset not seen for `stale_days` is dead.
    """
    health = TableTransform(
        schemas.DATASET_HEALTH,
        (
            "silver.datasets",
            "silver.jobs",
            "silver.reads",
            "silver.writes",
            "state.derive_ends",
            "silver.schema_versions",
        ),
        partial(gold_dataset_health, stale_days=stale_days),
    )
    coverage = TableTransform(
        schemas.COVERAGE,
        ("gold.dataset_health", "silver.jobs", "silver.reads", "silver.writes"),
        gold_coverage,
    )
    freshness = TableTransform(
        schemas.FRESHNESS, ("state.write_rhythm", "gold.failure_rates"), gold_freshness
    )
    kpis = TableTransform(schemas.DAILY_KPIS, ("state.daily_counts",), gold_daily_kpis)
    return (health, freshness, kpis), (coverage,)


DAILY_COUNTS_TRANSFORM = TableTransform(schemas.DAILY_COUNTS, COUNTED_TABLES, daily_counts)

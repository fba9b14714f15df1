"""Gold: health, freshness and failure rates of datasets and jobs, coverage, and daily KPIs.

Ages are measured from the last event in the lake and not from the clock, so a build of the same
events gives the same tables.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.schemas import TableTransform
from downriver.openlineage.facets.job import READ_CALLS, READ_JOB_TYPE, READ_PLANS, SPARK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NAME = ["namespace", "name"]
_JOB = ["job_namespace", "job_name"]


def gold_dataset_health(
    datasets: DataFrame,
    jobs: DataFrame,
    reads: DataFrame,
    writes: DataFrame,
    derives: DataFrame,
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
    sources = _ends(derives, "source").withColumn("is_source", f.lit(True))
    targets = _ends(derives, "target").withColumn("is_target", f.lit(True))
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


def _ends(derives: DataFrame, end: str) -> DataFrame:
    return derives.select(
        f.col(f"{end}_namespace").alias("namespace"), f.col(f"{end}_name").alias("name")
    ).distinct()


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


def gold_freshness(writes: DataFrame, runs: DataFrame) -> DataFrame:
    """Return the last write of each dataset, its usual interval, and its delay.

    The interval is the median time between the ends of its writers' completed runs.
    """
    done = runs.where("state = 'complete'").select(*_JOB, f.col("ended_at").alias("at"))
    last_event = runs.agg(f.max("last_seen").alias("now"))
    times = writes.join(done, _JOB).select(*_NAME, "at").distinct()
    before = f.lag("at").over(Window.partitionBy(*_NAME).orderBy("at"))
    gaps = times.withColumn("gap", _seconds("at") - _seconds(before))
    rhythm = gaps.groupBy(*_NAME).agg(
        f.max("at").alias("last_written"),
        f.count("*").alias("writes"),
        f.percentile("gap", 0.5).alias("usual_seconds"),
    )
    overdue = _seconds("now") - _seconds("last_written") - f.col("usual_seconds")
    judged = rhythm.crossJoin(last_event).withColumn(
        "late_seconds", f.greatest(overdue, f.lit(0.0))
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
        f.max_by("error", f.when(f.col("error").isNotNull(), f.col("last_seen"))).alias(
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


def health_transforms(stale_days: int) -> tuple[TableTransform, ...]:
    """Return the transforms of health; a dataset not seen for `stale_days` is dead."""
    return (
        TableTransform(
            schemas.DATASET_HEALTH,
            (
                "silver.datasets",
                "silver.jobs",
                "silver.reads",
                "silver.writes",
                "silver.derives",
                "silver.schema_versions",
            ),
            partial(gold_dataset_health, stale_days=stale_days),
        ),
        TableTransform(schemas.FRESHNESS, ("silver.writes", "silver.runs"), gold_freshness),
        TableTransform(schemas.FAILURE_RATES, ("silver.runs",), gold_failure_rates),
        TableTransform(schemas.SCHEMA_DRIFT, ("silver.schema_versions",), gold_schema_drift),
    )


COVERAGE_TRANSFORMS = (
    TableTransform(
        schemas.COVERAGE,
        ("gold.dataset_health", "silver.jobs", "silver.reads", "silver.writes"),
        gold_coverage,
    ),
)


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
    """Return one row for every day with events.

    Entities are counted up to the end of the day, by the day they were first seen; runs and checks
    on the day itself. Later events add rows; only late events change existing ones.
    """
    # Every fact as (day, figure): a single shuffle for all figures.
    counted = [
        _counted_when_first_seen(nodes.where("kind = 'dataset'"), "datasets"),
        _counted_when_first_seen(nodes.where("kind = 'job'"), "jobs"),
        _counted_when_first_seen(edges, "edges"),
        _counted_when_first_seen(column_edges, "column_edges"),
        _counted_when_first_seen(_of_target(column_edges), "with_column_lineage"),
        _counted_when_first_seen(versions.where("version = 1"), "with_schema"),
        _counted_when_first_seen(versions.where("version > 1"), "schema_changes"),
        _counted_on("last_seen", runs, "runs"),
        _counted_on("last_seen", runs.where("state IN ('fail', 'abort')"), "failed_runs"),
        _counted_on(
            "last_seen", runs.where("state IN ('complete', 'fail', 'abort')"), "ended_runs"
        ),
        _counted_on("seen_at", quality.where("NOT success"), "failed_checks"),
    ]
    facts = reduce(lambda whole, part: whole.union(part), counted)
    daily = facts.groupBy("day").pivot("what", list(_FIGURES)).count().fillna(0)
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


def _of_target(column_edges: DataFrame) -> DataFrame:
    target = [f.col("target_namespace"), f.col("target_name")]
    return column_edges.groupBy(*target).agg(f.min("first_seen").alias("first_seen"))


def _counted_when_first_seen(frame: DataFrame, what: str) -> DataFrame:
    return _counted_on("first_seen", frame, what)


def _counted_on(moment: str, frame: DataFrame, what: str) -> DataFrame:
    return frame.select(f.to_date(moment).alias("day"), f.lit(what).alias("what"))


def _rate(part: str, whole: str) -> Column:
    return f.when(f.col(whole) > 0, f.col(part) / f.col(whole))


KPI_TRANSFORMS = (
    TableTransform(
        schemas.DAILY_KPIS,
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

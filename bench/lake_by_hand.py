"""Baselines of the lake: Spark SQL written by hand, and the fold in one Python process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from downriver.model.facts import Facts
from downriver.openlineage import fold, parse_event

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_FIELDS = "fields: ARRAY<STRUCT<name: STRING, type: STRING>>"
_LINEAGE = """
    fields: MAP<STRING, STRUCT<inputFields: ARRAY<STRUCT<
        namespace: STRING, name: STRING, field: STRING,
        transformations: ARRAY<STRUCT<type: STRING, subtype: STRING>>>>>>
"""
_EVENT = f"""
    eventTime TIMESTAMP, eventType STRING, run STRUCT<runId: STRING>,
    job STRUCT<namespace: STRING, name: STRING>,
    inputs ARRAY<STRUCT<namespace: STRING, name: STRING,
        facets: STRUCT<schema: STRUCT<{_FIELDS}>>>>,
    outputs ARRAY<STRUCT<namespace: STRING, name: STRING,
        facets: STRUCT<schema: STRUCT<{_FIELDS}>, columnLineage: STRUCT<{_LINEAGE}>>,
        outputFacets: STRUCT<outputStatistics: STRUCT<rowCount: BIGINT>>>>
"""


def fold_here(path: Path) -> None:
    """Parse, fold and merge in this process; nothing is stored."""
    facts = Facts.empty()
    with path.open("rb") as stream:
        for line in stream:
            facts.update(fold(parse_event(line.strip())))


def parse_by_hand(spark: SparkSession, path: Path, target: str) -> None:
    """Write nodes, edges, runs, schemas, column edges and statistics of a file of events.

    Without hashes of events and facets, quarantine, history of facets and rules for aliases: about
    a day of work.
    """
    events = spark.read.schema(_EVENT).json(str(path)).persist()
    made = {
        "jobs": events.groupBy("job").agg(f.min("eventTime"), f.max("eventTime")),
        "datasets": _datasets(events),
        "edges": _edges(events),
        "runs": _runs(events),
        "columns": _columns(events),
        "column_edges": _column_edges(events),
        "statistics": _statistics(events),
    }
    for name, frame in made.items():
        frame.write.parquet(f"{target}/{name}")
    events.unpersist()


def _sides(events: DataFrame) -> DataFrame:
    parts = [
        events.select(
            "job", "run", "eventTime", f.lit(side).alias("side"), f.explode(side).alias("of")
        )
        for side in ("inputs", "outputs")
    ]
    named = [
        part.select(
            "job", "run", "eventTime", "side", "of.namespace", "of.name", "of.facets.schema"
        )
        for part in parts
    ]
    return named[0].union(named[1])


def _datasets(events: DataFrame) -> DataFrame:
    seen = (f.min("eventTime").alias("first"), f.max("eventTime").alias("last"))
    return _sides(events).groupBy("namespace", "name").agg(*seen)


def _edges(events: DataFrame) -> DataFrame:
    seen = (f.min("eventTime").alias("first"), f.max("eventTime").alias("last"))
    return _sides(events).groupBy("side", "job", "namespace", "name").agg(*seen)


def _runs(events: DataFrame) -> DataFrame:
    began = f.when(f.col("eventType") == "START", f.col("eventTime"))
    return events.groupBy("job", "run.runId").agg(
        f.max_by("eventType", "eventTime").alias("state"),
        f.min(began).alias("started"),
        f.max("eventTime").alias("last"),
    )


def _columns(events: DataFrame) -> DataFrame:
    each = _sides(events).select("namespace", "name", f.explode("schema.fields").alias("field"))
    typed = (f.col("field.name").alias("column"), "field.type")
    return each.select("namespace", "name", *typed).distinct()


def _column_edges(events: DataFrame) -> DataFrame:
    outputs = events.select("job", "eventTime", f.explode("outputs").alias("of"))
    fields = outputs.select(
        "job",
        "eventTime",
        f.col("of.namespace").alias("target_namespace"),
        f.col("of.name").alias("target"),
        f.explode("of.facets.columnLineage.fields").alias("target_field", "entry"),
    )
    each = fields.select("*", f.explode("entry.inputFields").alias("source")).drop("entry")
    ends = ("job", "target_namespace", "target", "target_field", "source")
    return each.groupBy(*ends).agg(
        f.min("eventTime").alias("first"), f.max("eventTime").alias("last")
    )


def _statistics(events: DataFrame) -> DataFrame:
    outputs = events.select("job", "run", "eventTime", f.explode("outputs").alias("of"))
    return outputs.select(
        *("job", "run.runId", "of.namespace", "of.name"),
        f.col("of.outputFacets.outputStatistics.rowCount").alias("rows"),
    ).distinct()

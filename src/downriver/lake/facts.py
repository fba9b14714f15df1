"""Facts: what events tell, merged by the rules of `model.facts`, in Spark's own aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from downriver.lake import tables
from downriver.lake.folding import KINDS, fold_bodies
from downriver.model.facts import RunState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

_KIND_OF = {table.name: kind for kind, table in zip(KINDS, tables.FACTS, strict=True)}

# What events tell: a column a kind of fact, of which each row fills one.
FOLDED = tables.Table(
    "told", tuple((kind, table.struct) for kind, table in zip(KINDS, tables.FACTS, strict=True))
)


def fold_events(events: DataFrame) -> DataFrame:
    """Return what events tell, as rows of FOLDED."""
    return events.select("body").mapInArrow(fold_bodies, FOLDED.ddl)


def merge_facts(told: DataFrame, before: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the tables of facts by name: those of `before`, with what was told merged in."""
    return {table.name: _merge(table, told, before.get(table.name)) for table in tables.FACTS}


def _merge(table: tables.Table, told: DataFrame, before: DataFrame | None) -> DataFrame:
    kind = _KIND_OF[table.name]
    rows = told.where(f.col(kind).isNotNull()).select(f"{kind}.*")
    if before is not None:
        rows = rows.unionByName(table.select(before))
    return table.select(_merged(table, rows))


def _merged(table: tables.Table, rows: DataFrame) -> DataFrame:
    if table is tables.RUNS:
        return _merged_runs(rows)
    if table is tables.BODIES:
        return rows.groupBy("digest").agg(f.first("body").alias("body"))
    if "first_at" not in table.column_names:
        return rows.distinct()
    return _with_span(rows.groupBy(*table.key).agg(*_merged_span()))


def _merged_runs(rows: DataFrame) -> DataFrame:
    """An end beats any beginning whatever their times; then the later one, then the graver."""
    ended = f.col("state") >= int(RunState.COMPLETE)
    tier = f.when(ended, int(RunState.COMPLETE)).otherwise(f.col("state"))
    merged = rows.groupBy(*tables.RUNS.key).agg(
        f.max(f.struct(tier.alias("tier"), "state_at", "state")).alias("won"),
        f.min("started_at").alias("started_at"),
        *_merged_span(),
    )
    return _with_span(merged).withColumns(
        {"state": f.col("won.state"), "state_at": f.col("won.state_at")}
    )


def _merged_span() -> tuple[Column, ...]:
    return (
        f.min(f.struct("first_at", "first_event")).alias("first"),
        f.max(f.struct("last_at", "last_event")).alias("last"),
        f.max("observed").alias("observed"),
    )


def _with_span(merged: DataFrame) -> DataFrame:
    return merged.select("*", "first.*", "last.*")

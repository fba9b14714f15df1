"""Bronze: every event once, as it was sent, and beside it what could not be read and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ["source", "offset", "position"]


def bronze_events(found: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return the readable events that `known` does not hold, each once.

    Of repetitions the one at the first place stays, so that reading again gives the same table.
    Which those are is found out by hashes alone: bodies are many times larger, and stay where they
    were read.
    """
    readable = found.where("reason IS NULL")
    places = readable.select("digest", *_PLACE)
    repetitions = Window.partitionBy("digest").orderBy(*_PLACE)
    nth = places.withColumn("nth", f.row_number().over(repetitions))
    gone = nth.where("nth > 1").select(*_PLACE)
    if known is not None:
        gone = gone.union(places.join(known, "digest", "left_semi").select(*_PLACE))
    return tables.EVENTS.select(readable.join(gone, _PLACE, "left_anti"))


def bronze_quarantine(found: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return what could not be read, with the reason, unless it was set aside before."""
    bad = found.where("reason IS NOT NULL")
    if known is not None:
        bad = bad.join(known.select(*_PLACE, "digest"), [*_PLACE, "digest"], "left_anti")
    return tables.QUARANTINE.select(bad)

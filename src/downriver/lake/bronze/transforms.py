"""Bronze: every event once, as it was sent, and a quarantine of unreadable records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_POSITION = ["source", "offset", "position"]


def bronze_events(records: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return the readable events that are not in `known`, without duplicates.

    Of several duplicates the first by position is kept, so that a second read gives the same
    table. Only hashes are compared and shuffled: bodies are many times larger.
    """
    readable = records.where("reason IS NULL")
    positions = readable.select("digest", *_POSITION)
    duplicates = Window.partitionBy("digest").orderBy(*_POSITION)
    numbered = positions.withColumn("nth", f.row_number().over(duplicates))
    dropped = numbered.where("nth > 1").select(*_POSITION)
    if known is not None:
        dropped = dropped.union(positions.join(known, "digest", "left_semi").select(*_POSITION))
    return schemas.EVENTS.select(readable.join(dropped, _POSITION, "left_anti"))


def bronze_quarantine(records: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return the unreadable records that are not in `known`, with the reason."""
    unreadable = records.where("reason IS NOT NULL")
    if known is not None:
        key = [*_POSITION, "digest"]
        unreadable = unreadable.join(known.select(*key), key, "left_anti")
    return schemas.QUARANTINE.select(unreadable)

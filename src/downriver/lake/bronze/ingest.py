"""Bronze: every event once, as it was sent. Unreadable records go to a quarantine."""

from __future__ import annotations

import operator
import uuid
from functools import reduce
from typing import TYPE_CHECKING

import msgspec
from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.bronze.batches import (
    HOUR,
    BatchExtent,
    NewBatch,
    bronze_locations,
    join_ranges,
    time_ranges,
)
from downriver.lake.bronze.event_files import (
    SPLIT_DDL,
    FileSplit,
    plan_reads,
    read_splits,
)
from downriver.lake.bronze.few_events import add_few, are_few
from downriver.lake.bronze.source_lists import add_states, find_states
from downriver.lake.bronze.store_log import export_log, log_source
from downriver.lake.storage.tables import (
    PARQUET,
    BronzeBatch,
    LakeVersion,
    StoredTable,
    TimeRange,
    commit_version,
    read_current_version,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from downriver.lake.bronze.event_files import FileState
    from downriver.lake.stages import StageReport
    from downriver.lake.storage.tables import TableStorage
    from downriver.store import Store

_READ_BYTES = 32 * 2**20
_FILE_BYTES = 128 * 2**20


class BronzeIngest:
    """Adds batches to the bronze of a lake."""

    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage
        self._folder = storage.folder

    def ingest_files(self, sources: Sequence[str], stage: StageReport) -> None:
        """Ingest the new events of files and directories."""
        base = read_current_version(self._folder, create=True)
        plan = plan_reads(sources, lambda paths: find_states(self._folder, base, paths))
        if not plan.known:
            return
        if self._storage.format == PARQUET and are_few(plan.splits):
            add_few(self._folder, base, plan, stage)
        else:
            self._add(base, self._read(plan.splits), plan.known, stage)

    def ingest_log(self, store: Store, stage: StageReport) -> None:
        """Ingest the new events of the log of a store."""
        base = read_current_version(self._folder, create=True)
        path = f"bronze/log-{uuid.uuid4().hex}"
        source = log_source(store)
        before = find_states(self._folder, base, [source]).get(source)
        state = export_log(store, before, self._folder, path)
        if state is not None:
            records = self._storage.read(schemas.EVENT_RECORDS, [StoredTable(path, 0)])
            self._add(base, records, [state], stage)
            self._folder.remove(path)

    def ingest_stream(
        self,
        records: DataFrame,
        stream: str,
        number: int,
        files: Sequence[FileState],
        stage: StageReport,
    ) -> None:
        """Ingest a micro-batch of a stream, unless it was committed before."""
        base = read_current_version(self._folder, create=True)
        if number > base.streams.get(stream, -1):
            streams = {**base.streams, stream: number}
            self._add(msgspec.structs.replace(base, streams=streams), records, files, stage)

    def compact(self, stage: StageReport) -> None:
        """Merge the folded batches into one."""
        base = read_current_version(self._folder)
        folded = _folded(base)
        if len(folded) > 1:
            events = self._bronze(schemas.EVENTS, folded)
            self._replace(base, folded, events, self._bronze(schemas.QUARANTINE, folded), stage)

    def expire(self, before: int, stage: StageReport) -> None:
        """Rewrite the folded batches without their events before a time."""
        base = read_current_version(self._folder)
        old = [batch for batch in _folded(base) if batch.may_hold(-(2**63), before - 1)]
        events = self._bronze(schemas.EVENTS, old)
        if events is not None:
            base = msgspec.structs.replace(
                base, expired_before=max(before, base.expired_before or before)
            )
            kept = events.where(f.col("at") >= before)
            quarantine = self._bronze(schemas.QUARANTINE, old)
            self._replace(base, old, kept, quarantine, stage, since=before)

    def _replace(
        self,
        base: LakeVersion,
        old: Sequence[BronzeBatch],
        events: DataFrame | None,
        quarantine: DataFrame | None,
        stage: StageReport,
        since: int | None = None,
    ) -> None:
        """Commit one batch, of events `since` a time, in place of several."""
        number = old[-1].number
        path = f"bronze/{number:06d}-{uuid.uuid4().hex[:8]}"
        stage.rows_in = sum(batch.events for batch in old)
        frames = {"events": events, "quarantine": quarantine}
        files = self._file_count(old)
        merged = {name: frame.coalesce(files) for name, frame in frames.items() if frame}
        written = self._storage.write_all(merged, path)
        stage.rows_out = written["events"].rows
        ranges = time_ranges(old, since)
        batch = BronzeBatch(
            number=number,
            path=path,
            events=stage.rows_out,
            quarantined=written["quarantine"].rows,
            duplicates=sum(batch.duplicates for batch in old),
            first_at=ranges[0].first_at if ranges else None,
            last_at=ranges[-1].last_at if ranges else None,
            format=self._storage.format,
            ranges=tuple(ranges),
        )
        others = [batch for batch in base.batches if batch not in old]
        batches = sorted([*others, batch], key=lambda batch: batch.number)
        changed = msgspec.structs.replace(
            base,
            batches=tuple(batches),
            lists=(),
            sources=add_states(self._folder, base, []),
        )
        commit_version(self._folder, base, changed)

    def _file_count(self, batches: Sequence[BronzeBatch]) -> int:
        """Return the number of files for the events of some batches."""
        size = sum(self._folder.size(f"{batch.path}/events") for batch in batches)
        return max(1, size // _FILE_BYTES)

    def _read(self, splits: Sequence[FileSplit]) -> DataFrame:
        spark = self._storage.spark
        rows = spark.createDataFrame([tuple(split) for split in splits], SPLIT_DDL)
        size = sum(split.end - split.start for split in splits)
        tasks = max(_parallelism(self._storage), size // _READ_BYTES)
        spread = rows.repartition(min(max(len(splits), 1), tasks))
        return spread.mapInArrow(read_splits, schemas.EVENT_RECORDS.ddl)

    def _add(
        self, base: LakeVersion, records: DataFrame, states: Sequence[FileState], stage: StageReport
    ) -> None:
        """Write records as a new batch, and commit it."""
        batch = NewBatch.after(base)
        records.persist(StorageLevel.DISK_ONLY)
        try:
            extent = self._write(base, records, batch.path, stage)
        finally:
            records.unpersist()
        batch.commit(self._folder, base, extent, stage, states, self._storage.format)

    def _write(
        self, base: LakeVersion, records: DataFrame, path: str, stage: StageReport
    ) -> BatchExtent:
        extent = _measure(records)
        tables = {
            "events": bronze_events(records, self._digests(base.batches, extent)),
            "quarantine": bronze_quarantine(records, self._quarantined(base.batches, extent)),
        }
        written = self._storage.write_all(tables, path)
        stage.rows_in = extent.rows
        stage.rows_out, stage.rejected = written["events"].rows, written["quarantine"].rows
        stage.duplicates = extent.readable - stage.rows_out
        return extent

    def _digests(self, batches: Sequence[BronzeBatch], extent: BatchExtent) -> DataFrame | None:
        """Return the hashes of known events at the times of the new ones.

        A duplicate has the same event time, so hashes of other times need not be read.
        """
        known = self._bronze(schemas.EVENTS, extent.overlapping(batches))
        if known is None:
            return None
        same = [f.col("at").between(*times) for times in extent.ranges]
        return known.where(reduce(operator.or_, same)).select("digest")

    def _quarantined(self, batches: Sequence[BronzeBatch], extent: BatchExtent) -> DataFrame | None:
        if extent.rows == extent.readable:
            return None
        return self._bronze(schemas.QUARANTINE, [batch for batch in batches if batch.quarantined])

    def _bronze(self, table: schemas.LakeTable, batches: Sequence[BronzeBatch]) -> DataFrame | None:
        locations = bronze_locations(table, batches)
        return self._storage.read(table, locations) if locations else None


def _folded(base: LakeVersion) -> list[BronzeBatch]:
    return [batch for batch in base.batches if batch.number <= base.folded]


def _measure(records: DataFrame) -> BatchExtent:
    hour = f.floor(f.col("at") / HOUR).cast("bigint")
    by_hour = records.groupBy(hour.alias("hour")).agg(
        f.count("*").alias("rows"), f.min("at").alias("first_at"), f.max("at").alias("last_at")
    )
    hours = [(row["rows"], row["first_at"], row["last_at"]) for row in by_hour.collect()]
    times = [TimeRange(first, last) for _, first, last in hours if first is not None]
    readable = sum(rows for rows, first, _ in hours if first is not None)
    return BatchExtent(sum(rows for rows, *_ in hours), readable, join_ranges(times))


def _parallelism(storage: TableStorage) -> int:
    return int(storage.spark.conf.get("spark.sql.shuffle.partitions", "2") or 2)


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

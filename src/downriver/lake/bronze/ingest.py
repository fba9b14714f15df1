"""Ingest events into bronze: every event once, as sent, with unreadable ones in quarantine."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.bronze.event_files import (
    SPLIT_DDL,
    FileSplit,
    FileState,
    plan_reads,
    read_splits,
)
from downriver.lake.bronze.store_log import export_log
from downriver.lake.storage.versions import (
    BronzeBatch,
    LakeVersion,
    StoredTable,
    commit_version,
    read_current_version,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from downriver.lake.pipeline import StageReport
    from downriver.lake.storage.tables import TableStorage
    from downriver.store import Store

_POSITION = ["source", "offset", "position"]


def bronze_events(found: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return the readable events that `known` does not hold, each once.

    Of repetitions the one at the first place stays, so that reading again gives the same table.
    Which those are is found out by hashes alone: bodies are many times larger, and stay where they
    were read.
    """
    readable = found.where("reason IS NULL")
    places = readable.select("digest", *_POSITION)
    repetitions = Window.partitionBy("digest").orderBy(*_POSITION)
    nth = places.withColumn("nth", f.row_number().over(repetitions))
    gone = nth.where("nth > 1").select(*_POSITION)
    if known is not None:
        gone = gone.union(places.join(known, "digest", "left_semi").select(*_POSITION))
    return schemas.EVENTS.select(readable.join(gone, _POSITION, "left_anti"))


def bronze_quarantine(found: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return what could not be read, with the reason, unless it was set aside before."""
    bad = found.where("reason IS NOT NULL")
    if known is not None:
        bad = bad.join(known.select(*_POSITION, "digest"), [*_POSITION, "digest"], "left_anti")
    return schemas.QUARANTINE.select(bad)


_READ_BYTES = 32 * 2**20
_FILE_BYTES = 128 * 2**20
_SOURCES = "sources.jsonl"


class BronzeIngest:
    """Adds batches to the bronze of a lake."""

    def __init__(self, stored: TableStorage) -> None:
        self._tables = stored
        self._folder = stored.folder

    def take_files(self, sources: Sequence[str], stage: StageReport) -> None:
        """Take in what is new in files and directories."""
        base = read_current_version(self._folder, create=True)
        plan = plan_reads(sources, self._known(base.batches))
        if plan.known:
            self._add(base, self._read(plan.splits), plan.known, stage)

    def take_log(self, store: Store, stage: StageReport) -> None:
        """Take in what is new in the log of a store."""
        base = read_current_version(self._folder, create=True)
        path = f"bronze/log-{uuid.uuid4().hex}"
        known = export_log(store, self._known(base.batches), self._folder, path)
        if known is not None:
            found = self._tables.read(schemas.EVENT_RECORDS, [StoredTable(path, 0)])
            self._add(base, found, [known], stage)
            self._folder.remove(path)

    def take_stream(self, found: DataFrame, stream: str, number: int, stage: StageReport) -> None:
        """Take in a batch of a stream, unless it was committed before the stream was killed."""
        base = read_current_version(self._folder, create=True)
        if number > base.streams.get(stream, -1):
            streams = {**base.streams, stream: number}
            self._add(msgspec.structs.replace(base, streams=streams), found, [], stage)

    def compact(self, stage: StageReport) -> None:
        """Make one batch of all that have been folded."""
        base = read_current_version(self._folder)
        folded = _folded(base)
        if len(folded) > 1:
            events = self._bronze(schemas.EVENTS, folded)
            self._replace(base, folded, events, self._bronze(schemas.QUARANTINE, folded), stage)

    def expire(self, before: int, stage: StageReport) -> None:
        """Rewrite the folded batches that hold events from before a time, without those."""
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
        """Write one batch, of events `since` a time, in the place of several, and commit it."""
        number = old[-1].number
        path = f"bronze/{number:06d}-{uuid.uuid4().hex[:8]}"
        stage.rows_in = sum(batch.events for batch in old)
        frames = {"events": events, "quarantine": quarantine}
        tidy = {name: frame.coalesce(self._files(old)) for name, frame in frames.items() if frame}
        written = self._tables.write_all(tidy, path)
        self._note_known(path, list(self._known(old).values()))
        stage.rows_out = written["events"].rows
        whole = BronzeBatch(
            *(number, path, stage.rows_out, written["quarantine"].rows),
            *(sum(batch.duplicates for batch in old), *_times(old, since), self._tables.format),
        )
        others = [batch for batch in base.batches if batch not in old]
        batches = sorted([*others, whole], key=lambda batch: batch.number)
        commit_version(self._folder, base, msgspec.structs.replace(base, batches=tuple(batches)))

    def _files(self, batches: Sequence[BronzeBatch]) -> int:
        """Return in how many files batches are to be: of some size each."""
        size = sum(self._folder.size(f"{batch.path}/events") for batch in batches)
        return max(1, size // _FILE_BYTES)

    def _known(self, batches: Sequence[BronzeBatch]) -> dict[str, FileState]:
        known: dict[str, FileState] = {}
        for batch in batches:
            lines = self._folder.read(f"{batch.path}/{_SOURCES}").splitlines()
            files = (msgspec.json.decode(line, type=FileState) for line in lines)
            known |= {file.path: file for file in files}
        return known

    def _read(self, splits: Sequence[FileSplit]) -> DataFrame:
        spark = self._tables.spark
        rows = spark.createDataFrame([tuple(split) for split in splits], SPLIT_DDL)
        size = sum(split.end - split.start for split in splits)
        tasks = max(_parallelism(self._tables), size // _READ_BYTES)
        spread = rows.repartition(min(max(len(splits), 1), tasks))
        return spread.mapInArrow(read_splits, schemas.EVENT_RECORDS.ddl)

    def _add(
        self, base: LakeVersion, found: DataFrame, known: Sequence[FileState], stage: StageReport
    ) -> None:
        """Write what was found as a batch, and commit it."""
        number = base.batches[-1].number + 1 if base.batches else 1
        path = f"bronze/{number:06d}-{uuid.uuid4().hex[:8]}"
        found.persist(StorageLevel.DISK_ONLY)
        try:
            extent = self._write(base, found, path, stage)
        finally:
            found.unpersist()
        self._note_known(path, known)
        batch = BronzeBatch(
            *(number, path, stage.rows_out, stage.rejected, stage.duplicates),
            *(extent.first_at, extent.last_at, self._tables.format),
        )
        commit_version(
            self._folder, base, msgspec.structs.replace(base, batches=(*base.batches, batch))
        )

    def _note_known(self, path: str, known: Sequence[FileState]) -> None:
        self._folder.write(f"{path}/{_SOURCES}", b"\n".join(map(msgspec.json.encode, known)))

    def _write(self, base: LakeVersion, found: DataFrame, path: str, stage: StageReport) -> _Extent:
        extent = _measure(found)
        made = {
            "events": bronze_events(found, self._digests(base.batches, extent)),
            "quarantine": bronze_quarantine(found, self._quarantined(base.batches, extent)),
        }
        rows = {name: at.rows for name, at in self._tables.write_all(made, path).items()}
        stage.rows_in = extent.rows
        stage.rows_out, stage.rejected = rows["events"], rows["quarantine"]
        stage.duplicates = extent.readable - stage.rows_out
        return extent

    def _digests(self, batches: Sequence[BronzeBatch], extent: _Extent) -> DataFrame | None:
        """Return the hashes among which a new event may be: those of events of the same times.

        A repetition has its first's time, so what is older or younger than all that is new need not
        be read. Else every ingest would read the hashes of all there ever was.
        """
        if extent.first_at is None or extent.last_at is None:
            return None
        near = [batch for batch in batches if batch.may_hold(extent.first_at, extent.last_at)]
        known = self._bronze(schemas.EVENTS, near)
        if known is None:
            return None
        return known.where(f.col("at").between(extent.first_at, extent.last_at)).select("digest")

    def _quarantined(self, batches: Sequence[BronzeBatch], extent: _Extent) -> DataFrame | None:
        if extent.rows == extent.readable:
            return None
        return self._bronze(schemas.QUARANTINE, [batch for batch in batches if batch.quarantined])

    def _bronze(self, table: schemas.LakeTable, batches: Sequence[BronzeBatch]) -> DataFrame | None:
        places = bronze_locations(table, batches)
        return self._tables.read(table, places) if places else None


def bronze_locations(table: schemas.LakeTable, batches: Sequence[BronzeBatch]) -> list[StoredTable]:
    """Return where some batches have a table of bronze."""
    return [StoredTable(f"{batch.path}/{table.name}", 0, batch.format) for batch in batches]


def _folded(base: LakeVersion) -> list[BronzeBatch]:
    return [batch for batch in base.batches if batch.number <= base.folded]


def _times(batches: Sequence[BronzeBatch], since: int | None) -> tuple[int | None, int | None]:
    """Return between which times the events of some batches are, if each of them says so."""
    times = [at for batch in batches for at in (batch.first_at, batch.last_at)]
    known = [at for at in times if at is not None]
    if len(known) < len(times):
        return since, None
    first, last = min(known), max(known)
    return (first, last) if since is None else (max(first, since), max(last, since))


class _Extent(NamedTuple):
    """How much was found, and of which times."""

    rows: int
    readable: int
    first_at: int | None
    last_at: int | None


def _measure(found: DataFrame) -> _Extent:
    readable = f.count_if(f.col("reason").isNull())
    [row] = found.agg(f.count("*"), readable, f.min("at"), f.max("at")).collect()
    return _Extent(*row)


def _parallelism(stored: TableStorage) -> int:
    return int(stored.spark.conf.get("spark.sql.shuffle.partitions", "2") or 2)

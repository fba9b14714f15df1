"""Ingests few events in this process, without Spark: starting its jobs would cost more.

The records are read by the functions that Spark's workers call, and the batch is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.lake import schemas
from downriver.lake.bronze.batches import HOUR, BatchExtent, NewBatch, join_ranges
from downriver.lake.bronze.event_files import event_batch, plan_reads, read_split_batches
from downriver.lake.bronze.source_lists import find_states
from downriver.lake.storage.tables import TimeRange, read_current_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from downriver.lake.bronze.event_files import FileSplit, ReadPlan
    from downriver.lake.stages import StageReport, Stages
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import BronzeBatch, LakeVersion

FEW_BYTES = 64 * 2**20
_GZIP_RATIO = 20  # JSON lines shrink to about a tenth
_ROWS_AT_ONCE = 10_000
_RECORD = ("source", "offset", "position", "digest")


def ingest_few(folder: Folder, sources: Sequence[str], stages: Stages) -> StageReport | None:
    """Ingest the new events of files and directories. Return None if there are too many."""
    base = read_current_version(folder, create=True)
    plan = plan_reads(sources, lambda paths: find_states(folder, base, paths))
    if not are_few(plan.splits):
        return None
    with stages.running("bronze") as stage:
        if plan.known:
            add_few(folder, base, plan, stage)
    return stage


def are_few(splits: Sequence[FileSplit]) -> bool:
    """Return whether splits are small enough for this process."""
    sizes = (
        (split.end - split.start) * (_GZIP_RATIO if split.path.endswith(".gz") else 1)
        for split in splits
    )
    return sum(sizes) <= FEW_BYTES


def add_few(folder: Folder, base: LakeVersion, plan: ReadPlan, stage: StageReport) -> None:
    """Write the records of a plan as a new batch, and commit it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    batches = [batch for split in plan.splits for batch in read_split_batches(split)]
    records = pa.Table.from_batches(batches, event_batch("", []).schema)
    is_readable = pc.is_null(records.column("reason"))
    readable, unreadable = records.filter(is_readable), records.filter(pc.invert(is_readable))
    extent = BatchExtent(len(records), len(readable), _times(readable.column("at").to_pylist()))
    events = _new_events(folder, extent.overlapping(base.batches), readable)
    rejected = _new_records(folder, base.batches, unreadable)
    batch = NewBatch.after(base)
    for table, rows in ((schemas.EVENTS, events), (schemas.QUARANTINE, rejected)):
        stored = rows.select(table.column_names)
        name = f"{batch.path}/{table.name}/part-0.parquet"
        folder.write_batches(name, stored.schema, stored.to_batches())
    stage.rows_in = extent.rows
    stage.rows_out, stage.rejected = len(events), len(rejected)
    stage.duplicates = extent.readable - stage.rows_out
    batch.commit(folder, base, extent, stage, plan.known)


def _times(times: Sequence[int]) -> list[TimeRange]:
    by_hour: dict[int, TimeRange] = {}
    for at in times:
        first, last = by_hour.get(at // HOUR, (at, at))
        by_hour[at // HOUR] = TimeRange(min(first, at), max(last, at))
    return join_ranges(by_hour.values())


def _new_events(folder: Folder, known: Sequence[BronzeBatch], events: pa.Table) -> pa.Table:
    """Return the events that are in no batch, each once: the first by position."""
    digests = events.column("digest").to_pylist()
    wanted = set(digests)
    seen: set[bytes] = set()
    for batch in known:
        seen |= folder.find_rows(f"{batch.path}/events", "digest", wanted, "digest").keys()
    positions = zip(*(events.column(name).to_pylist() for name in _RECORD[:3]), strict=True)
    kept = []
    for _, row in sorted(zip(positions, range(len(digests)), strict=True)):
        if digests[row] not in seen:
            seen.add(digests[row])
            kept.append(row)
    return _take(events, kept)


def _new_records(folder: Folder, batches: Sequence[BronzeBatch], unreadable: pa.Table) -> pa.Table:
    """Return the unreadable records that are not in the quarantine."""
    known: set[tuple[Any, ...]] = set()
    if len(unreadable):
        for batch in batches:
            if batch.quarantined:
                for rows in folder.scan(batch.quarantine_path, list(_RECORD), _ROWS_AT_ONCE):
                    known.update(zip(*(rows.column(n).to_pylist() for n in _RECORD), strict=True))
    found = zip(*(unreadable.column(name).to_pylist() for name in _RECORD), strict=True)
    return _take(unreadable, [row for row, key in enumerate(found) if key not in known])


def _take(table: pa.Table, rows: list[int]) -> pa.Table:
    import pyarrow as pa

    return table.take(pa.array(sorted(rows), pa.int64()))

"""Batches of bronze: the times of their events, and the commit of a new one."""

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.lake.bronze.source_lists import add_states
from downriver.lake.bronze.unfinished_lines import without_completed_lines
from downriver.lake.schemas import QUARANTINE
from downriver.lake.storage.tables import (
    PARQUET,
    BronzeBatch,
    LakeVersion,
    StoredTable,
    TimeRange,
    commit_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.lake.bronze.event_files import FileState
    from downriver.lake.schemas import LakeTable
    from downriver.lake.stages import StageReport
    from downriver.lake.storage.files import Folder

HOUR = 3_600_000_000
_MAX_RANGES = 16


class BatchExtent(NamedTuple):
    """The number of records, and the times of the readable ones."""

    rows: int
    readable: int
    ranges: list[TimeRange]

    def overlapping(self, batches: Sequence[BronzeBatch]) -> list[BronzeBatch]:
        """Return the batches that may have events of these times.

        A duplicate has the same event time, so it is in none of the others.
        """
        return [batch for batch in batches if any(batch.may_hold(*at) for at in self.ranges)]


class NewBatch(NamedTuple):
    """The number and folder of the next batch of a lake."""

    number: int
    path: str

    @classmethod
    def after(cls, base: LakeVersion) -> NewBatch:
        """Return the batch after those of a version."""
        number = base.batches[-1].number + 1 if base.batches else 1
        return cls(number, f"bronze/{number:06d}-{uuid.uuid4().hex[:8]}")

    def commit(
        self,
        folder: Folder,
        base: LakeVersion,
        extent: BatchExtent,
        stage: StageReport,
        states: Sequence[FileState],
        written_as: str = PARQUET,
    ) -> None:
        """Commit the batch, which was written, with the new states of files."""
        batch = BronzeBatch(
            number=self.number,
            path=self.path,
            events=stage.rows_out,
            quarantined=stage.rejected,
            duplicates=stage.duplicates,
            first_at=extent.ranges[0].first_at if extent.ranges else None,
            last_at=extent.ranges[-1].last_at if extent.ranges else None,
            format=written_as,
            ranges=tuple(extent.ranges),
        )
        changed = msgspec.structs.replace(
            base,
            batches=(*base.batches, batch),
            sources=add_states(folder, base, states),
        )
        commit_version(folder, base, without_completed_lines(folder, changed, states))


def bronze_locations(table: LakeTable, batches: Sequence[BronzeBatch]) -> list[StoredTable]:
    """Return the folders of a bronze table of some batches."""
    if table is QUARANTINE:
        return [
            StoredTable(batch.quarantine_path, 0, PARQUET if batch.quarantine else batch.format)
            for batch in batches
        ]
    return [StoredTable(f"{batch.path}/{table.name}", 0, batch.format) for batch in batches]


def time_ranges(batches: Sequence[BronzeBatch], since: int | None) -> list[TimeRange]:
    """Return the times of some batches `since` a time; none if those of a batch are unknown."""
    if any(batch.events and batch.times is None for batch in batches):
        return []
    times = [times for batch in batches for times in batch.times or ()]
    if since is not None:
        times = [TimeRange(max(at.first_at, since), at.last_at) for at in times]
    return join_ranges(at for at in times if at.first_at <= at.last_at)


def join_ranges(ranges: Iterable[TimeRange]) -> list[TimeRange]:
    """Merge ranges into a few, across the smallest gaps first."""
    ordered = sorted(ranges)
    gaps = sorted(later.first_at - earlier.last_at for earlier, later in pairwise(ordered))
    closed = gaps[: max(0, len(gaps) - _MAX_RANGES + 1)]
    threshold = max([HOUR, *closed[-1:]])
    joined: list[TimeRange] = []
    for times in ordered:
        if joined and times.first_at - joined[-1].last_at <= threshold:
            times = TimeRange(joined[-1].first_at, max(times.last_at, joined[-1].last_at))
            joined.pop()
        joined.append(times)
    return joined

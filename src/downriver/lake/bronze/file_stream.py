"""A Structured Streaming source for files and directories of events.

Spark's own file source reads a file once and ignores data appended later. This source records new
byte ranges in a numbered listing before it reads them; the stream's offset is the number of a
listing. A batch that is read again after a failure is therefore the same batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from downriver.lake import schemas
from downriver.lake.bronze.event_files import (
    FileSplit,
    ReadPlan,
    plan_reads,
    read_split_batches,
)
from downriver.lake.storage.files import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

FORMAT = "downriver"
_TASK_BYTES = 32 * 2**20
_MERGE_EVERY = 64
_OFFSET_KEY = "listing"


class FileListings:
    """The numbered listings of a stream, in a folder. Old ones are merged."""

    def __init__(self, location: str) -> None:
        self._folder = Folder(location)
        numbers = self._numbers()
        self.last = numbers[-1] if numbers else 0
        self.known = {file.path: file for n in numbers for file in self.read(n).known}

    def add(self, listing: ReadPlan) -> None:
        """Store a listing durably as the next one."""
        self._folder.publish(_file(self.last + 1), msgspec.json.encode(listing))
        self.last += 1
        self.known |= {file.path: file for file in listing.known}

    def read(self, number: int) -> ReadPlan:
        """Return one listing."""
        return msgspec.json.decode(self._folder.read(_file(number)), type=ReadPlan)

    def merge(self, upto: int) -> None:
        """Merge the listings that will not be read again; the states of their files remain."""
        old = [number for number in self._numbers() if number <= upto]
        if len(old) < _MERGE_EVERY:
            return
        known = {file.path: file for number in old for file in self.read(number).known}
        # Replace the last one first, so that no file state is missing at any time.
        self._folder.write(_file(old[-1]), msgspec.json.encode(ReadPlan([], [*known.values()])))
        for number in old[:-1]:
            self._folder.remove_file(_file(number))

    def _numbers(self) -> list[int]:
        stems = (name.removesuffix(".json") for name in self._folder.names("all"))
        return sorted(int(stem) for stem in stems if stem.isdigit())


def _file(number: int) -> str:
    return f"all/{number:08d}.json"


class EventFileSource(DataSource):
    """Options: `sources`, a JSON array of locations; `listings`, the folder of the listings."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of the records."""
        return schemas.EVENT_RECORDS.ddl

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """Return the reader of a stream."""
        sources = msgspec.json.decode(self.options["sources"], type=list[str])
        return EventFileReader(sources, self.options["listings"])


class EventFileReader(DataSourceStreamReader):
    """Lists new data on the driver and reads it on the workers."""

    def __init__(self, sources: list[str], listings: str) -> None:
        self._sources = sources
        self._location = listings
        self._opened: FileListings | None = None

    @property
    def _listings(self) -> FileListings:
        if self._opened is None:
            self._opened = FileListings(self._location)
        return self._opened

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """Start before the first listing."""
        return {_OFFSET_KEY: 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """Store a listing of the new data, if there is any."""
        plan = plan_reads(self._sources, self._listings.known)
        if plan.known:
            self._listings.add(plan)
        return {_OFFSET_KEY: self._listings.last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the splits between two offsets, grouped into tasks."""
        numbers = range(start[_OFFSET_KEY] + 1, end[_OFFSET_KEY] + 1)
        splits = [split for number in numbers for split in self._listings.read(number).splits]
        return [InputPartition(part) for part in _parts(splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the splits of a task."""
        for split in partition.value:
            yield from read_split_batches(FileSplit(*split))

    def commit(self, end: dict[str, int]) -> None:
        """Merge the listings up to an offset that is committed."""
        self._listings.merge(end[_OFFSET_KEY])


def _parts(splits: Iterable[FileSplit]) -> Iterator[list[FileSplit]]:
    """Yield groups of splits that are large enough for a task."""
    part: list[FileSplit] = []
    size = 0
    for split in splits:
        part.append(split)
        size += split.end - split.start
        if size >= _TASK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part

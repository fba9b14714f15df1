"""Sources of a stream: files and directories of events, and Kafka topics.

Spark's own file source reads a file once and ignores data appended later. The source here records
new byte ranges in a numbered listing before it reads them; the stream's offset is the number of a
listing. A batch that is read again after a failure is therefore the same batch.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from downriver.errors import InvalidRequestError, LakeError
from downriver.lake import schemas
from downriver.lake.bronze.event_files import (
    TOPIC,
    FileSplit,
    FileState,
    ReadPlan,
    event_batch,
    plan_reads,
    read_split_batches,
)
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import is_unknown_format
from downriver.openlineage.files import EventRecord, read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "downriver"
_TASK_BYTES = 32 * 2**20
_MERGE_EVERY = 64
_OFFSET_KEY = "listing"
LISTINGS, CHECKPOINT = "listings", "checkpoint"  # folders of a stream


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


def read_listed_files(folder: Folder, home: str, number: int) -> list[FileState]:
    """Return the states of the files of a micro-batch.

    Spark stores the offset at which a micro-batch ends before it runs the micro-batch.
    """
    end = _read_offset(folder, home, number)
    start = _read_offset(folder, home, number - 1) if number else 0
    listings = (folder.read(f"{home}/{LISTINGS}/{_file(n)}") for n in range(start + 1, end + 1))
    plans = (msgspec.json.decode(listing, type=ReadPlan) for listing in listings)
    return [file for plan in plans for file in plan.known]


def _read_offset(folder: Folder, home: str, number: int) -> int:
    last = folder.read(f"{home}/{CHECKPOINT}/offsets/{number}").splitlines()[-1]
    return msgspec.json.decode(last, type=dict[str, int])[_OFFSET_KEY]


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
        plan = plan_reads(self._sources, lambda paths: self._listings.known)
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


_FORMAT = "kafka"


class KafkaTopic(NamedTuple):
    """A topic: `kafka://host:9092,other:9092/topic?kafka.option=value`."""

    servers: str
    name: str
    options: dict[str, str]

    @property
    def source(self) -> str:
        """The source of its events, without the options, which may be secret."""
        return f"{TOPIC}{self.servers}/{self.name}"


def parse_topic(url: str) -> KafkaTopic:
    """Parse the URL of a topic."""
    form = f"{url} is not of the form kafka://host:9092/topic"
    try:
        parts = urlsplit(url)
    except ValueError as exc:  # brackets or characters that no host contains
        raise InvalidRequestError("SRC", form) from exc
    name = parts.path.strip("/")
    if not url.startswith(TOPIC) or not parts.netloc or not name or "/" in name:
        raise InvalidRequestError("SRC", form)
    return KafkaTopic(parts.netloc, name, dict(parse_qsl(parts.query)))


def stream_topic(spark: SparkSession, topic: KafkaTopic) -> DataFrame:
    """Return a topic from its beginning, as a stream of `schemas.EVENT_RECORDS`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    options = {
        "startingOffsets": "earliest",
        "kafka.bootstrap.servers": topic.servers,
        "subscribe": topic.name,
        # Messages that Kafka deleted before they were read are an error, not a gap.
        "failOnDataLoss": "true",
        **topic.options,
    }
    try:
        messages = spark.readStream.format(_FORMAT).options(**options).load()
    except (PySparkException, Py4JError) as exc:
        if is_unknown_format(exc):
            raise LakeError(_NO_KAFKA) from exc
        raise
    return _event_records(messages, topic)


_NO_KAFKA = (
    "Spark cannot read Kafka; add its package with --packages "
    "org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION, where VERSION is your Spark version"
)


def _event_records(messages: DataFrame, topic: KafkaTopic) -> DataFrame:
    source = topic.source

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from read_messages(batch, source)

    return messages.select("partition", "offset", "value").mapInArrow(
        read, schemas.EVENT_RECORDS.ddl
    )


def read_messages(batch: pa.RecordBatch, source: str) -> Iterator[pa.RecordBatch]:
    """Parse messages into event records, one batch for each partition."""
    by_partition: dict[int, list[EventRecord]] = {}
    for row in batch.to_pylist():
        message = _read_message(row["value"], f"{source}/{row['partition']}", row["offset"])
        by_partition.setdefault(row["partition"], []).extend(message)
    for partition, records in by_partition.items():
        yield event_batch(f"{source}/{partition}", records)


def _read_message(value: bytes | None, source: str, offset: int) -> Iterator[EventRecord]:
    """Yield the events of a message. A message without events is an unreadable record."""
    position = -1
    for position, record in enumerate(read_events(io.BytesIO(value or b""), source)):
        yield record._replace(offset=offset, position=position)
    if position < 0:
        yield EventRecord(source, None, "empty message", b"", offset)

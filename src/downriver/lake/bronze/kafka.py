"""A Kafka topic as a source of events. A message contains one or more events."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from downriver.errors import InvalidRequestError, LakeError
from downriver.lake import schemas
from downriver.lake.bronze.event_files import event_batch
from downriver.lake.storage.tables import is_unknown_format
from downriver.openlineage.files import EventRecord, read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SCHEME = "kafka://"
_FORMAT = "kafka"


class KafkaTopic(NamedTuple):
    """A topic: `kafka://host:9092,other:9092/topic?kafka.option=value`."""

    servers: str
    name: str
    options: dict[str, str]

    @property
    def source(self) -> str:
        """The source of its events, without the options, which may be secret."""
        return f"{SCHEME}{self.servers}/{self.name}"


def parse_topic(url: str) -> KafkaTopic:
    """Parse the URL of a topic."""
    parts = urlsplit(url)
    name = parts.path.strip("/")
    if not url.startswith(SCHEME) or not parts.netloc or not name or "/" in name:
        raise InvalidRequestError("SRC", f"{url} is not of the form kafka://host:9092/topic")
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

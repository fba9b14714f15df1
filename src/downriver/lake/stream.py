"""Continuous ingestion on Structured Streaming: each micro-batch becomes a batch of bronze.

Spark's checkpoint records the next micro-batch, and the lake's version records the last committed
one. If a failure prevents the checkpoint, Spark delivers the micro-batch again, and the lake skips
it.
"""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from pyspark.errors import StreamingQueryException

from downriver.errors import DownriverError, InvalidRequestError, LakeBusyError, LakeError
from downriver.lake.bronze.event_files import TOPIC
from downriver.lake.bronze.stream_sources import (
    CHECKPOINT,
    LISTINGS,
    parse_topic,
    read_listed_files,
    stream_topic,
)
from downriver.lake.session import is_connected
from downriver.lake.stages import StageReport
from downriver.lake.storage.files import absolute_location, list_files
from downriver.lake.storage.tables import read_current_version

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from downriver.lake.runner import Lake

_POLL = 0.2
_ATTEMPTS = 5  # when another process commits first
_Result = TypeVar("_Result")


class StreamSchedule(NamedTuple):
    """Seconds between two micro-batches (`trigger`) and between two builds (`build_every`).

    `once`: ingest everything available, build, and stop.
    """

    trigger: int = 30
    build_every: int = 0
    once: bool = False


def run_stream(
    lake: Lake,
    sources: Sequence[str],
    schedule: StreamSchedule,
    stopped: threading.Event,
    *,
    build: bool,
) -> StageReport:
    """Ingest until `stopped` is set; with `build`, also build silver and gold.

    Returns the counts of all ingested micro-batches.
    """
    if is_connected(lake.spark):
        raise LakeError(
            "streams commit to the lake from Spark's driver, which with SPARK_REMOTE is another "
            "process; use --master or spark-submit. Ingesting files, builds and queries work."
        )
    home = f"streams/{_stream_key(sources)}"
    ingest = BatchIngest(lake, schedule, build, None if _are_topics(sources) else home)
    if not schedule.once:
        ingest.build_pending()
    query = _start(lake, sources, schedule, ingest, home)
    try:
        everything = schedule.once and not _are_topics(sources)
        (_wait_for_all if everything else _wait)(query, stopped)
    except StreamingQueryException as exc:
        if ingest.error is not None:
            raise ingest.error from exc
        raise
    finally:
        query.stop()
    ingest.build_pending()
    return ingest.report


class BatchIngest:
    """Ingests each micro-batch, and builds on schedule."""

    def __init__(self, lake: Lake, schedule: StreamSchedule, build: bool, home: str | None) -> None:
        self._lake = lake
        self._home = home  # the folder of a stream of files; None for a topic
        self._every = schedule.build_every
        self._build = build
        self._built_at = time.monotonic()
        self.report = StageReport("bronze")
        self.error: DownriverError | None = None

    def run(self, records: DataFrame, number: int) -> None:
        """Ingest one micro-batch, with retries when another process commits first."""
        try:
            self._ingest(records, number)
            if time.monotonic() - self._built_at >= self._every:
                self.build_pending()
        except DownriverError as exc:  # Spark's own error has less detail
            self.error = exc
            raise

    def _ingest(self, records: DataFrame, number: int) -> None:
        stream = str(records.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        files = read_listed_files(self._lake.folder, self._home, number) if self._home else []
        self.report.add(
            _with_retries(lambda: self._lake.ingest_stream(records, stream, number, files))
        )

    def build_pending(self) -> None:
        """Build the batches that are not folded yet, also those of a stream that was killed."""
        if self._build and read_current_version(self._lake.folder, create=True).unfolded:
            _with_retries(self._lake.build)
            self._built_at = time.monotonic()


def _with_retries(commit: Callable[[], _Result]) -> _Result:
    """Call a function that commits to the lake. Call it again if another process commits first."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(LakeBusyError):
            return commit()
    return commit()


def _start(
    lake: Lake, sources: Sequence[str], schedule: StreamSchedule, ingest: BatchIngest, home: str
) -> StreamingQuery:
    records = _read_stream(lake.spark, sources, lake.folder.url_of(f"{home}/{LISTINGS}"))
    writer = records.writeStream.foreachBatch(ingest.run).option(
        "checkpointLocation", lake.folder.url_of(f"{home}/{CHECKPOINT}")
    )
    if schedule.once and _are_topics(sources):
        return writer.trigger(availableNow=True).start()
    return writer.trigger(
        processingTime=f"{0 if schedule.once else schedule.trigger} seconds"
    ).start()


def _are_topics(sources: Sequence[str]) -> bool:
    return any(source.startswith(TOPIC) for source in sources)


def _stream_key(sources: Sequence[str]) -> str:
    """Return the id of a stream: a hash of its sources, without options that may be secret."""
    names = sorted(
        parse_topic(source).source if source.startswith(TOPIC) else absolute_location(source)
        for source in sources
    )
    return hashlib.sha256(msgspec.json.encode(names)).hexdigest()[:16]


def _read_stream(spark: SparkSession, sources: Sequence[str], listings: str) -> DataFrame:
    if _are_topics(sources):
        if len(sources) > 1:
            raise InvalidRequestError("SRC", "a stream reads one topic, or files and directories")
        return stream_topic(spark, parse_topic(sources[0]))
    for source in sources:  # raises a readable error; in Spark it would be a Java stack
        next(list_files(source, ()), None)
    try:
        from downriver.lake.bronze.stream_sources import FORMAT, EventFileSource
    except ImportError as exc:
        raise LakeError("streams of files need PySpark 4 or later") from exc
    spark.dataSource.register(EventFileSource)
    locations = msgspec.json.encode([absolute_location(source) for source in sources]).decode()
    return spark.readStream.format(FORMAT).options(sources=locations, listings=listings).load()


def _wait(query: StreamingQuery, stopped: threading.Event) -> None:
    """Wait until the query has ended or `stopped` is set; let a running micro-batch finish."""
    while query.isActive and not stopped.wait(_POLL):
        pass
    while query.isActive and query.status["isTriggerActive"]:
        time.sleep(_POLL)
    if not query.isActive:
        query.awaitTermination()


def _wait_for_all(query: StreamingQuery, stopped: threading.Event) -> None:
    """Wait until everything available is ingested.

    Spark's `availableNow` runs a single batch of a Python source. After a crash that batch is the
    repeated one, and newer data would be left for the next run.
    """
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(query.processAllAvailable)
        while not done.done() and not stopped.wait(_POLL):
            pass
        if not done.done():
            _wait(query, stopped)
            query.stop()
        done.result()

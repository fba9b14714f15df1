"""Continuous ingestion on Structured Streaming: each micro-batch becomes a batch of bronze.

Spark's checkpoint records the next micro-batch, the lake's version the last one committed. A
micro-batch that reached the lake but not the checkpoint is delivered again and then skipped.
"""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pyspark.errors import StreamingQueryException

from downriver.errors import DownriverError, InvalidRequestError, LakeBusyError, LakeError
from downriver.lake.bronze.kafka import SCHEME, parse_topic, stream_topic
from downriver.lake.pipeline import StageReport
from downriver.lake.session import is_connected
from downriver.lake.storage.files import absolute_location, list_files
from downriver.lake.storage.versions import read_current_version

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from downriver.lake.runner import Lake

_POLL = 0.2
_ATTEMPTS = 5  # another writer may be quicker


class StreamSchedule(NamedTuple):
    """How often what is new is taken in, and how often tables are built of it; in seconds.

    `once`: take in all there is, build, and be done.
    """

    trigger: int = 30
    build_every: int = 0
    once: bool = False


def run_stream(
    lake: Lake,
    sources: Sequence[str],
    rhythm: StreamSchedule,
    stopped: threading.Event,
    *,
    build: bool,
) -> StageReport:
    """Take in what comes until `stopped`; with `build`, make silver and gold of it.

    Returns what was taken in altogether.
    """
    if is_connected(lake.spark):
        raise LakeError(
            "a stream commits to the lake from Spark's driver, which is not here at SPARK_REMOTE; "
            "run it by --master or spark-submit. Ingesting files, building and queries do work."
        )
    taking = _BatchIngest(lake, rhythm, build)
    if not rhythm.once:
        taking.finish()
    query = _start(lake, sources, rhythm, taking)
    try:
        everything = rhythm.once and not _are_topics(sources)
        (_wait_for_all if everything else _wait)(query, stopped)
    except StreamingQueryException as exc:
        if taking.failed is not None:
            raise taking.failed from exc
        raise
    finally:
        query.stop()
    taking.finish()
    return taking.taken


class _BatchIngest:
    """What is done with each batch."""

    def __init__(self, lake: Lake, rhythm: StreamSchedule, build: bool) -> None:
        self._lake = lake
        self._every = rhythm.build_every
        self._build = build
        self._built_at = time.monotonic()
        self.taken = StageReport("bronze")
        self.failed: DownriverError | None = None

    def take(self, found: DataFrame, number: int) -> None:
        """Take in one batch. Another writer may be quicker; then it is tried again."""
        try:
            self._ingest(found, number)
            if time.monotonic() - self._built_at >= self._every:
                self.finish()
        except DownriverError as exc:  # what Spark makes of it says less
            self.failed = exc
            raise

    def _ingest(self, found: DataFrame, number: int) -> None:
        run_stream = str(found.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        for _ in range(_ATTEMPTS - 1):
            with suppress(LakeBusyError):
                self.taken.add(self._lake.ingest_stream(found, run_stream, number))
                return
        self.taken.add(self._lake.ingest_stream(found, run_stream, number))

    def finish(self) -> None:
        """Build what has been taken in so far, also by a stream killed before it could."""
        if self._build and read_current_version(self._lake.folder, create=True).unfolded:
            self._lake.build()
            self._built_at = time.monotonic()


def _start(
    lake: Lake, sources: Sequence[str], rhythm: StreamSchedule, taking: _BatchIngest
) -> StreamingQuery:
    home = f"streams/{_stream_key(sources)}"
    found = _read_stream(lake.spark, sources, lake.folder.of(f"{home}/listings"))
    writer = found.writeStream.foreachBatch(taking.take).option(
        "checkpointLocation", lake.folder.of(f"{home}/checkpoint")
    )
    if rhythm.once and _are_topics(sources):
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{0 if rhythm.once else rhythm.trigger} seconds").start()


def _are_topics(sources: Sequence[str]) -> bool:
    return any(source.startswith(SCHEME) for source in sources)


def _stream_key(sources: Sequence[str]) -> str:
    """Return what a stream is known by: its sources, without what may be secret in them."""
    named = sorted(
        parse_topic(source).source if source.startswith(SCHEME) else absolute_location(source)
        for source in sources
    )
    return hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:16]


def _read_stream(spark: SparkSession, sources: Sequence[str], listings: str) -> DataFrame:
    if _are_topics(sources):
        if len(sources) > 1:
            raise InvalidRequestError("SRC", "a stream has one topic, or files and directories")
        return stream_topic(spark, parse_topic(sources[0]))
    for source in sources:  # here, where it can be said what is wrong
        next(list_files(source, ()), None)
    try:
        from downriver.lake.bronze.file_stream import FORMAT, EventFileSource
    except ImportError as exc:
        raise LakeError("streams of files need PySpark 4 or later") from exc
    spark.dataSource.register(EventFileSource)
    places = msgspec.json.encode([absolute_location(source) for source in sources]).decode()
    return spark.readStream.format(FORMAT).options(sources=places, listings=listings).load()


def _wait(query: StreamingQuery, stopped: threading.Event) -> None:
    """Wait until it is to stop or has stopped; a batch that is under way is finished."""
    while query.isActive and not stopped.wait(_POLL):
        pass
    while query.isActive and query.status["isTriggerActive"]:
        time.sleep(_POLL)
    if not query.isActive:
        query.awaitTermination()


def _wait_for_all(query: StreamingQuery, stopped: threading.Event) -> None:
    """Wait until all there is has been taken in.

    Spark's own trigger for this would, of a source like ours, run one batch only: after a crash
    that is the one that is repeated, and what came since would have to wait.
    """
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(query.processAllAvailable)
        while not done.done() and not stopped.wait(_POLL):
            pass
        if not done.done():
            _wait(query, stopped)
            query.stop()
        done.result()

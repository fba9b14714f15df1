"""Streaming queries: one run each, its lineage told once rows flow, its rows counted to the end."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import ROWS, Origins
from downriver.capture.spark.actions import (
    DatasetLocation,
    IoStatistics,
    PlanLeaf,
    Sink,
    SparkAction,
)
from downriver.capture.spark.context import RunContext
from downriver.capture.spark.events import render_state
from downriver.capture.spark.io.paths import name_path, short_name
from downriver.capture.spark.java import Java, each, ids, simple_name
from downriver.capture.spark.plan.lineage import PlanLineage, read_lineage, read_relation
from downriver.model.ids import DatasetId, JobId, RunId

if TYPE_CHECKING:
    from downriver.capture.spark.action_reader import ActionReader
    from downriver.capture.spark.listener import ActionPublisher

_IN_BRACKETS = re.compile(r"\w+\[(.*)\]", re.DOTALL)
_TELL_EVERY = 60.0  # seconds


class TrackedStream:
    """One streaming query while it runs."""

    def __init__(self, query: Java, run: str, name: str) -> None:
        self.query = query
        self.run = run
        self.name = name
        self.harvest: SparkAction | None = None
        self.lineage: PlanLineage | None = None
        self.rows = 0
        self.told_at = 0.0


class SessionStreams:
    """The streaming queries of one session. `capture` gives the context they are part of."""

    def __init__(self, spark: Any, harvester: ActionReader, capture: ActionPublisher) -> None:
        self._spark = spark
        self._harvester = harvester
        self._capture = capture
        self._known: dict[str, TrackedStream] = {}
        self._origins: dict[int, Origins] = {}
        self._lock = threading.Lock()
        self._listener = _listener(self)
        spark.streams.addListener(self._listener)

    def leave(self) -> None:
        """Follow the session's streams no longer."""
        self._spark.streams.removeListener(self._listener)

    def origins_of(self, first_id: int) -> Origins | None:
        """Return where the rows that a stream hands to `foreachBatch` come from."""
        with self._lock:
            streams = list(self._known.values())
        for stream in streams:
            if stream.harvest is None:
                self._read(stream)
        return self._origins.get(first_id)

    def start(self, query_id: str, run: str, name: str) -> None:
        """Take a query that started."""
        found = self._spark.streams.get(query_id)
        if found is None:
            return
        with self._lock:
            self._known[run] = TrackedStream(found._jsq.streamingQuery(), run, name)

    def advance(self, run: str, rows: int) -> None:
        """Take the rows of a batch."""
        stream = self._known.get(run)
        if stream is None:
            return
        stream.rows += rows
        if time.monotonic() - stream.told_at < _TELL_EVERY and stream.harvest is not None:
            return
        self._read(stream)
        self._tell(stream, "RUNNING", "")
        stream.told_at = time.monotonic()

    def end(self, run: str, error: str) -> None:
        """Take a query that ended, for an error or not."""
        stream = self._known.get(run)
        if stream is None:
            return
        self._read(stream)
        self._tell(stream, "FAIL" if error else "COMPLETE", error)

    def _read(self, stream: TrackedStream) -> None:
        """Read a stream's plan, once it has one."""
        if stream.harvest is not None:
            return
        query = stream.query
        harvest = self._harvester.read_plan(query.analyzedPlan())
        harvest.action = "stream"
        leaves = {leaf.first_id: leaf for leaf in harvest.leaves}
        for leaf in each(query.logicalPlan().collectLeaves()):
            if simple_name(leaf).startswith("Streaming"):
                found = _leaf(leaf)
                leaves[found.first_id] = found
        harvest.leaves = list(leaves.values())
        harvest.sink = _sink(query.sink())
        stream.lineage = read_lineage(harvest, lambda _: None)
        relation = read_relation(harvest, lambda _: None)
        columns = {column.name: column.deps for column in relation.columns}
        self._origins[harvest.columns[0]] = {**columns, ROWS: relation.rows}
        stream.harvest = harvest

    def _tell(self, stream: TrackedStream, state: str, error: str) -> None:
        harvest, lineage = stream.harvest, stream.lineage
        if harvest is None or lineage is None:
            return
        harvest.ended_at = time.time_ns() // 1000
        harvest.error = error
        if harvest.sink is not None:
            harvest.written = IoStatistics(rows=stream.rows)
        outer = self._capture.context
        name = stream.name or _name(harvest)
        job = JobId(outer.own.job.namespace, f"{outer.own.job.name}.{name}")
        context = RunContext(RunId(job, stream.run), outer.own, outer.root or outer.parent)
        engine = self._capture.engine._replace(streaming=True)
        self._capture.emit(render_state(harvest, lineage, context, engine, state))


def _listener(streams: SessionStreams) -> Any:
    """Return what Spark reports a session's streams to; its class exists once PySpark does."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Passes on what Spark reports."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            with guarded("following a stream that started"):
                streams.start(str(event.id), str(event.runId), event.name or "")

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            with guarded("following a stream"):
                streams.advance(str(event.progress.runId), event.progress.numInputRows)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            del event

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            with guarded("following a stream that ended"):
                streams.end(str(event.runId), event.exception or "")

    return Listener()


def _name(harvest: SparkAction) -> str:
    if harvest.sink is None:
        return "stream"
    return short_name(harvest.sink.place.table or harvest.sink.place.dataset)


def _leaf(leaf: Java) -> PlanLeaf:
    """Return where a stream reads from, as its running plan says."""
    columns = ids(leaf.output())
    text = str(leaf.toString())
    inside = _IN_BRACKETS.match(text)
    first = columns[0] if columns else -1
    if text.startswith("FileStreamSource[") and inside:
        return PlanLeaf(first, [DatasetLocation(name_path(inside[1]))])
    return PlanLeaf(first, [], unknown=f"the stream {text.strip()[:200]}")


def _sink(sink: Java) -> Sink | None:
    kind = simple_name(sink)
    if kind == "FileStreamSink":
        inside = _IN_BRACKETS.match(str(sink.toString()))
        return Sink(DatasetLocation(name_path(inside[1]))) if inside else None
    if kind in {
        "ForeachBatchSink",
        "ForeachWriterTable",
        "NoopTable$",
        "ConsoleTable$",
        "MemorySink",
    }:
        return None  # what its code writes is reported by itself
    return Sink(DatasetLocation(DatasetId("spark", str(sink.name()))))

"""Streaming queries: one run each. Lineage is emitted with the first rows, counts until the end."""

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
from downriver.capture.spark.io.paths import short_name
from downriver.capture.spark.java import Java, column_ids, elements, simple_name
from downriver.capture.spark.plan.lineage import PlanLineage, read_lineage, read_relation
from downriver.model.ids import DatasetId, JobId, RunId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from downriver.capture.spark.action_reader import ActionReader
    from downriver.capture.spark.listener import ActionPublisher

_IN_BRACKETS = re.compile(r"\w+\[(.*)\]", re.DOTALL)
_EMIT_EVERY = 60.0  # seconds


class TrackedStream:
    """One running streaming query."""

    def __init__(self, query: Java, run: str, name: str) -> None:
        self.query = query
        self.run = run
        self.name = name
        self.action: SparkAction | None = None
        self.lineage: PlanLineage | None = None
        self.rows = 0
        self.emitted_at = 0.0


class SessionStreams:
    """The streaming queries of one session."""

    def __init__(self, spark: Any, reader: ActionReader, capture: ActionPublisher) -> None:
        self._spark = spark
        self._reader = reader
        self._capture = capture
        self._known: dict[str, TrackedStream] = {}
        self._origins: dict[int, Origins] = {}
        self._lock = threading.Lock()
        self._listener = _listener(self)
        spark.streams.addListener(self._listener)

    def leave(self) -> None:
        """Stop following the session's streams."""
        self._spark.streams.removeListener(self._listener)

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of the rows that a stream passes to `foreachBatch`."""
        with self._lock:
            streams = list(self._known.values())
        for stream in streams:
            if stream.action is None:
                self._read(stream)
        return self._origins.get(first_id)

    def start(self, query_id: str, run: str, name: str) -> None:
        """Follow a query that started."""
        found = self._spark.streams.get(query_id)
        if found is None:
            return
        with self._lock:
            self._known[run] = TrackedStream(found._jsq.streamingQuery(), run, name)

    def advance(self, run: str, rows: int) -> None:
        """Add the rows of a batch, and emit RUNNING at most once a minute."""
        stream = self._known.get(run)
        if stream is None:
            return
        stream.rows += rows
        if time.monotonic() - stream.emitted_at < _EMIT_EVERY and stream.action is not None:
            return
        self._read(stream)
        self._emit(stream, "RUNNING", "")
        stream.emitted_at = time.monotonic()

    def end(self, run: str, error: str) -> None:
        """Emit the end of a query."""
        stream = self._known.get(run)
        if stream is None:
            return
        self._read(stream)
        self._emit(stream, "FAIL" if error else "COMPLETE", error)

    def _read(self, stream: TrackedStream) -> None:
        """Read a stream's plan once."""
        if stream.action is not None:
            return
        query = stream.query
        action = self._reader.read_plan(query.analyzedPlan())
        action.name = "stream"
        leaves = {leaf.first_id: leaf for leaf in action.leaves}
        for leaf in elements(query.logicalPlan().collectLeaves()):
            if simple_name(leaf).startswith("Streaming"):
                found = _leaf(leaf)
                leaves[found.first_id] = found
        action.leaves = list(leaves.values())
        action.sink = _sink(query.sink())
        stream.lineage = read_lineage(action, lambda _: None)
        relation = read_relation(action, lambda _: None)
        columns = {column.name: column.deps for column in relation.columns}
        self._origins[action.columns[0]] = {**columns, ROWS: relation.rows}
        stream.action = action

    def _emit(self, stream: TrackedStream, state: str, error: str) -> None:
        action, lineage = stream.action, stream.lineage
        if action is None or lineage is None:
            return
        action.ended_at = time.time_ns() // 1000
        action.error = error
        if action.sink is not None:
            action.written = IoStatistics(rows=stream.rows)
        outer = self._capture.context
        name = stream.name or _name(action)
        job = JobId(outer.own.job.namespace, f"{outer.own.job.name}.{name}")
        context = RunContext(RunId(job, stream.run), outer.own, outer.root or outer.parent)
        engine = self._capture.engine._replace(streaming=True)
        self._capture.emit(render_state(action, lineage, context, engine, state))


def _listener(streams: SessionStreams) -> Any:
    """Return a listener of a session's streams; its base class needs PySpark."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Receives what Spark reports."""

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


def _name(action: SparkAction) -> str:
    if action.sink is None:
        return "stream"
    return short_name(action.sink.location.table or action.sink.location.dataset)


def _leaf(leaf: Java) -> PlanLeaf:
    """Return what a stream reads, from its running plan."""
    columns = column_ids(leaf.output())
    text = str(leaf.toString())
    inside = _IN_BRACKETS.match(text)
    first = columns[0] if columns else -1
    if text.startswith("FileStreamSource[") and inside:
        return PlanLeaf(first, [DatasetLocation(dataset_at(inside[1]))])
    return PlanLeaf(first, [], unknown=f"the stream {text.strip()[:200]}")


def _sink(sink: Java) -> Sink | None:
    kind = simple_name(sink)
    if kind == "FileStreamSink":
        inside = _IN_BRACKETS.match(str(sink.toString()))
        return Sink(DatasetLocation(dataset_at(inside[1]))) if inside else None
    if kind in {
        "ForeachBatchSink",
        "ForeachWriterTable",
        "NoopTable$",
        "ConsoleTable$",
        "MemorySink",
    }:
        return None  # writes inside its code are separate actions
    return Sink(DatasetLocation(DatasetId("spark", str(sink.name()))))

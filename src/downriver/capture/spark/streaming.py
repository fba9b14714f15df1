"""Streaming queries: one run each. Lineage is emitted with the first rows, counts until the end."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import ROWS, Origins
from downriver.capture.spark.actions import IoStatistics, SparkAction
from downriver.capture.spark.context import RunContext
from downriver.capture.spark.events import render_state
from downriver.capture.spark.io.stream_endpoints import stream_leaves, stream_sink
from downriver.capture.spark.java import Java
from downriver.capture.spark.plan.lineage import PlanLineage, read_lineage, read_relation
from downriver.model.ids import JobId, RunId

if TYPE_CHECKING:
    from downriver.capture.spark.action_reader import ActionReader
    from downriver.capture.spark.publisher import ActionPublisher

_STREAMS = "_downriver_streams"
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


class ApplicationStreams:
    """The streaming queries of an application, in the sessions that are followed."""

    def __init__(self, spark: Any, reader: ActionReader, capture: ActionPublisher) -> None:
        self._reader = reader
        self._capture = capture
        self._known: dict[str, TrackedStream] = {}
        self._origins: dict[int, Origins] = {}
        self._lock = threading.Lock()
        self._followed: list[tuple[Any, Any]] = []
        self._context = spark.sparkContext
        self._before = getattr(self._context, _STREAMS, _no_streams)
        setattr(self._context, _STREAMS, weakref.ref(self))
        _patch_new_session()
        self.follow(spark)

    def follow(self, session: Any) -> None:
        """Follow the streams of a session."""
        listener = _listener(self, session)
        session.streams.addListener(listener)
        self._followed.append((session, listener))

    def leave(self) -> None:
        """Stop following streams."""
        setattr(self._context, _STREAMS, self._before)
        for session, listener in self._followed:
            session.streams.removeListener(listener)

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of the rows that a stream passes to `foreachBatch`."""
        with self._lock:
            streams = list(self._known.values())
        for stream in streams:
            if stream.action is None:
                self._read(stream)
        return self._origins.get(first_id)

    def start(self, session: Any, query_id: str, run: str, name: str) -> None:
        """Follow a query that started."""
        query = session.streams.get(query_id)
        if query is None:
            return
        with self._lock:
            self._known[run] = TrackedStream(query._jsq.streamingQuery(), run, name)

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
        if not stream.emitted_at:  # it ended before its first rows
            self._emit(stream, "RUNNING", "")
        self._emit(stream, "FAIL" if error else "COMPLETE", error)

    def _read(self, stream: TrackedStream) -> None:
        """Read a stream's plan once."""
        if stream.action is not None:
            return
        query = stream.query
        action = self._reader.read_plan(query.analyzedPlan())
        action.name = "stream"
        leaves = {leaf.first_id: leaf for leaf in action.leaves}
        leaves |= {leaf.first_id: leaf for leaf in stream_leaves(query, self._reader.locator)}
        action.leaves = list(leaves.values())
        action.sink, action.unknown_write = stream_sink(query, self._reader.locator)
        stream.lineage = read_lineage(action)
        relation = read_relation(action)
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
        name = stream.name or self._capture.names.of(action)
        job = JobId(outer.own.job.namespace, f"{outer.own.job.name}.{name}")
        context = RunContext(RunId(job, stream.run), outer.own, outer.root or outer.parent)
        engine = self._capture.engine._replace(streaming=True)
        self._capture.emit(render_state(action, lineage, context, engine, state))


def _no_streams() -> None:
    return None


def _patch_new_session() -> None:
    """Wrap `newSession`: Spark reports streams to listeners of their own session only."""
    from pyspark.sql import SparkSession

    plain = SparkSession.newSession
    if hasattr(plain, _STREAMS):
        return

    @functools.wraps(plain)
    def new_session(self: Any) -> Any:
        made = plain(self)
        with guarded("following the streams of a new session"):
            streams = getattr(self.sparkContext, _STREAMS, _no_streams)()
            if streams is not None:
                streams.follow(made)
        return made

    setattr(new_session, _STREAMS, True)
    setattr(SparkSession, "newSession", new_session)  # noqa: B010


def _listener(streams: ApplicationStreams, session: Any) -> Any:
    """Return a listener of a session's streams; its base class needs PySpark."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Receives the progress that Spark reports."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            with guarded("following a stream that started"):
                streams.start(session, str(event.id), str(event.runId), event.name or "")

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            with guarded("following a stream"):
                streams.advance(str(event.progress.runId), event.progress.numInputRows)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            del event

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            with guarded("following a stream that ended"):
                streams.end(str(event.runId), event.exception or "")

    return Listener()

"""Spark's query listener, and the thread that turns finished actions into OpenLineage events."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, ClassVar

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import ROWS, Origins
from downriver.capture.spark.events import render_action, render_application
from downriver.capture.spark.io.paths import short_name
from downriver.capture.spark.java import Java
from downriver.capture.spark.plan.lineage import column_key, read_lineage

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.emit import Emitter
    from downriver.capture.spark.actions import SparkAction
    from downriver.capture.spark.context import RunContext
    from downriver.capture.spark.events import SparkEngine
    from downriver.capture.spark.plan.lineage import FindOrigins, PlanLineage
    from downriver.model.ids import DatasetId
    from downriver.openlineage.wire import Event

    Report = Callable[[str, Java, int, Java | None], None]


class QueryListener:
    """Receives what Spark reports: the action, its execution, its duration in ns, its error."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def onSuccess(self, action: str, execution: Java, duration_ns: int) -> None:  # noqa: N802
        """Report a query that succeeded."""
        self._report(action, execution, duration_ns, None)

    def onFailure(self, action: str, execution: Java, error: Java) -> None:  # noqa: N802
        """Report a query that failed."""
        self._report(action, execution, 0, error)

    class Java:
        """The Java interface that py4j implements with this class."""

        implements: ClassVar = ["org.apache.spark.sql.util.QueryExecutionListener"]


class ListenerRegistration:
    """A listener that is registered with a session until `remove` is called."""

    def __init__(self, session: Java, gateway: Java, listener: QueryListener) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        # Register and unregister the same proxy: to Spark a second proxy is another listener.
        holder = gateway.jvm.java.util.ArrayList()
        holder.add(listener)
        self._proxy = holder.get(0)
        self._manager = session.listenerManager()
        self._manager.register(self._proxy)

    def remove(self) -> None:
        """Unregister the listener."""
        self._manager.unregister(self._proxy)


_ACTIONS = frozenset({"checkpoint", "localCheckpoint"})


class Checkpoints:
    """The origins of a session's checkpoints.

    A checkpoint has no plan, but its columns keep their ids from the plan that made it.
    """

    def __init__(self) -> None:
        self._origins: dict[int, Origins] = {}

    def add(self, action: SparkAction, lineage: PlanLineage) -> None:
        """Store the origins of an action's columns, if the action made a checkpoint."""
        if action.name in _ACTIONS and action.columns:
            columns = zip(action.columns, lineage.columns, strict=False)
            self._origins[action.columns[0]] = {
                **{column_key(column_id): column.deps for column_id, column in columns},
                ROWS: lineage.rows,
            }

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of a checkpoint, by the id of its first column."""
        return self._origins.get(first_id)


log = logging.getLogger("downriver")

_OUTER_WRITE_SECONDS = 0.3  # Spark reports the outer command of a write after the inner one


class ActionPublisher:
    """Turns finished actions into events, in order, on a separate thread."""

    def __init__(
        self, context: RunContext, engine: SparkEngine, emitter: Emitter, find_origins: FindOrigins
    ) -> None:
        self.context = context
        self.engine = engine
        self._emitter = emitter
        self._find_origins = find_origins
        self._checkpoints = Checkpoints()
        self._queue: queue.SimpleQueue[tuple[SparkAction, RunContext] | threading.Event] = (
            queue.SimpleQueue()
        )
        self._names: dict[str, DatasetId] = {}
        self._thread = threading.Thread(target=self._run, name="downriver-spark", daemon=True)
        self._thread.start()

    def begin(self, context: RunContext) -> None:
        """Emit START for an application or a block of it."""
        self._emit_state(context, "START", "")

    def end(self, context: RunContext, error: str = "") -> None:
        """Emit COMPLETE, or FAIL with the error."""
        self._emit_state(context, "FAIL" if error else "COMPLETE", error)

    def add(self, action: SparkAction) -> None:
        """Queue a finished action."""
        self._queue.put((action, self.context))

    def emit(self, *events: Event) -> None:
        """Emit events that another module built."""
        self._emitter.emit(*events)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until the events of all queued actions are sent or spooled; False on a timeout."""
        started = time.monotonic()
        done = threading.Event()
        self._queue.put(done)
        if not done.wait(timeout):
            return False
        return self._emitter.flush(max(0.1, timeout - (time.monotonic() - started)))

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of rows that a plan shows as local data."""
        return self._find_origins(first_id) or self._checkpoints.origins_of(first_id)

    def _emit_state(self, context: RunContext, state: str, error: str) -> None:
        with guarded("emitting the state of an application"):
            now = time.time_ns() // 1000
            self._emitter.emit(render_application(context, self.engine, state, now, error))

    def _run(self) -> None:
        pending: tuple[SparkAction, RunContext] | None = None
        while True:
            try:
                item = self._queue.get(timeout=_OUTER_WRITE_SECONDS if pending else None)
            except queue.Empty:
                item = None
            if item is None or isinstance(item, threading.Event):
                self._finish(pending)
                pending = None
                if item is not None:
                    item.set()
            elif pending is not None and item[0].wraps(pending[0]):
                pending = (_merge_writes(pending[0], item[0]), pending[1])
            else:
                self._finish(pending)
                pending = item

    def _finish(self, pending: tuple[SparkAction, RunContext] | None) -> None:
        if pending is None:
            return
        with guarded("reading a Spark plan"):
            action, context = pending
            lineage = read_lineage(action, self.origins_of)
            self._checkpoints.add(action, lineage)
            if action.sink is None and not lineage.inputs:
                return  # no dataset is read or written
            part = context.within(self._action_name(action))
            self._emitter.emit(*render_action(action, lineage, part, self.engine))

    def _action_name(self, action: SparkAction) -> str:
        """Name an action after the dataset it writes, so that its job is the same on every run."""
        if action.sink is None:
            return action.name
        location = action.sink.location
        dataset = location.table or location.dataset
        for segments in range(1, 50):
            name = short_name(dataset, segments)
            if self._names.setdefault(name, dataset) == dataset:
                return name
        return dataset.name


def _merge_writes(inner: SparkAction, outer: SparkAction) -> SparkAction:
    """Return one write: plan and counts of the inner command, target of the outer one."""
    assert inner.sink is not None  # noqa: S101
    assert outer.sink is not None  # noqa: S101
    inner.sink.location = inner.sink.location if inner.sink.location.table else outer.sink.location
    inner.sink.lifecycle = outer.sink.lifecycle  # inner: OVERWRITE even for a new table
    inner.error = inner.error or outer.error
    inner.stack = inner.stack or outer.stack
    inner.duration_ns = max(inner.duration_ns, outer.duration_ns)
    inner.ended_at = max(inner.ended_at, outer.ended_at)
    return inner

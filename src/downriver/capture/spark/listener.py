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
    from downriver.capture.spark.plan.lineage import Carried, PlanLineage
    from downriver.model.ids import DatasetId
    from downriver.openlineage.wire import Event

    Report = Callable[[str, Java, int, Java | None], None]

_ANSWER_SECONDS = 5.0


class QueryListener:
    """Passes on what Spark reports: the action, its execution, its nanoseconds, its error."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def onSuccess(self, action: str, execution: Java, duration_ns: int) -> None:  # noqa: N802
        """Take a query that ended well."""
        self._report(action, execution, duration_ns, None)

    def onFailure(self, action: str, execution: Java, error: Java) -> None:  # noqa: N802
        """Take a query that failed."""
        self._report(action, execution, 0, error)

    class Java:
        """What py4j reads to make a Java object of this."""

        implements: ClassVar = ["org.apache.spark.sql.util.QueryExecutionListener"]


class ListenerRegistration:
    """A listener known to a session; `remove` ends that."""

    def __init__(self, session: Java, gateway: Java, listener: QueryListener) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        # One proxy for both calls: a second one would be another listener to Spark, and
        # unregistering it would do nothing.
        holder = gateway.jvm.java.util.ArrayList()
        holder.add(listener)
        self._proxy = holder.get(0)
        self._manager = session.listenerManager()
        self._manager.register(self._proxy)

    def remove(self) -> None:
        """Stop listening."""
        self._manager.unregister(self._proxy)


_ACTIONS = frozenset({"checkpoint", "localCheckpoint"})


class Checkpoints:
    """The checkpoints of one session. Their rows keep the ids of the plan they were made by."""

    def __init__(self) -> None:
        self._known: dict[int, Origins] = {}

    def add(self, harvest: SparkAction, lineage: PlanLineage) -> None:
        """Remember an action's columns, if it made a checkpoint."""
        if harvest.action in _ACTIONS and harvest.columns:
            columns = zip(harvest.columns, lineage.columns, strict=False)
            self._known[harvest.columns[0]] = {
                **{column_key(column_id): column.deps for column_id, column in columns},
                ROWS: lineage.rows,
            }

    def origins_of(self, first_id: int) -> Origins | None:
        """Return where a checkpoint's rows come from, by the id of its first column."""
        return self._known.get(first_id)


log = logging.getLogger("downriver")

_SETTLED_AFTER = 0.3  # seconds: how long another part of the same write may take to follow


class ActionPublisher:
    """Turns harvested actions into events, one after another, on a thread of its own."""

    def __init__(
        self, context: RunContext, engine: SparkEngine, emitter: Emitter, carried: Carried
    ) -> None:
        self.context = context
        self.engine = engine
        self._emitter = emitter
        self._carried = carried
        self._checkpoints = Checkpoints()
        self._queue: queue.SimpleQueue[tuple[SparkAction, RunContext] | threading.Event] = (
            queue.SimpleQueue()
        )
        self._names: dict[str, DatasetId] = {}
        self._thread = threading.Thread(target=self._run, name="downriver-spark", daemon=True)
        self._thread.start()

    def begin(self, context: RunContext) -> None:
        """Say that an application, or a block of one, has begun."""
        self._emit_state(context, "START", "")

    def end(self, context: RunContext, error: str = "") -> None:
        """Say how it ended."""
        self._emit_state(context, "FAIL" if error else "COMPLETE", error)

    def add(self, harvest: SparkAction) -> None:
        """Take an action that ended."""
        self._queue.put((harvest, self.context))

    def emit(self, *events: Event) -> None:
        """Send events that were made elsewhere."""
        self._emitter.emit(*events)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every action taken is an event that was sent or spooled."""
        started = time.monotonic()
        done = threading.Event()
        self._queue.put(done)
        if not done.wait(timeout):
            return False
        return self._emitter.flush(max(0.1, timeout - (time.monotonic() - started)))

    def origins_of(self, first_id: int) -> Origins | None:
        """Return where rows come from that a plan shows as local data."""
        return self._carried(first_id) or self._checkpoints.origins_of(first_id)

    def _emit_state(self, context: RunContext, state: str, error: str) -> None:
        with guarded("telling the state of an application"):
            now = time.time_ns() // 1000
            self._emitter.emit(render_application(context, self.engine, state, now, error))

    def _run(self) -> None:
        waiting: tuple[SparkAction, RunContext] | None = None
        while True:
            try:
                item = self._queue.get(timeout=_SETTLED_AFTER if waiting else None)
            except queue.Empty:
                item = None
            if item is None or isinstance(item, threading.Event):
                self._finish(waiting)
                waiting = None
                if item is not None:
                    item.set()
            elif waiting is not None and item[0].wraps(waiting[0]):
                waiting = (_merged(waiting[0], item[0]), waiting[1])
            else:
                self._finish(waiting)
                waiting = item

    def _finish(self, waiting: tuple[SparkAction, RunContext] | None) -> None:
        if waiting is None:
            return
        with guarded("reading a Spark plan"):
            harvest, context = waiting
            lineage = read_lineage(harvest, self.origins_of)
            self._checkpoints.add(harvest, lineage)
            if harvest.sink is None and not lineage.inputs:
                return  # rows that came from nowhere and went nowhere
            part = context.within(self._part_name(harvest))
            self._emitter.emit(*render_action(harvest, lineage, part, self.engine))

    def _part_name(self, harvest: SparkAction) -> str:
        """Name an action after what it writes: the same job on every run."""
        if harvest.sink is None:
            return harvest.action
        place = harvest.sink.place
        dataset = place.table or place.dataset
        for segments in range(1, 50):
            name = short_name(dataset, segments)
            if self._names.setdefault(name, dataset) == dataset:
                return name
        return dataset.name


def _merged(inner: SparkAction, outer: SparkAction) -> SparkAction:
    """Return one write: planned and counted by the inner part, named by the outer one."""
    assert inner.sink is not None  # noqa: S101
    assert outer.sink is not None  # noqa: S101
    inner.sink.place = inner.sink.place if inner.sink.place.table else outer.sink.place
    inner.sink.lifecycle = outer.sink.lifecycle  # the files of a new table are "overwritten"
    inner.error = inner.error or outer.error
    inner.stack = inner.stack or outer.stack
    inner.duration_ns = max(inner.duration_ns, outer.duration_ns)
    inner.ended_at = max(inner.ended_at, outer.ended_at)
    return inner

"""Follows the queries of one Spark session and emits their lineage."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING

from downriver.capture.emit import guarded
from downriver.capture.spark.checkpoints import Checkpoints
from downriver.capture.spark.events import render_action, render_application
from downriver.capture.spark.lineage import read_lineage
from downriver.capture.spark.naming import short_name

if TYPE_CHECKING:
    from downriver.capture.emit import Emitter
    from downriver.capture.frames import Origins
    from downriver.capture.spark.context import Context
    from downriver.capture.spark.events import Engine
    from downriver.capture.spark.harvest import Harvest
    from downriver.capture.spark.sources import Carried
    from downriver.model.ids import DatasetId

log = logging.getLogger("downriver")

_SETTLED_AFTER = 0.3  # seconds: how long another part of the same write may take to follow


class Capture:
    """Turns harvested actions into events, one after another, on a thread of its own."""

    def __init__(
        self, context: Context, engine: Engine, emitter: Emitter, carried: Carried
    ) -> None:
        self.context = context
        self.engine = engine
        self._emitter = emitter
        self._carried = carried
        self._checkpoints = Checkpoints()
        self._queue: queue.SimpleQueue[tuple[Harvest, Context] | threading.Event] = (
            queue.SimpleQueue()
        )
        self._names: dict[str, DatasetId] = {}
        self._thread = threading.Thread(target=self._run, name="downriver-spark", daemon=True)
        self._thread.start()

    def begin(self, context: Context) -> None:
        """Say that an application, or a block of one, has begun."""
        self._emit_state(context, "START", "")

    def end(self, context: Context, error: str = "") -> None:
        """Say how it ended."""
        self._emit_state(context, "FAIL" if error else "COMPLETE", error)

    def add(self, harvest: Harvest) -> None:
        """Take an action that ended."""
        self._queue.put((harvest, self.context))

    def emit(self, *events: bytes) -> None:
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

    def _emit_state(self, context: Context, state: str, error: str) -> None:
        with guarded("telling the state of an application"):
            now = time.time_ns() // 1000
            self._emitter.emit(render_application(context, self.engine, state, now, error))

    def _run(self) -> None:
        waiting: tuple[Harvest, Context] | None = None
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

    def _finish(self, waiting: tuple[Harvest, Context] | None) -> None:
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

    def _part_name(self, harvest: Harvest) -> str:
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


def _merged(inner: Harvest, outer: Harvest) -> Harvest:
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

"""The thread that turns the executions of an application into OpenLineage events."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Protocol

import msgspec

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import ROWS, Origins
from downriver.capture.spark.action_reader import INTERNAL, ActionReader
from downriver.capture.spark.events import render_action, render_application
from downriver.capture.spark.executions import STOP, Execution
from downriver.capture.spark.io.paths import short_name
from downriver.capture.spark.plan.known_origins import KnownOrigins
from downriver.capture.spark.plan.lineage import column_key, read_lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.capture.emit import Emitter
    from downriver.capture.spark.actions import SparkAction
    from downriver.capture.spark.context import RunContext
    from downriver.capture.spark.events import SparkEngine
    from downriver.capture.spark.java import Java
    from downriver.capture.spark.plan.lineage import PlanLineage
    from downriver.model.ids import DatasetId
    from downriver.openlineage.wire import Event

    MakeReader = Callable[[Java], ActionReader]
    Part = tuple[SparkAction, RunContext]
    FindRows = Callable[[int], Origins | None]
    FoldAction = Callable[[SparkAction], SparkAction | None]


class ExecutionSource(Protocol):
    """The source of an application's executions, in the order in which they end."""

    def next(self) -> Execution | str:
        """Wait for the next execution, or for the next text that was added by `mark`."""

    def mark(self, text: str) -> None:
        """Add a text after all executions that were reported."""

    def take(self, execution: Execution) -> tuple[Java, Java | None]:
        """Return the query of an execution, and its error."""


_CHECKPOINTS = frozenset({"checkpoint", "localCheckpoint"})


class Checkpoints:
    """The origins of a session's checkpoints.

    A checkpoint has no plan, but its columns keep their ids from the plan that made it.
    """

    def __init__(self) -> None:
        self._origins: dict[int, Origins] = {}

    def add(self, action: SparkAction, lineage: PlanLineage) -> None:
        """Store the origins of an action's columns, if the action made a checkpoint."""
        if action.name in _CHECKPOINTS and action.columns:
            columns = zip(action.columns, lineage.columns, strict=False)
            self._origins[action.columns[0]] = {
                **{column_key(column_id): column.deps for column_id, column in columns},
                ROWS: lineage.rows,
            }

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of a checkpoint, by the id of its first column."""
        return self._origins.get(first_id)


class CaptureSummary:
    """Counts the actions of an application, and their blind spots by kind."""

    def __init__(self) -> None:
        self.writes = 0
        self.reads = 0
        self.blind_spots: Counter[str] = Counter()

    def add(self, action: SparkAction, lineage: PlanLineage) -> None:
        """Count an action."""
        if action.writes:
            self.writes += 1
        else:
            self.reads += 1
        self.blind_spots.update(spot.kind for spot in lineage.spots)

    def render(self, job: str) -> str:
        """Return one line: the captured actions, the blind spots, and a command that shows them."""
        spots = ", ".join(f"{kind} {count}" for kind, count in sorted(self.blind_spots.items()))
        return (
            f"downriver: {_count(self.writes, 'write')} and {_count(self.reads, 'read')} of "
            f"'{job}' captured; {spots or 'no blind spots'}; "
            f"see `downriver trace job:{job}`"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class ActionPublisher:
    """Turns the executions of an application into events, in order, on a separate thread."""

    def __init__(
        self,
        context: RunContext,
        engine: SparkEngine,
        emitter: Emitter,
        listener: ExecutionSource,
        make_reader: MakeReader,
    ) -> None:
        self.context = context
        self.engine = engine
        self._emitter = emitter
        self._listener = listener
        self._make_reader = make_reader
        self._readers: dict[str, ActionReader] = {}  # by the id of the session
        self._checkpoints = Checkpoints()
        self.known = KnownOrigins(rows=self._checkpoints_or(lambda _: None))
        self._fold: FoldAction = lambda action: action
        self.names = JobNames()
        self.summary = CaptureSummary()
        # The finished parts of executions that still run, by the id of the root execution.
        self._parts: dict[int, list[Part]] = {}
        self._tasks: dict[str, Callable[[], None]] = {}
        self._mark_numbers = count(1)
        self._thread = threading.Thread(target=self._run, name="downriver-spark", daemon=True)

    def start(self) -> None:
        """Begin to read executions."""
        self._thread.start()

    def begin(self, context: RunContext) -> None:
        """Emit START for an application or a block of it."""
        self._emit_state(context, "START", "")

    def end(self, context: RunContext, error: str = "") -> None:
        """Emit COMPLETE, or FAIL with the error."""
        self._emit_state(context, "FAIL" if error else "COMPLETE", error)

    def emit(self, *events: Event) -> None:
        """Emit events that another module built."""
        self._emitter.emit(*events)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until the events of all finished actions are sent or spooled; False on a timeout."""
        started = time.monotonic()
        if not self.wait(timeout):
            return False
        return self._emitter.flush(max(0.1, timeout - (time.monotonic() - started)))

    def wait(self, timeout: float) -> bool:
        """Wait until all executions that Spark has reported are read; False on a timeout."""
        if not self._thread.is_alive():
            return True
        done = threading.Event()
        self.later(done.set)
        return done.wait(timeout)

    def later(self, task: Callable[[], None]) -> None:
        """Run a task on the thread of capture, after all executions reported so far."""
        mark = f"task {next(self._mark_numbers)}"
        self._tasks[mark] = task
        self._listener.mark(mark)

    def stop(self, timeout: float) -> None:
        """Read all reported executions, then end the thread."""
        if self._thread.is_alive():
            self._listener.mark(STOP)
            self._thread.join(timeout)

    def follow(self, known: KnownOrigins, fold: FoldAction) -> None:
        """Use origins that no plan contains. `fold` returns the action to publish, or None."""
        self.known = known._replace(rows=self._checkpoints_or(known.rows))
        self._fold = fold

    def _checkpoints_or(self, rows: FindRows) -> FindRows:
        def origins_of(first_id: int) -> Origins | None:
            origins = rows(first_id)
            return self._checkpoints.origins_of(first_id) if origins is None else origins

        return origins_of

    def _emit_state(self, context: RunContext, state: str, error: str) -> None:
        with guarded("emitting the state of an application"):
            now = time.time_ns() // 1000
            self._emitter.emit(render_application(context, self.engine, state, now, error))

    def _run(self) -> None:
        while True:
            item = self._listener.next()
            if isinstance(item, Execution):
                self._take(item)
            elif item == STOP:
                break
            else:
                self._do(self._tasks.pop(item))
        for parts in list(self._parts.values()):
            self._publish(parts)
        for task in list(self._tasks.values()):
            self._do(task)

    def _do(self, task: Callable[[], None]) -> None:
        with guarded("following the driver of a Spark job"):
            task()

    def _take(self, execution: Execution) -> None:
        """Read an execution. If it is a root, publish it with its parts."""
        parts = self._parts.setdefault(execution.root, [])
        if execution.session:
            is_read = False
            with guarded("reading a query of Spark"):
                query, error = self._listener.take(execution)
                if not execution.is_stream_batch:
                    self._read(execution, query, error, parts)
                is_read = True
            if not is_read:
                parts += [(action, self.context) for action in _unread_actions(execution)]
        if execution.is_root:
            del self._parts[execution.root]
            self._publish(parts)

    def _read(
        self, execution: Execution, query: Java, error: Java | None, parts: list[Part]
    ) -> None:
        reader = self._readers.get(execution.session)
        if reader is None:
            reader = self._readers[execution.session] = self._make_reader(query.sparkSession())
        before = [action for action, _ in parts]
        if execution.is_root and execution.is_command:
            # Queries that a command runs internally are not actions of the user.
            parts[:] = [part for part in parts if part[0].writes]
        for action in reader.read(execution, query, error, before=before):
            if execution.is_learning and not action.writes:
                continue  # an algorithm reads the training data of its model
            for at in reversed(range(len(parts))):
                inner, context = parts[at]
                if action.wraps(inner):
                    parts[at] = (merge_writes(inner, action), context)
                    break
            else:
                parts.append((action, self.context))

    def publish(
        self, action: SparkAction, *, is_folded: bool = False, context: RunContext | None = None
    ) -> None:
        """Emit the events of an action that Spark did not report."""
        self._publish([(action, context or self.context)], is_folded=is_folded)

    def _publish(self, parts: list[Part], *, is_folded: bool = False) -> None:
        for given, context in parts:
            events: Sequence[Event] = ()
            is_read = False
            with guarded("reading a Spark plan"):
                events = self._render(given, context, is_folded=is_folded)
                is_read = True
            if not is_read:  # without the plan, the sources and the sink are still known
                with guarded("reporting a Spark plan that could not be read"):
                    unread = msgspec.structs.replace(
                        given, plan="", unread="the plan could not be read: see the log of the job"
                    )
                    events = self._render(unread, context, is_folded=True)
            with guarded("sending the events of a Spark action"):
                self._emitter.emit(*events)

    def _render(
        self, given: SparkAction, context: RunContext, *, is_folded: bool
    ) -> Sequence[Event]:
        action = given if is_folded else self._fold(given)
        if action is None:
            return ()  # a part of an action that is published as one
        lineage = read_lineage(action, self.known)
        self._checkpoints.add(action, lineage)
        if not (action.writes or lineage.inputs or action.unread):
            return ()  # no dataset is read or written
        self.summary.add(action, lineage)
        part = context.within(self.names.of(action))
        return render_action(action, lineage, part, self.engine)


@contextmanager
def in_block(capture: ActionPublisher, job: str, drain: Callable[[], None]) -> Iterator[None]:
    """Capture the queries inside this block under a separate job."""
    drain()
    outer = capture.context
    inner = outer.named(job)
    capture.begin(inner)
    capture.context = inner
    error = ""
    try:
        yield
    except BaseException as exc:
        error = f"{type(exc).__name__}: {exc}"
        raise
    finally:
        drain()
        capture.context = outer
        capture.end(inner, error)


def _unread_actions(execution: Execution) -> Iterator[SparkAction]:
    """Yield an action with a blind spot for an execution that could not be read."""
    if execution.is_command:
        unknown = f"the command {execution.plan}, which could not be read,"
        yield execution.action(unknown_write=unknown)
    elif execution.name not in INTERNAL and not execution.is_learning:
        yield execution.action(unread="the query could not be read: see the log of the job")


class JobNames:
    """The names of an application's actions. Each is made from one dataset, equal in every run."""

    def __init__(self) -> None:
        self._datasets: dict[str, DatasetId] = {}

    def of(self, action: SparkAction) -> str:
        """Name an action after the dataset it writes."""
        if action.sink is None:
            return action.name
        location = action.sink.location
        dataset = location.table or location.dataset
        for segments in range(1, dataset.name.count("/") + 2):
            name = short_name(dataset, segments)
            if self._datasets.setdefault(name, dataset) == dataset:
                return name
        # A table and a file in the root folder may have the same name.
        return f"{dataset.namespace}.{dataset.name}"


def merge_writes(inner: SparkAction, outer: SparkAction) -> SparkAction:
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

"""The SQL executions of a Spark application: every session, in the order in which they end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.spark.actions import SparkAction
from downriver.capture.spark.plan_text import compile_class

if TYPE_CHECKING:
    from downriver.capture.spark.java import Java

STOP = "stop"  # reported when the JVM has ended
_BREAK = "\x01"
_CLASS = "ExecutionQueue"
_STREAM = "IncrementalExecution"


class Execution(NamedTuple):
    """One SQL execution that ended. Executions that a command started have the command as root."""

    id: int
    root: int
    name: str  # the action; empty for a frame as an RDD and for a batch of a stream
    duration_ns: int
    ended_ms: int
    session: str  # the id of its session; empty when it has no analysed plan
    kind: str  # the class of its QueryExecution
    plan: str  # the class of its analysed plan, without the package
    is_command: bool
    has_failed: bool = False
    is_learning: bool = False  # started by an algorithm of Spark's ML library

    def action(self, **known: Any) -> SparkAction:
        """Return the execution as an action; `known` are further fields."""
        return SparkAction(
            name=self.name,
            ended_at=self.ended_ms * 1000,
            duration_ns=self.duration_ns,
            **{"columns": [], **known},
        )

    @property
    def is_root(self) -> bool:
        """Whether no other execution started this one."""
        return self.id == self.root

    @property
    def is_stream_batch(self) -> bool:
        """Whether this is a batch of a stream. User code that runs in a batch is not part of it."""
        return self.kind.endswith(_STREAM)


class ExecutionListener:
    """Receives the executions of an application's sessions until `remove` is called."""

    def __init__(self, context: Any) -> None:
        self._context = context._jsc.sc()
        self._queue = compile_class(context._gateway, _CLASS).newInstance()
        self._context.addSparkListener(self._queue)

    def next(self) -> Execution | str:
        """Wait for the next execution, or for the next text that was added by `mark`."""
        from py4j.protocol import Py4JError

        try:
            line = str(self._queue.next())
        except (Py4JError, OSError):
            return STOP
        if _BREAK not in line:
            return line
        (
            own, root, name, duration, ended, session, kind, plan, command, failed, learning,
        ) = line.split(_BREAK)  # fmt: skip
        return Execution(
            id=int(own),
            root=int(root),
            name=name,
            duration_ns=int(duration),
            ended_ms=int(ended),
            session=session,
            kind=kind,
            plan=plan.rpartition(".")[2],
            is_command=command == "true",
            has_failed=failed == "true",
            is_learning=learning == "true",
        )

    def mark(self, text: str) -> None:
        """Add a text after all executions that Spark has reported."""
        self._queue.mark(text)

    def take(self, execution: Execution) -> tuple[Java, Java | None]:
        """Return the QueryExecution and its error, and release both in the JVM."""
        error = self._queue.error(execution.id) if execution.has_failed else None
        return self._queue.take(execution.id), error

    def wait(self, milliseconds: int) -> None:
        """Wait until Spark has reported all finished executions."""
        self._context.listenerBus().waitUntilEmpty(milliseconds)

    def remove(self) -> None:
        """Unregister the listener."""
        self._context.removeSparkListener(self._queue)

"""A tracked application of Spark Connect: its clients, its runs and its models."""

from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import ROWS
from downriver.capture.spark.connect.actions import ConnectActions
from downriver.capture.spark.connect.client import ConnectServer, observe
from downriver.capture.spark.connect.driver_data import DriverData, follow_driver_data
from downriver.capture.spark.connect.requests import changes_names, read_requests
from downriver.capture.spark.context import read_context
from downriver.capture.spark.events import SparkEngine
from downriver.capture.spark.ml import ModelRegistration
from downriver.capture.spark.plan.known_origins import KnownOrigins
from downriver.capture.spark.plan.lineage import read_relation
from downriver.capture.spark.publisher import ActionPublisher, in_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from downriver.capture.emit import Emitter
    from downriver.capture.frame_origins import Origins
    from downriver.capture.spark.executions import Execution
    from downriver.capture.trained_models import TrackedModel

_SECONDS_TO_FLUSH = 30.0


class TaskQueue:
    """The tasks of capture. The process has no listener, so there are no executions."""

    def __init__(self) -> None:
        self._marks: queue.SimpleQueue[str] = queue.SimpleQueue()

    def next(self) -> str:
        """Wait for the next text that was added by `mark`."""
        return self._marks.get()

    def mark(self, text: str) -> None:
        """Add a text."""
        self._marks.put(text)

    def take(self, execution: Execution) -> NoReturn:
        """Raise: there are no executions."""
        raise LookupError(execution)


class TrackedConnectSession:
    """A client of Spark Connect whose requests are captured until it is stopped or this is closed.

    The requests of all sessions of the process are captured.
    """

    def __init__(
        self, spark: Any, emitter: Emitter, *, job: str | None, namespace: str | None
    ) -> None:
        self.spark = spark
        self.on_end: Callable[[str], None] | None = None  # receives a summary line
        server = ConnectServer(spark.client)
        self.capture = ActionPublisher(
            read_context(
                server.setting,
                os.environ,
                app=server.setting("spark.app.name") or "spark",
                job=job,
                namespace=namespace,
            ),
            SparkEngine(spark.version, server.setting("spark.app.id")),
            emitter,
            TaskQueue(),
            _no_reader,
        )
        self._application = self.capture.context
        self._clients: weakref.WeakKeyDictionary[Any, ConnectActions] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self.data = DriverData(self._plan_origins)
        self._learning = ModelRegistration(self.data.frames, self.capture)
        self._open = True
        self._stop = spark.stop
        spark.stop = self._stop_and_close
        atexit.register(self._exit)
        self.capture.follow(
            KnownOrigins(rows=self.data.origins_of, values=self.data.values.origins_of),
            lambda action: action,
        )
        self.capture.start()
        self.capture.begin(self._application)
        follow_driver_data()
        observe(self)

    @property
    def is_open(self) -> bool:
        """Whether requests are still captured."""
        return self._open

    def before(self, client: Any, request: Any, name: str) -> Callable[[str], None] | None:
        """Take a request; return a function to call with its error when it has ended."""
        with guarded("reading a request of Spark Connect"):
            if changes_names(request):
                self._drain()  # explain the plans of earlier requests before names change
            requests = list(read_requests(request))
            if requests:
                actions = self._actions(client)
                context, began = self.capture.context, time.time_ns()

                def ended(error: str) -> None:
                    at = time.time_ns()

                    def publish() -> None:
                        for action in actions.read(requests, name, began, at, error):
                            self.capture.publish(action, context=context)

                    self.capture.later(publish)

                return ended
        return None

    def _actions(self, client: Any) -> ConnectActions:
        with self._lock:
            found = self._clients.get(client)
            if found is None:
                found = self._clients[client] = ConnectActions(ConnectServer(client), self.data)
            return found

    def _plan_origins(self, client: Any, plan: Any) -> Origins:
        """Return the origins of the columns of a client's plan."""
        relation = read_relation(self._actions(client).query(plan), self.capture.known)
        origins = {column.name: column.deps for column in relation.columns}
        return {**origins, ROWS: relation.rows}

    @contextmanager
    def block(self, job: str) -> Iterator[None]:
        """Capture the requests inside this block under a separate job."""
        with in_block(self.capture, job, self._drain):
            yield

    def model(
        self,
        name: str,
        estimator: Any = None,
        *,
        features: Any,
        target: Any = None,
        path: str | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> TrackedModel:
        """Register a model that was fitted on frames from this application."""
        return self._learning.model(name, estimator, features, target, path=path, metrics=metrics)

    def wrote(self, frame: Any, path: str) -> None:
        """Register a file that pandas wrote. Writes of Spark are captured automatically."""
        self._learning.wrote(frame, path)

    def flush(self, timeout: float = _SECONDS_TO_FLUSH) -> bool:
        """Wait until the events of all finished requests are in the store or spooled."""
        self._drain()
        return self.capture.flush(timeout)

    def close(self, error: str = "") -> None:
        """Stop capturing, and emit the end of the application."""
        if not self._open:
            return
        self._open = False
        atexit.unregister(self._exit)
        observe(None)
        self.spark.stop = self._stop
        self._learning.take_logged()
        with guarded("reading the last requests of Spark Connect"):
            self.capture.stop(_SECONDS_TO_FLUSH)
        for actions in list(self._clients.values()):
            with guarded("leaving a session of Spark Connect"):
                actions.server.leave()
        self.capture.end(self._application, error)
        self.capture.flush(_SECONDS_TO_FLUSH)
        if self.on_end is not None:
            self.on_end(self.capture.summary.render(self._application.own.job.name))

    def _drain(self) -> None:
        self.capture.wait(_SECONDS_TO_FLUSH)

    def _stop_and_close(self) -> None:
        failure = sys.exc_info()[1]  # spark.stop() may run in a `finally` after an error
        self.close("" if failure is None else f"{type(failure).__name__}: {failure}")
        self._stop()

    def _exit(self) -> None:
        """Close at exit, when the job did not stop Spark."""
        failure = getattr(sys, "last_value", None)
        self.close("" if failure is None else f"{type(failure).__name__}: {failure}")


def _no_reader(_: object) -> NoReturn:
    raise LookupError("Spark Connect has no JVM in this process")

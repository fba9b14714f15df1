"""A tracked Spark application: its listener, its runs, its streams and its models."""

from __future__ import annotations

import atexit
import importlib.util
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import FrameRegistry, Origins
from downriver.capture.spark.action_reader import ActionReader
from downriver.capture.spark.context import read_context
from downriver.capture.spark.driver.follower import DriverFollower
from downriver.capture.spark.events import SparkEngine
from downriver.capture.spark.executions import ExecutionListener
from downriver.capture.spark.ml import ModelRegistration
from downriver.capture.spark.plan.known_origins import KnownOrigins
from downriver.capture.spark.publisher import ActionPublisher, in_block
from downriver.capture.spark.streaming import ApplicationStreams
from downriver.errors import InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from downriver.capture.emit import Emitter
    from downriver.capture.spark.java import Java
    from downriver.capture.trained_models import TrackedModel

_LARGEST_PLAN = 200_000  # operators times columns: tens of seconds of a core
_SECONDS_TO_FLUSH = 30.0


class TrackedSession:
    """A Spark application whose queries are captured until it is stopped or this is closed."""

    def __init__(
        self, spark: Any, emitter: Emitter, *, job: str | None, namespace: str | None
    ) -> None:
        session = _java_session(spark)
        context = spark.sparkContext
        self.spark = spark
        self.on_end: Callable[[str], None] | None = None  # receives a summary line
        self._context = context
        reader = self._reader(session)  # first: if it fails, no listener keeps queries in the JVM
        self._listener = ExecutionListener(context)
        self.capture = ActionPublisher(
            read_context(
                lambda key: str(spark.conf.get(key, "") or ""),
                os.environ,
                app=context.appName,
                job=job,
                namespace=namespace,
            ),
            SparkEngine(spark.version, context.applicationId),
            emitter,
            self._listener,
            self._reader,
        )
        self._application = self.capture.context
        frames = FrameRegistry()
        self._driver = DriverFollower(context, reader, frames, self.capture)
        self._learning = ModelRegistration(frames, self.capture)
        self._streams = ApplicationStreams(spark, reader, self.capture)
        self.capture.follow(self._known_origins(), self._driver.models.fold)
        self.capture.start()
        self._open = True
        self._stop = context.stop
        context.stop = self._stop_and_close
        atexit.register(self._exit)
        self.capture.begin(self._application)

    @property
    def is_open(self) -> bool:
        """Whether queries are still captured."""
        return self._open

    @contextmanager
    def block(self, job: str) -> Iterator[None]:
        """Capture the queries inside this block under a separate job."""
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
        """Register a model that was fitted on frames from this session.

        `features` is the frame that the model was fitted on, or a list of names. `target` is the
        predicted column, or its name. The model is a dataset with a column for each feature and one
        for the prediction.
        """
        return self._learning.model(name, estimator, features, target, path=path, metrics=metrics)

    def wrote(self, frame: Any, path: str) -> None:
        """Register a file that pandas wrote. Writes of Spark are captured automatically."""
        self._learning.wrote(frame, path)

    def flush(self, timeout: float = _SECONDS_TO_FLUSH) -> bool:
        """Wait until the events of all finished queries are in the store or spooled."""
        self._drain()
        self._learning.take_logged()
        return self.capture.flush(timeout)

    def close(self, error: str = "") -> None:
        """Stop capturing, and emit the end of the application."""
        if not self._open:
            return
        self._drain()
        with guarded("unregistering from a Spark session"):
            self._listener.remove()
            self._streams.leave()
        self._end(error)

    def _end(self, error: str) -> None:
        self._open = False
        atexit.unregister(self._exit)
        self._driver.leave()
        self._context.stop = self._stop
        self._learning.take_logged()
        with guarded("reading the last queries of Spark"):
            self.capture.stop(_SECONDS_TO_FLUSH)
        self.capture.end(self._application, error)
        self.capture.flush(_SECONDS_TO_FLUSH)
        if self.on_end is not None:
            self.on_end(self.capture.summary.render(self._application.own.job.name))

    def _known_origins(self) -> KnownOrigins:
        """Return the origins of data that came from the driver or from a stream."""
        rows, streams = self._driver.rows, self._streams

        def origins_of(first_id: int) -> Origins | None:
            origins = rows.origins_of(first_id)
            return streams.origins_of(first_id) if origins is None else origins

        return KnownOrigins(
            rows=origins_of,
            values=rows.values.origins_of,
            learned=self._driver.models.learned,
            is_written=rows.is_written,
        )

    def _reader(self, session: Java) -> ActionReader:
        return ActionReader(session, self._context._gateway, largest_plan=_LARGEST_PLAN)

    def _drain(self) -> None:
        """Wait until all finished queries are read."""
        with guarded("waiting for Spark's listener bus"):
            self._listener.wait(int(_SECONDS_TO_FLUSH * 1000))
            self.capture.wait(_SECONDS_TO_FLUSH)

    def _stop_and_close(self) -> None:
        failure = sys.exc_info()[1]  # spark.stop() may run in a `finally` after an error
        self._drain()  # reads need the catalogs, which end with Spark
        self._stop()
        if self._open:
            self._end("" if failure is None else _text(failure))

    def _exit(self) -> None:
        """Close at exit when the job did not stop Spark: its last queries are still on the bus."""
        failure = getattr(sys, "last_value", None)
        self.close("" if failure is None else _text(failure))


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _java_session(spark: Any) -> Java:
    if importlib.util.find_spec("pyspark") is None:
        raise MissingDependencyError("pyspark", "spark")
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        raise InvalidRequestError(
            "spark",
            f"a {type(spark).__name__} is not a session of PySpark: pass what "
            "`SparkSession.builder.getOrCreate()` returns",
        )
    return session

"""Tracking a session: `track(spark)` and all it sets in motion."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.spark.capture import Capture
from downriver.capture.spark.context import Context, read_context
from downriver.capture.spark.events import Engine
from downriver.capture.spark.harvester import Harvester
from downriver.capture.spark.listener import QueryListener, Registration
from downriver.errors import InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.emit import Emitter
    from downriver.capture.spark.java import Java

_LARGEST_PLAN = 200_000  # operators times columns: tens of seconds of a core
_SECONDS_TO_FLUSH = 30.0


class TrackedSession:
    """A Spark session whose queries are captured until it stops."""

    def __init__(
        self, spark: Any, emitter: Emitter, *, job: str | None, namespace: str | None
    ) -> None:
        session = _java_session(spark)
        self.spark = spark
        context = read_context(
            lambda key: str(spark.conf.get(key, "") or ""),
            os.environ,
            app=spark.sparkContext.appName,
            job=job,
            namespace=namespace,
        )
        engine = Engine(spark.version, spark.sparkContext.applicationId)
        self.capture = Capture(context, engine, emitter)
        self._context = context
        self._bus = spark.sparkContext._jsc.sc().listenerBus()
        self._harvester = Harvester(
            session, spark.sparkContext._gateway.jvm, largest_plan=_LARGEST_PLAN
        )
        self._registration = Registration(
            session, spark.sparkContext._gateway, QueryListener(self._report)
        )
        self._ended = False
        self._stop = spark.stop
        spark.stop = self._stop_and_end
        atexit.register(self._exit)
        self.capture.begin(context)

    @contextmanager
    def block(self, job: str) -> Iterator[None]:
        """Capture what happens inside under a job of its own."""
        outer = self.capture.context
        inner = outer.named(job)
        self.capture.begin(inner)
        self.capture.context = inner
        error = ""
        try:
            yield
        except BaseException as exc:
            error = f"{type(exc).__name__}: {exc}"
            raise
        finally:
            with guarded("ending a block"):
                self._drain()
                self.capture.context = outer
                self.capture.end(inner, error)

    def flush(self, timeout: float = _SECONDS_TO_FLUSH) -> bool:
        """Wait until all that happened so far is in the store, or spooled."""
        self._drain()
        return self.capture.flush(timeout)

    def close(self, error: str = "") -> None:
        """Stop capturing, and say how the application ended."""
        if self._ended:
            return
        self._ended = True
        atexit.unregister(self._exit)
        with guarded("ending the capture of a session"):
            self.capture.end(self._context, error)
            self.capture.flush(_SECONDS_TO_FLUSH)

    def _report(self, action: str, execution: Java, duration_ns: int, error: Java | None) -> None:
        with guarded("taking a query from Spark"):
            self.capture.add(self._harvester.harvest(action, execution, duration_ns, error))

    def _drain(self) -> None:
        """Wait until Spark has reported what it knows."""
        with guarded("waiting for Spark's listener bus"):
            self._bus.waitUntilEmpty(int(_SECONDS_TO_FLUSH * 1000))

    def _stop_and_end(self) -> None:
        failure = sys.exc_info()[1]  # a `finally` that stops Spark on the way out of an error
        self._stop()  # delivers what the listener bus still holds
        self.close("" if failure is None else f"{type(failure).__name__}: {failure}")

    def _exit(self) -> None:
        """A job that ends without stopping Spark: its last queries are still on the bus."""
        failure = getattr(sys, "last_value", None)
        self._drain()
        self.close("" if failure is None else f"{type(failure).__name__}: {failure}")


def _java_session(spark: Any) -> Java:
    try:
        import pyspark
    except ImportError as exc:
        raise MissingDependencyError("pyspark", "spark") from exc
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        raise InvalidRequestError(
            "spark",
            f"{type(spark).__name__} of PySpark {pyspark.__version__} has no JVM to listen to",
        )
    return session

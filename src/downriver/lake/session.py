"""The Spark session of a lake: local by default, or on a cluster."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from downriver.capture.spark.local_session import local_session
from downriver.errors import LakeError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONF = {
    "spark.sql.session.timeZone": "UTC",
    # An event may be large, so few go to a Python worker at once.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
_DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Its tables here have one commit each; the 50 tasks it would read their log with are idle.
    "spark.databricks.delta.snapshotPartitions": "1",
}
_MISSING = re.compile(r"No module named '(\w+)")
_UNDER_SUBMIT = "PYSPARK_GATEWAY_PORT"  # what spark-submit tells the program it starts
_REMOTE = "SPARK_REMOTE"  # where Spark Connect is served, as PySpark itself reads it


@contextmanager
def running_session(
    master: str | None = None, packages: str | None = None, *, delta: bool = False
) -> Iterator[Any]:
    """Run Spark: on `master`, at SPARK_REMOTE, as `spark-submit` says, or on this machine.

    `packages` are Maven coordinates to add. A session that this process runs already, as in a
    notebook, is used and left running.
    """
    running = _find_running()
    conf = {**_CONF, **(_DELTA_CONF if delta else {})}
    if packages:
        conf["spark.jars.packages"] = packages
    spark = running or _open_session(master, conf)
    try:
        with translated_errors():
            yield spark
    finally:
        if running is None:
            spark.stop()


def _find_running() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as exc:
        raise MissingDependencyError("pyspark", "lake") from exc
    return SparkSession.getActiveSession()


def _open_session(master: str | None, conf: dict[str, str]) -> Any:
    remote = os.environ.get(_REMOTE)
    if master is None and not remote and _UNDER_SUBMIT not in os.environ:
        return local_session("downriver lake", conf=conf)
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("downriver lake")
    for key, value in conf.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
    elif remote:
        builder = builder.remote(remote)
    try:
        return builder.getOrCreate()
    except ImportError as exc:  # of what Spark Connect needs
        raise MissingDependencyError(f"what Spark Connect needs ({exc.name})", "connect") from exc
    except (PySparkException, RuntimeError) as exc:
        where = master or remote or "the cluster"
        raise LakeError(f"Spark does not start on {where}: {_last_line(exc)}") from exc


def is_connected(spark: Any) -> bool:
    """True of a session that Spark Connect serves: this process has no driver of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Say what Spark could not do in one line, without its stack."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as exc:
        if missing := _MISSING.search(str(exc)):
            raise LakeError(
                f"the Python that Spark's workers run has no {missing[1]}: install downriver[lake] "
                "there, and name that Python in PYSPARK_PYTHON"
            ) from exc
        said = _first_line(exc) if isinstance(exc, PySparkException) else _last_line(exc)
        raise LakeError(f"Spark: {said}") from exc


def _first_line(exc: BaseException) -> str:
    return _lines(exc)[0]


def _last_line(exc: BaseException) -> str:
    return _lines(exc)[-1]


def _lines(exc: BaseException) -> list[str]:
    return [line.strip() for line in str(exc).splitlines() if line.strip()] or [type(exc).__name__]

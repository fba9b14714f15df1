"""The Spark session of a lake: local by default, or on a cluster."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from downriver.capture.spark.local_session import local_session
from downriver.errors import LakeError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.lake.storage.tables import LakeVersion

_CONF = {
    "spark.sql.session.timeZone": "UTC",
    # Events may be large: send only a few to a Python worker at a time.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
_DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A table here has a single commit: the default of 50 tasks to read its log is too many.
    "spark.databricks.delta.snapshotPartitions": "1",
}
# For few rows, compiling a query takes longer than running it: Spark interprets it instead.
INTERPRETED = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
# Likewise, only the first compiler of Java runs. It needs a larger cache of code than its default.
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SHORT_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
_SHORT_CONF = {**INTERPRETED, _JAVA_OPTIONS: _SHORT_JAVA}
_FEW_EVENTS = 2_000
_FEW_ROWS = 10_000_000
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_MISSING = re.compile(r"No module named '(\w+)")
_UNDER_SUBMIT = "PYSPARK_GATEWAY_PORT"  # set by spark-submit
_REMOTE = "SPARK_REMOTE"  # the URL of Spark Connect, as PySpark itself reads it


@contextmanager
def running_session(
    master: str | None = None,
    packages: str | None = None,
    *,
    delta: bool = False,
    short: bool = False,
    conf: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """Open a Spark session: on `master`, at SPARK_REMOTE, under `spark-submit`, or locally.

    `packages` are Maven coordinates to add, `conf` are settings of Spark. With `short`, a local
    session is set for little work. If this process already has a session, as in a notebook, it is
    used with `conf` and left running.
    """
    running = _find_running()
    little = _SHORT_CONF if short and is_local(master) else {}
    settings = {**_CONF, **little, **(_DELTA_CONF if delta else {}), **(conf or {})}
    if packages:
        settings["spark.jars.packages"] = packages
    spark = running or _open_session(master, settings)
    try:
        with translated_errors(), changed_settings(running, conf or {}):
            yield spark
    finally:
        if running is None:
            spark.stop()


def is_little_work(version: LakeVersion) -> bool:
    """Return whether a lake has few new events and few rows."""
    new = sum(batch.events for batch in version.unfolded)
    rows = sum(table.rows for table in version.tables.values())
    return new <= _FEW_EVENTS and rows <= _FEW_ROWS


def is_local(master: str | None) -> bool:
    """Return whether Spark runs on this machine only."""
    return master is None and not os.environ.get(_REMOTE) and _UNDER_SUBMIT not in os.environ


def _find_running() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as exc:
        raise MissingDependencyError("pyspark", "lake") from exc
    return SparkSession.getActiveSession()


@contextmanager
def changed_settings(running: Any, conf: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session that runs already, and restore them at the end."""
    if running is None or not conf:
        yield
        return
    for key in conf:
        if not running.conf.isModifiable(key):
            raise LakeError(
                f"{key} can only be set when Spark starts; a session is running already"
            )
    before = {key: running.conf.get(key, None) for key in conf}
    try:
        for key, value in conf.items():
            running.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            running.conf.unset(key) if old is None else running.conf.set(key, old)


def _open_session(master: str | None, conf: dict[str, str]) -> Any:
    if is_local(master):
        return local_session("downriver lake", conf=conf)
    remote = os.environ.get(_REMOTE)
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
    except ImportError as exc:  # a dependency of Spark Connect
        raise MissingDependencyError(f"Spark Connect ({exc.name})", "connect") from exc
    except (PySparkException, RuntimeError) as exc:
        where = master or remote or "the cluster"
        raise LakeError(f"cannot start Spark on {where}: {_last_line(exc)}") from exc


def is_connected(spark: Any) -> bool:
    """True for a Spark Connect session, whose driver runs in another process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate errors of Spark into a LakeError of one line, without the Java stack."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with _silent_query_loggers():
            yield
    except (PySparkException, Py4JError) as exc:
        if missing := _MISSING.search(str(exc)):
            raise LakeError(
                f"the Python of Spark's workers lacks {missing[1]}: install downriver[lake] there, "
                "and set PYSPARK_PYTHON to that Python"
            ) from exc
        reason = _first_line(exc) if isinstance(exc, PySparkException) else _last_line(exc)
        raise LakeError(f"Spark: {reason}") from exc


@contextmanager
def _silent_query_loggers() -> Iterator[None]:
    """Disable the loggers with which PySpark 4 prints the stack of an exception that it raises."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3 has none
        yield
        return
    loggers = [PySparkLogger.getLogger(name) for name in _QUERY_LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _first_line(exc: BaseException) -> str:
    return _lines(exc)[0]


def _last_line(exc: BaseException) -> str:
    return _lines(exc)[-1]


def _lines(exc: BaseException) -> list[str]:
    return [line.strip() for line in str(exc).splitlines() if line.strip()] or [type(exc).__name__]

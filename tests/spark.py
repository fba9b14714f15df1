"""A local Spark: one driver, two concurrent tasks, and one folder for all of its files."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class SparkUnavailableError(Exception):
    """PySpark or Java is not installed."""


@contextmanager
def running_spark(
    folder: Path, settings: Mapping[str, str] | None = None, *, hive: bool = False
) -> Iterator[Any]:
    """Run Spark in `folder` and yield its session."""
    check_java()
    try:
        from pyspark.sql import SparkSession
    except ImportError as exc:
        raise SparkUnavailableError("there is no PySpark: `pip install pyspark`") from exc
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("golden")
    for key, value in {**_settings(folder), **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = (builder.enableHiveSupport() if hive else builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def running_connect(folder: Path) -> Iterator[Any]:
    """Run a server of Spark Connect in `folder` and yield the session of a client.

    The server listens on a port that is free, not on the usual one: several may run on a machine.
    """
    check_java()
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {"spark.app.name": "golden", "spark.connect.grpc.binding.port": "0"}
    ConnectSession._start_connect_server("local[2]", {**_settings(folder), **options})
    server = SparkSession._instantiatedSession
    service = server._jvm.org.apache.spark.sql.connect.service
    port = getattr(getattr(service, "SparkConnectService$"), "MODULE$").localPort()
    # As `builder.remote("local[2]")` does. `stop` removes both, and stops the server.
    os.environ["SPARK_LOCAL_REMOTE"] = os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    spark = ConnectSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def another_session(spark: Any) -> Iterator[Any]:
    """Yield a new session on the same Spark, and restore the previous session at the end."""
    from pyspark.sql.session import _monkey_patch_RDD

    try:
        yield spark.newSession()
    finally:
        _monkey_patch_RDD(spark)  # RDD.toDF uses the newest session


def check_java() -> None:
    """Raise an error with instructions if there is no Java."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        raise SparkUnavailableError(
            "there is no Java to run Spark: install a JDK (17 runs every version), "
            "or set JAVA_HOME to one"
        )


# Queries of tests are small, and no two are alike: compiling them takes longer than running. The
# first compiler of Java alone gets a small cache of code, and stops when that is full.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
QUICK = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


def _settings(folder: Path) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{QUICK_JAVA} -Dderby.system.home={folder / 'derby'}",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.showConsoleProgress": "false",
        **QUICK,
    }

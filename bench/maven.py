"""Jars that benchmarks and tests compare with, fetched once by the Ivy that is part of Spark."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
from pathlib import Path

from downriver.capture.spark.local_session import find_java

_FOLDER = Path(__file__).parents[1] / ".venv" / "jars"
OPENLINEAGE = "io.openlineage:openlineage-spark_2.13:1.53.0"
DELTA = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "io.delta:delta-kernel-api:4.4.0",
    "io.delta:delta-kernel-defaults:4.4.0",
    "io.delta:delta-kernel-unitycatalog:4.4.0",
)
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


class JarUnavailableError(Exception):
    """A jar could not be fetched."""


def fetch_jar(artifact: str) -> Path:
    """Return the jar of `group:name:version`, fetched unless it is here."""
    group, name, version = artifact.split(":")
    path = _FOLDER / f"{name}-{version}.jar"
    if path.exists():
        return path
    pattern = str(_FOLDER / "[artifact]-[revision].[ext]")
    done = subprocess.run(
        [
            *(str(find_java(importlib.metadata.version("pyspark"))), "-jar", str(_ivy())),
            *("-cache", str(_FOLDER / "cache"), "-dependency", group, name, version),
            *("-notransitive", "-confs", "default", "-retrieve", pattern),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not path.exists():
        raise JarUnavailableError(f"{artifact} cannot be fetched: {done.stdout[-500:]}")
    return path


def _ivy() -> Path:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise JarUnavailableError("there is no PySpark, whose Ivy fetches jars")
    (found,) = (Path(spark.origin).parent / "jars").glob("ivy-*.jar")
    return found

"""Jars of the tools that tests and benchmarks compare with, downloaded once by Spark's Ivy.

`python -m bench.maven` downloads all of them. CI does so while it checks the code, because Ivy
downloads hundreds of jars one after another.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
from pathlib import Path

from bench.downloads import cache_folder, unfinished
from downriver.capture.spark.local_session import find_java

OPENLINEAGE = "io.openlineage:openlineage-spark_2.13:1.53.0"
DELTA = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "io.delta:delta-kernel-api:4.4.0",
    "io.delta:delta-kernel-defaults:4.4.0",
    "io.delta:delta-kernel-unitycatalog:4.4.0",
)
NEO4J = "org.neo4j:neo4j:5.26.0"
TRINO_PARSER = "io.trino:trino-parser:435"  # the last one for Java 17
KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SPARK_KAFKA = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)


class JarUnavailableError(Exception):
    """A jar could not be fetched."""


def fetch_jar(artifact: str) -> Path:
    """Return the jar of `group:name:version`, downloaded if it is missing."""
    return _fetch(artifact, "-notransitive") / _file_name(artifact)


def fetch_program(artifact: str) -> Path:
    """Return the folder with a jar and its dependencies, downloaded if they are missing."""
    return _fetch(artifact)


def _fetch(artifact: str, *options: str) -> Path:
    folder = cache_folder("jars") / artifact.replace(":", "-")
    with unfinished(folder) as missing:
        if missing:
            pattern = str(folder / "[artifact]-[revision](-[classifier]).[ext]")
            output = _retrieve(artifact, pattern, *options)
            if not (folder / _file_name(artifact)).exists():
                raise JarUnavailableError(f"{artifact} cannot be fetched: {output}")
    return folder


def _file_name(artifact: str) -> str:
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


def _retrieve(artifact: str, pattern: str, *options: str) -> str:
    """Let Ivy copy jars to the paths of a pattern, and return the end of its output."""
    group, name, version = artifact.split(":")
    done = subprocess.run(
        [
            *(str(find_java(importlib.metadata.version("pyspark"))), "-jar", str(_ivy())),
            *("-cache", str(cache_folder("ivy")), "-dependency", group, name, version),
            *options,
            *("-confs", "default", "-retrieve", pattern),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise JarUnavailableError(f"{artifact} cannot be fetched: {done.stdout[-500:]}")
    return done.stdout[-500:]


def _ivy() -> Path:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise JarUnavailableError("there is no PySpark, whose Ivy fetches jars")
    (found,) = (Path(spark.origin).parent / "jars").glob("ivy-*.jar")
    return found


if __name__ == "__main__":
    for program in (NEO4J, KAFKA, TRINO_PARSER):
        fetch_program(program)
    for jar in (*DELTA, *SPARK_KAFKA, ICEBERG, OPENLINEAGE):
        fetch_jar(jar)

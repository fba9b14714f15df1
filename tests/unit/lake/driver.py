"""A driver in its own process, which tests can kill, on the Spark of the tests.

    python -m tests.unit.lake.driver ACTION LAKE SOURCE DIES

DIES is `STAGE` (a moment after that stage began), `after STAGE`, or `never`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_A_MOMENT = 0.3


def run_driver(spark: Any, *arguments: str) -> int:
    """Run this program on a Spark, and return its exit code: -9 when it was killed."""
    parameters = spark.sparkContext._gateway.gateway_parameters
    environment = {
        **os.environ,
        "PYSPARK_GATEWAY_PORT": str(parameters.port),
        "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
    }
    command = [sys.executable, "-m", "tests.unit.lake.driver", *arguments]
    root = Path(__file__).parents[3]
    return subprocess.run(command, env=environment, cwd=root, check=False).returncode


def attach() -> Any:
    """Return a session on the Spark that runs in another process."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    running = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    java = gateway.jvm.JavaSparkContext.fromSparkContext(running)
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Fate:
    """Kills the process at a stage."""

    def __init__(self, when: str) -> None:
        self._when = when

    def begin(self, stage: str) -> None:
        if self._when == stage:
            threading.Timer(_A_MOMENT, die).start()

    def report(self, done: Any) -> None:
        if self._when == f"after {done.stage}":
            die()


def publish_and_die(place: str, store: str) -> None:
    """Publish in transactions of two events, and die after the first."""
    from downriver.lake.bronze import store_log
    from downriver.lake.storage.files import Folder
    from downriver.store import open_store

    store_log._EVENTS_PER_TRANSACTION = 2
    store_log.publish(Folder(place), open_store(store), lambda done, total: die())


def main(action: str, place: str, source: str, when: str) -> None:
    if action == "publish":
        publish_and_die(place, source)
        return
    from downriver.lake.bronze import few_events
    from downriver.lake.runner import Lake

    fate = Fate(when)
    lake = Lake(place, attach(), begin=fate.begin, report=fate.report)
    if action == "ingest":
        few_events.FEW_BYTES = -1  # with Spark
        lake.ingest([source])
    else:
        lake.build()


if __name__ == "__main__":
    main(*sys.argv[1:])

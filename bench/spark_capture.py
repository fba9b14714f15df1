"""Overhead of capture for a Spark job: no capture, Downriver, and OpenLineage's listener.

Each round runs the three one after another, each in a separate JVM, on the same work: 200 small
writes, and one plan of 500 columns and 50 steps. Times begin after a warm-up and end when
`spark.stop()` returns, so that pending events count.

Whole runs of the same job differ by more than the cost of capture. Therefore the threads of capture
are timed separately: Spark's listener bus, the Python threads, and the JVM threads that serve
Python. Two threads that every job has are excluded: its main thread, and the thread by which py4j
releases objects. The CPU time of the same threads without capture is subtracted.

    python -m bench.spark_capture [--quick] [--only WORK] [--rounds N] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.maven import OPENLINEAGE, fetch_jar
from bench.threads import ThreadTimes, watched_threads

MODES = ("none", "downriver", "openlineage")
WORKS = ("writes", "wide")


class Cost(NamedTuple):
    """The cost of a job. On a busy machine, CPU time is more reliable than wall time."""

    wall: float
    cpu: float
    threads: float  # CPU time of the threads of capture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of less work")
    parser.add_argument("--only", choices=WORKS, help="measure one of the two")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--worker", nargs=2, metavar=("MODE", "WORK"))
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_work(*options.worker, quick=options.quick)))
        return
    lines = [
        "| work | capture | wall s | CPU s | wall over none | CPU over none | CPU of its threads |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for work in [options.only] if options.only else WORKS:
        lines += _compare(work, 1 if options.quick else options.rounds, options.quick)
    table = "\n".join(lines)
    print(table)
    if options.markdown:
        options.markdown.write_text(table + "\n")


def _compare(work: str, rounds: int, quick: bool) -> list[str]:
    found: dict[str, list[Cost]] = {mode: [] for mode in MODES}
    for at in range(rounds):
        for mode in MODES[at % 3 :] + MODES[: at % 3]:
            cost = _run(mode, work, quick)
            found[mode].append(cost)
            spent = f"{cost.wall:.2f} s, {cost.cpu:.2f} s of CPU, {cost.threads:.2f} s aside"
            print(f"{work} {at + 1}/{rounds} {mode}: {spent}", file=sys.stderr)
    medians = {mode: _median(costs) for mode, costs in found.items()}
    none = medians["none"]
    return [
        f"| {work} | {mode} | {cost.wall:.2f} | {cost.cpu:.2f} "
        f"| {cost.wall / none.wall - 1:+.1%} | {cost.cpu / none.cpu - 1:+.1%} "
        f"| {cost.threads - none.threads:.2f} s, {(cost.threads - none.threads) / none.cpu:.1%} |"
        for mode, cost in medians.items()
    ]


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.threads for cost in costs),
    )


def _run(mode: str, work: str, quick: bool) -> Cost:
    command = [sys.executable, "-m", "bench.spark_capture", "--worker", mode, work]
    done = subprocess.run(
        [*command, *(["--quick"] if quick else [])], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{mode} on {work} failed:\n{done.stderr[-3000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def _work(mode: str, work: str, *, quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        spark = _session(mode, folder)
        if mode == "downriver":
            import downriver.spark

            downriver.spark.track(spark)
        _writes(spark, f"{folder}/warm", 10)
        jvm = spark.sparkContext._gateway.proc.pid
        started = time.perf_counter()
        with watched_threads(jvm, os.getpid()) as times:
            if work == "writes":
                _writes(spark, f"{folder}/out", 40 if quick else 200)
            else:
                _wide(spark, f"{folder}/wide", steps=10 if quick else 50)
            spark.stop()
        return {
            "wall": time.perf_counter() - started,
            "cpu": sum(times.seconds.values()),
            "threads": _aside(times),
        }


def _aside(times: ThreadTimes) -> float:
    """Return the CPU time of the threads of capture."""
    here = os.getpid()
    in_python = [used for task, used in times.seconds.items() if task.pid == here]
    in_java = [(task.name, used) for task, used in times.seconds.items() if task.pid != here]
    serving = [used for name, used in in_java if name.startswith("Thread-")]
    listening = sum(used for name, used in in_java if name.startswith("spark-listener"))
    return listening + sum(sum(sorted(each)[:-2]) for each in (in_python, serving))


def _session(mode: str, folder: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.driver.memory", "3g")
    )
    if mode == "openlineage":
        builder = (
            builder.config("spark.jars", str(fetch_jar(OPENLINEAGE)))
            .config("spark.extraListeners", "io.openlineage.spark.agent.OpenLineageSparkListener")
            .config("spark.openlineage.transport.type", "file")
            .config("spark.openlineage.transport.location", f"{folder}/events.jsonl")
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _writes(spark: Any, folder: str, count: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    spark.range(1000).withColumn("name", F.lit("x")).write.parquet(f"{folder}/source")
    source = spark.read.parquet(f"{folder}/source")
    for at in range(count):
        made = source.where(F.col("id") > at).select((F.col("id") * at).alias("value"), "name")
        made.write.parquet(f"{folder}/{at}")


def _wide(spark: Any, folder: str, *, columns: int = 500, steps: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    names = [f"c{at}" for at in range(columns)]
    spark.range(100).select(*(F.col("id").alias(name) for name in names)).write.parquet(
        f"{folder}/source"
    )
    frame = spark.read.parquet(f"{folder}/source")
    for step in range(steps):
        frame = frame.select(*((F.col(name) + step).alias(name) for name in names))
    frame.write.parquet(f"{folder}/out")


if __name__ == "__main__":
    main()

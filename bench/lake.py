"""Throughput of the lake: events to gold tables, and reach in large graphs.

Throughput is measured beside the same fold in one Python process, and beside a Spark SQL parse,
written by hand, into tables of the same facts. Reach is measured beside iterative joins, on a graph
small enough for those, and its counts are checked by walking from a sample. GraphFrames, which
would be the other peer, has no package for this version of Spark.

    python -m bench.lake [--only events] [--quick] [--events N…] [--memory 4g] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from bench.lake_by_hand import fold_here, parse_by_hand
from bench.lake_events import Warehouse
from bench.lake_reach import measure_reach
from bench.report import Table, print_table, render_markdown
from bench.subprocesses import run_in_process
from bench.usage import Usage, watched_usage
from downriver.capture.spark.local_session import local_session
from downriver.lake.bronze.store_log import publish
from downriver.lake.runner import Lake
from downriver.lake.storage.files import Folder
from downriver.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from downriver.lake.stages import StageReport

_DATASETS = 20_000
_SIZES = (10_000, 100_000, 1_000_000)
_QUICK = (2_000, 10_000)
_HEADINGS = (
    "events",
    "MB",
    "rows of facts",
    "one process, fold alone",
    "SQL by hand",
    "lake to facts",
    "lake to gold",
    "core-s, of these four",
    "memory, MB",
    "core-s by stage",
)


class Addition(NamedTuple):
    """Events that are added to a lake, and what is new in them."""

    file: str
    about: str


_ADDITIONS = (
    Addition("one.jsonl", "(1 %, reruns)"),
    Addition("ten.jsonl", "(10 %, reruns)"),
    Addition("new.jsonl", "(1 %, of new jobs)"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("events", "reach"), help="measure one of the two")
    parser.add_argument("--quick", action="store_true", help="smaller, in some minutes")
    parser.add_argument("--events", type=int, nargs="+", help=f"sizes; default {_SIZES}")
    parser.add_argument("--memory", default="4g", help="what Spark's driver may use")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    console = Console(width=170)
    tables: list[Table] = []
    sizes = tuple(options.events or (_QUICK if options.quick else _SIZES))
    for table in run(sizes, options.memory, quick=options.quick, only=options.only):
        print_table(table, console)
        tables.append(table)
        if options.markdown:  # after each table, so that an interrupted run has results
            options.markdown.write_text(render_markdown(_latest(tables)), "utf-8")


def _latest(tables: list[Table]) -> list[Table]:
    """Return the last state of each table."""
    return list({table.title: table for table in tables}.values())


def run(sizes: tuple[int, ...], memory: str, *, quick: bool, only: str | None) -> Iterator[Table]:
    """Measure, and yield each table when it has new rows."""
    conf = {
        "spark.driver.memory": memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    }
    spark = local_session("bench", conf=conf)
    try:
        spark.range(1000).selectExpr("sum(id)").collect()  # warm
        if only != "reach":
            yield from measure_events(spark, sizes, memory)
        if only != "events":
            large = (50_000, 250_000) if quick else (200_000, 1_000_000)
            yield measure_reach(spark, (2_000, 10_000), large)
    finally:
        spark.stop()


def measure_events(spark: SparkSession, sizes: tuple[int, ...], memory: str) -> Iterator[Table]:
    """Measure events from file to gold at several sizes; yield the table after each."""
    datasets = _DATASETS if max(sizes) > max(_QUICK) else max(sizes) // 4
    rows: list[tuple[str, ...]] = []
    added: list[tuple[str, ...]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.jsonl"
            column_edges = run_in_process(_write_events, path, datasets, size)
            row, first = _measure(spark, path, folder, size)
            rows.append(row)
            yield _events_table(rows, column_edges, memory)
            added += _measure_additions(Path(folder), size, first)
            yield _additions_table(added)
            if size == sizes[0]:
                yield _measure_publishing(Folder(f"{folder}/lake"), folder)


def _write_events(path: Path, datasets: int, count: int) -> int:
    """Write `count` events of a warehouse; return the number of column edges of its jobs.

    Also write the events that are added later, a file for each addition.
    """
    warehouse = Warehouse(datasets)
    column_edges = warehouse.column_edges
    one, ten = count // 100, count // 10
    events = warehouse.events(count + one + ten)
    _write(path, islice(events, count))
    _write(path.with_name(_ADDITIONS[0].file), islice(events, one))
    _write(path.with_name(_ADDITIONS[1].file), events)
    new = warehouse.add_datasets(max(1, one // 4))
    _write(path.with_name(_ADDITIONS[2].file), islice(new, one))
    return column_edges


def _write(path: Path, events: Iterable[bytes]) -> None:
    with path.open("wb") as stream:
        stream.writelines(event + b"\n" for event in events)


def _measure(
    spark: SparkSession, path: Path, folder: str, size: int
) -> tuple[tuple[str, ...], float]:
    """Return the row of a size, and the core-seconds of the lake."""
    with watched_usage() as alone:
        run_in_process(fold_here, path)
    with watched_usage() as by_hand:
        parse_by_hand(spark, path, f"{folder}/hand")
    with watched_usage() as usage:
        stages = Stages(usage)
        lake = Lake(f"{folder}/lake", spark, report=stages.note)
        lake.ingest([str(path)])
        lake.build()
    folded = stages.seconds["bronze"] + stages.seconds["facts"]
    times = (alone.seconds, by_hand.seconds, folded, sum(stages.seconds.values()))
    folding = stages.cores["bronze"] + stages.cores["facts"]
    cores = (alone.core_seconds, by_hand.core_seconds, folding, usage.core_seconds)
    row = (
        f"{size:,}",
        f"{path.stat().st_size / 2**20:,.0f}",
        f"{stages.facts:,}",
        *(f"{size / seconds:,.0f}/s" for seconds in times),
        " / ".join(f"{used:,.0f}" for used in cores),
        f"{usage.megabytes:,} ({_parts(usage)})",
        ", ".join(f"{name} {used:.0f}" for name, used in stages.cores.items()),
    )
    return row, usage.core_seconds


def _measure_additions(folder: Path, size: int, first: float) -> Iterator[tuple[str, ...]]:
    """Ingest and build further events as one does on the command line.

    Compare with the core-seconds of the first build, `first`.
    """
    for addition in _ADDITIONS:
        path = folder / addition.file
        with path.open("rb") as stream:
            events = sum(1 for _ in stream)
        with watched_usage() as usage:
            _run_command("ingest", str(path), "--lake", str(folder / "lake"))
            ingest = usage.used_so_far()
            _run_command("build", "--lake", str(folder / "lake"))
        yield (
            f"{size:,}",
            f"{events:,} {addition.about}",
            f"{ingest:.1f}",
            f"{usage.core_seconds - ingest:.1f}",
            f"{usage.core_seconds / first:.1%}",
        )


def _run_command(*arguments: str) -> None:
    command = [sys.executable, "-m", "downriver", "lake", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _additions_table(rows: list[tuple[str, ...]]) -> Table:
    return Table(
        "Events added to a lake",
        ("events before", "added", "core-s, ingest", "core-s, build", "of the first build"),
        list(rows),
        (
            "In this order, in the same lake. Each is `downriver lake ingest` and `downriver lake "
            "build`, with the start of Python and Spark. The first build had a running Spark.",
        ),
    )


def _parts(usage: Usage) -> str:
    return ", ".join(f"{command} {held:,}" for command, held in usage.parts.most_common(3))


class Stages:
    """The duration and core-seconds of each stage."""

    def __init__(self, usage: Usage) -> None:
        self.seconds: dict[str, float] = {}
        self.cores: dict[str, float] = {}
        self.facts = 0
        self._usage = usage

    def note(self, stage: StageReport) -> None:
        """Record a finished stage."""
        self.seconds[stage.stage] = stage.seconds
        self.cores[stage.stage] = self._usage.used_so_far() - sum(self.cores.values())
        if stage.stage == "facts":
            self.facts = stage.rows_out


def _events_table(rows: list[tuple[str, ...]], column_edges: int, memory: str) -> Table:
    return Table(
        "Events to gold",
        _HEADINGS,
        list(rows),
        (
            f"{column_edges:,} column edges when every job has run. Spark's driver, "
            f"which is all of Spark here, has {memory}; memory is that of all processes together.",
            "One process: parse, fold and merge, nothing read back or stored. By hand: nodes, "
            "edges, runs, schemas, column edges and statistics as Parquet, without hashes, "
            "quarantine, facets and their history.",
        ),
    )


def _measure_publishing(lake: Folder, folder: str) -> Table:
    store = open_store(f"{folder}/store")
    try:
        watch = time.perf_counter()
        found = publish(lake, store)
        seconds = time.perf_counter() - watch
    finally:
        store.close()
    return Table(
        "Publishing to a store (SQLite)",
        ("events", "events a second", "seconds"),
        [(f"{found.events:,}", f"{found.events / seconds:,.0f}", f"{seconds:.1f}")],
        ("Each event is appended to the hash-chained log and folded into the catalog.",),
    )


if __name__ == "__main__":
    main()

"""What the lake costs: events to gold, and how far every node of a large graph reaches.

Throughput is measured beside the same fold in one Python process, and beside a Spark SQL parse,
written by hand, into tables of the same facts. Reach is measured beside iterative joins, on a graph
small enough for those, and its counts are checked by walking from a sample. GraphFrames, which
would be the other peer, has no package for this version of Spark.

    python -m bench.lake [--quick] [--events N…] [--memory 4g] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench.lake_by_hand import fold_here, parse_by_hand
from bench.lake_events import Warehouse
from bench.lake_reach import measure_reach
from bench.memory import watched_memory
from bench.report import Table, print_table, render_markdown
from downriver.capture.spark.local import local_session
from downriver.lake.places import Folder
from downriver.lake.publish import publish
from downriver.lake.runner import Lake
from downriver.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

_DATASETS = 20_000
_SIZES = (10_000, 100_000, 1_000_000)
_QUICK = (2_000, 10_000)
_HEADINGS = (
    "events",
    "MB",
    "rows of facts",
    "one process: fold",
    "SQL by hand",
    "lake to facts",
    "lake to gold",
    "memory, MB",
    "seconds by stage",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, in some minutes")
    parser.add_argument("--events", type=int, nargs="+", help=f"sizes; default {_SIZES}")
    parser.add_argument("--memory", default="4g", help="what Spark's driver may use")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args()
    console = Console(width=170)
    tables: list[Table] = []
    sizes = tuple(options.events or (_QUICK if options.quick else _SIZES))
    for table in run(sizes, options.memory, quick=options.quick):
        print_table(table, console)
        tables.append(table)
        if options.markdown:  # after each, so that what was measured survives an interruption
            options.markdown.write_text(render_markdown(_latest(tables)), "utf-8")


def _latest(tables: list[Table]) -> list[Table]:
    """Return of each table the last state."""
    return list({table.title: table for table in tables}.values())


def run(sizes: tuple[int, ...], memory: str, *, quick: bool) -> Iterator[Table]:
    """Measure, and yield each table as it is known."""
    conf = {
        "spark.driver.memory": memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    }
    spark = local_session("bench", conf=conf)
    try:
        spark.range(1000).selectExpr("sum(id)").collect()  # warm
        yield from measure_events(spark, sizes, memory)
        small, large = ((2_000, 10_000), (50_000, 250_000))
        yield measure_reach(spark, small, large if quick else (200_000, 1_000_000))
    finally:
        spark.stop()


def measure_events(spark: SparkSession, sizes: tuple[int, ...], memory: str) -> Iterator[Table]:
    """Measure events from file to gold at several sizes, yielding the table after each."""
    warehouse = Warehouse(_DATASETS if max(sizes) > max(_QUICK) else max(sizes) // 4)
    rows: list[tuple[str, ...]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.jsonl"
            with path.open("wb") as stream:
                stream.writelines(event + b"\n" for event in warehouse.events(size))
            rows.append(_measure(spark, path, folder, size))
            yield _events_table(rows, warehouse, memory)
            if size == sizes[0]:
                yield _measure_publishing(Folder(f"{folder}/lake"), folder)


def _measure(spark: SparkSession, path: Path, folder: str, size: int) -> tuple[str, ...]:
    alone = _timed(lambda: fold_here(path))
    by_hand = _timed(lambda: parse_by_hand(spark, path, f"{folder}/hand"))
    with watched_memory() as peak:
        lake = Lake(f"{folder}/lake", spark)
        stages = [lake.ingest([str(path)]), *lake.build()]
    seconds = {stage.stage: stage.seconds for stage in stages}
    folded = seconds["bronze"] + seconds["facts"]
    return (
        f"{size:,}",
        f"{path.stat().st_size / 2**20:,.0f}",
        f"{next(stage.rows_out for stage in stages if stage.stage == 'facts'):,}",
        f"{size / alone:,.0f}/s",
        f"{size / by_hand:,.0f}/s",
        f"{size / folded:,.0f}/s",
        f"{size / sum(seconds.values()):,.0f}/s",
        f"{peak.megabytes:,.0f}",
        ", ".join(f"{name} {took:.0f}" for name, took in seconds.items()),
    )


def _events_table(rows: list[tuple[str, ...]], warehouse: Warehouse, memory: str) -> Table:
    return Table(
        "Events to gold",
        _HEADINGS,
        list(rows),
        (
            f"{warehouse.column_edges:,} column edges when every job has run. Spark's driver, "
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


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()

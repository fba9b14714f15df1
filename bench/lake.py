"""What the lake costs: events to gold, and how far every node of a large graph reaches.

Throughput is measured beside the same fold in one Python process, and beside a Spark SQL parse,
written by hand, of the same events into edges alone. Reach is measured beside iterative joins, on a
graph small enough for those, and its counts are checked by walking from a sample.

    python -m bench.lake [--quick] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as f
from rich.console import Console

from bench.lake_events import Warehouse
from bench.report import Table, print_table, render_markdown
from downriver.events import fold, parse_event
from downriver.lake.closure import Items, count_reached
from downriver.lake.runner import Lake
from downriver.lake.session import running_session
from downriver.model.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

_EVENT = """
    eventTime STRING, job STRUCT<namespace: STRING, name: STRING>,
    inputs ARRAY<STRUCT<namespace: STRING, name: STRING>>,
    outputs ARRAY<STRUCT<namespace: STRING, name: STRING, facets: STRUCT<columnLineage: STRUCT<
        fields: MAP<STRING, STRUCT<inputFields: ARRAY<STRUCT<
            namespace: STRING, name: STRING, field: STRING>>>>>>>>
"""


class Watch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._at = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long it has been."""
        return time.perf_counter() - self._at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, in some minutes")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    console = Console(width=150)
    tables = []
    for table in run(quick=options.quick):
        print_table(table, console)
        tables.append(table)
    if options.markdown:
        options.markdown.write_text(render_markdown(tables), "utf-8")


def run(*, quick: bool) -> Iterator[Table]:
    """Measure, and yield each table as it is known."""
    with running_session() as spark:
        spark.range(1000).selectExpr("sum(id)").collect()  # warm
        yield measure_events(spark, (2_000, 10_000) if quick else (10_000, 100_000, 1_000_000))
        small, large = ((2_000, 10_000), (50_000, 250_000))
        yield measure_reach(spark, small, large if quick else (200_000, 1_000_000))


def measure_events(spark: SparkSession, sizes: tuple[int, ...]) -> Table:
    """Measure events from file to gold at several sizes."""
    rows = []
    for size in sizes:
        warehouse = Warehouse(min(20_000, size // 4))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events.jsonl"
            with path.open("wb") as stream:
                stream.writelines(event + b"\n" for event in warehouse.events(size))
            megabytes = path.stat().st_size / 2**20
            alone = _fold_here(path)
            by_hand = _parse_by_hand(spark, path)
            stages = _through_the_lake(spark, path, f"{folder}/lake")
        folded = stages["bronze"] + stages["facts"]
        rows.append(
            (
                f"{size:,}",
                f"{megabytes:,.0f}",
                f"{size / alone:,.0f}",
                f"{size / by_hand:,.0f}",
                f"{size / folded:,.0f}",
                f"{size / sum(stages.values()):,.0f}",
                ", ".join(f"{name} {seconds:.1f}" for name, seconds in stages.items()),
            )
        )
    return Table(
        "Events to gold, events a second",
        (
            "events",
            "MB",
            "fold in one process",
            "edges by hand-written SQL",
            "lake to facts",
            "lake to gold",
            "seconds by stage",
        ),
        rows,
        (
            "One process: parse, fold and merge, nothing stored. By hand: edges and column edges "
            "only, no facets, runs, hashes or quarantine.",
        ),
    )


def _fold_here(path: Path) -> float:
    watch = Watch()
    facts = Facts.empty()
    with path.open("rb") as stream:
        for line in stream:
            facts.update(fold(parse_event(line.strip())))
    return watch.seconds


def _parse_by_hand(spark: SparkSession, path: Path) -> float:
    watch = Watch()
    events = spark.read.schema(_EVENT).json(str(path)).persist()
    for frame in (_edges(events), _column_edges(events)):
        frame.write.format("noop").mode("overwrite").save()
    events.unpersist()
    return watch.seconds


def _edges(events: DataFrame) -> DataFrame:
    parts = [
        events.select("job", f.explode(side).alias("of"), "eventTime").select(
            f.lit(side).alias("side"), "job.*", f.col("of.name").alias("dataset"), "eventTime"
        )
        for side in ("inputs", "outputs")
    ]
    both = parts[0].union(parts[1])
    return both.groupBy("side", "namespace", "name", "dataset").agg(
        f.min("eventTime"), f.max("eventTime")
    )


def _column_edges(events: DataFrame) -> DataFrame:
    outputs = events.select(f.explode("outputs").alias("of"), "eventTime")
    fields = outputs.select(
        f.col("of.name").alias("target"),
        f.explode("of.facets.columnLineage.fields").alias("target_field", "entry"),
        "eventTime",
    )
    each = fields.select(
        "target", "target_field", f.explode("entry.inputFields").alias("source"), "eventTime"
    )
    return each.groupBy("target", "target_field", "source").agg(
        f.min("eventTime"), f.max("eventTime")
    )


def _through_the_lake(spark: SparkSession, path: Path, place: str) -> dict[str, float]:
    lake = Lake(place, spark)
    stages = [lake.ingest([str(path)]), *lake.build()]
    return {stage.stage: stage.seconds for stage in stages}


def measure_reach(spark: SparkSession, small: tuple[int, int], large: tuple[int, int]) -> Table:
    """Measure how far every node reaches, with bits and with joins."""
    rows = []
    for nodes, edges in (small, large):
        for name, components in (("in one piece", 1), ("in 200 pieces", 200)):
            source, target = _graph(nodes, edges, components)
            items = Items(np.arange(nodes), np.zeros(nodes, np.int64))
            with _peak() as grown:
                watch = Watch()
                counts = count_reached(nodes, source, target, items)[0]
                bits = watch.seconds
            _check(source, target, counts)
            joins = "–"
            if (nodes, edges) == small and components > 1:
                joins = f"{_joins(spark, source, target, counts):.1f}"
            size = f"{nodes:,} / {edges:,} {name}"
            rows.append((size, f"{counts.sum():,}", f"{bits:.2f}", f"{grown[0]:,.0f}", joins))
    return Table(
        "How far every node reaches",
        ("nodes / edges", "pairs counted", "bits, s", "memory grown by, MB", "iterative joins, s"),
        rows,
        ("Exact; checked by walking from 50 nodes. One core. Joins list every pair.",),
    )


def _graph(nodes: int, edges: int, components: int) -> tuple[Any, Any]:
    """Return a random graph of layers whose edges lead one or two layers on, with a few back."""
    random = np.random.default_rng(7)
    size = nodes // components
    piece = random.integers(0, components, edges)
    layers = 10
    layer = random.integers(0, layers - 1, edges)
    width = max(size // layers, 1)
    source = piece * size + layer * width + random.integers(0, width, edges)
    target = piece * size + (layer + 1) * width + random.integers(0, width, edges)
    back = random.random(edges) < 0.0001
    return np.where(back, target, source), np.where(back, source, target)


def _check(source: Any, target: Any, counts: Any) -> None:
    order = np.argsort(source, kind="stable")
    starts = np.searchsorted(source[order], np.arange(len(counts) + 1))
    onward = target[order]
    for root in np.random.default_rng(3).integers(0, len(counts), 50).tolist():
        reached, waiting = {root}, [root]
        while waiting:
            at = waiting.pop()
            new = set(onward[starts[at] : starts[at + 1]].tolist()) - reached
            reached |= new
            waiting += new
        if len(reached) - 1 != counts[root]:
            sys.exit(f"wrong: {root} reaches {len(reached) - 1}, counted {counts[root]}")


def _joins(spark: SparkSession, source: Any, target: Any, counts: Any) -> float:
    """Count by joining the pairs found with the edges until there are no new ones."""
    rows = list(zip(source.tolist(), target.tolist(), strict=True))
    edges = spark.createDataFrame(rows, "a BIGINT, b BIGINT").distinct().persist()
    watch = Watch()
    known = frontier = edges
    while frontier.count():
        step = frontier.alias("x").join(edges.alias("y"), f.col("x.b") == f.col("y.a"))
        found = step.select("x.a", "y.b").distinct()
        frontier = found.join(known, ["a", "b"], "left_anti").localCheckpoint()
        known = known.union(frontier)
    total = known.where("a <> b").count()
    if total != counts.sum():
        sys.exit(f"joins find {total} pairs, bits {counts.sum()}")
    return watch.seconds


@contextmanager
def _peak() -> Iterator[list[float]]:
    """Give by how many MB the process's peak grew; 0 when it stayed below an earlier peak."""
    grown: list[float] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield grown
    grown.append((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


if __name__ == "__main__":
    main()

"""How far every node of a graph reaches: bits beside iterative joins, checked by walking."""

from __future__ import annotations

import resource
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as f

from bench.report import Table
from downriver.lake.closure import Items, count_reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


_CONSUMERS = 100_000


def measure_reach(spark: SparkSession, small: tuple[int, int], large: tuple[int, int]) -> Table:
    """Measure how far every node reaches, with bits and, where those can, with joins."""
    rows = []
    for nodes, edges in (small, large):
        for name, components in (("in one piece", 1), ("in 200 pieces", 200)):
            source, target = _graph(nodes, edges, components)
            joined = (nodes, edges) == small and components > 1
            rows.append(_row(name, nodes, source, target, spark if joined else None))
    star = _star(_CONSUMERS)
    rows.append(_row("of which one feeds 100,000", _CONSUMERS + 2, *star, None))
    return Table(
        "How far every node reaches",
        ("nodes / edges", "pairs counted", "bits, s", "memory grown by, MB", "iterative joins, s"),
        rows,
        ("Exact; checked by walking from 50 nodes. One core. Joins list every pair.",),
    )


def _row(
    name: str, nodes: int, source: Any, target: Any, spark: SparkSession | None
) -> tuple[str, ...]:
    items = Items(np.arange(nodes), np.zeros(nodes, np.int64))
    with _peak() as grown:
        watch = time.perf_counter()
        counts = count_reached(nodes, source, target, items)[0]
        bits = time.perf_counter() - watch
    _check(source, target, counts)
    joins = f"{_joins(spark, source, target, counts):.1f}" if spark else "–"
    size = f"{nodes:,} / {len(source):,} {name}"
    return (size, f"{counts.sum():,}", f"{bits:.2f}", f"{grown[0]:,.0f}", joins)


def _star(many: int) -> tuple[Any, Any]:
    """Return a node that feeds many, which all feed one."""
    middle = np.arange(1, many + 1)
    source = np.concatenate([np.zeros(many, np.int64), middle])
    return source, np.concatenate([middle, np.full(many, many + 1)])


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
    watch = time.perf_counter()
    known = frontier = edges
    while frontier.count():
        step = frontier.alias("x").join(edges.alias("y"), f.col("x.b") == f.col("y.a"))
        found = step.select("x.a", "y.b").distinct()
        frontier = found.join(known, ["a", "b"], "left_anti").localCheckpoint()
        known = known.union(frontier)
    total = known.where("a <> b").count()
    if total != counts.sum():
        sys.exit(f"joins find {total} pairs, bits {counts.sum()}")
    return time.perf_counter() - watch


@contextmanager
def _peak() -> Iterator[list[float]]:
    """Give by how many MB the process's peak grew; 0 when it stayed below an earlier peak."""
    grown: list[float] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield grown
    grown.append((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)

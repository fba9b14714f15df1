"""Reach of every node of a graph: bit sets compared with iterative joins, checked by walks."""

from __future__ import annotations

import resource
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyspark.sql import functions as f

from bench.report import Table
from bench.subprocesses import run_in_process
from bench.usage import watched_usage
from downriver.lake.reach.closure import VertexItems, count_reached

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CONSUMERS = 100_000


def measure_reach(spark: SparkSession, small: tuple[int, int], large: tuple[int, int]) -> Table:
    """Measure the reach of every node with bits and, where feasible, with joins."""
    rows = []
    for nodes, edges in (small, large):
        for name, components in (("in one component", 1), ("in 200 components", 200)):
            graph = Graph(nodes, *_graph(nodes, edges, components))
            rows.append(_row(name, graph, spark if components > 1 else None))
    star = Graph(_CONSUMERS + 2, *_star(_CONSUMERS))
    rows.append(_row("with one node that feeds 100,000", star, None))
    return Table(
        "Reach of every node",
        ("nodes / edges", "pairs counted", "bits, s", "MB", "iterative joins, s", "MB"),
        rows,
        (
            "The counts are exact, and checked by walks from 50 nodes. Bits: one core, in a "
            "separate process. Joins: Spark on two cores. They list every pair: four billion "
            "for a component of a million edges, too many for the disk.",
        ),
    )


class Graph(NamedTuple):
    """Nodes are numbers from 0."""

    nodes: int
    source: Any
    target: Any


def _row(name: str, graph: Graph, spark: SparkSession | None) -> tuple[str, ...]:
    counts, bits, megabytes = run_in_process(_count, graph)
    _check(graph.source, graph.target, counts)
    size = f"{graph.nodes:,} / {len(graph.source):,} {name}"
    found = (size, f"{counts.sum():,}", f"{bits:.2f}", f"{megabytes:,.0f}")
    if spark is None:
        return (*found, "–", "–")
    with watched_usage() as usage:
        seconds = _joins(spark, graph.source, graph.target, counts)
    return (*found, f"{seconds:.1f}", f"{usage.megabytes:,}")


def _count(graph: Graph) -> tuple[Any, float, float]:
    """Return the reach of every node, the seconds, and the peak memory in MB."""
    items = VertexItems(np.arange(graph.nodes), np.zeros(graph.nodes, np.int64))
    watch = time.perf_counter()
    counts = count_reached(graph.nodes, graph.source, graph.target, items)[0]
    seconds = time.perf_counter() - watch
    return counts, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _star(many: int) -> tuple[Any, Any]:
    """Return the edges of a node that feeds many nodes, which all feed one."""
    middle = np.arange(1, many + 1)
    source = np.concatenate([np.zeros(many, np.int64), middle])
    return source, np.concatenate([middle, np.full(many, many + 1)])


def _graph(nodes: int, edges: int, components: int) -> tuple[Any, Any]:
    """Return a random layered graph with a few edges backwards."""
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
    """Count by joining pairs with edges until there are no new pairs."""
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

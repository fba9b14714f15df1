# ruff: noqa: A005 — named after what it measures
"""Downstream traces: the index in memory compared with a recursive query in PostgreSQL."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import psycopg

from bench.databases import postgres_database
from bench.postmaster import running_postmaster
from bench.report import Table, median, percentile, render_ms, render_ratio
from bench.warehouse import (
    SEED,
    Numbers,
    column_name,
    dataset_name,
    load_warehouse,
    make_warehouse,
)
from downriver.graph.walk.column_walk import reach_columns
from downriver.graph.walk.node_walk import reach_nodes
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Result = TypeVar("Result")

ANY, SOURCES, HUBS = "any", "sources", "hubs"
TARGET = 10.0
MEMORY_TARGET_MB = 1024
_BEST_OF = 3
_LONG_ENOUGH = 1.0  # seconds: a query that takes longer varies little, and is run once
_ANSWER_SIZES = (1, 10, 100, 1_000, 10_000, 10**9)

# The best conditions for PostgreSQL: memory for all data, and covering indexes.
_POSTGRES = {"shared_buffers": "2GB", "max_wal_size": "8GB", "autovacuum": "off"}
_INDEXES = (
    "CREATE INDEX ON edges (source)",
    "CREATE INDEX ON derives (source)",
    "VACUUM ANALYZE edges",
    "VACUUM ANALYZE derives",
)
_SESSION = ("SET work_mem = '256MB'", "SET jit = off")
_QUERIES = {
    "datasets": """
        WITH RECURSIVE reached (id) AS (
            SELECT %s::int
            UNION
            SELECT e.target FROM reached r JOIN edges e ON e.source = r.id AND e.kind IN (1, 2, 3)
        )
        SELECT e.id, e.source, e.target
        FROM reached r JOIN edges e ON e.source = r.id AND e.kind IN (1, 2, 3)
    """,
    "columns": """
        WITH RECURSIVE reached (id) AS (
            SELECT %s::int
            UNION
            SELECT d.target FROM reached r JOIN derives d ON d.source = r.id
        )
        SELECT d.id, d.source, d.target FROM reached r JOIN derives d ON d.source = r.id
    """,
}

Walk: TypeAlias = "Callable[[int], npt.NDArray[np.int32]]"
Ask: TypeAlias = "Callable[[str, int], list[tuple[int, int, int]]]"


class Scale(NamedTuple):
    """The sizes of the graphs, and the number of roots per group."""

    datasets: tuple[int, ...]
    column_edges: int  # at the largest size
    roots: dict[str, int]
    own_roots: int  # measured with Downriver only, to relate time to the size of answers
    full_answers: int  # of each group


class Roots(NamedTuple):
    """The roots by group; `for_full_answers` is a part of them."""

    groups: dict[str, list[int]]
    further: list[int]
    for_full_answers: dict[str, list[int]]


class Answered(NamedTuple):
    """One root: the number of nodes, and the seconds of each side."""

    nodes: int
    ours: float
    postgres: float


class Loaded(NamedTuple):
    """The cost of a graph in memory."""

    nodes: int
    edges: int
    columns: int
    column_edges: int
    seconds: float
    memory_mb: int
    peak_mb: int


class Measured(NamedTuple):
    """The results for one graph, by kind of root."""

    datasets: int
    loaded: Loaded
    answered: dict[str, list[Answered]]
    own: list[tuple[int, float]]  # nodes found, seconds
    full: dict[str, list[float]]  # seconds for a whole answer: names, evidence, blind spots


def run(*, quick: bool) -> Iterator[Table]:
    """Measure every size and yield the tables."""
    scale = (
        Scale((10_000, 100_000), 200_000, {ANY: 100, SOURCES: 50, HUBS: 10}, 500, 10)
        if quick
        else Scale(
            (10_000, 100_000, 1_000_000), 10_000_000, {ANY: 400, SOURCES: 200, HUBS: 20}, 3_000, 50
        )
    )
    measured: list[Measured] = []
    with running_postmaster(fsync=False, settings=_POSTGRES) as postmaster:
        for datasets in scale.datasets:
            column_edges = scale.column_edges if datasets == scale.datasets[-1] else 0
            with postgres_database(postmaster.url) as url:
                measured.append(_measure_size(url, datasets, column_edges, scale))
    yield _comparison(measured)
    yield _by_answer_size(measured)
    yield _full_answers(measured)
    yield _memory(measured)


def _measure_size(url: str, datasets: int, column_edges: int, scale: Scale) -> Measured:
    print(f"trace: loading {datasets:,} datasets, {column_edges:,} column edges", file=sys.stderr)
    warehouse = make_warehouse(datasets, column_edges)
    load_warehouse(url, warehouse)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _INDEXES:
            connection.execute(statement)
    roots = {"datasets": _choose(*warehouse.dataset_degrees(), scale)}
    if column_edges:
        roots["columns"] = _choose(*warehouse.column_degrees(), scale)
    print(f"trace: measuring {datasets:,} datasets", file=sys.stderr)
    # A separate process, so that its memory is that of the index and not of the generator.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(_measure, url, datasets, roots).result()


def _choose(inputs: Numbers, readers: Numbers, scale: Scale) -> Roots:
    """Choose datasets that have readers, because other traces are empty."""
    random = np.random.default_rng(SEED)
    read = random.permutation(np.flatnonzero(readers))
    groups = {
        ANY: read,
        SOURCES: read[inputs[read] == 0],
        HUBS: np.argsort(readers, kind="stable")[::-1],
    }
    chosen = {group: groups[group][:count].tolist() for group, count in scale.roots.items()}
    some = {group: roots[: scale.full_answers] for group, roots in chosen.items()}
    return Roots(chosen, read[-scale.own_roots :].tolist(), some)


# In the measuring process


def _measure(url: str, datasets: int, roots: dict[str, Roots]) -> Measured:
    started = time.perf_counter()
    with Lineage.open(url) as lineage:
        lineage.session.prepare()
        walks = _walks(lineage)
        for kind in roots:
            walks[kind](1)  # the first walk allocates its work space, which counts as loading
        loaded = _loaded(lineage, time.perf_counter() - started)
        with _asking(url) as ask:
            answered = {
                f"{kind}, {group}": [_answer(kind, root, walks[kind], ask) for root in some]
                for kind, chosen in roots.items()
                for group, some in chosen.groups.items()
            }
        own = [_walk_alone(walks["datasets"], root) for root in roots["datasets"].further]
        full = {
            f"{kind}, {group}": [_answer_fully(lineage, kind, root) for root in some]
            for kind, chosen in roots.items()
            for group, some in chosen.for_full_answers.items()
        }
    return Measured(datasets, loaded, answered, own, full)


def _walks(lineage: Lineage) -> dict[str, Walk]:
    with lineage.session.reading() as view:
        graph = view.graph

    def datasets(root: int) -> npt.NDArray[np.int32]:
        return reach_nodes(graph.nodes, root, downstream=True).nodes

    def columns(root: int) -> npt.NDArray[np.int32]:
        identities = graph.nodes.identities
        return reach_columns(graph.columns, identities, root, downstream=True).states.nodes

    return {"datasets": datasets, "columns": columns}


def _loaded(lineage: Lineage, seconds: float) -> Loaded:
    with lineage.session.reading() as view:
        graph = view.graph
    return Loaded(
        graph.nodes.size - 1,
        len(graph.nodes.flow),
        max(0, graph.columns.size - 1),
        len(graph.columns.flow),
        seconds,
        _memory_mb("VmRSS"),
        _memory_mb("VmHWM"),
    )


def _memory_mb(field: str) -> int:
    status = Path("/proc/self/status")
    if not status.exists():  # not Linux: the peak, in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**20
    return int(status.read_text().partition(f"{field}:")[2].split()[0]) // 1024


@contextmanager
def _asking(url: str) -> Iterator[Ask]:
    """Yield a function that runs a prepared query."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in _SESSION:
            connection.execute(setting)

        def ask(kind: str, root: int) -> list[tuple[int, int, int]]:
            query = _QUERIES[kind]
            return connection.execute(query, (root,), prepare=True, binary=True).fetchall()

        yield ask


def _answer(kind: str, root: int, walk: Walk, ask: Ask) -> Answered:
    ours, our_seconds = _timed(lambda: walk(root))
    theirs, their_seconds = _timed(lambda: ask(kind, root))
    if not np.array_equal(np.sort(ours), np.unique([root, *(row[2] for row in theirs)])):
        raise RuntimeError(f"{kind}: PostgreSQL finds other nodes downstream of {root}")
    return Answered(len(ours), our_seconds, their_seconds)


def _walk_alone(walk: Walk, root: int) -> tuple[int, float]:
    found, seconds = _timed(lambda: walk(root))
    return len(found), seconds


def _answer_fully(lineage: Lineage, kind: str, root: int) -> float:
    name = dataset_name(root) if kind == "datasets" else column_name(root)
    return _timed(lambda: lineage.trace(name))[1]


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return a result and the shortest time, which other processes influence least."""
    times: list[float] = []
    while len(times) < _BEST_OF and sum(times) < _LONG_ENOUGH:
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
    return result, min(times)


# The tables


def _comparison(measured: list[Measured]) -> Table:
    rows = []
    for size in measured:
        for group, answers in size.answered.items():
            nodes = [answer.nodes for answer in answers]
            ours = [answer.ours for answer in answers]
            theirs = [answer.postgres for answer in answers]
            rows.append(
                (
                    f"{size.datasets:,}: {group}",
                    f"{percentile(nodes, 50):,} / {percentile(nodes, 99):,}",
                    f"{render_ms(percentile(ours, 50))} / {render_ms(percentile(ours, 99))}",
                    f"{render_ms(percentile(theirs, 50))} / {render_ms(percentile(theirs, 99))}",
                    render_ratio(percentile(theirs, 50) / percentile(ours, 50), TARGET),
                    render_ratio(percentile(theirs, 99) / percentile(ours, 99), TARGET),
                )
            )
    return Table(
        "Trace: all nodes downstream, Downriver and WITH RECURSIVE in PostgreSQL",
        (
            "datasets in the graph: roots",
            "nodes found p50 / p99",
            "ms p50 / p99",
            "PostgreSQL ms p50 / p99",
            "ratio p50",
            "ratio p99",
        ),
        rows,
        (
            "Both return the nodes and edges downstream, by id, from the same tables. The "
            f"results are equal for every root. Best of {_BEST_OF} for each root.",
            "PostgreSQL has an index on the source of edges, vacuumed and analysed tables, "
            "2 GB of shared buffers and 256 MB of work_mem; statements are prepared.",
            "Any: random datasets with readers. Sources: random datasets without inputs. "
            "Hubs: the datasets with the most readers. Depth is not limited.",
        ),
    )


def _by_answer_size(measured: list[Measured]) -> Table:
    rows = []
    for low, high in pairwise(_ANSWER_SIZES):
        ours = [_median_ms(_inside(size.own, low, high)) for size in measured]
        largest = [a for answers in measured[-1].answered.values() for a in answers]
        there = [(a.ours, a.postgres) for a in largest if low <= a.nodes < high]
        rows.append(
            (
                f"{low:,} to {high - 1:,}" if high < _ANSWER_SIZES[-1] else f"{low:,} or more",
                *ours,
                _median_ms([postgres for _, postgres in there]),
                render_ratio(median(p / o for o, p in there)) if there else "",
            )
        )
    return Table(
        "Trace: time depends on the size of the answer, not of the graph (median ms)",
        (
            "nodes found",
            *(f"{size.datasets:,} datasets" for size in measured),
            f"PostgreSQL, {measured[-1].datasets:,}",
            "ratio there",
        ),
        rows,
    )


def _inside(own: list[tuple[int, float]], low: int, high: int) -> list[float]:
    return [seconds for nodes, seconds in own if low <= nodes < high]


def _median_ms(seconds: list[float]) -> str:
    return render_ms(median(seconds)) if seconds else ""


def _full_answers(measured: list[Measured]) -> Table:
    return Table(
        "Trace: the whole answer, with names, evidence and blind spots (at most 1,000 nodes)",
        ("datasets in the graph: roots", "ms p50", "ms p99"),
        [
            (
                f"{size.datasets:,}: {group}",
                render_ms(percentile(seconds, 50)),
                render_ms(percentile(seconds, 99)),
            )
            for size in measured
            for group, seconds in size.full.items()
        ],
        ("`Lineage.trace` on PostgreSQL: the store is queried for names and evidence.",),
    )


def _memory(measured: list[Measured]) -> Table:
    return Table(
        f"Trace: the graph in memory (memory of the process, target under {MEMORY_TARGET_MB:,} MB)",
        ("datasets", "nodes", "edges", "columns", "column edges", "load s", "MB", "peak MB"),
        [
            (
                f"{size.datasets:,}",
                *(f"{count:,}" for count in size.loaded[:4]),
                f"{size.loaded.seconds:.1f}",
                f"{size.loaded.memory_mb:,} ({_judged(size.loaded.memory_mb)})",
                f"{size.loaded.peak_mb:,} ({_judged(size.loaded.peak_mb)})",
            )
            for size in measured
        ],
    )


def _judged(memory_mb: int) -> str:
    return "yes" if memory_mb < MEMORY_TARGET_MB else "NO"

"""Concurrent queries, compared with the same queries behind one lock.

In earlier versions every query held a lock of the graph until it was answered. `OneLock` does the
same, so that both designs are measured in one run.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bench.impact_speed import Company
from bench.report import Table, percentile, render_ms, render_ratio
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.model.answers import Trace
    from downriver.model.changes import Change
    from downriver.model.verdicts import Impact

IMPACTS = (0, 1, 4)
READERS = (1, 2, 4, 8, 16)
_BATCH = 2_000
_CHANGES_AT_ONCE = 50  # in one impact query, as for a pull request
_PAUSE = 0.005  # seconds between two traces: the load of one user


class Scale(NamedTuple):
    """How large the graph is, and how long to measure each row."""

    models: int
    seconds: float


class Questions(Protocol):
    """The measured queries."""

    def trace(self, entity: str) -> Trace:
        """Trace downstream."""

    def impact(self, changes: Sequence[Change]) -> Impact:
        """Simulate changes."""


class OneLock:
    """Queries that run one after another, behind one lock."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._lock = threading.Lock()

    def trace(self, entity: str) -> Trace:
        """Trace downstream."""
        with self._lock:
            return self._lineage.trace(entity)

    def impact(self, changes: Sequence[Change]) -> Impact:
        """Simulate changes."""
        with self._lock:
            return self._lineage.impact(changes)


def run(*, quick: bool) -> Iterator[Table]:
    """Measure and yield the tables."""
    scale = Scale(500, 3.0) if quick else Scale(2_000, 15.0)
    yield _latency(scale)
    yield _throughput(scale)


@contextmanager
def _store(scale: Scale) -> Iterator[tuple[Company, Lineage]]:
    """Create a store without cached values: its SQL is not parsed yet."""
    company = Company(scale.models)
    with tempfile.TemporaryDirectory() as folder, Lineage.open(folder) as lineage:
        events = list(company.events())
        for start in range(0, len(events), _BATCH):
            lineage.ingest(events[start : start + _BATCH])
        lineage.session.prepare()
        yield company, lineage


# Latency of traces while impacts run


def _latency(scale: Scale) -> Table:
    rows = []
    for impacts in IMPACTS:
        with _store(scale) as (company, lineage):
            behind_lock = _trace_during(company, OneLock(lineage), impacts, scale.seconds)
        with _store(scale) as (company, lineage):
            side_by_side = _trace_during(company, lineage, impacts, scale.seconds)
        rows.append(
            (
                f"{impacts} impacts",
                *(render_ms(percentile(behind_lock, percent)) for percent in (50, 99)),
                render_ms(max(behind_lock)),
                *(render_ms(percentile(side_by_side, percent)) for percent in (50, 99)),
                render_ms(max(side_by_side)),
                render_ratio(percentile(behind_lock, 99) / percentile(side_by_side, 99)),
            )
        )
    return Table(
        f"Milliseconds per trace while impacts run, {scale.models:,} SQL models",
        ("running", "lock p50", "p99", "max", "snapshot p50", "p99", "max", "p99 ratio"),
        rows,
        (
            f"An impact query simulates {_CHANGES_AT_ONCE} changes; no SQL is parsed in advance.",
            "All threads share one interpreter, so running impacts make traces slower.",
        ),
    )


def _trace_during(
    company: Company, questions: Questions, impacts: int, seconds: float
) -> list[float]:
    done = threading.Event()

    def simulate(changes: list[Change]) -> None:
        for start in itertools.count(step=_CHANGES_AT_ONCE):
            if done.is_set():
                return
            at = start % len(changes)
            questions.impact(changes[at : at + _CHANGES_AT_ONCE])

    with ThreadPoolExecutor(impacts or 1) as pool:
        running = [pool.submit(simulate, company.changes(1_000)) for _ in range(impacts)]
        try:
            times = _trace_for(questions, company.sources, seconds)
        finally:
            done.set()
        for impact in running:
            impact.result()
    return times


def _trace_for(questions: Questions, tables: list[str], seconds: float) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    for table in itertools.cycle(tables):
        begin = time.perf_counter()
        if begin > end and times:
            return times
        questions.trace(f"dataset:bench:{table}")
        times.append(time.perf_counter() - begin)
        time.sleep(_PAUSE)
    raise AssertionError("unreachable: a cycle does not end")


# Throughput of traces by the number of reading threads


def _throughput(scale: Scale) -> Table:
    rows = []
    with _store(scale) as (company, lineage):
        for readers in READERS:
            behind_lock = _traces_a_second(company, OneLock(lineage), readers, scale.seconds)
            side_by_side = _traces_a_second(company, lineage, readers, scale.seconds)
            rows.append(
                (
                    f"{readers} threads",
                    f"{behind_lock:,.0f}",
                    f"{side_by_side:,.0f}",
                    render_ratio(side_by_side / behind_lock),
                )
            )
    return Table(
        f"Traces per second by reading threads, {scale.models:,} SQL models",
        ("readers", "one lock", "snapshots", "ratio"),
        rows,
        ("Python runs one thread at a time; only SQLite and compiled walks run in parallel.",),
    )


def _traces_a_second(company: Company, questions: Questions, readers: int, seconds: float) -> float:
    tables = [*company.sources, *(name for name, *_ in company.models)]
    done = threading.Event()

    def read(first: int) -> int:
        count = 0
        for table in itertools.islice(itertools.cycle(tables), first, None):
            if done.is_set():
                break
            questions.trace(f"dataset:bench:{table}")
            count += 1
        return count

    with ThreadPoolExecutor(readers) as pool:
        begin = time.perf_counter()
        reading = [pool.submit(read, number * 7) for number in range(readers)]
        time.sleep(seconds)
        done.set()
        total = sum(count.result() for count in reading)
        return total / (time.perf_counter() - begin)

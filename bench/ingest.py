"""Durable ingest over HTTP: group commit compared with one transaction per event."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

from tests.postgres import running_postgres

from bench.client import Outcome, post_all, render_request
from bench.databases import postgres_database, sqlite_file
from bench.events import Events
from bench.report import Table, median, percentile, render_ms, render_ratio
from bench.server import ServerProcess, Times
from downriver.openlineage import parse_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

FIRST_SEEN, REPEAT = "first-seen", "repeat"
TARGETS = {"SQLite": 2.5, "PostgreSQL": 10.0}
REPEAT_TARGET = 1.5
_WARM_UP = 64


class Scale(NamedTuple):
    """The size of the benchmark: events per phase, maximum seconds per phase, and rounds."""

    events: int
    seconds: float
    rounds: int
    connections: tuple[int, ...] = (16, 64)


class Case(NamedTuple):
    """One combination of settings that is measured."""

    store: str
    connections: int
    phase: str
    naive: bool


class Measured(NamedTuple):
    """One phase of one round: the result at the client, and the times of the server."""

    outcome: Outcome
    before: Times
    after: Times


Results = dict[Case, list[Measured]]


def run(*, quick: bool) -> Iterator[Table]:
    """Measure both stores and yield the tables."""
    scale = Scale(600, 1.5, 1) if quick else Scale(2000, 4.0, 3)
    load = _Load(scale.events)
    results: Results = defaultdict(list)
    with running_postgres(fsync=True) as server_url:
        new_stores: dict[str, Callable[[], AbstractContextManager[str]]] = {
            "SQLite": sqlite_file,
            "PostgreSQL": lambda: postgres_database(server_url),
        }
        for at in range(scale.rounds):
            # Alternate within a round, so that other load on the machine affects both.
            for store, new_store in new_stores.items():
                for connections in scale.connections[: 1 if at else None]:
                    for naive in (False, True):
                        print(f"ingest: {store}, {connections} connections", file=sys.stderr)
                        with _serving(new_store, naive=naive) as server:
                            for phase, measured in _phases(server, load, connections, scale):
                                results[Case(store, connections, phase, naive)].append(measured)
    yield _comparison(results, scale)
    yield _repeats(results, scale)
    yield _steps(results, load)


class _Load:
    """The events of both phases, generated before the measurement starts."""

    def __init__(self, count: int) -> None:
        events = Events()
        self.warm_up = [events.first_seen(10**7 + n) for n in range(_WARM_UP)]
        self.first_seen = [events.first_seen(n) for n in range(count)]
        self._events = events

    def repeats(self, known: int) -> list[bytes]:
        """Return the same number of further runs of the first jobs, which the server has stored."""
        jobs = islice(cycle(self.first_seen[:known]), len(self.first_seen))
        return [self._events.repeat(event) for event in jobs]


@contextmanager
def _serving(
    new_store: Callable[[], AbstractContextManager[str]], *, naive: bool
) -> Iterator[ServerProcess]:
    with new_store() as location, ServerProcess(location, naive=naive) as server:
        yield server


def _phases(
    server: ServerProcess, load: _Load, connections: int, scale: Scale
) -> Iterator[tuple[str, Measured]]:
    _measure(server, load.warm_up, connections, 60)
    first_seen = _measure(server, load.first_seen, connections, scale.seconds)
    yield FIRST_SEEN, first_seen
    repeats = load.repeats(len(first_seen.outcome.latencies))
    yield REPEAT, _measure(server, repeats, connections, scale.seconds)


def _measure(
    server: ServerProcess, events: list[bytes], connections: int, seconds: float
) -> Measured:
    requests = [render_request(event) for event in events]
    before = server.times()
    outcome = post_all(server.port, iter(requests), connections=connections, seconds=seconds)
    return Measured(outcome, before, server.times())


def _comparison(results: Results, scale: Scale) -> Table:
    rows = []
    for store, target in TARGETS.items():
        for connections in scale.connections:
            for phase in (FIRST_SEEN, REPEAT):
                ours = results[Case(store, connections, phase, False)]
                naive = results[Case(store, connections, phase, True)]
                rows.append(
                    (
                        f"{store}, {phase}, {connections} connections",
                        f"{_rate(ours):,.0f}",
                        f"{_rate(naive):,.0f}",
                        render_ratio(_rate(ours) / _rate(naive), target),
                        _latency(ours),
                        _latency(naive),
                    )
                )
    return Table(
        "Ingest: Downriver and a naive transaction per event",
        ("", "events/s", "naive events/s", "ratio", "p50 / p99 ms", "naive p50 / p99 ms"),
        rows,
        (
            "19 KB events (3 inputs, 2 outputs, 30-column schemas, 60 column edges) over "
            "HTTP; the response 201 means that the event is on disk. With "
            f"{scale.connections[0]} connections, median of {scale.rounds}.",
            "Naive: the same server and store, but one transaction per event, a row for every"
            " column and column edge, a statement for each row that is read or written, and "
            "no caches.",
        ),
    )


def _repeats(results: Results, scale: Scale) -> Table:
    rows = []
    for store in TARGETS:
        for connections in scale.connections:
            first = results[Case(store, connections, FIRST_SEEN, False)]
            again = results[Case(store, connections, REPEAT, False)]
            ratio = render_ratio(_rate(again) / _rate(first), REPEAT_TARGET)
            rows.append((f"{store}, {connections} connections", ratio))
    return Table(
        "Ingest: a repeated run with unchanged facets, compared with a first-seen one",
        ("", "repeat / first-seen"),
        rows,
    )


def _steps(results: Results, load: _Load) -> Table:
    decode = _decode_seconds(load.first_seen)
    rows = []
    for store in TARGETS:
        for phase in (FIRST_SEEN, REPEAT):
            rounds = results[Case(store, 16, phase, False)]
            middle = sorted(rounds, key=lambda measured: measured.outcome.rate)[len(rounds) // 2]
            rows.append((f"{store}, {phase}", *_step_cells(middle, decode)))
    return Table(
        "Ingest: time by step, µs per event (share of the total)",
        ("", "decode", "fold", "pack", "append", "project", "commit", "the rest", "server CPU"),
        rows,
        (
            "decode: reading the envelope. fold: event to facts. pack: compressing it. append: "
            "hash chain and log. project: facts to rows. commit: until on disk.",
            "Decoding was measured separately. The rest is HTTP in client and server, and "
            "waiting for the batch.",
            "If the server's CPU time is close to the total, Python limits the rate, "
            "otherwise the database.",
        ),
    )


def _step_cells(measured: Measured, decode: float) -> list[str]:
    outcome, before, after = measured
    count = len(outcome.latencies)
    total = outcome.seconds / count
    steps = [
        (getattr(after.steps, name) - getattr(before.steps, name)) / count
        for name in ("fold", "pack", "append", "project", "commit")
    ]
    spent = [decode, *steps]
    shares = [*spent, max(0.0, total - sum(spent)), (after.cpu - before.cpu) / count]
    return [f"{share * 1e6:,.0f} ({share / total:.0%})" for share in shares]


def _decode_seconds(events: list[bytes]) -> float:
    started = time.perf_counter()
    for event in events:
        parse_event(event)
    return (time.perf_counter() - started) / len(events)


def _rate(rounds: list[Measured]) -> float:
    return median(measured.outcome.rate for measured in rounds)


def _latency(rounds: list[Measured]) -> str:
    latencies = [latency for measured in rounds for latency in measured.outcome.latencies]
    return f"{render_ms(percentile(latencies, 50))} / {render_ms(percentile(latencies, 99))}"

"""The collector: events per second, and `GET /api/v1/lineage`, on both stores and beside Marquez.

The baselines of the first table are `bench.naive`, the same server with one transaction per event,
and `bench.fastapi_service`, which stores less than Downriver: neither facets nor columns.
Marquez is measured only with `--marquez URL`, the address of a running and empty server.
"""

from __future__ import annotations

import argparse
import http.client
import os
import time
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from rich.console import Console
from tests.postgres import running_postgres

from bench.client import Outcome, post_all, render_request
from bench.collector_events import ROOT, Warehouse
from bench.databases import postgres_database, sqlite_file
from bench.report import Table, percentile, print_table, render_ms, render_ratio
from bench.server import ServerProcess
from bench.usage import core_seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    NewStore = Callable[[], AbstractContextManager[str]]

_DEPTH = 20
_FASTAPI = "bench.fastapi_service"
_LOAD_SECONDS = 3600.0  # at most, to fill a store
LINEAGE_TARGET, INGEST_TARGET = 200.0, 30.0


class Posted(NamedTuple):
    """The result of posting events, and the CPU time of the server per event, in ms."""

    outcome: Outcome
    cpu: float


class Answers(NamedTuple):
    """The time of each repetition of a query, and the number of nodes in the answer."""

    seconds: list[float]
    nodes: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--jobs", type=int, nargs="*", default=[1_000, 5_000, 20_000])
    parser.add_argument("--rounds", type=int, default=7, help="how often each graph is requested")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of load per turn")
    parser.add_argument("--turns", type=int, default=3, help="turns of each service per row")
    parser.add_argument("--marquez", metavar="URL", help="also measure this Marquez server")
    options = parser.parse_args()
    console = Console(width=120)
    with running_postgres(fsync=True) as server_url:
        stores: dict[str, NewStore] = {
            "SQLite": sqlite_file,
            "PostgreSQL": lambda: postgres_database(server_url),
        }
        peer = urlsplit(options.marquez).port or 80 if options.marquez else None
        if options.connections:
            rates = _ingest(stores, options.connections, options.turns, options.seconds, peer)
            print_table(rates, console)
        if options.jobs:
            print_table(_lineage(stores, options.jobs, options.rounds, peer), console)


def _ingest(
    stores: dict[str, NewStore], sizes: list[int], turns: int, seconds: float, peer: int | None
) -> Table:
    rows = []
    for connections in sizes:
        # In turns, so that each service meets the same other load of the machine.
        posted = [_turn(stores, connections, seconds, peer) for _ in range(turns)]
        marquez = None if peer is None else _sum(posted, "Marquez").outcome
        for name in stores:
            ours, naive, fastapi = (
                _sum(posted, f"{name}, {service}") for service in ("ours", "naive", "FastAPI")
            )
            rate = ours.outcome.rate
            rows.append(
                (
                    f"{name}, {connections} connections",
                    f"{rate:,.0f}",
                    _latency(ours.outcome),
                    f"{naive.outcome.rate:,.0f}",
                    render_ratio(rate / naive.outcome.rate),
                    f"{fastapi.outcome.rate:,.0f}",
                    render_ratio(rate / fastapi.outcome.rate),
                    f"{ours.cpu:.2f} / {naive.cpu:.2f} / {fastapi.cpu:.2f}",
                    "" if marquez is None else f"{marquez.rate:,.1f}",
                    "" if marquez is None else render_ratio(rate / marquez.rate, INGEST_TARGET),
                )
            )
    headings = (
        *("", "events/s", "p50 / p99 ms", "naive events/s", "ratio", "FastAPI events/s", "ratio"),
        *("CPU ms per event", "Marquez events/s", "ratio"),
    )
    cpu = "CPU time is that of the server's process, without that of PostgreSQL."
    return Table(
        "Collector: 8 KB events, acknowledged when on disk", headings, rows, (cpu, _load())
    )


def _turn(
    stores: dict[str, NewStore], connections: int, seconds: float, peer: int | None
) -> dict[str, Posted]:
    """Post to each service once."""
    posted = {}
    if peer is not None:
        posted["Marquez"] = Posted(_post(peer, connections, seconds), 0.0)
    for name, new_store in stores.items():
        with new_store() as location, ServerProcess(location) as server:
            posted[f"{name}, ours"] = _post_timed(server, connections, seconds)
        with new_store() as location, ServerProcess(location, naive=True) as server:
            posted[f"{name}, naive"] = _post_timed(server, connections, seconds)
        with new_store() as location, ServerProcess(location, module=_FASTAPI) as server:
            posted[f"{name}, FastAPI"] = _post_timed(server, connections, seconds)
    return posted


def _sum(turns: list[dict[str, Posted]], service: str) -> Posted:
    """Return the turns of a service as one measurement."""
    outcomes = [turn[service].outcome for turn in turns]
    latencies = list(chain.from_iterable(outcome.latencies for outcome in outcomes))
    cpu = sum(turn[service].cpu * len(turn[service].outcome.latencies) for turn in turns)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return Posted(Outcome(seconds, latencies), cpu / len(latencies))


def _post_timed(server: ServerProcess, connections: int, seconds: float) -> Posted:
    before = core_seconds(server.pid)
    outcome = _post(server.port, connections, seconds)
    used = core_seconds(server.pid) - before
    return Posted(outcome, used * 1000 / len(outcome.latencies))


def _post(port: int, connections: int, seconds: float) -> Outcome:
    warehouse = Warehouse(2_000)
    runs = chain.from_iterable(warehouse.events(run) for run in range(20))
    return post_all(port, map(render_request, runs), connections=connections, seconds=seconds)


def _latency(outcome: Outcome) -> str:
    times = outcome.latencies
    return f"{render_ms(percentile(times, 50))} / {render_ms(percentile(times, 99))}"


def _lineage(stores: dict[str, NewStore], sizes: list[int], rounds: int, peer: int | None) -> Table:
    rows = []
    for jobs in sizes:
        marquez = None if peer is None else _fill_and_ask(peer, jobs, 1)
        for name, new_store in stores.items():
            with new_store() as location, ServerProcess(location) as server:
                ours = _fill_and_ask(server.port, jobs, 1)
                before = server.times().cpu
                again = _ask(server.port, rounds)
                cpu = (server.times().cpu - before) / rounds
            middle = percentile(again.seconds, 50)
            theirs = ("", "", "")
            if marquez is not None:
                took = marquez.seconds[0]
                ratio = render_ratio(took / middle, LINEAGE_TARGET)
                theirs = (f"{marquez.nodes:,}", render_ms(took), ratio)
            times = (render_ms(ours.seconds[0]), render_ms(middle), render_ms(cpu))
            rows.append((f"{name}, {jobs:,} jobs", f"{ours.nodes:,}", *times, *theirs))
    return Table(
        f"Collector: GET /api/v1/lineage, depth {_DEPTH}",
        (
            *("", "nodes", "first ms", "then ms, p50", "CPU ms of the server"),
            *("Marquez nodes", "ms", "ratio"),
        ),
        rows,
        ("An answer has at most 10,000 nodes.", _load()),
    )


def _fill_and_ask(port: int, jobs: int, rounds: int) -> Answers:
    requests = map(render_request, Warehouse(jobs).events())
    post_all(port, requests, connections=16, seconds=_LOAD_SECONDS)
    return _ask(port, rounds)


def _ask(port: int, rounds: int) -> Answers:
    seconds, body = [], b""
    for _ in range(rounds):
        started = time.perf_counter()
        body = _get(port, f"/api/v1/lineage?nodeId={quote(ROOT)}&depth={_DEPTH}")
        seconds.append(time.perf_counter() - started)
    return Answers(seconds, body.count(b'"inEdges"'))


def _get(port: int, target: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", target)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{target} answered {response.status}")
    return body


def _load() -> str:
    return f"load average of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


if __name__ == "__main__":
    main()

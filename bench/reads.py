"""CPU time of reads on a large catalog: searches, entities, traces, graphs, also after a write.

`python -m bench.reads` builds a store of 50,000 datasets with 500,000 columns in a temporary
folder. `--store` keeps and reuses one, and takes the URL of a PostgreSQL database, too.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from rich.console import Console

from bench.databases import postgres_database
from bench.large_catalog import LargeCatalog
from bench.postmaster import running_postmaster
from bench.report import Table, percentile, print_table, render_ms
from bench.warehouse import NAMESPACE
from downriver.service import Lineage
from downriver.service.views.search import SearchFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROUNDS = 10
_ROOTS = 50  # datasets that are tried to find a trace of a size
_WIDTH = 120


class Read(NamedTuple):
    """A query, the target of its CPU time, and a step to run before each repetition."""

    name: str
    ask: Callable[[], Any]
    goal_ms: float | None = None
    before: Callable[[], Any] | None = None
    rounds: int = _ROUNDS


def list_reads(catalog: LargeCatalog, lineage: Lineage) -> list[Read]:
    """Return the queries to measure."""
    full_id = {n: f"dataset:{NAMESPACE}:{catalog.name(n)}" for n in range(1, catalog.datasets + 1)}
    hub = full_id[int(catalog.readers.argmax())]
    middle = catalog.name(catalog.datasets // 2).rpartition("_")[2]
    written = iter(range(1, 10**6))

    def write_again() -> None:
        run = next(written)
        lineage.ingest([catalog.event(run % catalog.datasets + 1, run)])

    def write_new() -> None:
        lineage.ingest([_new_event(next(written))])

    searches: dict[str, tuple[str, dict[str, str]]] = {
        "frequent word": ("orders", {}),
        "rare word": (middle, {}),
        "two words": ("orders daily", {}),
        "no match": ("nothing_like_it", {}),
        "a column": ("created_at", {}),
        "no text": ("", {}),
        "tag pii": ("orders", {"tag": "pii"}),
        "owner": ("daily", {"owner": "team:0*"}),
        "type": ("orders", {"type": "dbt_model"}),
        "tagged columns": ("email", {"kind": "column", "tag": "pii"}),
    }
    reads = [
        Read(f"search: {name}", _search(lineage, text, 20, **where), 20)
        for name, (text, where) in searches.items()
    ]
    reads += [
        Read("search: limit 1,000", _search(lineage, "orders", limit=1000)),
        Read("search after a known event", _search(lineage, "orders"), 20, write_again),
        Read("search after a new dataset", _search(lineage, "orders"), 20, write_new),
    ]
    reads += [
        Read("entity", lambda: lineage.entity(full_id[catalog.datasets // 2]), 5),
        Read("entity with most readers", lambda: lineage.entity(hub)),
    ]
    for size, goal in ((100, 1.0), (1000, 10.0)):
        name, depth, count = _find_trace(lineage, full_id, size)
        reads.append(
            Read(f"trace: {count} nodes", lambda n=name, d=depth: lineage.trace(n, depth=d), goal)  # type: ignore[misc]
        )
    reads += [
        Read("graph around the hub", lambda: lineage.graph(hub)),
        Read("map", lineage.map, rounds=3),
    ]
    return reads


def _search(lineage: Lineage, text: str, limit: int = 20, **where: str) -> Callable[[], Any]:
    return lambda: lineage.search(text, limit=limit, where=SearchFilter(**where))


def _find_trace(lineage: Lineage, names: dict[int, str], size: int) -> tuple[str, int | None, int]:
    """Return a dataset and a depth whose downstream trace has about `size` nodes."""
    best: tuple[str, int | None, int] = ("", None, 0)
    for number in range(1, len(names), max(len(names) // _ROOTS, 1)):
        for depth in range(2, 12, 2):
            count = len(lineage.trace(names[number], depth=depth, limit=size + 1).nodes)
            if best[2] < count <= size:
                best = (names[number], depth, count)
            if count > size or best[2] > 0.9 * size:
                break
        if best[2] > 0.9 * size:
            break
    return best


def _new_event(number: int) -> bytes:
    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-02-01T00:00:00Z",
        "run": {"runId": f"00000000-0000-0000-9999-{number:012d}"},
        "job": {"namespace": "scheduler", "name": f"adhoc_{time.time_ns()}"},
        "inputs": [],
        "outputs": [{"namespace": NAMESPACE, "name": f"adhoc.orders_{time.time_ns()}"}],
    }
    return msgspec.json.encode(event)


def measure(read: Read) -> tuple[list[float], int]:
    """Return the CPU seconds of each answer with its encoding, and the bytes of the last one."""
    times, size = [], 0
    if read.before is None:
        read.ask()
    for _ in range(read.rounds):
        if read.before is not None:
            read.before()
        started = time.process_time()
        size = len(msgspec.json.encode(read.ask()))
        times.append(time.process_time() - started)
    return times, size


def run(location: str, datasets: int, chosen: str = "") -> Table:
    """Measure every read on a store, which is filled if it is empty."""
    catalog = LargeCatalog(datasets)
    with Lineage.open(location) as lineage:
        if not lineage.admin.status().counts.events:
            started = time.perf_counter()
            catalog.ingest_into(lineage)
            sys.stderr.write(
                f"wrote {datasets:,} events in {time.perf_counter() - started:.0f} s\n"
            )
        started = time.process_time()
        lineage.session.prepare()
        loading = time.process_time() - started
        # As a server does once it is warm: the collector does not walk what was loaded.
        gc.collect()
        gc.freeze()
        rows = []
        for read in list_reads(catalog, lineage):
            if chosen in read.name:
                times, size = measure(read)
                rows.append(_row(read, times, size))
    return Table(
        f"Reads on {datasets:,} datasets and {datasets * 10:,} columns: CPU ms per JSON answer",
        ("read", "p50", "max", "goal for p50", "KB"),
        rows,
        (f"Loading the graph and the search index took {loading:.1f} s of CPU.",),
    )


def _row(read: Read, times: list[float], size: int) -> tuple[str, ...]:
    p50 = percentile(times, 50)
    goal = "" if read.goal_ms is None else f"{read.goal_ms:g}"
    met = "" if read.goal_ms is None else (" yes" if p50 * 1000 <= read.goal_ms else " NO")
    return read.name, render_ms(p50), render_ms(max(times)), goal + met, f"{size / 1024:,.0f}"


@contextmanager
def _location(options: argparse.Namespace) -> Iterator[str]:
    if options.store:
        yield options.store
    elif options.postgres:
        with (
            running_postmaster(fsync=False) as postmaster,
            postgres_database(postmaster.url) as url,
        ):
            yield url
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=50_000, help="The number of datasets.")
    parser.add_argument("--store", help="Folder or PostgreSQL URL to keep the store in.")
    parser.add_argument("--postgres", action="store_true", help="Use a temporary PostgreSQL.")
    parser.add_argument("--only", default="", help="Measure reads whose name contains this.")
    options = parser.parse_args()
    with _location(options) as location:
        table = run(location, options.datasets, options.only)
    print_table(table, Console(width=max(Console().width, _WIDTH)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

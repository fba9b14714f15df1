"""Reads and writes mixed on 64 connections, on 50,000 datasets, compared with older code.

`python -m bench.mixed [--datasets 50000] [--seconds 20] [--base REF]`. The older code is checked
out into a temporary worktree. Both versions start as `downriver serve` on stores that they fill
themselves. Half of the connections write events, the others request traces, entities and searches.
One search in twenty has a limit of 1,000 matches. CPU time is that of the whole server process.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from rich.console import Console

from bench.large_catalog import LargeCatalog
from bench.report import Table, percentile, print_table, render_ms
from bench.warehouse import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[1]
_BEFORE_READ_POOL = "6790bd5~1"
_CONNECTIONS = 64
_START_SECONDS = 600
_BUSY = 503


class Mixed(NamedTuple):
    """The time of each answered request, the number of refused ones, and the total CPU time."""

    reads: list[float]
    writes: list[float]
    refused: int
    cpu: float


@contextmanager
def checked_out(ref: str) -> Iterator[Path]:
    """Check out a commit into a temporary folder."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "code"
        _git("worktree", "add", "--detach", "--quiet", str(folder), ref)
        try:
            yield folder
        finally:
            _git("worktree", "remove", "--force", str(folder))


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=_ROOT, check=True, capture_output=True)


def _downriver(code: Path, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "downriver", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(code / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def measure(code: Path, catalog: LargeCatalog, seconds: float) -> Mixed:
    """Fill a store with a version of the code, serve it, and load the server."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        events = folder / "events.ndjson"
        events.write_bytes(b"\n".join(catalog.events()))
        store = str(folder / "store")
        if _downriver(code, folder, "ingest", str(events), "--store", store).wait() != 0:
            raise RuntimeError("the events could not be stored")
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = _downriver(code, folder, "serve", "--port", str(port), "--store", store)
        try:
            _wait_for(port)
            asyncio.run(_load(port, catalog, 0))  # loads the graph
            before = _cpu_seconds(server.pid)
            reads, writes, refused = asyncio.run(_load(port, catalog, seconds))
            cpu = _cpu_seconds(server.pid) - before
        finally:
            server.terminate()
            server.wait()
        return Mixed(reads, writes, refused, cpu)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


async def _load(
    port: int, catalog: LargeCatalog, seconds: float
) -> tuple[list[float], list[float], int]:
    numbers = itertools.count(1)
    deadline = time.perf_counter() + seconds

    def write() -> bytes:
        number = next(numbers)
        body = catalog.event(number * 7919 % catalog.datasets + 1, number)
        head = "POST /api/v1/lineage HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
        return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def read() -> bytes:
        number = next(numbers)
        path = _question(catalog, number)
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()

    kinds = [write if at % 2 else read for at in range(_CONNECTIONS)]
    answered = await asyncio.gather(*(_connection(port, kind, deadline) for kind in kinds))
    times: dict[bool, list[float]] = {True: [], False: []}
    refused = 0
    for kind, (took, busy) in zip(kinds, answered, strict=True):
        times[kind is read] += took
        refused += busy
    return times[True], times[False], refused


def _question(catalog: LargeCatalog, number: int) -> str:
    name = catalog.name(number * 104_729 % catalog.datasets + 1)
    entity = quote(f"dataset:{NAMESPACE}:{name}", safe="")
    if number % 20 == 0:
        return "/v1/search?" + urlencode({"q": "orders", "limit": 1000})
    return (
        f"/v1/trace?entity={entity}&depth=3",
        f"/v1/entity?entity={entity}",
        "/v1/search?" + urlencode({"q": name.rpartition("_")[2]}),
    )[number % 3]


async def _connection(port: int, request: object, deadline: float) -> tuple[list[float], int]:
    assert callable(request)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times, refused = [], 0
    with closing(writer):
        while True:
            started = time.perf_counter()
            writer.write(request())
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            size = next(int(x.split(b":")[1]) for x in lines if x.startswith(b"content-length:"))
            await reader.readexactly(size)
            status = int(lines[0].split()[1])
            if status == _BUSY:
                refused += 1
                await asyncio.sleep(0.1)
            elif status >= 400:
                raise RuntimeError(lines[0].decode())
            else:
                times.append(time.perf_counter() - started)
            if time.perf_counter() > deadline:
                return times, refused


def run(base: str, datasets: int, seconds: float) -> Table:
    """Measure both versions, one after the other."""
    catalog = LargeCatalog(datasets)
    with checked_out(base) as older:
        found = {f"before ({base})": measure(older, catalog, seconds)}
    found["now"] = measure(_ROOT, catalog, seconds)
    return Table(
        f"{_CONNECTIONS} connections, reads and writes mixed, {datasets:,} datasets: ms",
        ("code", "reads/s", "p50", "p99", "writes/s", "p50", "p99", "refused", "CPU ms/answer"),
        [_row(name, mixed, seconds) for name, mixed in found.items()],
        ("Each connection made one request before the measurement, so the graph is loaded.",),
    )


def _row(name: str, mixed: Mixed, seconds: float) -> tuple[str, ...]:
    answers = max(len(mixed.reads) + len(mixed.writes), 1)
    return (
        name,
        f"{len(mixed.reads) / seconds:,.0f}",
        *(render_ms(percentile(mixed.reads, percent)) for percent in (50, 99)),
        f"{len(mixed.writes) / seconds:,.0f}",
        *(render_ms(percentile(mixed.writes, percent)) for percent in (50, 99)),
        f"{mixed.refused:,}",
        f"{mixed.cpu / answers * 1000:.1f}",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=50_000, help="The number of datasets.")
    parser.add_argument(
        "--seconds", type=float, default=20, help="The seconds of load per version."
    )
    parser.add_argument("--base", default=_BEFORE_READ_POOL, help="The commit to compare with.")
    options = parser.parse_args()
    table = run(options.base, options.datasets, options.seconds)
    print_table(table, Console(width=max(Console().width, 120)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

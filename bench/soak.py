"""A server at 80 % of its maximum load: memory does not grow, no event is lost, no request fails.

`make soak` runs 10 minutes. First the maximum load is measured: the rate of events at full speed,
with one reader in addition to the writers.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import re
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import msgspec

from bench.events import Events
from bench.server import ServerProcess
from downriver.service import Lineage

_WRITERS = 4
_JOBS = 200
_CALIBRATION = 5.0  # seconds
_SHARE = 0.8
_GROWTH = 1.10  # allowed growth of the memory, from the first third of the time to the last
_ALLOWANCE_MB = 24


class SoakResult(msgspec.Struct, kw_only=True):
    """The result of a soak test."""

    seconds: float
    full_rate: float
    rate: float
    acknowledged: int
    lost: int
    reads: int
    errors: list[str]
    memory_mb: list[int]

    @property
    def is_flat(self) -> bool:
        """Whether the memory of the last third equals that of the first, within a tolerance."""
        third = max(len(self.memory_mb) // 3, 1)
        return max(self.memory_mb[-third:]) <= max(self.memory_mb[:third]) * _GROWTH + _ALLOWANCE_MB

    @property
    def ok(self) -> bool:
        """Whether memory was flat, no event was lost and no request failed."""
        return self.is_flat and not self.lost and not self.errors and self.acknowledged > 0


class _Load:
    """Writers and a reader that run until they are stopped."""

    def __init__(self, port: int, events: Events, rate: float | None) -> None:
        self._port = port
        self._rate = rate
        self._events = events
        self._lock = threading.Lock()
        self._jobs = [events.first_seen(number) for number in range(_JOBS)]
        self._sent = 0
        self._started = time.monotonic()
        self._stop = threading.Event()
        self.digests: list[bytes] = []
        self.reads = 0
        self.errors: list[str] = []

    def run(self, seconds: float) -> float:
        """Run for a time and return the acknowledged events per second."""
        threads = [threading.Thread(target=self._write) for _ in range(_WRITERS)]
        threads.append(threading.Thread(target=self._read))
        for thread in threads:
            thread.start()
        self._stop.wait(seconds)
        self._stop.set()
        for thread in threads:
            thread.join()
        return len(self.digests) / (time.monotonic() - self._started)

    def _next(self) -> bytes:
        with self._lock:
            self._sent += 1
            due = self._started + (self._sent / self._rate if self._rate else 0)
            event = self._events.repeat(self._jobs[self._sent % _JOBS])
        self._stop.wait(max(due - time.monotonic(), 0))
        return event

    def _write(self) -> None:
        with self._connect() as connection:
            while not self._stop.is_set():
                event = self._next()
                if self._ask(connection, "POST", "/api/v1/lineage", event) == 201:
                    self.digests.append(hashlib.sha256(event).digest())

    def _read(self) -> None:
        with self._connect() as connection:
            while not self._stop.is_set():
                self._ask(connection, "GET", "/v1/search?text=a&limit=20", None)
                self.reads += 1
                self._stop.wait(0.05)

    def _connect(self) -> closing[http.client.HTTPConnection]:
        return closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=60))

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None
    ) -> int:
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as exc:
            self.errors.append(f"{method} {path}: {exc!r}")
            connection.close()
            return 0
        if answer.status >= 300:
            self.errors.append(f"{method} {path}: {answer.status}")
        return answer.status


def soak(seconds: float, *, calibration: float = _CALIBRATION) -> SoakResult:
    """Run a server on a new store under load, and compare its responses with its log."""
    events = Events()
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store"
        with ServerProcess(store) as server:
            first = _Load(server.port, events, rate=None)
            full_rate = first.run(calibration)
            load = _Load(server.port, events, rate=full_rate * _SHARE)
            memory: list[int] = []
            done = threading.Event()
            watcher = threading.Thread(target=_watch, args=(server.pid, memory, done))
            watcher.start()
            try:
                rate = load.run(seconds)
            finally:
                done.set()
                watcher.join()
        acknowledged = {*first.digests, *load.digests}
        with Lineage.open(store, create=False) as lineage, lineage.store.reader() as reader:
            stored = {entry.digest for entry in reader.log.entries()}
            intact = lineage.admin.verify().ok
    errors = [*first.errors, *load.errors, *([] if intact else ["the log is not intact"])]
    return SoakResult(
        seconds=seconds,
        full_rate=full_rate,
        rate=rate,
        acknowledged=len(acknowledged),
        lost=len(acknowledged - stored),
        reads=load.reads,
        errors=errors,
        memory_mb=memory,
    )


def _watch(pid: int, memory: list[int], done: threading.Event) -> None:
    while not done.wait(1):
        status = Path(f"/proc/{pid}/status").read_text("ascii")
        found = re.search(r"VmRSS:\s+(\d+)", status)
        memory.append(int(found[1]) // 1024 if found else 0)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=600, help="How long to run.")
    result = soak(options.parse_args().seconds)
    sys.stdout.write(
        f"{result.seconds:.0f} s at {result.rate:.0f} events/s"
        f" ({result.full_rate:.0f} at full speed), {result.reads} reads\n"
        f"acknowledged {result.acknowledged}, lost {result.lost}, errors {len(result.errors)}\n"
        f"memory {result.memory_mb[0]} MB at the start, {result.memory_mb[-1]} MB at the end,"
        f" {'flat' if result.is_flat else 'GROWING'}\n"
    )
    for error in result.errors[:10]:
        sys.stdout.write(f"  {error}\n")
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())

"""The real server in a separate process, for benchmarks that load, measure or kill it.

`python -m bench.server STORE [--naive]` prints its port, then answers each input line with its step
times so far, and stops at the end of its input.
"""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import uvicorn

from bench.naive import NaiveLineage, NaivePostgresStore, NaiveSqliteStore
from downriver.http.app import make_server, warm_up
from downriver.service import Lineage
from downriver.store.port import StepTimes

if TYPE_CHECKING:
    from types import TracebackType

_REPOSITORY = Path(__file__).parents[1]
_BACKLOG = 256


class Times(msgspec.Struct):
    """The work of a server since it started; `cpu` is the CPU time of its process in seconds."""

    steps: StepTimes
    cpu: float


class ServerProcess:
    """A server on a port of the loopback interface."""

    def __init__(self, store: str, *, naive: bool = False, module: str = "bench.server") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, store, *(["--naive"] if naive else [])],
            cwd=_REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = int(self._answer())
        self.pid = self._process.pid

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.stop()

    def times(self) -> Times:
        """Return the step times so far."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"times\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._answer(), type=Times)

    def kill(self) -> None:
        """Kill the process, as a power failure or the kernel's out-of-memory killer would."""
        self._process.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process with a signal, unless it has ended already."""
        self._process.communicate()

    def _answer(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError(f"the server ended with status {self._process.returncode}")
        return line


def main() -> None:
    store, *options = sys.argv[1:]
    with _open(store, naive="--naive" in options) as lineage, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(_BACKLOG)
        warm_up(lineage)
        server = make_server(lineage)
        threading.Thread(target=_converse, args=(lineage, server), daemon=True).start()
        print(listening.getsockname()[1], flush=True)
        server.run(sockets=[listening])


def _open(store: str, *, naive: bool) -> Lineage:
    if not naive:
        return Lineage.open(store)
    if store.startswith("postgresql://"):
        return NaiveLineage(NaivePostgresStore(store))
    return NaiveLineage(NaiveSqliteStore(Path(store)))


def _converse(lineage: Lineage, server: uvicorn.Server) -> None:
    for _ in sys.stdin:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        times = Times(lineage.store.times, usage.ru_utime + usage.ru_stime)
        print(msgspec.json.encode(times).decode(), flush=True)
    server.should_exit = True


if __name__ == "__main__":
    main()

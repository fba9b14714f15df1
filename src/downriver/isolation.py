"""Worker processes for untrusted code: templates, SQL, Python, YAML.

Such code can keep one C function busy for minutes while it holds the interpreter, or fill the
memory. No thread can be stopped then, but a process can. A worker ends when a call exceeds its
processor time, its memory or its time on the clock; the next call starts another one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from downriver import settings
from downriver.errors import CodeLimitError, DownriverError
from downriver.fork_safety import keep_inherited, renew_in_child

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOCK_PER_CPU = 4  # a worker may wait for the store or for a processor
_SHORTEST_CLOCK = 60  # seconds; includes the start of the process
_HEADER = struct.Struct(">BI")


class WorkerLimits(NamedTuple):
    """The limits of one call."""

    cpu_seconds: int
    memory_mb: int
    output_mb: int

    @classmethod
    def from_settings(cls) -> WorkerLimits:
        """Return the limits in the settings."""
        return cls(
            settings.read_number(settings.CODE_SECONDS),
            settings.read_number(settings.CODE_MB),
            settings.read_number(settings.ANSWER_MB),
        )


class _Outcome(Enum):
    """The outcome of a call in the worker."""

    ANSWERED = 0
    TOO_LARGE = 1
    NO_MEMORY = 2
    TOO_DEEP = 3
    FAILED = 4


class WorkerFailedError(Exception):
    """A function failed in a worker; its traceback is in the log."""


class WorkerPool:
    """Calls functions in worker processes, each in one process at a time. Thread-safe."""

    def __init__(self, size: int, limits: WorkerLimits) -> None:
        self.size = size
        self._limits = limits
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Start without workers in a forked process."""
        keep_inherited(getattr(self, "_idle", ()))
        self._lock = threading.Lock()
        self._free = threading.Semaphore(self.size)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()

    def call(self, function: Callable[[bytes], bytes], payload: bytes) -> bytes:
        """Return what a module's function returns for the payload, or raise within the limits."""
        with self._free:
            worker = self._take_worker()
            try:
                outcome, answer = worker.call(f"{function.__module__}:{function.__name__}", payload)
            except _WorkerEndedError as ended:
                self._end(worker)
                raise self._reason(ended) from ended
            except BaseException:
                self._end(worker)
                raise
            self._give_back(worker)
        match outcome:
            case _Outcome.ANSWERED:
                return answer
            case _Outcome.TOO_LARGE:
                raise CodeLimitError(f"its answer is larger than {self._limits.output_mb} MB")
            case _Outcome.NO_MEMORY:
                raise CodeLimitError(f"it needs more than {self._limits.memory_mb} MB of memory")
            case _Outcome.TOO_DEEP:
                raise CodeLimitError("it is nested too deeply")
            case _Outcome.FAILED:
                raise WorkerFailedError(answer.decode(errors="replace"))

    def warm_up(self, function: Callable[[bytes], bytes], payload: bytes) -> None:
        """Start a worker, so that the first real call need not wait for it."""
        with contextlib.suppress(DownriverError, WorkerFailedError):
            self.call(function, payload)

    def is_busy(self) -> bool:
        """Return whether a call is under way."""
        return bool(self._busy)

    def close(self) -> None:
        """End all workers, also those in a call."""
        with self._lock:
            workers = [*self._idle, *self._busy]
            self._idle.clear()
        for worker in workers:
            worker.end()

    def _take_worker(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    self._busy.add(worker)
                    return worker
            worker = _Worker(self._limits)
            self._busy.add(worker)
            return worker

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
            self._idle.append(worker)

    def _end(self, worker: _Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
        worker.end()

    def _reason(self, ended: _WorkerEndedError) -> Exception:
        if ended.timed_out or ended.by_signal == signal.SIGXCPU:
            return CodeLimitError(f"it takes more than {self._limits.cpu_seconds} s")
        if ended.by_signal == signal.SIGKILL:
            return CodeLimitError("it needs more memory than the machine has")
        if ended.by_signal > 0:
            return CodeLimitError(f"the process that read it ended by signal {ended.by_signal}")
        return WorkerFailedError(f"the worker exited with status {-ended.by_signal}")


class _WorkerEndedError(Exception):
    """The process ended before it answered."""

    def __init__(self, by_signal: int, *, timed_out: bool) -> None:
        super().__init__(f"signal {by_signal}")
        self.by_signal = by_signal
        self.timed_out = timed_out


class _Worker:
    """One process and the pipes to it."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        command = [sys.executable, "-m", "downriver.isolation", *map(str, limits)]
        # The same modules as here, and none from the working directory.
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
        self._process = subprocess.Popen(  # noqa: S603 — our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **paths},
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def call(self, function: str, payload: bytes) -> tuple[_Outcome, bytes]:
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        seconds = max(self._limits.cpu_seconds * _CLOCK_PER_CPU, _SHORTEST_CLOCK)
        clock = threading.Timer(seconds, self._process.kill)
        clock.daemon = True
        clock.start()
        name = function.encode()
        try:
            _write_frame(self._process.stdin, len(name), name + payload)
            outcome, answer = _read_frame(self._process.stdout)
            return _Outcome(outcome), answer
        except (OSError, EOFError) as exc:
            timed_out = not clock.is_alive()
            raise _WorkerEndedError(-self._process.wait(), timed_out=timed_out) from exc
        finally:
            clock.cancel()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _write_frame(pipe: IO[bytes], mark: int, body: bytes) -> None:
    pipe.write(_HEADER.pack(mark, len(body)))
    pipe.write(body)
    pipe.flush()


def _read_frame(pipe: IO[bytes]) -> tuple[int, bytes]:
    header = pipe.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    mark, size = _HEADER.unpack(header)
    body = pipe.read(size)
    if len(body) < size:
        raise EOFError
    return mark, body


@functools.cache
def shared_workers() -> WorkerPool:
    """Return the pool of this process, with the size and limits in the settings."""
    pool = WorkerPool(settings.read_number(settings.WORKERS), WorkerLimits.from_settings())
    atexit.register(pool.close)
    return pool


# In the worker


def serve_calls(limits: WorkerLimits) -> None:
    """Answer calls from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends this process
    calls = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(
        sys.stderr.fileno(), sys.stdout.fileno()
    )  # output of libraries must not mix with answers
    while True:
        try:
            name_size, body = _read_frame(calls)
        except EOFError:
            return
        outcome, answer = _answer(body[:name_size].decode(), body[name_size:], limits)
        _write_frame(answers, outcome.value, answer)


def _answer(function: str, payload: bytes, limits: WorkerLimits) -> tuple[_Outcome, bytes]:
    module, _, name = function.partition(":")
    set_limits(limits)
    try:
        answer: bytes = getattr(importlib.import_module(module), name)(payload)
    except MemoryError:
        return _Outcome.NO_MEMORY, b""
    except RecursionError:
        return _Outcome.TOO_DEEP, b""
    except Exception:  # noqa: BLE001 — the parent logs it
        import traceback

        return _Outcome.FAILED, traceback.format_exc().encode()
    if len(answer) > limits.output_mb * 2**20:
        return _Outcome.TOO_LARGE, b""
    return _Outcome.ANSWERED, answer


def set_limits(limits: WorkerLimits) -> None:
    """Set the limits of one call, added to the resources that this process has used so far."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows: the clock of the parent is the only limit
        return
    used = int(time.process_time()) + 1
    for kind, value in (
        (resource.RLIMIT_CPU, used + limits.cpu_seconds),
        (resource.RLIMIT_AS, _address_space(resource.getpagesize()) + limits.memory_mb * 2**20),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(kind)
        with contextlib.suppress(ValueError, OSError):  # the system's own limit is lower
            resource.setrlimit(kind, (value, most))


def read_limits() -> dict[int, tuple[int, int]]:
    """Return the limits of this process that `set_limits` changes."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return {}
    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_AS)
    return {kind: resource.getrlimit(kind) for kind in kinds}


def restore_limits(limits: dict[int, tuple[int, int]]) -> None:
    """Set the limits of this process to what they were."""
    for kind, values in limits.items():
        import resource

        resource.setrlimit(kind, values)


def _address_space(page_size: int) -> int:
    """Return the size of this process's address space in bytes."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * page_size
    except OSError:
        return 2**30  # not Linux: a fixed allowance


if __name__ == "__main__":
    serve_calls(WorkerLimits(*map(int, sys.argv[1:])))

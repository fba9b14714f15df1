"""Queues the events of a job and sends them from a background thread."""

from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from downriver.capture.emit.guard import guarded
from downriver.fork_safety import renew_in_child
from downriver.openlineage.wire import Event, raw_bytes

if TYPE_CHECKING:
    from downriver.capture.emit.spool import Spool

# Typed when captured in this process; bytes when made by the user or read from the spool.
Emitted: TypeAlias = Event | bytes
Send: TypeAlias = Callable[[Sequence[Emitted]], None]

_BATCH = 200
_LARGEST_QUEUE = 64 * 2**20  # bytes; more events go to the spool
_RETRY_AFTER = 15.0  # seconds


class Emitter:
    """Sends events in order. Events that cannot be sent are spooled and sent later."""

    def __init__(self, send: Send, spool: Spool) -> None:
        self._send = send
        self._spool = spool
        self._closes_in = 0  # id of the process that closes this at exit
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Start empty after a fork: the parent process sends its own queue."""
        self._queue: queue.SimpleQueue[Emitted | threading.Event] = queue.SimpleQueue()
        self._size = 0
        self._retry_at = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._sending: list[Emitted] = []

    def emit(self, *events: Emitted) -> None:
        """Queue events; returns at once."""
        with guarded("queueing events"):
            with self._lock:
                self._start()
                overfull = self._size > _LARGEST_QUEUE
                if not overfull:
                    self._size += _total_size(events)
            if overfull:
                self._spool.add(list(events))
                return
            for event in events:
                self._queue.put(event)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all queued events are sent or spooled; False on a timeout."""
        with self._lock:
            if self._thread is None:
                return True
        done = threading.Event()
        self._queue.put(done)
        return done.wait(timeout)

    def close(self, timeout: float = 2.0) -> None:
        """Send the queued events, or spool them after `timeout`, so that the job can exit."""
        if not self.flush(timeout):
            with guarded("spooling events at the end of a job"):
                self._spool.add([*self._sending, *self._take_all()])

    def close_at_exit(self) -> None:
        """Call `close` when the process ends, also in a process of multiprocessing."""
        if self._closes_in == os.getpid():
            return
        self._closes_in = os.getpid()
        if _is_started_by_multiprocessing():  # such a process runs no atexit functions
            from multiprocessing.util import Finalize

            Finalize(None, self.close, exitpriority=100)
        else:
            atexit.register(self.close)

    def _take_all(self) -> list[Emitted]:
        events: list[Emitted] = []
        while not self._queue.empty():
            item = self._queue.get()
            if not isinstance(item, threading.Event):
                events.append(item)
        return events

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="downriver-emitter", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with guarded("sending spooled events"):
            self._spool.drain(self._send)
        while True:
            first = self._queue.get()
            events, waiters = self._collect(first)
            if events:
                self._sending = events
                self._deliver(events)
                self._sending = []
                with self._lock:
                    self._size -= _total_size(events)
            for waiter in waiters:
                waiter.set()

    def _collect(
        self, first: Emitted | threading.Event
    ) -> tuple[list[Emitted], list[threading.Event]]:
        """Return queued events up to a batch or a flush, and the flush that waits for them."""
        events: list[Emitted] = []
        item = first
        while not isinstance(item, threading.Event):
            events.append(item)
            if len(events) == _BATCH or self._queue.empty():
                return events, []
            item = self._queue.get()
        return events, [item]

    def _deliver(self, events: list[Emitted]) -> None:
        if time.monotonic() >= self._retry_at and self._try(events):
            return
        with guarded("spooling events"):
            self._spool.add(events)

    def _try(self, events: list[Emitted]) -> bool:
        """Send events; after a failure, send the spooled events first."""
        failed_before, self._retry_at = self._retry_at, time.monotonic() + _RETRY_AFTER
        with guarded("sending events, which stay spooled"):
            if failed_before:
                self._spool.drain(self._send)
            self._send(events)
            self._retry_at = 0.0
        return self._retry_at == 0.0


def _total_size(events: Sequence[Emitted]) -> int:
    return sum(len(raw_bytes(event)) for event in events)


def _is_started_by_multiprocessing() -> bool:
    module = sys.modules.get("multiprocessing.process")  # its child processes have imported it
    return module is not None and module.parent_process() is not None

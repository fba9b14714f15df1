"""Group commit: one writing thread commits the events of many callers together."""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING

from downriver.errors import StoreBusyError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.openlineage import Event
    from downriver.store.port import PreparedEvent, Receipt, Store

    _Waiting = tuple[PreparedEvent, Future[Receipt]]

_LARGEST_BATCH = 512
_LARGEST_BATCH_BYTES = 16 * 2**20
_LULL = 0.002  # seconds without an event, after which the batch is written


class GroupCommit:
    """Writes events in the order they are submitted; a future resolves once its event is on disk.

    While one batch commits, the next one gathers, so batches grow with the load. Clients usually
    send the next event right after a response, so the thread waits up to 2 ms for each of them, and
    at most as long as the last write took. The thread never waits for a single client. The queue is
    bounded: above `capacity_bytes`, submit raises StoreBusyError.
    """

    def __init__(self, store: Store, capacity_bytes: int) -> None:
        self._store = store
        self._capacity = capacity_bytes
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._wanted = 1  # number of queued events that wakes the writing thread
        self._expected = 1  # events expected once the batch before is acknowledged
        self._took = 0.0  # seconds that the last write took
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="downriver-writer", daemon=True)
        self._thread.start()

    def submit(
        self, events: list[Event], prepare: Callable[[Event], PreparedEvent] | None = None
    ) -> list[Future[Receipt]]:
        """Queue events, all or none. `prepare` may refuse an event; the default is the store's."""
        # Callers prepare their events in parallel; the writing thread only writes.
        prepared = [(prepare or self._store.prepare)(event) for event in events]
        size = sum(len(event.raw) for event in events)
        futures: list[Future[Receipt]] = [Future() for _ in events]
        for future in futures:
            future.set_running_or_notify_cancel()  # it can no longer be cancelled
        with self._changed:
            if self._closing:
                raise StoreError("the store is closing")
            if self._waiting and self._waiting_bytes + size > self._capacity:
                raise StoreBusyError(f"{len(self._waiting)} events are waiting to be written")
            self._waiting.extend(zip(prepared, futures, strict=True))
            self._waiting_bytes += size
            if len(self._waiting) >= self._wanted or self._waiting_bytes >= _LARGEST_BATCH_BYTES:
                self._changed.notify()
        return futures

    @property
    def waiting(self) -> int:
        """How many events are queued."""
        return len(self._waiting)

    def close(self) -> None:
        """Write what is queued, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next_batch():
            started = time.monotonic()
            self._write(batch)
            self._took = time.monotonic() - started

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        with self._changed:
            self._gather()
            while self._waiting and len(batch) < _LARGEST_BATCH and size < _LARGEST_BATCH_BYTES:
                batch.append(self._waiting.popleft())
                size += len(batch[-1][0].event.raw)
            self._waiting_bytes -= size
        return batch

    def _gather(self) -> None:
        """Wait for an event, and then for the clients that are expected to send the next one."""
        self._wanted = 1
        while not self._waiting and not self._closing:
            self._changed.wait()
        # Do not write while callers prepare events: threads that share the interpreter are slower
        # in parallel than one after the other.
        self._wanted = self._expected
        until = time.monotonic() + self._took
        before = 0
        while (
            before < len(self._waiting) < self._expected
            and self._waiting_bytes < _LARGEST_BATCH_BYTES
            and not self._closing
        ):
            before = len(self._waiting)
            self._changed.wait(max(0.0, min(_LULL, until - time.monotonic())))

    def _write(self, batch: list[_Waiting]) -> None:
        try:
            receipts = self._store.write([prepared for prepared, _ in batch])
        except BaseException as exc:  # noqa: BLE001 — passed to the callers of the batch
            self._write_singly(batch, exc)
            return
        self._expected = min(len(batch) + len(self._waiting), _LARGEST_BATCH)
        for (_, future), receipt in zip(batch, receipts, strict=True):
            future.set_result(receipt)

    def _write_singly(self, batch: list[_Waiting], failure: BaseException) -> None:
        """Write each event alone, so that one bad event does not fail the others."""
        if len(batch) == 1 or self._is_out(failure):
            for _, future in batch:
                future.set_exception(failure)
            return
        for one in batch:
            self._write([one])

    def _is_out(self, failure: BaseException) -> bool:
        """Return whether the store itself fails, so that writing single events fails too."""
        if isinstance(failure, StoreBusyError):
            return True
        try:
            with self._store.reader() as reader:
                reader.state()
        except StoreError:
            return True
        return False

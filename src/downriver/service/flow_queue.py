"""Flows that many register one at a time: looked up together, committed together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from downriver.errors import DownriverError, StoreError

if TYPE_CHECKING:
    from downriver.events import Event
    from downriver.model.flows import Flow, RegisteredFlow
    from downriver.store import Receipt

    Waiting: TypeAlias = tuple[Flow, Future[RegisteredFlow]]
    Prepare: TypeAlias = Callable[[list[Flow]], tuple[list[RegisteredFlow], list[Event]]]
    Submit: TypeAlias = Callable[[list[Event]], list[Future[Receipt]]]

_LARGEST_BATCH = 512


class FlowQueue:
    """Takes flows from any thread; what waits is looked up and written as one batch."""

    def __init__(self, prepare: Prepare, submit: Submit) -> None:
        self._prepare = prepare
        self._submit = submit
        self._waiting: deque[Waiting] = deque()
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="downriver-flows", daemon=True)
        self._thread.start()

    def put(self, flow: Flow) -> Future[RegisteredFlow]:
        """Queue a flow; the future resolves once it is on disk."""
        future: Future[RegisteredFlow] = Future()
        future.set_running_or_notify_cancel()  # a caller who gives up cannot take it back
        with self._changed:
            if self._closing:
                raise StoreError("the store is closing")
            self._waiting.append((flow, future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Hand over what is queued, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next_batch():
            self._hand_over(batch)

    def _next_batch(self) -> list[Waiting]:
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            count = min(len(self._waiting), _LARGEST_BATCH)
            return [self._waiting.popleft() for _ in range(count)]

    def _hand_over(self, batch: list[Waiting]) -> None:
        try:
            registered, events = self._prepare([flow for flow, _ in batch])
            receipts = self._submit(events)
        except DownriverError as exc:
            self._hand_over_apart(batch, exc)
            return
        for (_, future), done, receipt in zip(batch, registered, receipts, strict=True):
            receipt.add_done_callback(partial(_settle, future, done))

    def _hand_over_apart(self, batch: list[Waiting], failure: DownriverError) -> None:
        """Try each alone, so that one that makes no sense costs no one else."""
        if len(batch) == 1:
            batch[0][1].set_exception(failure)
            return
        for one in batch:
            self._hand_over([one])


def _settle(future: Future[RegisteredFlow], done: RegisteredFlow, receipt: Future[Receipt]) -> None:
    failure = receipt.exception()
    if failure is None:
        future.set_result(done)
    else:
        future.set_exception(failure)

"""Notifications of writes by other processes: LISTEN on a separate connection."""

from __future__ import annotations

import selectors
import socket
import threading
from typing import TYPE_CHECKING

import psycopg

from downriver.errors import StoreError
from downriver.store.port import StoreState

if TYPE_CHECKING:
    from collections.abc import Callable

_CHANNEL = "downriver_changed"  # which the migrations' trigger on `meta` notifies
_POLL_SECONDS = 5.0  # the longest delay when a notification is lost
_RECONNECT_SECONDS = 1.0
_JOIN_SECONDS = 2.0


class ChangeListener:
    """Tracks the state of a store in a thread that starts at the first query."""

    def __init__(self, connect: Callable[[], psycopg.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._latest = StoreState(0, 0)
        self._connected = False
        self._notified = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._wake_sender, self._wake_receiver = socket.socketpair()

    def state(self) -> StoreState | None:
        """Return the state of the store, None while the listener is not connected."""
        if self._thread is None:
            self._start()
        return self._latest if self._connected else None

    def note(self, state: StoreState) -> None:
        """Record a state, unless a newer one is known."""
        with self._lock:
            if (state.generation, state.seq) > (self._latest.generation, self._latest.seq):
                self._latest = state

    def close(self) -> None:
        """Stop the thread. A thread that still waits for a dead server ends by itself."""
        with self._lock:
            self._stopping = True
        self._wake_sender.close()  # this wakes the thread
        if self._thread is None:
            self._wake_receiver.close()
        else:
            self._thread.join(_JOIN_SECONDS)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(
                    target=self._run, name="downriver-listener", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        with self._wake_receiver:
            while not self._stopping:
                try:
                    with self._connect() as connection:
                        self._listen(connection)
                except (psycopg.Error, StoreError):
                    self._connected = False
                    self._sleep(_RECONNECT_SECONDS)
            self._connected = False

    def _listen(self, connection: psycopg.Connection) -> None:
        connection.add_notify_handler(lambda _: self._mark_notified())
        connection.execute(f"LISTEN {_CHANNEL}")
        while not self._stopping:
            # After LISTEN: each commit after this query sends a notification.
            self._notified = False
            row = connection.execute("SELECT generation, projected FROM meta").fetchone()
            if row is None:
                raise StoreError("the table `meta` of the store is empty")
            self.note(StoreState(*row))
            self._connected = True
            if not self._notified:
                self._wait(connection)

    def _mark_notified(self) -> None:
        self._notified = True

    def _wait(self, connection: psycopg.Connection) -> None:
        if self._sleep(_POLL_SECONDS, connection):
            connection.pgconn.consume_input()
            while connection.pgconn.notifies():
                pass

    def _sleep(self, seconds: float, connection: psycopg.Connection | None = None) -> bool:
        """Wait for input from the server, or for close. Return whether there is input."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_receiver, selectors.EVENT_READ)
            if connection is not None:
                selector.register(connection.fileno(), selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select(seconds)}
        return connection is not None and connection.fileno() in ready

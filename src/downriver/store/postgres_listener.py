"""Knowing without asking that another process wrote: LISTEN on a connection of its own."""

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
_ASK_ANYWAY_SECONDS = 5.0  # a notification lost on the way costs no more than this
_RECONNECT_SECONDS = 1.0
_PATIENCE_SECONDS = 2.0


class ChangeListener:
    """Follows a store's state from a thread of its own, which starts when first asked."""

    def __init__(self, connect: Callable[[], psycopg.Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._latest = StoreState(0, 0)
        self._hearing = False
        self._stirred = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._awaken, self._awakened = socket.socketpair()

    def state(self) -> StoreState | None:
        """Return where the store stands; None while only the store itself can tell."""
        if self._thread is None:
            self._start()
        return self._latest if self._hearing else None

    def note(self, state: StoreState) -> None:
        """Take in a state. What is read late never takes the place of what came after it."""
        with self._lock:
            if (state.generation, state.seq) > (self._latest.generation, self._latest.seq):
                self._latest = state

    def close(self) -> None:
        """Stop listening. A thread still waiting for a dead server is left to end by itself."""
        with self._lock:
            self._stopping = True
        self._awaken.close()  # which the other end reads as "now"
        if self._thread is None:
            self._awakened.close()
        else:
            self._thread.join(_PATIENCE_SECONDS)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(
                    target=self._run, name="downriver-listener", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        with self._awakened:
            while not self._stopping:
                try:
                    with self._connect() as connection:
                        self._listen(connection)
                except (psycopg.Error, StoreError):
                    self._hearing = False
                    self._sleep(_RECONNECT_SECONDS)
            self._hearing = False

    def _listen(self, connection: psycopg.Connection) -> None:
        connection.add_notify_handler(lambda _: self._stir())
        connection.execute(f"LISTEN {_CHANNEL}")
        while not self._stopping:
            # Only now that we listen: what is committed after this answer will be heard of.
            self._stirred = False
            row = connection.execute("SELECT generation, projected FROM meta").fetchone()
            if row is None:
                raise StoreError("the store has lost its `meta` row")
            self.note(StoreState(*row))
            self._hearing = True
            if not self._stirred:
                self._wait(connection)

    def _stir(self) -> None:
        self._stirred = True

    def _wait(self, connection: psycopg.Connection) -> None:
        if self._sleep(_ASK_ANYWAY_SECONDS, connection):
            connection.pgconn.consume_input()
            while connection.pgconn.notifies():
                pass

    def _sleep(self, seconds: float, connection: psycopg.Connection | None = None) -> bool:
        """Wait for something from the server, or to be closed. True if the server spoke."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._awakened, selectors.EVENT_READ)
            if connection is not None:
                selector.register(connection.fileno(), selectors.EVENT_READ)
            spoke = {key.fileobj for key, _ in selector.select(seconds)}
        return connection is not None and connection.fileno() in spoke

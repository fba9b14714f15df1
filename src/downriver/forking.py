"""What a forked process must not share with the one it came from: locks, threads, connections."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Protocol

_PATIENCE_SECONDS = 0.5


class Renewable(Protocol):
    """Something that holds what only one process can use."""

    def renew(self) -> None:
        """Begin anew in a process that was just forked; must neither wait nor raise."""


_renewables: weakref.WeakSet[Any] = weakref.WeakSet()
_left_alone: list[object] = []


def renew_in_child(thing: Renewable) -> None:
    """Have `renew` called in every process that is forked from this one."""
    _renewables.add(thing)


def leave_alone(*inherited: object) -> None:
    """Keep what belongs to the parent as it is: closing a connection here would end it there."""
    _left_alone.extend(inherited)


class Crossing:
    """Held by a thread while it is inside a library whose locks a fork would copy as they are.

    SQLite has such locks. A fork waits for threads to come out, though not for long.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = False
        _crossings.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def close_off(self) -> None:
        """Let no thread in until the fork is over."""
        self._held = self._lock.acquire(timeout=_PATIENCE_SECONDS)

    def open_up(self) -> None:
        """Let threads in again."""
        if self._held:
            self._held = False
            self._lock.release()


_crossings: weakref.WeakSet[Crossing] = weakref.WeakSet()


def _before() -> None:
    for crossing in list(_crossings):
        crossing.close_off()


def _after_in_parent() -> None:
    for crossing in list(_crossings):
        crossing.open_up()


def _after_in_child() -> None:
    for thing in list(_renewables):
        thing.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )

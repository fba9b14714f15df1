"""What a forked process must not share with the one it came from: locks, threads, connections."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ExitStack
from typing import Any, Protocol

_PATIENCE_SECONDS = 0.5


class ForkAware(Protocol):
    """Something that holds what only one process can use."""

    def renew(self) -> None:
        """Begin anew in a process that was just forked; must neither wait nor raise."""


_renewables: weakref.WeakSet[Any] = weakref.WeakSet()
_left_alone: list[object] = []


def renew_in_child(thing: ForkAware) -> None:
    """Have `renew` called in every process that is forked from this one."""
    _renewables.add(thing)


def keep_inherited(*inherited: object) -> None:
    """Keep what belongs to the parent as it is: closing a connection here would end it there."""
    _left_alone.extend(inherited)


class ForkGate:
    """Held by threads while they are inside a library whose locks a fork would copy as they are.

    SQLite has such locks. A fork waits for threads to come out, though not for long.
    """

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)
        _crossings.append(self)

    def renew(self) -> None:
        """Begin with no one inside."""
        self._door = threading.Condition()
        self._mine = threading.local()
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        depth = self._mine.depth = getattr(self._mine, "depth", 0) + 1
        if depth > 1:  # this thread is inside already
            return
        with self._door:
            self._door.wait_for(lambda: not self._closed)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        self._mine.depth -= 1
        if self._mine.depth:
            return
        with self._door:
            self._inside -= 1
            self._door.notify_all()

    def close_off(self) -> None:
        """Let no other thread in until the fork is over, and wait for those that are."""
        own = 1 if getattr(self._mine, "depth", 0) else 0
        with self._door:
            self._closed = True
            self._door.wait_for(lambda: self._inside <= own, _PATIENCE_SECONDS)

    def open_up(self) -> None:
        """Let threads in again."""
        with self._door:
            self._closed = False
            self._door.notify_all()


_crossings: list[ForkGate] = []


def _before() -> None:
    for crossing in _crossings:
        crossing.close_off()


def _after_in_parent() -> None:
    for crossing in _crossings:
        crossing.open_up()


def _after_in_child() -> None:
    with ExitStack() as every:  # which goes on past one that fails, and raises in the end
        for thing in list(_renewables):
            every.callback(thing.renew)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )

"""Fork safety: locks, threads and connections that a child process must not share."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ExitStack
from typing import Any, Protocol

_LONGEST_WAIT_SECONDS = 0.5


class ForkAware(Protocol):
    """An object that holds resources of one process only."""

    def renew(self) -> None:
        """Replace the resources in a child process; must not block or raise."""


_fork_aware: weakref.WeakSet[Any] = weakref.WeakSet()
_inherited: list[object] = []


def renew_in_child(holder: ForkAware) -> None:
    """Call `renew` in every process that is forked from this one."""
    _fork_aware.add(holder)


def keep_inherited(*inherited: object) -> None:
    """Keep objects of the parent alive: closing a connection here would close it there."""
    _inherited.extend(inherited)


class ForkGate:
    """A context for calls into a library with locks of its own, such as SQLite.

    A fork would copy those locks in their current state. So it waits, for a short time, until no
    thread is inside.
    """

    def __init__(self) -> None:
        self.renew()
        renew_in_child(self)
        _gates.append(self)

    def renew(self) -> None:
        """Start with no thread inside."""
        self._door = threading.Condition()
        self._mine = threading.local()
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        depth = self._mine.depth = getattr(self._mine, "depth", 0) + 1
        if depth > 1:  # nested: this thread has entered already
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

    def close(self) -> None:
        """Keep other threads out until the fork is done, and wait for those inside."""
        own = 1 if getattr(self._mine, "depth", 0) else 0
        with self._door:
            self._closed = True
            self._door.wait_for(lambda: self._inside <= own, _LONGEST_WAIT_SECONDS)

    def reopen(self) -> None:
        """Let threads enter again."""
        with self._door:
            self._closed = False
            self._door.notify_all()


_gates: list[ForkGate] = []


def _before() -> None:
    for gate in _gates:
        gate.close()


def _after_in_parent() -> None:
    for gate in _gates:
        gate.reopen()


def _after_in_child() -> None:
    with ExitStack() as callbacks:  # runs all of them even if one raises
        for holder in list(_fork_aware):
            callbacks.callback(holder.renew)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )

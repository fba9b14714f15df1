"""What a forked process must not share with the one it came from: locks, threads, connections."""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol


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


def _renew_all() -> None:
    for thing in list(_renewables):
        thing.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)

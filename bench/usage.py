"""What this process and those it started use while something runs: memory at most, and cores."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY = 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage:
    """The most memory that was seen, in MB, and how many seconds of a core were used."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self.core_seconds = 0.0
        self.seconds = 0.0

    def look(self) -> None:
        """Look once."""
        held = sum(_resident(pid) for pid in _family(os.getpid()))
        self.megabytes = max(self.megabytes, held / 2**20)


@contextmanager
def watched_usage() -> Iterator[Usage]:
    """Look every half second. Pages that several processes share count for each.

    On a machine that others use too, core-seconds say more than time does.
    """
    usage, stopped = Usage(), threading.Event()
    before, began = cores_used(), time.perf_counter()

    def watch() -> None:
        while not stopped.wait(_EVERY):
            usage.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        stopped.set()
        thread.join()
        usage.seconds = time.perf_counter() - began
        usage.core_seconds = cores_used() - before


def cores_used() -> float:
    """Return how many seconds of a core have been used so far."""
    return sum(map(_core_seconds, _family(os.getpid())))


def _core_seconds(pid: int) -> float:
    """Return what a process and its children that have ended used."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:  # it has ended meanwhile
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / _TICKS


def _family(root: int) -> set[int]:
    """Return a process and all that descend from it."""
    parents = {pid: parent for pid, parent in map(_parent, _processes()) if parent}
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(pid: int) -> tuple[int, int]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:  # it has ended meanwhile
        return pid, 0
    return pid, int(stat.rpartition(")")[2].split()[1])


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1]) * _PAGE
    except OSError:
        return 0

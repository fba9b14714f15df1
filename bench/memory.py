"""How much memory this process and those it started hold at most, sampled while something runs."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY = 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """The most that was seen, in MB."""

    def __init__(self) -> None:
        self.megabytes = 0.0

    def look(self) -> None:
        """Look once."""
        held = sum(_resident(pid) for pid in _family(os.getpid()))
        self.megabytes = max(self.megabytes, held / 2**20)


@contextmanager
def watched_memory() -> Iterator[Peak]:
    """Look every half second. Pages that several processes share count for each."""
    peak, stopped = Peak(), threading.Event()

    def watch() -> None:
        while not stopped.wait(_EVERY):
            peak.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stopped.set()
        thread.join()


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

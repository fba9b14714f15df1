"""Peak memory and cores of this process and its children while something runs."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.sampler import sampling

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY = 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """A process at a moment, identified by its number and start time."""

    pid: int
    began: int
    parent: int
    command: str
    core_seconds: float
    megabytes: int


class Usage:
    """The peak memory in MB, and the core-seconds used."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.megabytes = 0
        self.parts: Counter[str] = Counter()  # of these megabytes, by command
        # By process, also of processes that have ended.
        self._used: dict[tuple[int, int], float] = {}
        self._before = 0.0
        self._before = self.used_so_far()
        self.core_seconds = 0.0

    def used_so_far(self) -> float:
        """Return the core-seconds used since the start."""
        self.look()
        return sum(self._used.values()) - self._before

    def look(self) -> None:
        """Take a sample."""
        family = _family(os.getpid())
        self._used.update({(one.pid, one.began): one.core_seconds for one in family})
        parts = _memory(family)
        if parts.total() > self.megabytes:
            self.megabytes, self.parts = parts.total(), parts


def _memory(family: list[Process]) -> Counter[str]:
    """Return the memory in megabytes, by command."""
    held = {one.pid: one.megabytes for one in family}
    parts: Counter[str] = Counter()
    for one in family:
        # Between fork and exec, a process still shows the memory of its parent.
        if one.megabytes != held.get(one.parent):
            parts[one.command] += one.megabytes
    return parts


@contextmanager
def watched_usage() -> Iterator[Usage]:
    """Sample every half second.

    Pages that several processes share count for each. On a machine with other load, core-seconds
    are more reliable than time.
    """
    usage, began = Usage(), time.perf_counter()
    with sampling(usage.look, _EVERY):
        yield usage
    usage.seconds = time.perf_counter() - began
    usage.core_seconds = usage.used_so_far()


def core_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    process = _process(pid)
    return 0.0 if process is None else process.core_seconds


def _family(root: int) -> list[Process]:
    """Return a process and all its descendants."""
    every = [process for process in map(_process, _pids()) if process]
    family = {root}
    while more := {one.pid for one in every if one.parent in family} - family:
        family |= more
    return [process for process in every if process.pid in family]


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _process(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:  # it has ended meanwhile
        return None
    command, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    used, pages = int(fields[11]) + int(fields[12]), int(fields[21])
    megabytes = pages * _PAGE // 2**20
    return Process(pid, int(fields[19]), int(fields[1]), command, used / _TICKS, megabytes)

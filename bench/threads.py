"""CPU time of each thread of some processes, including threads that ended."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.sampler import sampling

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")


class Task(NamedTuple):
    """A thread. Its number may be reused later, so the start time is part of the identity."""

    pid: int
    number: int
    began: int
    name: str


class ThreadTimes:
    """CPU seconds by thread since the start, as of the last sample."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._before = self._read()
        self.seconds: dict[Task, float] = {}

    def look(self) -> None:
        """Take one sample."""
        for task, used in self._read().items():
            self.seconds[task] = used - self._before.get(task, 0.0)

    def _read(self) -> dict[Task, float]:
        paths = [p for pid in self._pids for p in Path(f"/proc/{pid}/task").glob("*/stat")]
        return dict(read for read in map(_read, paths) if read)


@contextmanager
def watched_threads(*pids: int) -> Iterator[ThreadTimes]:
    """Sample several times per second.

    CPU time after the last sample of a thread is not counted.
    """
    times = ThreadTimes(*pids)
    with sampling(times.look, _EVERY) as sampler:
        yield times
    times.look()
    times.seconds = {t: s for t, s in times.seconds.items() if t.number != sampler.native_id}


def _read(path: Path) -> tuple[Task, float] | None:
    try:
        number, _, rest = path.read_text("utf-8").partition(" (")
    except OSError:  # it has ended meanwhile
        return None
    name, _, fields = rest.rpartition(") ")
    values = fields.split()
    used = int(values[11]) + int(values[12])
    return Task(int(path.parts[2]), int(number), int(values[19]), name), used / _TICKS

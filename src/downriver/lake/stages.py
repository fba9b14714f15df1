"""The stages of an ingest or build: their row counts, and how long they took."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class StageReport(msgspec.Struct):
    """The row counts of a stage. In bronze, an input row is written, a duplicate or rejected."""

    stage: str
    rows_in: int = 0
    rows_out: int = 0
    rejected: int = 0
    duplicates: int = 0
    seconds: float = 0.0

    def add(self, other: StageReport) -> None:
        """Add the counts of another run of the same stage."""
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.rejected += other.rejected
        self.duplicates += other.duplicates
        self.seconds += other.seconds


class Stages:
    """Calls `begin` when a stage starts and `report` when it is done."""

    def __init__(
        self,
        begin: Callable[[str], None] = lambda stage: None,
        report: Callable[[StageReport], None] = lambda stage: None,
    ) -> None:
        self._begin = begin
        self._report = report

    @contextmanager
    def running(self, name: str) -> Iterator[StageReport]:
        """Time a stage; the caller fills in the counts of its report."""
        stage = StageReport(name)
        self._begin(name)
        started = time.perf_counter()
        yield stage
        stage.seconds = round(time.perf_counter() - started, 3)
        self._report(stage)

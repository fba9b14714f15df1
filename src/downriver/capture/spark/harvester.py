"""Takes what lineage needs from a finished query, on the thread that reports it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from downriver.capture.spark.expand import add_projections, has_expands
from downriver.capture.spark.harvest import Harvest
from downriver.capture.spark.java import Java, ids
from downriver.capture.spark.metrics import read_scanned, read_written
from downriver.capture.spark.places import Places
from downriver.capture.spark.sinks import find_write

if TYPE_CHECKING:
    from downriver.capture.spark.sinks import Write

_LONGEST_STACK = 8_000


class Harvester:
    """Reads the plans of one session. `largest_plan` is in cells: operators times columns."""

    def __init__(self, session: Java, jvm: Java, *, largest_plan: int) -> None:
        self.places = Places(session)
        self._collapse = jvm.org.apache.spark.sql.catalyst.optimizer.CollapseProject
        self._jvm = jvm
        self._largest_plan = largest_plan
        self._last: Harvest | None = None

    def harvest(
        self, action: str, execution: Java, duration_ns: int, error: Java | None = None
    ) -> Harvest:
        """Return what a query did, or tried to do."""
        analyzed = execution.analyzed()
        write = find_write(analyzed, self.places)
        query = analyzed if write is None else write.query
        output = [] if query is None else ids(query.output())
        found = Harvest(
            action=action,
            ended_at=time.time_ns() // 1000,
            duration_ns=duration_ns,
            columns=output,
            sink=None if write is None else write.sink,
            error="" if error is None else _message(error),
            stack="" if error is None else _stack(error),
        )
        wraps = self._last is not None and found.wraps(self._last)  # then its plan is known
        if query is not None and not wraps:
            self._read_plan(found, query, len(output))
        if error is None and not wraps:
            self._count(found, execution, write)
        self._last = found
        return found

    def read_plan(self, query: Java) -> Harvest:
        """Return a plan, run or not."""
        columns = ids(query.output())
        found = Harvest(action="", ended_at=0, duration_ns=0, columns=columns)
        self._read_plan(found, query, len(columns))
        return found

    def _read_plan(self, found: Harvest, query: Java, width: int) -> None:
        found.leaves = self.places.leaves(query)
        found.schema = str(query.schema().json())
        collapsed = self._collapse.apply(query)
        # Cheap at any width: the text of an operator shows 25 columns at most.
        text = str(collapsed.numberedTreeString())
        operators = text.count("\n")
        if operators * max(width, 1) > self._largest_plan:
            found.too_large = f"{operators} operators over {width} columns"
            return
        found.plan = str(collapsed.toJSON())
        if has_expands(text):
            found.plan = add_projections(found.plan, collapsed, text, self._jvm)

    def _count(self, found: Harvest, execution: Java, write: Write | None) -> None:
        executed = execution.executedPlan()
        if write is not None:
            found.written = read_written(executed)
        if any(leaf.places for leaf in found.leaves):
            found.read = read_scanned(executed)


def _message(error: Java) -> str:
    return str(error.getMessage() or error.getClass().getName())


def _stack(error: Java) -> str:
    lines = [
        str(error.toString()),
        *(f"\tat {frame.toString()}" for frame in error.getStackTrace()),
    ]
    return "\n".join(lines)[:_LONGEST_STACK]

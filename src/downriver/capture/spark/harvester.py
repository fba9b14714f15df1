"""Takes what lineage needs from a finished query, on the thread that reports it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from downriver.capture.spark.asides import AsideReader
from downriver.capture.spark.harvest import Harvest
from downriver.capture.spark.java import Java, each, ids, simple_name
from downriver.capture.spark.metrics import read_scanned, read_written, unwrapped
from downriver.capture.spark.places import Places
from downriver.capture.spark.shortening import Shortening
from downriver.capture.spark.sinks import find_write

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_STACK = 8_000
_SEVERAL = "multi-commands"  # what Spark calls FROM … INSERT … INSERT …


class Harvester:
    """Reads the plans of one session. `largest_plan` is in cells: operators times columns."""

    def __init__(self, session: Java, jvm: Java, *, largest_plan: int) -> None:
        self.places = Places(session)
        self._shortening = Shortening(jvm)
        self._asides = AsideReader(jvm)
        self._largest_plan = largest_plan
        self._last: Harvest | None = None

    def harvest(
        self, action: str, execution: Java, duration_ns: int, error: Java | None = None
    ) -> list[Harvest]:
        """Return what a query did, or tried to do: one action, unless it inserts several times."""
        if error is not None and not _was_analyzed(execution):
            return []
        analyzed = execution.analyzed()
        kind = simple_name(analyzed)
        if _is_of_spark(action, analyzed, kind):
            return []
        executed = None if error is not None else execution.executedPlan()
        if action != _SEVERAL:
            ran = None if error is not None else execution
            return [self._one(action, analyzed, kind, executed, duration_ns, error, ran)]
        parts = list(each(analyzed.children()))
        runs = [] if executed is None else list(each(executed.children()))
        if len(runs) != len(parts):  # how they ran is not known one by one
            runs = [None] * len(parts)
        return [
            self._one("command", part, simple_name(part), run, duration_ns, error)
            for part, run in zip(parts, runs, strict=True)
        ]

    def _one(
        self,
        action: str,
        analyzed: Java,
        kind: str,
        executed: Java | None,
        duration_ns: int,
        error: Java | None,
        ran: Java | None = None,
    ) -> Harvest:
        write = find_write(analyzed, kind, self.places)
        query = analyzed if write is None else write.query
        reads = () if write is None else write.reads
        output = [] if query is None else ids((reads or (query,))[-1].output())
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
            self._read_plan(found, query, reads, ran)
        if found.sink is None and any(leaf.rewriting for leaf in found.leaves):
            return _nothing(found)
        if executed is not None and not wraps:
            _count(found, executed)
        self._last = found
        return found

    def read_plan(self, query: Java) -> Harvest:
        """Return a plan, run or not."""
        columns = ids(query.output())
        found = Harvest(action="", ended_at=0, duration_ns=0, columns=columns)
        self._read_plan(found, query)
        return found

    def _read_plan(
        self,
        found: Harvest,
        query: Java,
        reads: Sequence[Java] = (),
        ran: Java | None = None,
    ) -> None:
        stored = found.sink is not None and found.sink.place.table is not None
        # How a table's own types are met is seen in the analysed plan alone.
        plans = [*reads] or [
            self._shortening.shorten(query, len(found.columns), None if stored else ran)
        ]
        found.leaves = [leaf for plan in plans for leaf in self.places.leaves(plan)]
        found.schema = str((reads or (query,))[-1].schema().json())
        # Cheap at any width: the text of an operator shows 25 columns at most.
        trees = [str(plan.numberedTreeString()) for plan in plans]
        operators, width = sum(tree.count("\n") for tree in trees), len(found.columns)
        if operators * max(width, 1) > self._largest_plan:
            found.too_large = f"{operators} operators over {width} columns"
            return
        found.plan = str((query if reads else plans[0]).toJSON())
        if not reads:
            found.asides = self._asides.read(plans[0], trees[0], found.plan, stored=stored)


def _count(found: Harvest, executed: Java) -> None:
    executed = unwrapped(executed)
    if found.sink is not None:
        found.written = read_written(executed)
    if any(leaf.places for leaf in found.leaves):
        scanned = read_scanned(executed)
        found.read = {
            leaf.first_id: scanned[column]
            for leaf in found.leaves
            for column in leaf.columns
            if column in scanned
        }


def _nothing(found: Harvest) -> Harvest:
    """What is a part of another action is nothing by itself."""
    return Harvest(found.action, found.ended_at, found.duration_ns, [])


def _was_analyzed(execution: Java) -> bool:
    """Tell whether a failed query got as far as a plan: asking for one that is not there fails."""
    return bool(execution.tracker().phases().contains("analysis"))


def _is_of_spark(action: str, analyzed: Java, kind: str) -> bool:
    """Tell whether this is a part of another action, or Spark looking for a schema."""
    if action == "deltaTransactionalWrite":
        return True
    if kind != "DeserializeToObject":
        return False
    taken = analyzed.outputObjAttr().dataType()
    return action == "foreachPartition" or str(taken.cls().getName()) == "java.lang.String"


def _message(error: Java) -> str:
    return str(error.getMessage() or error.getClass().getName())


def _stack(error: Java) -> str:
    lines = [
        str(error.toString()),
        *(f"\tat {frame.toString()}" for frame in error.getStackTrace()),
    ]
    return "\n".join(lines)[:_LONGEST_STACK]

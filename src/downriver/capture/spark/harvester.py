"""Takes what lineage needs from a finished query, on the thread that reports it."""

from __future__ import annotations

import time

from downriver.capture.spark.asides import AsideReader
from downriver.capture.spark.harvest import Harvest
from downriver.capture.spark.java import Java, ids, simple_name
from downriver.capture.spark.metrics import read_scanned, read_written
from downriver.capture.spark.places import Places
from downriver.capture.spark.sinks import find_write

_LONGEST_STACK = 8_000


class Harvester:
    """Reads the plans of one session. `largest_plan` is in cells: operators times columns."""

    def __init__(self, session: Java, jvm: Java, *, largest_plan: int) -> None:
        self.places = Places(session)
        self._collapse = jvm.org.apache.spark.sql.catalyst.optimizer.CollapseProject
        self._asides = AsideReader(jvm)
        self._largest_plan = largest_plan
        self._last: Harvest | None = None

    def harvest(
        self, action: str, execution: Java, duration_ns: int, error: Java | None = None
    ) -> Harvest:
        """Return what a query did, or tried to do."""
        if error is not None and not _was_analyzed(execution):
            return _nothing(action, duration_ns)
        analyzed = execution.analyzed()
        if _is_of_spark(action, analyzed):
            return _nothing(action, duration_ns)
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
            self._count(found, execution)
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
        tree = str(collapsed.numberedTreeString())
        operators = tree.count("\n")
        if operators * max(width, 1) > self._largest_plan:
            found.too_large = f"{operators} operators over {width} columns"
            return
        found.plan = str(collapsed.toJSON())
        found.asides = self._asides.read(collapsed, tree, found.plan)

    def _count(self, found: Harvest, execution: Java) -> None:
        executed = execution.executedPlan()
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


def _nothing(action: str, duration_ns: int) -> Harvest:
    return Harvest(action, time.time_ns() // 1000, duration_ns, [])


def _was_analyzed(execution: Java) -> bool:
    """Tell whether a failed query got as far as a plan: asking for one that is not there fails."""
    return bool(execution.tracker().phases().contains("analysis"))


def _is_of_spark(action: str, analyzed: Java) -> bool:
    """Tell whether Spark reads for itself: to infer a schema, or as a part of writing over JDBC."""
    if simple_name(analyzed) != "DeserializeToObject":
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

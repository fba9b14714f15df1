"""Reads a finished query from the JVM: its plan, its sources and sink, and the rows it counted."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from downriver.capture.spark.actions import IoStatistics, SparkAction
from downriver.capture.spark.io.sinks import find_write
from downriver.capture.spark.io.sources import DatasetLocator
from downriver.capture.spark.java import Java, column_ids, elements, simple_name
from downriver.capture.spark.plan.details import PlanDetailReader, PlanShortener

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_METRIC = re.compile(r"(\w+) -> SQLMetric\(.*?value: (-?\d+)\)")
_STAGE = "QueryStageExec"
_MOST_LEAVES = 200


def read_written(executed: Java) -> IoStatistics:
    """Return the rows, bytes and files that a command wrote."""
    return _statistics(executed, size="numOutputBytes", files="numFiles")


def read_scanned(executed: Java) -> dict[int, IoStatistics]:
    """Return the rows and bytes of each scan, by the ids of its output columns."""
    action: dict[int, IoStatistics] = {}
    for leaf in _scans(executed):
        statistics = _statistics(leaf, size="filesSize", files="numFiles")
        for column in column_ids(leaf.output()):
            action.setdefault(column, statistics)
    return action


def unwrapped(plan: Java) -> Java:
    """Return the plan inside the wrappers of adaptive execution and eager commands."""
    while True:
        kind = simple_name(plan)
        if kind == "AdaptiveSparkPlanExec":
            plan = plan.executedPlan()
        elif kind.endswith(_STAGE):
            plan = plan.plan()
        elif kind == "CommandResultExec":
            plan = plan.commandPhysicalPlan()
        else:
            return plan


def _scans(executed: Java) -> Iterator[Java]:
    waiting = [executed]
    seen = 0
    while waiting and seen < _MOST_LEAVES:
        plan = waiting.pop()
        for leaf in elements(plan.collectLeaves()):
            seen += 1
            kind = simple_name(leaf)
            if kind == "AdaptiveSparkPlanExec" or kind.endswith(_STAGE):
                waiting.append(unwrapped(leaf))
            elif kind.endswith("ScanExec"):
                yield leaf


def _statistics(plan: Java, *, size: str, files: str) -> IoStatistics:
    counted = {name: int(value) for name, value in _METRIC.findall(plan.metrics().mkString("\n"))}
    return IoStatistics(counted.get("numOutputRows"), counted.get(size), counted.get(files))


_LONGEST_STACK = 8_000
_MULTI_INSERT = "multi-commands"  # Spark's name for FROM … INSERT … INSERT …


class ActionReader:
    """Reads the plans of one session. `largest_plan` is a number of operators times columns."""

    def __init__(self, session: Java, jvm: Java, *, largest_plan: int) -> None:
        self._locator = DatasetLocator(session)
        self._shortener = PlanShortener(jvm)
        self._details = PlanDetailReader(jvm)
        self._largest_plan = largest_plan
        self._last: SparkAction | None = None

    def read(
        self, name: str, execution: Java, duration_ns: int, error: Java | None = None
    ) -> list[SparkAction]:
        """Return the actions of a query: one, or one for each INSERT of a multi-insert."""
        if error is not None and not _was_analyzed(execution):
            return []
        analyzed = execution.analyzed()
        kind = simple_name(analyzed)
        if _is_internal(name, analyzed, kind):
            return []
        executed = None if error is not None else execution.executedPlan()
        if name != _MULTI_INSERT:
            ran = None if error is not None else execution
            return [self._read_action(name, analyzed, kind, executed, duration_ns, error, ran)]
        parts = list(elements(analyzed.children()))
        runs = [] if executed is None else list(elements(executed.children()))
        if len(runs) != len(parts):  # the executed parts cannot be matched
            runs = [None] * len(parts)
        return [
            self._read_action("command", part, simple_name(part), run, duration_ns, error)
            for part, run in zip(parts, runs, strict=True)
        ]

    def _read_action(
        self,
        name: str,
        analyzed: Java,
        kind: str,
        executed: Java | None,
        duration_ns: int,
        error: Java | None,
        ran: Java | None = None,
    ) -> SparkAction:
        write = find_write(analyzed, kind, self._locator)
        query = analyzed if write is None else write.query
        reads = () if write is None else write.reads
        output = [] if query is None else column_ids((reads or (query,))[-1].output())
        action = SparkAction(
            name=name,
            ended_at=time.time_ns() // 1000,
            duration_ns=duration_ns,
            columns=output,
            sink=None if write is None else write.sink,
            error="" if error is None else _message(error),
            stack="" if error is None else _stack(error),
        )
        # The plan of an outer command is known already, from the inner one.
        wraps = self._last is not None and action.wraps(self._last)
        if query is not None and not wraps:
            self._read_plan(action, query, reads, ran)
        if action.sink is None and any(leaf.rewriting for leaf in action.leaves):
            return _empty_action(action)
        if executed is not None and not wraps:
            _count(action, executed)
        self._last = action
        return action

    def read_plan(self, query: Java) -> SparkAction:
        """Return a plan as an action without a result, for example the plan of a frame."""
        columns = column_ids(query.output())
        action = SparkAction(name="", ended_at=0, duration_ns=0, columns=columns)
        self._read_plan(action, query)
        return action

    def _read_plan(
        self,
        action: SparkAction,
        query: Java,
        reads: Sequence[Java] = (),
        ran: Java | None = None,
    ) -> None:
        stored = action.sink is not None and action.sink.location.table is not None
        # Only the analysed plan shows the casts to the column types of a table.
        plans = [*reads] or [
            self._shortener.shorten(query, len(action.columns), None if stored else ran)
        ]
        action.leaves = [leaf for plan in plans for leaf in self._locator.leaves(plan)]
        action.schema = str((reads or (query,))[-1].schema().json())
        # Cheap for wide plans too: the text of an operator shows at most 25 columns.
        trees = [str(plan.numberedTreeString()) for plan in plans]
        operators, width = sum(tree.count("\n") for tree in trees), len(action.columns)
        if operators * max(width, 1) > self._largest_plan:
            action.too_large = f"{operators} operators over {width} columns"
            return
        action.plan = str((query if reads else plans[0]).toJSON())
        if not reads:
            action.details = self._details.read(plans[0], trees[0], action.plan, stored=stored)


def _count(action: SparkAction, executed: Java) -> None:
    executed = unwrapped(executed)
    if action.sink is not None:
        action.written = read_written(executed)
    if any(leaf.locations for leaf in action.leaves):
        scanned = read_scanned(executed)
        action.read = {
            leaf.first_id: scanned[column]
            for leaf in action.leaves
            for column in leaf.columns
            if column in scanned
        }


def _empty_action(action: SparkAction) -> SparkAction:
    """Return an empty action, for a query that is only a part of another action."""
    return SparkAction(action.name, action.ended_at, action.duration_ns, [])


def _was_analyzed(execution: Java) -> bool:
    """Tell whether a failed query has an analysed plan; reading a missing one raises."""
    return bool(execution.tracker().phases().contains("analysis"))


def _is_internal(name: str, analyzed: Java, kind: str) -> bool:
    """Tell whether a query is a part of another action, or Spark's own schema inference."""
    if name == "deltaTransactionalWrite":
        return True
    if kind != "DeserializeToObject":
        return False
    result_type = analyzed.outputObjAttr().dataType()
    return name == "foreachPartition" or str(result_type.cls().getName()) == "java.lang.String"


def _message(error: Java) -> str:
    return str(error.getMessage() or error.getClass().getName())


def _stack(error: Java) -> str:
    lines = [
        str(error.toString()),
        *(f"\tat {frame.toString()}" for frame in error.getStackTrace()),
    ]
    return "\n".join(lines)[:_LONGEST_STACK]

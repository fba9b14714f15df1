"""What a finished query counted, read from its executed plan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.spark.harvest import Statistics
from downriver.capture.spark.java import Java, each, ids, simple_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_METRIC = re.compile(r"(\w+) -> SQLMetric\(.*?value: (-?\d+)\)")
_STAGE = "QueryStageExec"
_MOST_LEAVES = 200


def read_written(executed: Java) -> Statistics:
    """Return the rows, bytes and files a command wrote, from its plan unwrapped."""
    return _statistics(executed, size="numOutputBytes", files="numFiles")


def read_scanned(executed: Java) -> dict[int, Statistics]:
    """Return the rows and bytes of each scan, by the ids of the columns it produced."""
    found: dict[int, Statistics] = {}
    for leaf in _scans(executed):
        statistics = _statistics(leaf, size="filesSize", files="numFiles")
        for column in ids(leaf.output()):
            found.setdefault(column, statistics)
    return found


def unwrapped(plan: Java) -> Java:
    """Return the plan that adaptive execution and eager commands wrap."""
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
        for leaf in each(plan.collectLeaves()):
            seen += 1
            kind = simple_name(leaf)
            if kind == "AdaptiveSparkPlanExec" or kind.endswith(_STAGE):
                waiting.append(unwrapped(leaf))
            elif kind.endswith("ScanExec"):
                yield leaf


def _statistics(plan: Java, *, size: str, files: str) -> Statistics:
    counted = {name: int(value) for name, value in _METRIC.findall(plan.metrics().mkString("\n"))}
    return Statistics(counted.get("numOutputRows"), counted.get(size), counted.get(files))

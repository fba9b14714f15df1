"""Reads a finished query from the JVM: its plan, its sources and sink, and the rows it counted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.spark.actions import IoStatistics, PlanLeaf, SparkAction
from downriver.capture.spark.io.sinks import WriteCommand, find_write
from downriver.capture.spark.io.sources import DatasetLocator
from downriver.capture.spark.java import Java, column_ids, elements, operators_in, simple_name
from downriver.capture.spark.plan.details import PlanDetailReader, PlanShortener

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.spark.executions import Execution

_METRIC = re.compile(r"\b(\w+) -> SQLMetric\((?:(?!SQLMetric\().)*?value: (-?\d+)\)")
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
# A part of a write of Delta; a frame as an RDD, which is no action yet and has no name in Python.
_INTERNAL = frozenset({"deltaTransactionalWrite", "rdd", ""})
_DISTINCT = frozenset({"Aggregate", "Deduplicate", "Distinct"})
_MULTI_INSERT = "multi-commands"  # Spark's name for FROM … INSERT … INSERT …


class ActionReader:
    """Reads the plans of one session. `largest_plan` is a number of operators times columns."""

    def __init__(self, session: Java, jvm: Java, *, largest_plan: int) -> None:
        self._locator = DatasetLocator(session)
        self._shortener = PlanShortener(jvm)
        self._details = PlanDetailReader(jvm)
        self._largest_plan = largest_plan

    def read(
        self,
        execution: Execution,
        query: Java,
        error: Java | None = None,
        *,
        before: Sequence[SparkAction] = (),
    ) -> list[SparkAction]:
        """Return the actions of an execution: one, or one for each INSERT of a multi-insert.

        `before` are the actions that the same command reported before this one.
        """
        analyzed = query.analyzed()
        if _is_internal(execution, analyzed):
            return []
        executed = None if error is not None else query.executedPlan()
        if execution.name != _MULTI_INSERT:
            command = self._command(execution, analyzed)
            action = _new_action(execution, command, error)
            self._fill(action, command, executed, None if error is not None else query, before)
            return [action]
        parts = list(elements(analyzed.children()))
        runs = [] if executed is None else list(elements(executed.children()))
        if len(runs) != len(parts):  # the executed parts cannot be matched
            runs = [None] * len(parts)
        actions = []
        for part, run in zip(parts, runs, strict=True):
            command = find_write(part, simple_name(part), self._locator)
            actions.append(_new_action(execution, command, error))
            self._fill(actions[-1], command, run, None, ())
        return actions

    def _command(self, execution: Execution, plan: Java) -> WriteCommand:
        """Return what an execution writes, and the plan of its rows."""
        if execution.is_command:
            return find_write(plan, execution.plan, self._locator)
        return WriteCommand(None, plan)

    def _fill(
        self,
        action: SparkAction,
        command: WriteCommand,
        executed: Java | None,
        ran: Java | None,
        before: Sequence[SparkAction],
    ) -> None:
        """Read the plan and the counts of an action."""
        query, reads = command.query, command.reads
        if query is not None:
            action.columns = column_ids((reads or (query,))[-1].output())
        if any(action.wraps(inner) for inner in before):
            return  # the plan and the counts are known already, from the inner command
        if query is not None:
            self._read_plan(action, query, reads, ran)
        for plan in command.inputs:
            action.leaves += self._locator.leaves(plan)
        if command.sources:
            action.leaves.append(PlanLeaf(-1, list(command.sources)))
            action.without_columns = True
        if not action.writes and any(leaf.rewriting for leaf in action.leaves):
            action.leaves, action.plan = [], ""  # a part of another action
        elif executed is not None:
            _count(action, executed)

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
        action.tables = self._locator.tables
        action.schema = str((reads or (query,))[-1].schema().json())
        # Cheap for wide plans too: the text of an operator shows at most 25 columns.
        trees = [str(plan.numberedTreeString()) for plan in plans]
        operators, width = sum(tree.count("\n") for tree in trees), len(action.columns)
        if operators * max(width, 1) > self._largest_plan:
            action.too_large = f"{operators} operators over {width} columns"
            return
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            action.plan = str((query if reads else plans[0]).toJSON())
        except (Py4JJavaError, PySparkException) as exc:  # Scala code may have no form in JSON
            action.unread = str(exc).partition("\n")[0]
            return
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


def _new_action(execution: Execution, command: WriteCommand, error: Java | None) -> SparkAction:
    return execution.action(
        sink=command.sink,
        unknown_write=command.unknown,
        error="" if error is None else _message(error),
        stack="" if error is None else _stack(error),
    )


def _is_pivot(execution: Execution, analyzed: Java) -> bool:
    """Return whether a query collects the values of a pivot: sorted, distinct, limited."""
    if execution.name != "collect" or execution.plan != "Sort":
        return False
    kinds = [kind for _, kind in operators_in(str(analyzed.numberedTreeString()))]
    return kinds[:3] == ["Sort", "GlobalLimit", "LocalLimit"] and kinds[3] in _DISTINCT


def _is_internal(execution: Execution, analyzed: Java) -> bool:
    """Return whether a query is a part of another action, or Spark's own schema inference."""
    if execution.name in _INTERNAL or _is_pivot(execution, analyzed):
        return True
    if execution.plan != "DeserializeToObject":
        return False
    result_type = analyzed.outputObjAttr().dataType()
    return (
        execution.name == "foreachPartition"
        or str(result_type.cls().getName()) == "java.lang.String"
    )


def _message(error: Java) -> str:
    return str(error.getMessage() or error.getClass().getName())


def _stack(error: Java) -> str:
    lines = [
        str(error.toString()),
        *(f"\tat {frame.toString()}" for frame in error.getStackTrace()),
    ]
    return "\n".join(lines)[:_LONGEST_STACK]

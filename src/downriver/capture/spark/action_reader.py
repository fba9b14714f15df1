"""Reads a finished query from the JVM: its plan, its sources and sink, and its row counts."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from downriver.capture.spark.actions import PlanLeaf, SparkAction
from downriver.capture.spark.io.sinks import WriteCommand, find_write
from downriver.capture.spark.io.sources import DatasetLocator
from downriver.capture.spark.java import Java, column_ids, elements, operators_in, simple_name
from downriver.capture.spark.plan.details import WIDE, PlanDetailReader, PlanShortener
from downriver.capture.spark.plan_text import PlanText, PlanTextReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.capture.spark.executions import Execution

_LONGEST_STACK = 8_000
# A part of a write of Delta; a frame as an RDD, which is no action yet and has no name in Python.
INTERNAL = frozenset({"deltaTransactionalWrite", "rdd", ""})
_DISTINCT = frozenset({"Aggregate", "Deduplicate", "Distinct"})
_MULTI_INSERT = "multi-commands"  # Spark's name for FROM … INSERT … INSERT …


class ActionReader:
    """Reads the plans of one session. `largest_plan` is a number of operators times columns."""

    def __init__(self, session: Java, gateway: Java, *, largest_plan: int) -> None:
        jvm = gateway.jvm
        self._text = PlanTextReader(gateway)
        self.locator = DatasetLocator(session, self._text)
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
            command = find_write(part, simple_name(part), self.locator)
            actions.append(_new_action(execution, command, error))
            self._fill(actions[-1], command, run, None, ())
        return actions

    def _command(self, execution: Execution, plan: Java) -> WriteCommand:
        """Return the write of an execution, and the plan of its rows."""
        if execution.is_command:
            return find_write(plan, execution.plan, self.locator)
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
        if query is not None and (reads or before):
            action.columns = column_ids((reads or (query,))[-1].output())
        if any(action.wraps(inner) for inner in before):
            return  # the plan and the counts are known already, from the inner command
        if query is not None:
            self._read_plan(action, query, reads, ran)
        for plan in command.inputs:
            action.leaves += self.locator.leaves(plan)
        if command.sources:
            action.leaves.append(PlanLeaf(-1, list(command.sources)))
            action.without_columns = True
        if not action.writes and any(leaf.rewriting for leaf in action.leaves):
            action.leaves, action.plan = [], ""  # a part of another action
        elif executed is not None:
            self._count(action, executed)

    def read_plan(self, query: Java) -> SparkAction:
        """Return a plan as an action without a result, for example the plan of a frame."""
        action = SparkAction(name="", ended_at=0, duration_ns=0, columns=[])
        self._read_plan(action, query)
        return action

    def _read_plan(
        self,
        action: SparkAction,
        query: Java,
        reads: Sequence[Java] = (),
        ran: Java | None = None,
    ) -> None:
        if reads:
            self._read_parts(action, query, reads)
            return
        stored = action.sink is not None and action.sink.location.table is not None
        # Only the analysed plan contains the casts to the column types of a table.
        may_be_optimized = ran is not None and not stored
        text = self._text.plan(
            query,
            merged=True,
            largest=self._largest_plan,
            widest=WIDE if may_be_optimized else None,
        )
        shorter = None
        if not text.tree:  # wide
            shorter = self._shortener.optimized(query, ran)
            text = self._text.plan(
                query if shorter is None else shorter,
                merged=shorter is None,
                largest=self._largest_plan,
            )

        @functools.cache
        def plan() -> Java:
            return self._shortener.merged(query) if shorter is None else shorter

        action.columns = text.columns
        action.leaves = self.locator.leaves_of(text, plan)
        action.tables = self.locator.tables
        action.schema = text.schema
        action.plan, action.unread = text.json, _unread(text)
        if text.json:
            action.details = self._details.read(plan, text.tree, text.json, stored=stored)
        elif not text.error:
            action.too_large = _size(text)

    def _read_parts(self, action: SparkAction, query: Java, reads: Sequence[Java]) -> None:
        """Read a command that consists of plans and clauses, such as MERGE."""
        texts = [self._text.plan(plan, merged=False, largest=-1) for plan in reads]
        action.leaves = [leaf for plan in reads for leaf in self.locator.leaves(plan)]
        action.tables = self.locator.tables
        action.schema = texts[-1].schema
        whole = self._text.plan(query, merged=False, largest=self._largest_plan)
        action.plan, action.unread = whole.json, _unread(whole)
        if not whole.json and not whole.error:
            action.too_large = _size(whole)

    def _count(self, action: SparkAction, executed: Java) -> None:
        written, scanned = self._text.counts(executed)
        if action.sink is not None:
            action.written = written
        action.read = {
            leaf.first_id: scanned[column]
            for leaf in action.leaves
            for column in leaf.columns
            if leaf.locations and column in scanned
        }


def _unread(text: PlanText) -> str:
    return text.error and f"Spark cannot print the plan: {text.error}"


def _size(text: PlanText) -> str:
    return f"{text.operators} operators over {len(text.columns)} columns"


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
    if execution.name in INTERNAL or _is_pivot(execution, analyzed):
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

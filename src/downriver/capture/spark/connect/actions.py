"""Turns requests of Spark Connect into actions, with the plans that the server explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.emit import guarded
from downriver.capture.spark.actions import DatasetLocation, Sink, SparkAction
from downriver.capture.spark.connect.explain import Explained, TextOperator, parse_explained
from downriver.capture.spark.connect.locations import ConnectLocator
from downriver.capture.spark.connect.plan_nodes import PlanTranslation
from downriver.capture.spark.connect.requests import (
    ReadRequest,
    Request,
    StatementRequest,
    WriteRequest,
)
from downriver.capture.spark.connect.statements import StatementWrite, read_statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.spark.connect.client import ConnectServer
    from downriver.capture.spark.connect.driver_data import DriverData


class ConnectActions:
    """Reads the requests of one session."""

    def __init__(self, server: ConnectServer, data: DriverData) -> None:
        self.server = server
        self._locator = ConnectLocator(server)
        self._data = data

    def read(
        self, requests: Sequence[Request], name: str, began: int, ended: int, error: str
    ) -> Iterator[SparkAction]:
        """Yield the actions of a request that has ended."""
        self._locator.forget()  # tables may have changed
        for request in requests:
            actions: list[SparkAction] | None = None
            with guarded("resolving a request of Spark Connect"):
                actions = list(self._actions(request))
            for action in [self._unresolved(request, name)] if actions is None else actions:
                action.name, action.error = name, error
                action.ended_at, action.duration_ns = ended // 1000, ended - began
                yield action

    def _unresolved(self, request: Request, name: str) -> SparkAction:
        """Return a request as a blind spot, for example if the server does not answer."""
        action = SparkAction(name="", ended_at=0, duration_ns=0, columns=[], tables="")
        if isinstance(request, ReadRequest):
            action.unread = "the server did not describe the query: see the log of the job"
        else:
            action.unknown_write = f"the write {name}, which the server did not describe,"
        return action

    def query(self, plan: Any) -> SparkAction:
        """Return a plan as an action without a result, for example the plan of a frame."""
        action = self._new_action()
        self._read_plan(action, plan)
        return action

    def _actions(self, request: Request) -> Iterator[SparkAction]:
        if isinstance(request, StatementRequest):
            yield from self._statement(request)
            return
        action = self._new_action()
        if isinstance(request, ReadRequest):
            self._read_plan(action, request.plan)
            yield action
            return
        place = self._target(request)
        action.unknown_write = request.unknown
        if place is not None:
            action.sink = Sink(place, self._columns_of(request), request.lifecycle)
        if request.plan is not None:
            self._read_plan(action, request.plan)
        if not request.has_columns and action.sink is not None:
            action.plan, action.without_columns = "", True
        yield action

    def _new_action(self) -> SparkAction:
        return SparkAction(
            name="", ended_at=0, duration_ns=0, columns=[], tables=self._locator.tables
        )

    def _columns_of(self, write: WriteRequest) -> list[str] | None:
        """Return the columns of a table that rows are inserted into by position."""
        return self._locator.columns(write.table) or None if write.inserts else None

    def _target(self, write: WriteRequest) -> DatasetLocation | None:
        if write.location is not None:
            return write.location
        if write.path:
            return self._locator.path(write.path, write.format)
        return self._locator.table(write.table) if write.table else None

    def _statement(self, request: StatementRequest) -> Iterator[SparkAction]:
        for write in read_statement(request.query):
            action = self._new_action()
            action.unknown_write = write.unknown
            if write.is_name_only:
                self._change(action, write)
            elif write.target:
                self._fill(action, request, write)
            yield action

    def _change(self, action: SparkAction, write: StatementWrite) -> None:
        location = DatasetLocation(self._locator.table_name(write.target))
        previous = self._locator.table_name(write.previous) if write.previous else None
        action.sink = Sink(location, None, write.lifecycle, previous)

    def _fill(self, action: SparkAction, request: StatementRequest, write: StatementWrite) -> None:
        """Read the target of a statement and its rows, or the tables that it reads."""
        is_path = "/" in write.target
        place = self._locator.path(write.target, "") if is_path else None
        place = place or self._locator.table(write.target)
        columns = list(write.columns)
        if not columns and not (is_path or write.by_name or write.lifecycle == "CREATE"):
            listed = self._locator.columns(write.target)
            columns = [column for column in listed if column not in write.fixed]
        action.sink = Sink(place, columns or None, write.lifecycle)
        if write.rows:
            self._read_plan(action, request.plan(write.rows))
            return
        for read in write.reads:
            before, action.leaves = action.leaves, []
            self._read_plan(action, request.plan(f"TABLE {read}"))
            action.leaves += before
        action.plan, action.without_columns = "", True

    def _read_plan(self, action: SparkAction, plan: Any) -> None:
        explained = Explained(None, [])
        with guarded("explaining a query of Spark Connect"):
            explained = parse_explained(self.server.explain(plan))
        if explained.analyzed is None:
            action.unread = "the server could not explain the plan"
        else:
            self._translate(action, explained.analyzed, explained.physical, plan)

    def _translate(
        self, action: SparkAction, root: TextOperator, physical: Sequence[str], plan: Any
    ) -> None:
        translation = PlanTranslation()
        tree = translation.translate(root)
        action.leaves = self._locator.leaves(translation.leaves, physical, plan)
        self._data.add(plan, translation.leaves)
        if tree is None:
            action.unread = "the text of the plan has an operator that could not be read"
        else:
            action.plan = msgspec.json.encode(tree).decode()

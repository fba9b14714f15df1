"""Rows that a client of Spark Connect collects, and that later queries send back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import FrameRegistry, Origins
from downriver.capture.spark.connect.client import observer
from downriver.capture.spark.connect.locations import messages_in
from downriver.capture.spark.connect.own_calls import own_call
from downriver.capture.spark.driver.collected_values import CollectedValues
from downriver.capture.spark.driver.frames import after_driver
from downriver.capture.spark.driver.patches import patch_once
from downriver.capture.spark.driver.user_code import user_frame, writes_its_data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.spark.connect.plan_nodes import TextLeaf

    PlanOrigins = Callable[[Any, Any], Origins]

_RELATION = "spark.connect.Relation"
_LOCAL = "local_relation"  # also `cached_local_relation`
_PRINTED = "LocalRelation"
_MOST_ROWS = 10_000


class DriverData:
    """The rows of an application that it collected in its driver.

    `plan_origins` returns the origins of the columns of a client's plan.
    """

    def __init__(self, plan_origins: PlanOrigins) -> None:
        self.frames = FrameRegistry()
        self.values = CollectedValues()
        self._plan_origins = plan_origins
        self._written: set[int] = set()  # frames whose data the code contains, by id of their plan
        self._made: dict[int, Callable[[], Origins]] = {}  # origins of frames, by plan
        self._local: dict[int, Callable[[], Origins]] = {}  # by the id of their first column

    def collected(self, frame: Any, result: Any) -> None:
        """Store the rows of a result: those of `collect`, or a pandas frame."""
        client, plan = frame.sparkSession.client, frame._plan.to_proto(frame.sparkSession.client)

        def origins() -> Origins:
            return self._plan_origins(client, plan)

        if hasattr(result, "itertuples"):
            self.frames.mark(result, origins)
            rows = list(result.head(_MOST_ROWS).itertuples(index=False, name=None))
            self.values.add([str(name) for name in result.columns], rows, origins)
        elif result:
            self.values.add(list(getattr(result[0], "__fields__", ())), result, origins)

    def made(self, data: Any, frame: Any, *, is_written: bool) -> None:
        """Record the origins of the rows of a new frame."""
        plan_id = frame._plan._plan_id
        if is_written:
            self._written.add(plan_id)
            return
        before = None
        if self.frames.knows(data):
            before = self.frames.lookup(data)
        elif isinstance(data, (list, tuple)):
            before = self.values.rows_from(data)
        if before is not None:
            with own_call(frame.sparkSession.client):
                columns = list(frame.columns)
            self._made[plan_id] = after_driver(before, data, columns)

    def add(self, plan: Any, leaves: Sequence[TextLeaf]) -> None:
        """Record the origins of the local relations of a plan, unless the code contains them."""
        if plan is None:
            return
        messages = list(messages_in(plan, without=self._is_written))
        if not any(map(_is_local, messages)):
            return
        known = [
            self._made[message.common.plan_id]
            for message in messages
            if _is_relation(message) and message.common.plan_id in self._made
        ]
        local = [leaf.columns[0] for leaf in leaves if leaf.kind == _PRINTED and leaf.columns]
        origins = known[0] if len(known) == len(local) == 1 else dict
        self._local.update(dict.fromkeys(local, origins))

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of local rows, by the id of their first column; empty if unknown."""
        origins = self._local.get(first_id)
        return None if origins is None else origins()

    def _is_written(self, message: Any) -> bool:
        return _is_relation(message) and message.common.plan_id in self._written


def _is_relation(message: Any) -> bool:
    return bool(message.DESCRIPTOR.full_name == _RELATION)


def _is_local(message: Any) -> bool:
    return _is_relation(message) and _LOCAL in str(message.WhichOneof("rel_type"))


def follow_driver_data() -> None:
    """Follow the rows of every frame of Spark Connect in this process."""
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.session import SparkSession

    patch_once(SparkSession, "createDataFrame", _creating)
    for method in ("collect", "tail", "toPandas"):
        patch_once(DataFrame, method, _collecting)


def _creating(create: Callable[..., Any]) -> Callable[..., Any]:
    def created(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        made = create(self, data, *args, **kwargs)
        with guarded("following data of the driver to Spark Connect"):
            active = observer()
            if active is not None:
                is_written = writes_its_data(user_frame(sys._getframe(1)))
                active.data.made(data, made, is_written=is_written)
        return made

    return created


def _collecting(collect: Callable[..., Any]) -> Callable[..., Any]:
    def collected(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = collect(self, *args, **kwargs)
        with guarded("following the rows of a result"):
            active = observer()
            if active is not None:
                active.data.collected(self, result)
        return result

    return collected

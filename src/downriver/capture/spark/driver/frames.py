"""Follows rows that the driver collects from Spark, and that later queries use again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import ROWS, FrameRegistry, Origins, after_pandas_code
from downriver.capture.spark.driver.collected_values import CollectedValues
from downriver.capture.spark.driver.patches import follower_of, patch_once
from downriver.capture.spark.driver.user_code import user_frame, writes_its_data
from downriver.capture.spark.java import column_ids
from downriver.capture.spark.plan.lineage import read_relation
from downriver.columns import DependencyKind, direct, merge_all, source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from downriver.capture.spark.action_reader import ActionReader
    from downriver.capture.spark.java import Java
    from downriver.capture.spark.plan.known_origins import KnownOrigins

_COUNT = "count"
_MOST_FRAMES = 10_000


class DriverFrames:
    """The rows of an application that it collected in its driver."""

    def __init__(
        self,
        reader: ActionReader,
        frames: FrameRegistry,
        derived_origins: Callable[[], KnownOrigins],
    ) -> None:
        self.frames = frames
        self.values = CollectedValues()
        self._reader = reader
        self._known = derived_origins
        self._returned: dict[int, Callable[[], Origins]] = {}
        self._written: set[int] = set()
        patch_once(frame_class(), "toPandas", _marking)
        patch_once(frame_class(), "collect", _collecting)
        patch_once(frame_class(), "tail", _collecting)
        patch_once(frame_class(), _COUNT, _counting)
        patch_once(_session_class(), "createDataFrame", _following)

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of local data, by the id of its first column in a plan."""
        origins = self._returned.get(first_id)
        return None if origins is None else origins()

    def is_written(self, first_id: int) -> bool:
        """Return whether local data is a constant in the code of the job."""
        return first_id in self._written

    def plan_origins(self, execution: Java) -> Origins:
        """Return the origins of the columns of a query."""
        relation = read_relation(self._reader.read_plan(execution.analyzed()), self._known())
        origins = {column.name: column.deps for column in relation.columns}
        return {**origins, ROWS: relation.rows}

    def collected(self, spark_frame: Any, rows: Sequence[Any]) -> None:
        """Store the rows of a result."""
        if rows:
            execution = spark_frame._jdf.queryExecution()
            names = list(getattr(rows[0], "__fields__", ()))
            self.values.add(names, rows, lambda: self.plan_origins(execution))

    def counted(self, spark_frame: Any, number: int) -> None:
        """Store the number of rows of a frame."""
        execution = spark_frame._jdf.queryExecution()
        self.values.add([_COUNT], [(number,)], lambda: self._counted(execution))

    def _counted(self, execution: Java) -> Origins:
        leaves = self._reader.read_plan(execution.analyzed()).leaves
        places = {place.dataset for leaf in leaves for place in leaf.locations}
        tables = merge_all(source((place.namespace, place.name), "*") for place in places)
        return {_COUNT: direct(tables, DependencyKind.AGGREGATION)}

    def left(self, frame: Any, spark_frame: Any) -> None:
        """Mark a pandas frame that was made from a Spark frame."""
        execution = spark_frame._jdf.queryExecution()
        self.frames.mark(frame, lambda: self.plan_origins(execution))
        rows = list(frame.head(_MOST_FRAMES).itertuples(index=False, name=None))
        names = [str(name) for name in frame.columns]
        self.values.add(names, rows, lambda: self.plan_origins(execution))

    def returned(self, data: Any, made: Any, code: FrameType | None) -> None:
        """Keep the origins of a Spark frame that was made from data of the driver."""
        is_written = writes_its_data(code)
        before = None if is_written else self._before(data)
        if before is None and not is_written and hasattr(data, "_jrdd"):
            return  # its plan contains the sources of the RDD
        leaf = made._jdf.queryExecution().analyzed().collectLeaves().head()
        first_id = column_ids(leaf.output())[0]
        if is_written:
            self._written.add(first_id)
        elif before is None:
            self._returned[first_id] = dict
        else:
            self._return(first_id, before, data, made)

    def _before(self, data: Any) -> Callable[[], Origins] | None:
        if self.frames.knows(data):
            return self.frames.lookup(data)
        return self.values.rows_from(data) if isinstance(data, (list, tuple)) else None

    def _return(self, first_id: int, before: Callable[[], Origins], data: Any, made: Any) -> None:
        self._returned[first_id] = after_driver(before, data, list(made.columns))


def after_driver(
    before: Callable[[], Origins], data: Any, names: Sequence[str]
) -> Callable[[], Origins]:
    """Return a function for the origins of a frame that was made from data of the driver.

    `before` returns the origins of the data, `names` are the columns of the frame.
    """
    columns = getattr(data, "columns", None)
    old_names = names if columns is None else [str(name) for name in columns]
    renamed = dict(zip(names, old_names, strict=False))

    def derived_origins() -> Origins:
        origins = after_pandas_code(before(), old_names)
        after = {new: origins.get(old, {}) for new, old in renamed.items()}
        return {**after, ROWS: origins.get(ROWS, {})}

    return derived_origins


def _session_class() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession


def frame_class() -> Any:
    """Return the class of the frames of a classic session."""
    try:
        from pyspark.sql.classic import dataframe
    except ImportError:  # before Spark 4
        from pyspark.sql import DataFrame

        return DataFrame
    return dataframe.DataFrame


def _frames_of(spark_frame: Any) -> DriverFrames | None:
    follower = follower_of(spark_frame.sparkSession.sparkContext)
    return None if follower is None else follower.rows


def _marking(to_pandas: Callable[..., Any]) -> Callable[..., Any]:
    def marked(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = to_pandas(self, *args, **kwargs)
        with guarded("following a Spark frame to pandas"):
            if (rows := _frames_of(self)) is not None:
                rows.left(frame, self)
        return frame

    return marked


def _collecting(collect: Callable[..., Any]) -> Callable[..., Any]:
    def collected(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = collect(self, *args, **kwargs)
        with guarded("following the rows of a result"):
            if (rows := _frames_of(self)) is not None:
                rows.collected(self, result)
        return result

    return collected


def _counting(count: Callable[..., Any]) -> Callable[..., Any]:
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        number = count(self, *args, **kwargs)
        with guarded("following the number of rows"):
            if (rows := _frames_of(self)) is not None:
                rows.counted(self, number)
        return number

    return counted


def _following(create: Callable[..., Any]) -> Callable[..., Any]:
    def created(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        made = create(self, data, *args, **kwargs)
        with guarded("following data of the driver to Spark"):
            follower = follower_of(self.sparkContext)
            if follower is not None:
                follower.rows.returned(data, made, user_frame(sys._getframe(1)))
        return made

    return created

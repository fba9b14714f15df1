"""Between Spark and pandas: frames that leave a session are marked, and known when they return."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frames import ROWS, Frames, Origins, made_in_code
from downriver.capture.spark.java import ids
from downriver.capture.spark.lineage import read_relation

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.spark.harvester import Harvester
    from downriver.capture.spark.java import Java
    from downriver.capture.spark.sources import Carried

_BRIDGE = "_downriver_bridge"


class Bridge:
    """Follows the frames of one session."""

    def __init__(self, spark: Any, harvester: Harvester, frames: Frames, carried: Carried) -> None:
        self.frames = frames
        self._carried = carried
        self._harvester = harvester
        self._returned: dict[int, Callable[[], Origins]] = {}
        self._spark = spark
        self._create = spark.createDataFrame
        spark.createDataFrame = self._following(self._create)
        setattr(spark, _BRIDGE, weakref.ref(self))
        _watch_to_pandas()

    def leave(self) -> None:
        """Follow the session's frames no longer."""
        self._spark.createDataFrame = self._create
        setattr(self._spark, _BRIDGE, _nobody)

    def origins_of(self, first_id: int) -> Origins | None:
        """Return where local data comes from, by the id of its first column in a plan."""
        found = self._returned.get(first_id)
        return None if found is None else found()

    def left(self, frame: Any, spark_frame: Any) -> None:
        """Mark a pandas frame that was made from a Spark one."""
        execution = spark_frame._jdf.queryExecution()
        self.frames.mark(frame, lambda: self._plan_origins(execution))

    def _plan_origins(self, execution: Java) -> Origins:
        relation = read_relation(self._harvester.read_plan(execution.analyzed()), self._carried)
        found = {column.name: column.deps for column in relation.columns}
        return {**found, ROWS: relation.rows}

    def _following(self, create: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(create)
        def created(data: Any, *args: Any, **kwargs: Any) -> Any:
            made = create(data, *args, **kwargs)
            with guarded("following a pandas frame into Spark"):
                if self.frames.knows(data):
                    self._return(data, made)
            return made

        return created

    def _return(self, frame: Any, made: Any) -> None:
        names = [str(name) for name in frame.columns]
        renamed = dict(zip(made.columns, names, strict=False))
        leaf = made._jdf.queryExecution().analyzed().collectLeaves().head()
        origins = self.frames.asking(frame)

        def known() -> Origins:
            before = made_in_code(origins(), names)
            after = {new: before.get(old, {}) for new, old in renamed.items()}
            return {**after, ROWS: before.get(ROWS, {})}

        self._returned[ids(leaf.output())[0]] = known


def _nobody() -> None:
    return None


def _watch_to_pandas() -> None:
    """Have `toPandas` mark what it returns, where the session is tracked."""
    kind = _frame_class()
    if not hasattr(kind.toPandas, _BRIDGE):
        kind.toPandas = _marking(kind.toPandas)


def _frame_class() -> Any:
    try:
        from pyspark.sql.classic import dataframe
    except ImportError:  # before Spark 4
        from pyspark.sql import DataFrame

        return DataFrame
    return dataframe.DataFrame


def _marking(to_pandas: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(to_pandas)
    def marked(self: Any) -> Any:
        frame = to_pandas(self)
        with guarded("following a Spark frame into pandas"):
            found = getattr(self.sparkSession, _BRIDGE, _nobody)()
            if found is not None:
                found.left(frame, self)
        return frame

    setattr(marked, _BRIDGE, True)
    return marked

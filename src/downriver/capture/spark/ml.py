"""Follows a session's rows to pandas and back, and registers the models fitted on them."""

from __future__ import annotations

import functools
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import (
    ROWS,
    FrameRegistry,
    Origins,
    after_pandas_code,
    render_frame_write,
)
from downriver.capture.mlflow import find_logged_runs
from downriver.capture.spark.io.paths import short_name
from downriver.capture.spark.java import column_ids
from downriver.capture.spark.plan.lineage import read_relation
from downriver.capture.trained_models import (
    ModelTraining,
    TrackedModel,
    feature_names,
    read_training,
    render_training,
)
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from downriver.capture.spark.action_reader import ActionReader
    from downriver.capture.spark.java import Java
    from downriver.capture.spark.plan.lineage import FindOrigins
    from downriver.capture.spark.publisher import ActionPublisher
    from downriver.model.ids import DatasetId

_BRIDGE = "_downriver_bridge"


class PandasBridge:
    """Follows the frames of an application from Spark to pandas and back."""

    def __init__(
        self,
        context: Any,
        reader: ActionReader,
        frames: FrameRegistry,
        find_origins: FindOrigins,
    ) -> None:
        self.frames = frames
        self._find_origins = find_origins
        self._reader = reader
        self._returned: dict[int, Callable[[], Origins]] = {}
        self._context = context
        self._before = getattr(context, _BRIDGE, _no_bridge)
        setattr(context, _BRIDGE, weakref.ref(self))
        _patch_once(_frame_class(), "toPandas", _marking)
        _patch_once(_session_class(), "createDataFrame", _following)

    def leave(self) -> None:
        """Stop following the application's frames."""
        setattr(self._context, _BRIDGE, self._before)

    def origins_of(self, first_id: int) -> Origins | None:
        """Return the origins of local data, by the id of its first column in a plan."""
        found = self._returned.get(first_id)
        return None if found is None else found()

    def left(self, frame: Any, spark_frame: Any) -> None:
        """Mark a pandas frame that was made from a Spark frame."""
        execution = spark_frame._jdf.queryExecution()
        self.frames.mark(frame, lambda: self._plan_origins(execution))

    def _plan_origins(self, execution: Java) -> Origins:
        relation = read_relation(self._reader.read_plan(execution.analyzed()), self._find_origins)
        found = {column.name: column.deps for column in relation.columns}
        return {**found, ROWS: relation.rows}

    def returned(self, data: Any, made: Any) -> None:
        """Keep the origins of a Spark frame that was made from a pandas frame."""
        if self.frames.knows(data):
            self._return(data, made)

    def _return(self, frame: Any, made: Any) -> None:
        names = [str(name) for name in frame.columns]
        renamed = dict(zip(made.columns, names, strict=False))
        leaf = made._jdf.queryExecution().analyzed().collectLeaves().head()
        origins = self.frames.lookup(frame)

        def known() -> Origins:
            before = after_pandas_code(origins(), names)
            after = {new: before.get(old, {}) for new, old in renamed.items()}
            return {**after, ROWS: before.get(ROWS, {})}

        self._returned[column_ids(leaf.output())[0]] = known


def _no_bridge() -> None:
    return None


def _patch_once(kind: Any, method: str, wrap: Callable[[Any], Any]) -> None:
    """Wrap a method of a PySpark class, for all sessions of the process."""
    plain = getattr(kind, method)
    if not hasattr(plain, _BRIDGE):
        wrapped = wrap(plain)
        setattr(wrapped, _BRIDGE, True)
        setattr(kind, method, wrapped)


def _bridge_of(session: Any) -> PandasBridge | None:
    found: PandasBridge | None = getattr(session.sparkContext, _BRIDGE, _no_bridge)()
    return found


def _session_class() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession


def _frame_class() -> Any:
    try:
        from pyspark.sql.classic import dataframe
    except ImportError:  # before Spark 4
        from pyspark.sql import DataFrame

        return DataFrame
    return dataframe.DataFrame


def _marking(to_pandas: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(to_pandas)
    def marked(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = to_pandas(self, *args, **kwargs)
        with guarded("following a Spark frame to pandas"):
            bridge = _bridge_of(self.sparkSession)
            if bridge is not None:
                bridge.left(frame, self)
        return frame

    return marked


def _following(create: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(create)
    def created(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        made = create(self, data, *args, **kwargs)
        with guarded("following a pandas frame to Spark"):
            bridge = _bridge_of(self)
            if bridge is not None:
                bridge.returned(data, made)
        return made

    return created


class ModelRegistration:
    """Registers models that were fitted on a session's frames, and files written by pandas."""

    def __init__(self, frames: FrameRegistry, capture: ActionPublisher) -> None:
        self._frames = frames
        self._capture = capture
        self._began_ms = time.time_ns() // 1_000_000
        self._logged: set[str] = set()

    def model(
        self,
        name: str,
        estimator: Any,
        features: Any,
        target: Any,
        *,
        path: str | None,
        metrics: Mapping[str, float] | None,
    ) -> TrackedModel:
        """Register a fitted model."""
        with guarded("registering a model"):
            file = None if path is None else _name_file(path)
            training = read_training(
                self._frames, name, estimator, features, target, metrics=metrics, file=file
            )
            self._emit(training)
        return TrackedModel(name, feature_names(estimator, features), self._frames)

    def wrote(self, frame: Any, path: str) -> None:
        """Register a file that was written by pandas."""
        with guarded("registering a pandas write"):
            file = _name_file(path)
            names = [str(column) for column in frame.columns]
            origins = after_pandas_code(self._frames.origins(frame), names)
            part = self._capture.context.within(short_name(file))
            own = part.own
            self._capture.emit(render_frame_write(file, origins, own.job, own.run, part.facets()))

    def take_logged(self) -> None:
        """Register the models that MLflow autologged on frames of this session."""
        with guarded("reading MLflow's runs"):
            for run in find_logged_runs(self._began_ms):
                origins = self._frames.latest_with(run.features)
                if origins is None or run.run in self._logged:
                    continue
                self._logged.add(run.run)
                features = after_pandas_code(origins, run.features)
                self._emit(
                    ModelTraining(run.model, features, {}, run.estimator, run.metrics, run=run.run)
                )

    def _emit(self, training: ModelTraining) -> None:
        part = self._capture.context.within(training.name)
        events = render_training(training, part.own.job, part.own.run, part.facets())
        self._capture.emit(*events)


def _name_file(path: str) -> DatasetId:
    return dataset_at(path if "://" in path else str(Path(path).absolute()))

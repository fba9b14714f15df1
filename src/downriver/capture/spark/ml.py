"""Registers models that were fitted on pandas frames of a session, and files of pandas."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import (
    FrameRegistry,
    after_pandas_code,
    render_frame_write,
)
from downriver.capture.mlflow import find_logged_runs
from downriver.capture.spark.io.paths import short_name
from downriver.capture.trained_models import (
    ModelTraining,
    TrackedModel,
    feature_names,
    read_training,
    render_training,
)
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.spark.publisher import ActionPublisher
    from downriver.model.ids import DatasetId


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

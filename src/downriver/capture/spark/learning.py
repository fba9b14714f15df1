"""What a session's rows go on to in pandas and scikit-learn."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from downriver.capture.emit import guarded
from downriver.capture.frames import made_in_code, render_frame_write
from downriver.capture.mlflow import find_logged_runs
from downriver.capture.models import (
    TrackedModel,
    Training,
    feature_names,
    read_training,
    render_training,
)
from downriver.capture.spark.naming import name_path, short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.frames import Frames
    from downriver.capture.spark.capture import Capture
    from downriver.model.ids import DatasetId


class Learning:
    """Registers models fitted on a session's frames, and files that pandas wrote."""

    def __init__(self, frames: Frames, capture: Capture) -> None:
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
        """Register a model that was fitted."""
        with guarded("registering a model"):
            file = None if path is None else _name_file(path)
            training = read_training(
                self._frames, name, estimator, features, target, metrics=metrics, file=file
            )
            self._emit(training)
        return TrackedModel(name, feature_names(estimator, features), self._frames)

    def wrote(self, frame: Any, path: str) -> None:
        """Register a file that pandas wrote."""
        with guarded("registering a pandas write"):
            file = _name_file(path)
            names = [str(column) for column in frame.columns]
            origins = made_in_code(self._frames.origins(frame), names)
            part = self._capture.context.within(short_name(file))
            own = part.own
            self._capture.emit(render_frame_write(file, origins, own.job, own.run, part.facets()))

    def take_logged(self) -> None:
        """Register the models that MLflow logged by itself, fitted on frames from here."""
        with guarded("reading MLflow's runs"):
            for run in find_logged_runs(self._began_ms):
                origins = self._frames.latest_with(run.features)
                if origins is None or run.run in self._logged:
                    continue
                self._logged.add(run.run)
                features = made_in_code(origins, run.features)
                self._emit(
                    Training(run.model, features, {}, run.estimator, run.metrics, run=run.run)
                )

    def _emit(self, training: Training) -> None:
        part = self._capture.context.within(training.name)
        events = render_training(training, part.own.job, part.own.run, part.facets())
        self._capture.emit(*events)


def _name_file(path: str) -> DatasetId:
    return name_path(path if "://" in path else str(Path(path).absolute()))

"""Trained models as datasets: features come from columns, predictions from the model."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.frame_origins import ROWS, after_pandas_code
from downriver.columns.dependencies import Certainty, DependencyKind, Deps, direct, merge
from downriver.columns.facet import render_column_lineage
from downriver.model.ids import DatasetId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.base import Facets, render_facet
from downriver.openlineage.facets.column_lineage import COLUMN_LINEAGE
from downriver.openlineage.facets.dataset import (
    DATASET_TYPE,
    SCHEMA,
    SYMLINKS,
    SchemaField,
    render_dataset_type,
    render_schema,
    render_symlinks,
)
from downriver.openlineage.facets.job import JOB_TYPE, render_job_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

    from downriver.capture.frame_origins import FrameRegistry, Origins
    from downriver.model.ids import JobId
    from downriver.openlineage.wire import Event

NAMESPACE = "model"
PREDICTION = "prediction"


class ModelTraining(NamedTuple):
    """How a model was trained."""

    name: str
    features: Origins
    target: Deps
    estimator: str = ""
    metrics: Mapping[str, float] = {}
    file: DatasetId | None = None
    run: str = ""  # id of a run in another tracker, such as MLflow


class TrackedModel:
    """A registered model; it marks the frames that contain its predictions."""

    def __init__(self, name: str, features: Sequence[str], frames: FrameRegistry) -> None:
        self.name = name
        self._features = tuple(features)
        self._frames = frames

    def predicted(self, frame: Any, *columns: str, features: Any = None) -> None:
        """Declare that columns of a frame are predictions of this model from `features`."""
        scored = self._frames.origins(frame if features is None else features)
        kept = self._frames.origins(frame)
        prediction: Deps = {
            (
                (NAMESPACE, self.name),
                PREDICTION,
                DependencyKind.TRANSFORMATION,
                False,
            ): Certainty.EXACT
        }
        for feature in self._features:
            merge(prediction, direct(scored.get(feature, {}), DependencyKind.TRANSFORMATION))
        origins = {**kept, **dict.fromkeys(columns, prediction)}
        self._frames.mark(frame, lambda: origins)


def read_training(
    frames: FrameRegistry,
    name: str,
    estimator: Any,
    features: Any,
    target: Any,
    *,
    metrics: Mapping[str, float] | None,
    file: DatasetId | None,
) -> ModelTraining:
    """Return the training of a model, from the frames it was fitted on."""
    names = feature_names(estimator, features)
    origins = frames.origins(features)
    return ModelTraining(
        name,
        after_pandas_code(origins, names),
        _target_deps(frames, features, target),
        type(estimator).__qualname__ if estimator is not None else "",
        dict(metrics or {}),
        file,
    )


def feature_names(estimator: Any, features: Any) -> list[str]:
    """Return the names of the features that a model was fitted on."""
    columns = getattr(features, "columns", None)
    if columns is None:
        columns = getattr(estimator, "feature_names_in_", None)
    if columns is None:
        columns = features if isinstance(features, (list, tuple)) else []
    return [str(column) for column in columns]


def render_training(
    training: ModelTraining,
    job: JobId,
    run: str,
    run_facets: Facets,
    *,
    started_at: int | None = None,
) -> list[Event]:
    """Return the events of a training; its output is the model."""
    now = time.time_ns() // 1000
    sources = {
        key[0]: None for deps in (*training.features.values(), training.target) for key in deps
    }
    inputs = [dataset(DatasetId(table[0], table[1])) for table in sources]
    model = DatasetId(NAMESPACE, training.name)
    output = dataset(training.file or model, _model_facets(training))
    facets: Facets = {JOB_TYPE: render_job_type("PYTHON", "TRAINING")}
    end = {**run_facets, "downriver_model": _training_facet(training)}
    return [
        run_event(
            job, run, "START", started_at or now, inputs=[], outputs=[], facets=facets,
            run_facets=run_facets,
        ),
        run_event(
            job, run, "COMPLETE", now, inputs=inputs, outputs=[output], facets=facets,
            run_facets=end,
        ),
    ]  # fmt: skip


def _target_deps(frames: FrameRegistry, features: Any, target: Any) -> Deps:
    if isinstance(target, str):
        return frames.origins(features).get(target, {})
    return frames.origins(target).get(str(getattr(target, "name", "")), {})


def _model_facets(training: ModelTraining) -> Facets:
    learned: Deps = {}
    names = [name for name in training.features if name != ROWS]
    for name in names:
        merge(learned, direct(training.features[name], DependencyKind.TRANSFORMATION))
    merge(learned, direct(training.target, DependencyKind.TRANSFORMATION))
    fields = [SchemaField(name, "feature") for name in names]
    facets: Facets = {
        SCHEMA: render_schema([*fields, SchemaField(PREDICTION, PREDICTION)]),
        COLUMN_LINEAGE: render_column_lineage(
            {**{name: training.features[name] for name in names}, PREDICTION: learned},
            training.features.get(ROWS, {}),
        ),
        DATASET_TYPE: render_dataset_type("MODEL"),
    }
    if training.file is not None:
        # The file is the dataset; the model's name is its alias.
        facets[SYMLINKS] = render_symlinks([DatasetId(NAMESPACE, training.name)], "MODEL")
    return facets


def _training_facet(training: ModelTraining) -> msgspec.Raw:
    library = sys.modules.get("sklearn")
    return render_facet(
        "DownriverModelRunFacet",
        "1-0-0",
        model=training.name,
        estimator=training.estimator,
        metrics=dict(training.metrics),
        scikitLearn=str(getattr(library, "__version__", "")),
        trackedBy=training.run,
    )

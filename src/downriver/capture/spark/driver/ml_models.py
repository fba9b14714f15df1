"""Models of Spark's own ML library: their training data, location and predictions."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.emit import guarded
from downriver.capture.frame_origins import Origins
from downriver.capture.import_watcher import ImportWatcher
from downriver.capture.spark.actions import DatasetLocation, PlanLeaf, SparkAction
from downriver.capture.spark.driver.patches import OutermostCall, follower_of, patch_once
from downriver.capture.spark.driver.user_code import is_library
from downriver.capture.spark.io.paths import short_name
from downriver.capture.spark.java import column_ids, element_texts
from downriver.capture.trained_models import PREDICTION, ModelTraining, render_training
from downriver.columns import NOTHING, DependencyKind, Deps, direct, merge_all, source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.spark.action_reader import ActionReader
    from downriver.capture.spark.java import Java
    from downriver.capture.spark.publisher import ActionPublisher
    from downriver.model.ids import DatasetId

_MODULES = ("pyspark.ml.base", "pyspark.ml.util")
_TARGETS = ("labelCol", "ratingCol")
_INSTANCE = "_downriver_instance"


class FittedOn(NamedTuple):
    """The frame that a model was fitted on, and the columns that the estimator used of it."""

    execution: Java
    features: tuple[str, ...]
    target: str | None


class SparkModels:
    """The models of an application that were fitted, loaded or saved."""

    def __init__(
        self,
        capture: ActionPublisher,
        reader: ActionReader,
        plan_origins: Callable[[Java], Origins],
        name_path: Callable[[str], DatasetId],
    ) -> None:
        self._capture = capture
        self._reader = reader
        self._plan_origins = plan_origins
        self._name_path = name_path
        self._fitted: dict[str, FittedOn] = {}  # by the uid of the model
        self._known: dict[str, Origins] = {}
        self._places: dict[str, DatasetId] = {}
        self._predicted: dict[int, str] = {}  # by the id of a column
        self._folders: dict[DatasetId, None] = {}
        for module in _MODULES:
            if module in sys.modules:
                _patch(module)
        _watch()

    def learned(self, column: int) -> Deps:
        """Return the dependencies of a column through the model that computed it."""
        uid = self._predicted.get(column)
        if uid is None:
            return NOTHING
        place = self._places.get(uid)
        model = NOTHING if place is None else source((place.namespace, place.name), PREDICTION)
        used = merge_all([*self._training(uid).values(), model])
        return direct(used, DependencyKind.TRANSFORMATION)

    def fold(self, action: SparkAction) -> SparkAction | None:
        """Return an action with each model folder as one dataset; None for a part of a model."""
        if not self._folders:
            return action
        if action.sink is not None and self._folder_of(action.sink.location.dataset) is not None:
            return None
        within = [
            self._folder_of(place.dataset) for leaf in action.leaves for place in leaf.locations
        ]
        return None if within and None not in within and not action.writes else action

    def _folder_of(self, dataset: DatasetId) -> DatasetId | None:
        for folder in self._folders:
            if dataset.namespace == folder.namespace and (
                dataset.name == folder.name or dataset.name.startswith(f"{folder.name}/")
            ):
                return folder
        return None

    def fitted(self, estimator: Any, model: Any, frame: Any) -> None:
        """Store the frame that a model was fitted on."""
        columns = set(frame.columns)
        execution = frame._jdf.queryExecution()
        target = next((name for name, kind in _columns(estimator) if kind in _TARGETS), None)
        used = [name for name, kind in _columns(estimator) if kind not in _TARGETS]
        features = tuple(name for name in dict.fromkeys(used) if name in columns)
        for each in model if isinstance(model, list) else [model]:
            self._fitted[str(each.uid)] = FittedOn(execution, features, target)

    def read(self, frame: Any, name: str) -> None:
        """Publish that a model was fitted on a frame: most algorithms read it through RDDs."""
        execution = frame._jdf.queryExecution()

        def publish() -> None:
            action = self._reader.read_plan(execution.analyzed())
            action.name = name
            action.ended_at = time.time_ns() // 1000
            self._capture.publish(action)

        self._capture.later(publish)

    def transformed(self, model: Any, before: Any, after: Any) -> None:
        """Store the columns that a model added to a frame."""
        uid = str(model.uid)
        if uid not in self._fitted and uid not in self._places:
            return
        output = after._jdf.queryExecution().analyzed().output()
        names = [text.partition("#")[0] for text in element_texts(output)]
        old = set(before.columns)
        for name, column in zip(names, column_ids(output), strict=False):
            if name not in old:  # a stage reports its columns before its pipeline
                self._predicted.setdefault(column, uid)

    def enter(self, path: str) -> None:
        """Treat the folder of a model as one dataset from now on."""
        self._capture.later(lambda: self._folders.setdefault(self._name_path(path)))

    def saved(self, instance: Any, path: str) -> None:
        """Publish a model that was saved."""
        uids = [str(part.uid) for part in _parts(instance)]
        if not any(uid in self._fitted or uid in self._places for uid in uids):
            return
        kind = type(instance).__name__

        def publish() -> None:
            place = self._name_path(path)
            features, target = self._used_by(uids)
            self._places.update(dict.fromkeys(uids, place))
            part = self._capture.context.within(short_name(place))
            training = ModelTraining(short_name(place), features, target, kind, file=place)
            self._capture.emit(
                *render_training(training, part.own.job, part.own.run, part.facets())
            )

        self._capture.later(publish)

    def _used_by(self, uids: list[str]) -> tuple[Origins, Deps]:
        """Return the origins of the features and of the target of a model and its stages."""
        features: dict[str, Deps] = {}
        targets: list[Deps] = []
        for uid in uids:
            fitted, origins = self._fitted.get(uid), self._training(uid)
            for name, deps in origins.items():
                if fitted is not None and name == fitted.target:
                    targets.append(deps)
                else:
                    features[name] = merge_all([features.get(name, NOTHING), deps])
        return features, merge_all(targets)

    def _training(self, uid: str) -> Origins:
        """Return the origins of the columns that a model was fitted on."""
        fitted = self._fitted.get(uid)
        if fitted is None:
            return {}
        if uid not in self._known:
            origins = self._plan_origins(fitted.execution)
            names = [*fitted.features, *([fitted.target] if fitted.target else [])]
            self._known[uid] = {name: origins.get(name, NOTHING) for name in names}
        return self._known[uid]

    def loaded(self, instance: Any, path: str) -> None:
        """Publish that a saved model was read."""
        uids = [str(part.uid) for part in _parts(instance)]

        def publish() -> None:
            place = self._name_path(path)
            self._places.update(dict.fromkeys(uids, place))
            leaf = PlanLeaf(-1, [DatasetLocation(place, None, "model")])
            now = time.time_ns() // 1000
            action = SparkAction("load", now, 0, [], leaves=[leaf])
            self._capture.publish(action, is_folded=True)

        self._capture.later(publish)


def _columns(params: Any) -> Iterator[tuple[str, str]]:
    """Yield the columns that the parameters of a stage name, with the name of the parameter."""
    for param in params.params:
        if not param.name.endswith(("Col", "Cols")) or not params.isDefined(param):
            continue
        value = params.getOrDefault(param)
        for name in [value] if isinstance(value, str) else value or ():
            yield str(name), param.name


def _parts(instance: Any) -> Iterator[Any]:
    """Yield a model, its stages, and the best model of a search."""
    yield instance
    inner = [*(getattr(instance, "stages", None) or ()), getattr(instance, "bestModel", None)]
    for part in inner:
        if hasattr(part, "uid"):
            yield from _parts(part)


def _watch() -> None:
    """Patch the library when a job imports it, because few jobs do."""
    missing = [name for name in _MODULES if name not in sys.modules]
    if missing and not any(isinstance(each, _Watcher) for each in sys.meta_path):
        _Watcher(missing, _patch).start()


class _Watcher(ImportWatcher):
    """Waits for the import of Spark's ML library."""


def _patch(module: str) -> None:
    with guarded("following Spark's ML library"):
        loaded = sys.modules[module]
        if module == "pyspark.ml.base":
            patch_once(loaded.Estimator, "fit", _fitting)
            patch_once(loaded.Transformer, "transform", _transforming)
        else:
            patch_once(loaded.JavaMLWriter, "__init__", _remembering)
            patch_once(loaded.JavaMLWriter, "save", _saving)
            patch_once(loaded.MLWriter, "save", _saving)
            patch_once(loaded.JavaMLReader, "load", _loading)
            plain = loaded.MLReadable.__dict__["load"].__func__
            loaded.MLReadable.load = classmethod(_loading(plain))


def _models() -> SparkModels | None:
    from pyspark import SparkContext

    follower = follower_of(SparkContext._active_spark_context)
    return None if follower is None else follower.models


def _fitting(fit: Callable[..., Any]) -> Callable[..., Any]:
    def fitted(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        model = fit(self, dataset, *args, **kwargs)
        with guarded("following a model of Spark"):
            if (models := _models()) is not None:
                models.fitted(self, model, dataset)
                if not is_library(sys._getframe(1)):  # a stage of a pipeline, a fold of a search
                    models.read(dataset, f"fit.{type(self).__name__}")
        return model

    return fitted


def _transforming(transform: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        frame = transform(self, dataset, *args, **kwargs)
        with guarded("following predictions of Spark"):
            if (models := _models()) is not None and hasattr(self, "uid"):
                models.transformed(self, dataset, frame)
        return frame

    return transformed


def _remembering(init: Callable[..., Any]) -> Callable[..., Any]:
    def remembered(self: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        init(self, instance, *args, **kwargs)
        setattr(self, _INSTANCE, instance)

    return remembered


def _saving(save: Callable[..., Any]) -> Callable[..., Any]:
    def saved(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        with OutermostCall("model file") as call:
            models = _models() if call.is_outermost else None
            instance = getattr(self, _INSTANCE, None) or getattr(self, "instance", None)
            with guarded("following a saved model of Spark"):
                if models is not None:
                    models.enter(path)
            result = save(self, path, *args, **kwargs)
            with guarded("following a saved model of Spark"):
                if models is not None and instance is not None:
                    models.saved(instance, path)
            return result

    return saved


def _loading(load: Callable[..., Any]) -> Callable[..., Any]:
    def loaded(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        with OutermostCall("model file") as call:
            models = _models() if call.is_outermost else None
            with guarded("following a loaded model of Spark"):
                if models is not None:
                    models.enter(path)
            instance = load(self, path, *args, **kwargs)
            with guarded("following a loaded model of Spark"):
                if models is not None:
                    models.loaded(instance, path)
            return instance

    return loaded

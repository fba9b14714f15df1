"""Runs, datasets, artifacts and model versions in an MLflow tracking store."""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from downriver.errors import InvalidRequestError, MissingDependencyError, ServerUnreachableError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NAMESPACE = "mlflow"
LINEAGE_TAG = "lineage_id"
OWN_TAG = "downriver.lineage_id"
_PAGE = 500
_MOST_ARTIFACTS = 200
_LARGEST_SCHEMA = 1_000_000  # bytes of a feature schema
_MODEL_FILES = (".pkl", ".pickle", ".joblib", ".onnx", ".pt", ".pth", ".h5", ".keras", ".cbm")
# Parameters with the version of a run's training data, and parameters with its dataset.
_VERSION_PARAMETERS = ("training_data_version", "dataset_version", "data_version")
_DATASET_PARAMETERS = ("training_data", "training_dataset", "dataset", "train_data")


class UsedDataset(NamedTuple):
    """A dataset that a run read."""

    dataset: DatasetId
    name: str  # as the run logged it
    version: str
    columns: tuple[tuple[str, str], ...] = ()
    context: str = ""
    rows: int | None = None
    declared: bool = False  # only a parameter names it


class TrackedVersion(NamedTuple):
    """A version of a registered model, or a model that a run logged without registering it."""

    name: str
    version: str = ""
    labels: tuple[str, ...] = ()  # aliases, and the stage
    location: str = ""


class TrackedRun(NamedTuple):
    """A run of an MLflow experiment; times in ms since the epoch."""

    id: str
    experiment: str
    name: str
    status: str
    started_at: int
    ended_at: int | None
    user: str
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    datasets: tuple[UsedDataset, ...]
    models: tuple[TrackedVersion, ...]
    features: tuple[str, ...]
    unread: tuple[str, ...]  # artifacts that could not be read
    fingerprint: str  # changes whenever the run or its model versions change

    @property
    def lineage_id(self) -> str:
        """The lineage id in the tags of the run."""
        return self.tags.get(LINEAGE_TAG, "")


class TrackingStore:
    """A tracking store and its model registry, by URI; without one, those that are configured."""

    def __init__(self, uri: str | None = None) -> None:
        try:
            import mlflow
            from mlflow.exceptions import MlflowException
        except ImportError as exc:
            raise MissingDependencyError("mlflow-skinny", "mlflow") from exc
        path = (uri or "").removeprefix("sqlite:///")
        if path != (uri or "") and not Path(path).exists():  # MLflow would create it
            raise InvalidRequestError("uri", f"{path}: no such file")
        self._error: type[Exception] = MlflowException
        self.uri = _shown(uri or mlflow.get_tracking_uri())
        try:
            self._client = mlflow.MlflowClient(tracking_uri=uri, registry_uri=uri)
        except (MlflowException, ImportError, OSError) as exc:
            raise InvalidRequestError("uri", f"{self.uri}: {_first_line(exc)}") from exc

    def runs(
        self, experiment: str | None = None, known: Mapping[str, str] | None = None
    ) -> Iterator[TrackedRun]:
        """Yield the runs that ended, the oldest first, without those in `known`.

        `known` has the fingerprints of runs by their id.
        """
        try:
            yield from self._runs(experiment, known or {})
        except self._error as exc:
            raise ServerUnreachableError(self.uri, _first_line(exc)) from exc

    def run(self, run_id: str) -> TrackedRun:
        """Return one run."""
        mlflow_run = self._client.get_run(run_id)
        experiment = self._client.get_experiment(mlflow_run.info.experiment_id)
        return self._read(mlflow_run, experiment.name, self._versions_of(run_id))

    def write_tag(self, run_id: str, lineage_id: str, *, has_lineage_tag: bool) -> None:
        """Write the lineage id of a run into its tags. A tag that a user set is not changed."""
        self._client.set_tag(run_id, OWN_TAG, lineage_id)
        if not has_lineage_tag:
            self._client.set_tag(run_id, LINEAGE_TAG, lineage_id)

    def _runs(self, name: str | None, known: Mapping[str, str]) -> Iterator[TrackedRun]:
        experiments = {e.experiment_id: e.name for e in self._experiments()}
        if name is not None:
            experiments = {key: value for key, value in experiments.items() if value == name}
            if not experiments:
                raise InvalidRequestError("experiment", f"{self.uri} has no experiment {name!r}")
        versions: dict[str, list[Any]] = {}
        for version in self._model_versions():
            versions.setdefault(version.run_id, []).append(version)
        token = None
        while experiments:
            page = self._client.search_runs(
                list(experiments),
                order_by=["attributes.start_time ASC"],
                max_results=_PAGE,
                page_token=token,
            )
            for run in page:
                of_run = versions.get(run.info.run_id, [])
                done = run.info.status not in ("RUNNING", "SCHEDULED")
                if done and known.get(run.info.run_id) != _fingerprint(run, of_run):
                    yield self._read(run, experiments[run.info.experiment_id], of_run)
            token = page.token
            if not token:
                return

    def _experiments(self) -> Iterator[Any]:
        token = None
        while True:
            page = self._client.search_experiments(max_results=_PAGE, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _model_versions(self) -> Iterator[Any]:
        token = None
        while True:
            page = self._client.search_model_versions(max_results=_PAGE, page_token=token)
            for version in page:
                # Searches leave out the aliases.
                yield self._client.get_model_version(version.name, str(version.version))
            token = page.token
            if not token:
                return

    def _versions_of(self, run_id: str) -> list[Any]:
        versions = self._client.search_model_versions(f"run_id = '{run_id}'")
        return [self._client.get_model_version(v.name, str(v.version)) for v in versions]

    def _read(self, run: Any, experiment: str, versions: Sequence[Any]) -> TrackedRun:
        info, data = run.info, run.data
        artifacts, unread = self._artifacts(info.run_id)
        features, failed = self._features(info.run_id, artifacts)
        datasets = _datasets(run, experiment)
        return TrackedRun(
            id=info.run_id,
            experiment=experiment,
            name=info.run_name or "",
            status=info.status,
            started_at=info.start_time,
            ended_at=info.end_time,
            user=info.user_id or "",
            params=dict(data.params),
            metrics=dict(data.metrics),
            tags={k: v for k, v in data.tags.items() if not k.startswith("mlflow.log-model")},
            datasets=datasets,
            models=_models(run, experiment, versions, artifacts),
            features=features or _logged_features(datasets),
            unread=(*unread, *failed),
            fingerprint=_fingerprint(run, versions),
        )

    def _artifacts(self, run_id: str) -> tuple[list[str], list[str]]:
        try:
            artifacts = self._client.list_artifacts(run_id)
        except (self._error, OSError) as exc:
            return [], [f"artifacts: {_first_line(exc)}"]
        files = [item for item in artifacts if not item.is_dir and _is_small(item)]
        return [item.path for item in files[:_MOST_ARTIFACTS]], []

    def _features(
        self, run_id: str, artifacts: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the features that a JSON artifact such as `feature_schema.json` lists."""
        unread = []
        for path in artifacts:
            stem = path.rpartition("/")[2].lower()
            if not stem.endswith(".json") or not ("schema" in stem or "feature" in stem):
                continue
            try:
                with tempfile.TemporaryDirectory() as folder:
                    local = self._client.download_artifacts(run_id, path, folder)
                    content = msgspec.json.decode(Path(local).read_bytes())
            except (self._error, OSError, msgspec.DecodeError) as exc:
                unread.append(f"{path}: {_first_line(exc)}")
                continue
            if names := _feature_names(content):
                return names, tuple(unread)
        return (), tuple(unread)


def job_of_run(run: TrackedRun) -> JobId:
    """Return the job of a run: its experiment."""
    return JobId(NAMESPACE, run.experiment)


def _is_small(item: Any) -> bool:
    json = item.path.endswith(".json")
    return not json or item.file_size is None or item.file_size <= _LARGEST_SCHEMA


def _shown(uri: str) -> str:
    """Return a URI without the password in it."""
    parts = urlsplit(uri)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if parts.netloc else uri


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _fingerprint(run: Any, versions: Sequence[Any]) -> str:
    """Return a digest of a run without its artifacts and without our own tags."""
    tags = {k: v for k, v in run.data.tags.items() if k not in (OWN_TAG, LINEAGE_TAG)}
    registered = sorted(
        [v.name, str(v.version), str(v.current_stage), sorted(v.aliases or ())] for v in versions
    )
    own = tags, dict(run.data.params), dict(run.data.metrics)
    content = [run.info.status, run.info.end_time, *own, registered]
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:32]


def _datasets(run: Any, experiment: str) -> tuple[UsedDataset, ...]:
    """Return the datasets of a run: the logged ones, else the dataset in its parameters."""
    inputs = run.inputs.dataset_inputs if run.inputs is not None else ()
    logged = [_logged_dataset(entry) for entry in inputs]
    params = run.data.params
    version = next((params[name] for name in _VERSION_PARAMETERS if params.get(name)), "")
    if not logged:
        name = next((params[key] for key in _DATASET_PARAMETERS if params.get(key)), "")
        if not name and not version:
            return ()
        title = name or f"{experiment}.training_data"
        dataset = dataset_at(name) if "/" in name else DatasetId(NAMESPACE, title)
        return (UsedDataset(dataset, title, version, declared=True),)
    training = [used for used in logged if used.context.lower() in ("", "train", "training")]
    if version and len(training) == 1:  # users query by the version that they set
        at = logged.index(training[0])
        logged[at] = training[0]._replace(version=version)
    return tuple(dict.fromkeys(logged))


def _logged_dataset(entry: Any) -> UsedDataset:
    logged_dataset = entry.dataset
    source = _decoded(logged_dataset.source)
    place = source.get("uri") or source.get("url") or source.get("path")
    table = source.get("delta_table_name") or source.get("table_name")
    if isinstance(table, str) and table:
        dataset = DatasetId("default", table)
    elif isinstance(place, str) and place:
        dataset = dataset_at(place)
    else:
        dataset = DatasetId(NAMESPACE, logged_dataset.name)
    version = source.get("delta_table_version")
    context = next((tag.value for tag in entry.tags if tag.key == "mlflow.data.context"), "")
    rows = _decoded(logged_dataset.profile).get("num_rows")
    return UsedDataset(
        dataset,
        logged_dataset.name,
        str(version) if version is not None else logged_dataset.digest or "",
        tuple(_columns(_decoded(logged_dataset.schema))),
        context,
        rows if isinstance(rows, int) else None,
    )


def _columns(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    listed = schema.get("mlflow_colspec")
    for column in listed if isinstance(listed, list) else ():
        if isinstance(column, dict) and column.get("name"):
            yield str(column["name"]), str(column.get("type", ""))


def _decoded(text: str | None) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _models(
    run: Any, experiment: str, versions: Sequence[Any], artifacts: Sequence[str]
) -> tuple[TrackedVersion, ...]:
    """Return the registered versions of a run, else its logged models and model files."""
    if versions:
        return tuple(
            TrackedVersion(v.name, str(v.version), _labels(v), str(v.source or ""))
            for v in sorted(versions, key=lambda v: (v.name, int(v.version)))
        )
    files = [path for path in artifacts if path.lower().endswith(_MODEL_FILES)]
    location = run.info.artifact_uri or ""
    outputs = getattr(run, "outputs", None)
    logged = [output.model_id for output in outputs.model_outputs] if outputs is not None else []
    if files:
        return tuple(
            TrackedVersion(
                f"{experiment}.{path.rpartition('/')[2].rpartition('.')[0]}",
                location=f"{location}/{path}",
            )
            for path in files
        )
    if logged:
        return (TrackedVersion(f"{experiment}.model", logged[-1]),)
    estimator = run.data.tags.get("estimator_name")
    return (TrackedVersion(f"{experiment}.{estimator}"),) if estimator else ()


def _labels(version: Any) -> tuple[str, ...]:
    stage = version.current_stage
    stages = [stage] if stage and stage != "None" else []
    return (*sorted(version.aliases or ()), *stages)


def _feature_names(content: Any) -> tuple[str, ...]:
    """Return the names in `{"features": ["age", {"name": "income"}]}`, or in a list or mapping."""
    listed = content
    if isinstance(content, dict):
        keys = ("features", "columns", "feature_names", "inputs")
        listed = next((content[key] for key in keys if content.get(key)), [])
    if isinstance(listed, dict):
        return tuple(str(name) for name in listed)
    names = [item.get("name") if isinstance(item, dict) else item for item in listed or ()]
    return tuple(name for name in names if isinstance(name, str) and name)


def _logged_features(datasets: Sequence[UsedDataset]) -> tuple[str, ...]:
    """Return the columns of the training data where no artifact lists the features."""
    return next((tuple(name for name, _ in used.columns) for used in datasets if used.columns), ())


def run_uuid(run_id: str) -> str:
    """Return an MLflow run id as OpenLineage writes run ids."""
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        return run_id

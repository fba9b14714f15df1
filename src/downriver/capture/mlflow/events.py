"""An MLflow run as OpenLineage events: datasets, the training run, model versions, features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.capture.mlflow.tracking_store import TrackedRun, UsedDataset, job_of_run, run_uuid
from downriver.capture.trained_models import NAMESPACE as MODEL_NAMESPACE
from downriver.capture.trained_models import PREDICTION
from downriver.columns.dependencies import Certainty, DependencyKind, Deps, direct, merge
from downriver.columns.facet import render_column_lineage
from downriver.model.ids import DatasetId, RunId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.base import Facets, parse_facet, render_facet
from downriver.openlineage.facets.column_lineage import COLUMN_LINEAGE
from downriver.openlineage.facets.custom import BLIND_SPOTS, BlindSpotEntry, render_blind_spots
from downriver.openlineage.facets.dataset import (
    COMMIT,
    DATASET_TYPE,
    INPUT_STATISTICS,
    SCHEMA,
    SYMLINKS,
    VERSION,
    CommitFacet,
    SchemaField,
    render_commit,
    render_dataset_type,
    render_input_statistics,
    render_schema,
    render_symlinks,
    render_version,
)
from downriver.openlineage.facets.job import (
    ERROR_MESSAGE,
    JOB_TYPE,
    render_error_message,
    render_job_type,
)
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from downriver.capture.mlflow.tracking_store import TrackedVersion
    from downriver.openlineage.wire import Event, WireDataset

MLFLOW_RUN = "downriver_mlflow"
_STATES = {"FINISHED": "COMPLETE", "FAILED": "FAIL", "KILLED": "ABORT"}
_LONGEST_VALUE = 2000  # characters of a parameter or tag
_MOST_VALUES = 1000


class MlflowRunFacet(msgspec.Struct, rename="camel", omit_defaults=True):
    """The data that MLflow tracked for a run."""

    run: str = ""
    experiment: str = ""
    name: str = ""
    user: str = ""
    lineage_id: str = ""
    params: dict[str, str] = {}
    metrics: dict[str, float | None] = {}
    tags: dict[str, str] = {}
    fingerprint: str = ""


def parse_mlflow_run(body: bytes | None) -> MlflowRunFacet:
    """Return the data that MLflow tracked for a run."""
    return parse_facet(body or b"{}", MlflowRunFacet)


def lineage_id_of(run: TrackedRun) -> str:
    """Return the id of a run in Downriver, which is written back into its tags."""
    return str(RunId(job_of_run(run), run_uuid(run.id)))


def render_run(run: TrackedRun, read_at: int) -> list[Event]:
    """Return the events of a run.

    Tags, aliases and stages may change after the end of a run. Their event has the time of reading,
    in µs, so that the last event applies.
    """
    job, number = job_of_run(run), run_uuid(run.id)
    facets: Facets = {
        JOB_TYPE: render_job_type("MLFLOW", "TRAINING"),
        BLIND_SPOTS: render_blind_spots(_blind_spots(run)),
    }
    state = _STATES.get(run.status, "OTHER")
    ended = (run.ended_at if run.ended_at is not None else run.started_at) * 1000
    inputs = [_input(used) for used in run.datasets]
    outputs = [_output(model, run) for model in run.models] if state == "COMPLETE" else []
    error: Facets = {}
    if state == "FAIL":
        error[ERROR_MESSAGE] = render_error_message(f"MLflow run {run.name} failed")
    return [
        run_event(job, number, "START", run.started_at * 1000, facets=facets),
        run_event(
            job, number, state, ended, inputs=inputs, outputs=outputs, facets=facets,
            run_facets=error,
        ),
        run_event(
            job, number, "OTHER", max(read_at, ended), outputs=outputs, facets=facets,
            run_facets={MLFLOW_RUN: _run_facet(run)},
        ),
    ]  # fmt: skip


def _run_facet(run: TrackedRun) -> msgspec.Raw:
    finite = {k: v if v == v and abs(v) != float("inf") else None for k, v in run.metrics.items()}
    facet = MlflowRunFacet(
        run=run.id,
        experiment=run.experiment,
        name=run.name,
        user=run.user,
        lineage_id=run.lineage_id,
        params=_cut(run.params),
        metrics=dict(list(finite.items())[:_MOST_VALUES]),
        tags=_cut({k: v for k, v in run.tags.items() if not k.startswith("mlflow.")}),
        fingerprint=run.fingerprint,
    )
    return render_facet("DownriverMlflowRun", "1-0-0", **msgspec.to_builtins(facet))


def _cut(values: dict[str, str]) -> dict[str, str]:
    return {k: str(v)[:_LONGEST_VALUE] for k, v in list(values.items())[:_MOST_VALUES]}


def _blind_spots(run: TrackedRun) -> list[BlindSpotEntry]:
    spots = [BlindSpotEntry("not_read", f"MLflow artifact {text}") for text in run.unread]
    if not run.datasets:
        message = "the run logged no dataset: call mlflow.log_input, or set training_data"
        spots.append(BlindSpotEntry("unknown_inputs", message))
    spots += [
        BlindSpotEntry("unknown_inputs", f"only a parameter names the dataset {used.name}")
        for used in run.datasets
        if used.declared
    ]
    return spots


def _input(used: UsedDataset) -> WireDataset:
    facets: Facets = {}
    if used.version:
        facets[VERSION] = render_version(used.version)
    if used.columns:
        facets[SCHEMA] = render_schema(SchemaField(name, kind) for name, kind in used.columns)
    counts: Facets = {}
    if used.rows is not None:
        counts[INPUT_STATISTICS] = render_input_statistics(rows=used.rows)
    return dataset(used.dataset, facets, input_facets=counts)


def _output(model: TrackedVersion, run: TrackedRun) -> WireDataset:
    origins = {name: _origin(name, run) for name in run.features}
    learned: Deps = {}
    for deps in origins.values():
        merge(learned, direct(deps, DependencyKind.TRANSFORMATION))
    fields = [SchemaField(name, "feature") for name in run.features]
    facets: Facets = {
        DATASET_TYPE: render_dataset_type("MODEL"),
        SCHEMA: render_schema([*fields, SchemaField(PREDICTION, PREDICTION)]),
        COLUMN_LINEAGE: render_column_lineage({**origins, PREDICTION: learned}, {}),
    }
    if model.version:
        facets[VERSION] = render_version(model.version)
    if model.location and not model.version:  # each version of a model has a file of its own
        facets[SYMLINKS] = render_symlinks([dataset_at(model.location)], "MODEL")
    commit = CommitFacet(
        version=model.version, operation="TRAIN", user=run.user, engine="mlflow",
        labels=list(model.labels),
        parameters={"source": model.location} if model.location else {},
    )  # fmt: skip
    model_id = DatasetId(MODEL_NAMESPACE, model.name)
    return dataset(model_id, facets, output_facets={COMMIT: render_commit(commit)})


def _origin(feature: str, run: TrackedRun) -> Deps:
    """Return the dataset columns with the name of a feature.

    MLflow does not track code between a dataset and a model, so this is inferred.
    """
    return {
        (
            (used.dataset.namespace, used.dataset.name),
            feature,
            DependencyKind.TRANSFORMATION,
            False,
        ): Certainty.INFERRED
        for used in run.datasets
        if feature in dict(used.columns)
    }

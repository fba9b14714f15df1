"""Models that MLflow autologged in this process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


class MlflowRun(NamedTuple):
    """A finished MLflow run that fitted an estimator."""

    run: str
    model: str
    estimator: str
    features: tuple[str, ...]
    metrics: dict[str, float]


def find_logged_runs(since_ms: int) -> Iterator[MlflowRun]:
    """Yield the autologged runs since a time; none when MLflow is not imported."""
    mlflow = sys.modules.get("mlflow")
    if mlflow is None or mlflow.last_active_run() is None:
        return
    client = mlflow.MlflowClient()
    experiment = client.get_experiment(mlflow.last_active_run().info.experiment_id)
    runs = client.search_runs(
        [experiment.experiment_id], filter_string=f"attributes.start_time >= {since_ms}"
    )
    for run in runs:
        estimator = run.data.tags.get("estimator_name", "")
        if "mlflow.autologging" in run.data.tags and estimator and run.info.status == "FINISHED":
            yield MlflowRun(
                run.info.run_id,
                f"{experiment.name}.{estimator}",  # the name of a run is random
                estimator,
                _features(run),
                dict(run.data.metrics),
            )


def _features(run: Any) -> tuple[str, ...]:
    """Return the columns of the dataset that a run was fitted on, as logged by MLflow."""
    for given in run.inputs.dataset_inputs if run.inputs is not None else ():
        schema = msgspec.json.decode(given.dataset.schema or "{}")
        columns = schema.get("mlflow_colspec", []) if isinstance(schema, dict) else []
        names = tuple(str(column["name"]) for column in columns if column.get("name"))
        if names:
            return names
    return ()

"""MLflow runs, read from a real tracking store and followed live."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.cli.command import downriver

from downriver import lineage
from downriver.capture.mlflow import MlflowHook, TrackingStore
from downriver.errors import InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    import mlflow

    folder = tmp_path_factory.mktemp("tracking")
    uri = f"sqlite:///{folder}/mlflow.db"
    mlflow.set_tracking_uri(uri)
    return uri


@pytest.fixture
def experiment(uri: str, tmp_path: Path) -> Iterator[str]:
    """An experiment of its own for each test."""
    import mlflow

    name = f"churn_{tmp_path.name}"
    mlflow.set_tracking_uri(uri)
    mlflow.create_experiment(name, artifact_location=str(tmp_path / "artifacts"))
    mlflow.set_experiment(name)
    yield name
    mlflow.end_run()


def train(tmp_path: Path, *, version: str = "v3", lineage_id: str | None = "dag_1") -> str:
    """Train as the users' code does, and return the id of the run."""
    import mlflow
    import pandas as pd

    data = tmp_path / "customers.csv"
    data.write_text("age,income,churned\n1,2.5,0\n")
    frame = pd.read_csv(data)
    logged = mlflow.data.from_pandas(frame, source=str(data), name="customers", targets="churned")
    model = tmp_path / "churn_model.pkl"
    model.write_bytes(b"model")
    with mlflow.start_run() as run:
        mlflow.log_param("training_data_version", version)
        mlflow.log_metric("auc", 0.9)
        if lineage_id:
            mlflow.set_tag("lineage_id", lineage_id)
        mlflow.log_input(logged, context="training")
        mlflow.log_dict({"features": ["age", "income"]}, "feature_schema.json")
        mlflow.log_artifact(str(model))
    return str(run.info.run_id)


def register(run_id: str, name: str) -> str:
    import mlflow

    client = mlflow.MlflowClient()
    if not client.search_registered_models(f"name = '{name}'"):
        client.create_registered_model(name)
    source = client.get_run(run_id).info.artifact_uri
    return str(client.create_model_version(name, source, run_id=run_id).version)


def test_model_versions_of_a_dataset_version_are_answered(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    import mlflow

    model = f"model_{tmp_path.name}"
    old, new = train(tmp_path, version="v2"), train(tmp_path, version="v3")
    register(old, model)
    mlflow.MlflowClient().set_registered_model_alias(model, "champion", register(new, model))
    store = str(tmp_path / "store")
    done = downriver("capture", "mlflow", uri, "--store", store, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = downriver(
        "versions", "customers.csv", "--version", "v3", "--store", store, cwd=tmp_path
    )
    assert f" job → {model} version 2 (champion)" in shown.stdout
    assert "version 1" not in shown.stdout


def test_a_run_is_dataset_to_run_to_model_with_features(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    model = f"model_{tmp_path.name}"
    run = train(tmp_path)
    register(run, model)
    with Lineage.open(str(tmp_path / "store")) as opened:
        opened.systems.mlflow(uri, experiment=experiment)
        near = opened.entities.related(f"model:{model}", "upstream")
        assert any(entity.id.endswith("customers.csv") for entity in near.upstream)
        columns = opened.entities.details(f"model:{model}").columns
        assert [column.name for column in columns] == ["age", "income", "prediction"]
        sources = opened.entities.column_lineage(f"model:{model}", "income")
        assert sources[0].input_columns[0].endswith("income")
        runs = opened.runs(f"job:mlflow:{experiment}").runs
        (facets,) = [
            f.facets
            for f in opened.runs.details(runs[0].id).facets
            if "downriver_mlflow" in f.facets
        ]
    tracked = facets["downriver_mlflow"]
    assert (tracked["metrics"], tracked["lineageId"]) == ({"auc": 0.9}, "dag_1")
    assert tracked["params"] == {"training_data_version": "v3"}


def test_a_second_capture_reads_only_what_changed(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    import mlflow

    model = f"model_{tmp_path.name}"
    run = train(tmp_path)
    with Lineage.open(str(tmp_path / "store")) as opened:
        assert opened.systems.mlflow(uri, experiment=experiment).runs == 1
        assert opened.systems.mlflow(uri, experiment=experiment).runs == 0
        version = register(run, model)
        assert opened.systems.mlflow(uri, experiment=experiment).runs == 1
        mlflow.MlflowClient().set_registered_model_alias(model, "shadow", version)
        assert opened.systems.mlflow(uri, experiment=experiment).runs == 1
        assert opened.versions(f"model:{model}").versions[0].labels == ["shadow"]
        assert opened.systems.mlflow(uri, experiment=experiment, write_tags=True).runs == 0


def test_a_run_that_states_only_a_version_has_a_dataset_and_a_blind_spot(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    import mlflow

    model = tmp_path / "model.pkl"
    model.write_bytes(b"model")
    with mlflow.start_run():
        mlflow.log_param("training_data_version", "v3")
        mlflow.log_artifact(str(model))
    with Lineage.open(str(tmp_path / "store")) as opened:
        opened.systems.mlflow(uri, experiment=experiment)
        used = opened.versions(f"dataset:mlflow:{experiment}.training_data", version="v3")
        (reader,) = used.versions[0].read_by
        assert [output.dataset for output in reader.outputs] == [
            f"dataset:model:{experiment}.model"
        ]
        assert not opened.trace(f"model:{experiment}.model", "upstream").complete


def test_the_lineage_id_is_written_back_beside_the_tag_that_people_set(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    import mlflow

    tagged, untagged = train(tmp_path), train(tmp_path, lineage_id=None)
    with Lineage.open(str(tmp_path / "store")) as opened:
        opened.systems.mlflow(uri, experiment=experiment, write_tags=True)
    tags = [mlflow.MlflowClient().get_run(run).data.tags for run in (tagged, untagged)]
    assert all(tag["downriver.lineage_id"].startswith("run:mlflow:churn_") for tag in tags)
    assert tags[0]["lineage_id"] == "dag_1"
    assert tags[1]["lineage_id"] == tags[1]["downriver.lineage_id"]


def test_a_followed_process_records_runs_models_and_aliases(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    import mlflow

    model = f"model_{tmp_path.name}"
    store = str(tmp_path / "store")
    tracker = lineage(store)
    tracker.mlflow()
    run = train(tmp_path)
    version = register(run, model)
    mlflow.MlflowClient().set_registered_model_alias(model, "champion", version)
    tracker.sync.close()
    with Lineage.open(store) as opened:
        (found,) = opened.versions("customers.csv", version="v3").versions
    outputs = {(o.dataset, o.version, *o.labels) for r in found.read_by for o in r.outputs}
    assert (f"dataset:model:{model}", "1", "champion") in outputs
    assert "downriver.lineage_id" in mlflow.MlflowClient().get_run(run).data.tags


def test_a_failed_run_is_a_failed_run_without_outputs(
    uri: str, experiment: str, tmp_path: Path
) -> None:
    import mlflow

    with pytest.raises(ZeroDivisionError), mlflow.start_run():
        _ = 1 / 0
    with Lineage.open(str(tmp_path / "store")) as opened:
        opened.systems.mlflow(uri, experiment=experiment)
        (run,) = opened.runs(f"job:mlflow:{experiment}").runs
    assert (run.state, run.outputs) == ("FAIL", [])


def test_an_emitter_that_fails_does_not_break_the_training(
    uri: str, experiment: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Any) -> None:
        raise RuntimeError("broken")

    hook = MlflowHook(fail)
    hook.install()
    try:
        with caplog.at_level(logging.DEBUG, "downriver"):
            assert train(tmp_path)
            assert hook.flush()
    finally:
        hook.uninstall()
    assert "broken" in caplog.text


def test_a_missing_store_is_an_error_and_is_not_created(tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    with pytest.raises(InvalidRequestError, match="no such file"):
        TrackingStore(f"sqlite:///{missing}")
    assert not missing.exists()


def test_an_unknown_experiment_is_an_error(uri: str, tmp_path: Path) -> None:
    done = downriver("capture", "mlflow", uri, "--experiment", "none_such", cwd=tmp_path)
    assert done.returncode == 2
    assert "no experiment 'none_such'" in done.stderr

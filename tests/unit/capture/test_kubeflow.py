"""Compiled Kubeflow pipelines: tasks, artifacts and models."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.command import downriver

from downriver.capture.catalogs import parse_kubeflow
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.service import Lineage

EXAMPLE = Path(__file__).parents[3] / "examples" / "catalogs" / "kubeflow_churn.yaml"
NESTED = """
pipelineInfo: {name: outer}
components:
  comp-load: {executorLabel: e, outputDefinitions: {artifacts: {raw: {}}}}
  comp-step: {executorLabel: e, outputDefinitions: {artifacts: {out: {}}}}
  comp-inner:
    dag:
      tasks:
        step:
          componentRef: {name: comp-step}
          inputs: {artifacts: {x: {componentInputArtifact: data}}}
root:
  dag:
    tasks:
      load: {componentRef: {name: comp-load}}
      inner:
        componentRef: {name: comp-inner}
        inputs:
          artifacts:
            data: {taskOutputArtifact: {producerTask: load, outputArtifactKey: raw}}
"""


def test_a_model_is_traced_to_the_imported_data(tmp_path: Path):
    assert downriver("import", "kubeflow", str(EXAMPLE), cwd=tmp_path).returncode == 0
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        found = lineage.trace("model:churn.train.model", "upstream")
    assert {node.id for node in found.nodes} >= {
        "dataset:s3://lake:raw/customers",
        "job:kubeflow:churn.clean",
        "dataset:kubeflow:churn.clean.cleaned",
        "job:kubeflow:churn.train",
    }


def test_a_pipeline_inside_a_pipeline_gets_the_artifacts_of_its_caller():
    jobs = {job.id.name: job for job in parse_kubeflow(NESTED, "file").jobs}
    assert jobs["outer.inner.step"].inputs == [DatasetId("kubeflow", "outer.load.raw")]
    assert list(jobs["outer.inner.step"].outputs) == [DatasetId("kubeflow", "outer.inner.step.out")]


def test_a_task_without_input_artifacts_is_a_blind_spot():
    job = next(job for job in parse_kubeflow(NESTED, "file").jobs if job.id.name == "outer.load")
    assert "is in its code" in job.blind_spots[0].message


def test_tasks_that_run_before_are_dependencies():
    jobs = {job.id.name: job for job in parse_kubeflow(EXAMPLE.read_text(), "file").jobs}
    assert jobs["churn.clean"].upstream == []  # an importer is no job
    assert jobs["churn.train"].upstream == [JobId("kubeflow", "churn.clean")]


@pytest.mark.parametrize("text", ["", "a: 1", "[", "pipelineInfo: {name: x}"])
def test_what_is_no_compiled_pipeline_is_refused(text):
    with pytest.raises(InvalidRequestError, match="file"):
        parse_kubeflow(text, "file")

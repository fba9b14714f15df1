"""A pipeline that the compiler of Kubeflow Pipelines wrote."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

PIPELINE = """
from kfp import compiler, dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

@dsl.component(base_image="python:3.11")
def clean(raw: Input[Dataset], cleaned: Output[Dataset]):
    pass

@dsl.component(base_image="python:3.11")
def train(cleaned: Input[Dataset], rate: float, model: Output[Model], metrics: Output[Metrics]):
    pass

@dsl.component(base_image="python:3.11")
def deploy(model: Input[Model]):
    pass

@dsl.pipeline(name="churn")
def churn(rate: float = 0.1):
    raw = dsl.importer(artifact_uri="s3://lake/customers", artifact_class=Dataset)
    trained = train(cleaned=clean(raw=raw.output).outputs["cleaned"], rate=rate)
    with dsl.If(rate > 0.05):
        deploy(model=trained.outputs["model"])

compiler.Compiler().compile(churn, "churn.yaml")
"""


def test_a_compiled_pipeline_connects_data_with_the_model(
    client_python: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)  # the compiler reads the source
    done = subprocess.run(
        [client_python("kfp==2.14.6"), "pipeline.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    imported = downriver("import", "kubeflow", "churn.yaml", cwd=tmp_path)
    assert imported.returncode == 0, imported.stdout + imported.stderr
    trained = downriver("trace", "churn.train.model", "--upstream", "--full-names", cwd=tmp_path)
    assert "dataset:s3://lake:customers" in trained.stdout
    assert "complete" in trained.stdout
    used = downriver("trace", "churn.train.model", "--downstream", cwd=tmp_path)
    assert "deploy" in used.stdout, used.stdout + imported.stdout

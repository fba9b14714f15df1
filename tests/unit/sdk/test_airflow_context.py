"""Tasks of Airflow are recorded whatever the OpenLineage provider beside them does."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

# The modules that stand for Airflow's provider, and the context that Airflow gives to a callback.
CALLBACK = """
import sys
from types import ModuleType, SimpleNamespace

path = "airflow"
for part in ("", "providers", "openlineage", "plugins", "macros"):
    path = f"{path}.{part}" if part else path
    sys.modules[path] = ModuleType(path)

def lineage_run_id(instance):
    BODY

sys.modules["airflow.providers.openlineage.plugins.macros"].lineage_run_id = lineage_run_id

from downriver.sdk.orchestrators.airflow import record_success

task = SimpleNamespace(inlets=["s3://lake/raw"], outlets=["s3://lake/clean"])
instance = SimpleNamespace(
    dag_id="shop", task_id="clean", run_id="r1", map_index=-1, try_number=1, start_date=None
)
record_success({"task": task, "ti": instance, "dag_run": None})
"""
RUN = "0195574d-5a80-7c6e-9d2a-6d3f0c3b8a11"


@pytest.mark.parametrize(
    ("body", "run"),
    [
        (f'return "{RUN}"', RUN),
        ("return date; date = 1", None),  # UnboundLocalError, as in some versions with Airflow 3
        ('return {}["dag_run"]', None),
        ("return instance.dag_run", None),
    ],
)
def test_a_task_is_recorded_without_a_run_of_the_provider(
    tmp_path: Path, body: str, run: str | None
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLBACK.replace("BODY", body)],
        env={**os.environ, "DOWNRIVER_STORE": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with Lineage.open(str(tmp_path / "store")) as lineage:
        (found,) = lineage.runs("job:airflow:shop.clean").runs
        nodes = lineage.trace("job:airflow:shop.clean", "both").nodes
    assert found.state == "COMPLETE"
    assert run is None or found.id.endswith(run)
    assert {node.id for node in nodes} == {
        "dataset:s3://lake:raw",
        "job:airflow:shop.clean",
        "dataset:s3://lake:clean",
    }

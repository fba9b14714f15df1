"""Airflow 3 without OpenLineage's transport: our callback, plugin and decorator in a real DAG."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.clients.test_airflow import PATIENT, REQUIREMENTS

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[2] / "src"
PLUGIN = "from downriver.sdk.orchestrators.airflow import LineagePlugin\n"
CALLBACK = "        on_success_callback=record_success,\n"
DAG = """
from airflow.sdk import DAG, Asset, task

from downriver.sdk.orchestrators.airflow import apply_lineage, record_success

with DAG("shop", schedule=None):

    @task(
        inlets=[Asset("s3://lake/raw")],
        outlets=[Asset("s3://lake/clean")],
        on_success_callback=record_success,
    )
    def clean():
        pass

    @task
    @apply_lineage(
        inlets={"namespace": "s3://lake", "name": "clean"}, outlets="postgres://dw/shop/report"
    )
    def report(part):
        pass

    clean() >> report.expand(part=[1, 2])
"""


@pytest.fixture(scope="module")
def stores(
    client_python: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Stores with the events of one run of the DAG, by the callback and by the plugin."""
    airflow = client_python(*REQUIREMENTS).parent / "airflow"
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    (home / "plugins").mkdir()
    run([airflow, "db", "migrate"], home, "none")
    (home / "dags" / "shop.py").write_text(DAG)
    run([airflow, "dags", "test", "shop", "2026-01-01"], home, "callback")
    (home / "plugins" / "lineage.py").write_text(PLUGIN)
    (home / "dags" / "shop.py").write_text(DAG.replace(CALLBACK, ""))
    run([airflow, "dags", "test", "shop", "2026-01-02"], home, "plugin")
    return {name: home / name for name in ("callback", "plugin")}


def run(command: list[object], home: Path, store: str) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        env={
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__OPENLINEAGE__DISABLED": "True",
            "DOWNRIVER_STORE": str(home / store),
            "HOME": str(home),
            "PATH": f"{Path(str(command[0])).parent}{os.pathsep}{os.defpath}",
            "PYTHONPATH": str(SOURCES),
            **PATIENT,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "Downriver failed" not in done.stdout + done.stderr


@pytest.mark.parametrize("way", ["callback", "plugin"])
def test_inlets_outlets_and_decorated_tasks_are_connected(
    stores: dict[str, Path], way: str
) -> None:
    with Lineage.open(str(stores[way])) as lineage:
        nodes = lineage.trace("shop.report", "upstream").nodes
    assert {node.id for node in nodes} == {
        "dataset:postgres://dw:shop.report",
        "job:airflow:shop.report",
        "dataset:s3://lake:clean",
        "job:airflow:shop.clean",
        "dataset:s3://lake:raw",
    }


def test_each_mapped_task_is_a_run(stores: dict[str, Path]) -> None:
    with Lineage.open(str(stores["callback"])) as lineage:
        runs = lineage.runs("job:airflow:shop.report").runs
    assert [run.state for run in runs] == ["COMPLETE", "COMPLETE"]

"""Airflow 3 with its OpenLineage provider, as PyPI has them, runs a real DAG."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.server import running_server

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

REQUIREMENTS = (
    "apache-airflow==3.3.2",
    "apache-airflow-providers-openlineage==2.20.3",
    "apache-airflow-providers-common-sql==2.4.0",
    "apache-airflow-providers-sqlite==4.3.4",
    "msgspec==0.22.0",  # of Downriver, whose hooks tests import there
    "zstandard==0.25.0",
)
# Airflow kills a task's callbacks and its sending of events after 20 s and 10 s: too few for a
# machine that runs other tests.
PATIENT = {
    "AIRFLOW__CORE__TASK_SUCCESS_OVERTIME": "300",
    "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "300",
}
# The provider reports the assets of a task. For a task on SQLite it sends the query, but no tables.
DAG = """
from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.sdk import DAG, Asset, task

with DAG("shop", schedule=None):
    fill = SQLExecuteQueryOperator(
        task_id="fill",
        conn_id="shop",
        sql="INSERT INTO totals (customer, amount) "
        "SELECT customer, sum(amount) FROM orders GROUP BY customer",
    )

    @task(inlets=[Asset("file:///data/totals.csv")], outlets=[Asset("file:///data/report.csv")])
    def report():
        pass

    fill >> report()
"""


@pytest.fixture(scope="module")
def store(client_python: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the events of one run of the DAG."""
    python = client_python(*REQUIREMENTS)
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    (home / "dags" / "shop.py").write_text(DAG)
    with closing(sqlite3.connect(home / "shop.db")) as database:
        database.execute("CREATE TABLE orders (id int, customer text, amount int)")
        database.execute("CREATE TABLE totals (customer text, amount int)")
    with running_server(home / "store") as url:
        for command in (["db", "migrate"], ["dags", "test", "shop", "2026-01-01"]):
            done = subprocess.run(
                [python.parent / "airflow", *command],
                env={
                    "AIRFLOW_CONN_SHOP": json.dumps(
                        {"conn_type": "sqlite", "host": str(home / "shop.db")}
                    ),
                    "AIRFLOW_HOME": str(home),
                    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                    "AIRFLOW__OPENLINEAGE__NAMESPACE": "airflow",
                    "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
                        {"type": "http", "url": url, "timeout": 120}
                    ),
                    "HOME": str(home),
                    "PATH": f"{python.parent}{os.pathsep}{os.defpath}",
                    **PATIENT,
                },
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return home / "store"


def test_assets_of_a_task_become_edges(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        edges = [
            edge
            for direction in ("upstream", "downstream")
            for edge in lineage.trace("job:airflow:shop.report", direction).edges
        ]
    # `dags test` runs all tasks in one process, where the provider reports the query of `fill` for
    # `report`, too. The edges of a query are inferred.
    assert {(edge.source, edge.target) for edge in edges if edge.confidence == "exact"} == {
        ("dataset:file:/data/totals.csv", "job:airflow:shop.report"),
        ("job:airflow:shop.report", "dataset:file:/data/report.csv"),
    }


def test_tables_of_a_query_that_names_no_datasets_become_edges(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        found = lineage.trace("totals", "upstream")
    assert {node.name for node in found.nodes if node.id.startswith("dataset:")} == {
        "orders",
        "totals",
    }


def test_columns_of_a_query_that_names_no_datasets_are_inferred(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        found = lineage.trace("totals.amount", "upstream", depth=1)
    sums = [edge for edge in found.edges if edge.subtype == "AGGREGATION"]
    assert {(edge.source.rpartition(":")[2], edge.confidence) for edge in sums} == {
        ("amount", "inferred")
    }


def test_the_tasks_have_the_dag_as_parent_and_completed(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        states = {
            task: [run.state for run in lineage.runs(f"job:airflow:shop.{task}").runs]
            for task in ("fill", "report")
        }
        dag = lineage.trace("job:airflow:shop")
    assert states == {"fill": ["COMPLETE"], "report": ["COMPLETE"]}
    assert any("starts 2 jobs" in spot.message for spot in dag.blind_spots)

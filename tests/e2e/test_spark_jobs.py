"""Real Spark jobs in processes of their own, captured by us and by OpenLineage's listener."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.maven import OPENLINEAGE, JarUnavailableError, fetch_jar
from tests.server import free_port, running_server

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

PIPELINE = Path(__file__).parent / "spark" / "orders.py"
RANKED = "warehouse:default.ranked"  # a table goes by its name, not its path
SPARK_SUBMIT = [
    *("spark-submit", "--master", "local[2]"),
    *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"),
]
COLUMNS = (
    *("by_region.region", "by_region.revenue", "by_region.buyers"),
    *("ranked.amount", "ranked.nth", "ranked.size"),
    *("latest.customer_id", "latest.twice", "latest.status"),
)


def submit(
    folder: Path, *options: str, arguments: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the pipeline as a user would, in `folder`."""
    command = [*SPARK_SUBMIT, *options, str(PIPELINE), str(folder), *arguments]
    if not options:
        command = [sys.executable, "-m", "downriver", "run", "--", *command]
    bin_folder = Path(sys.executable).parent
    return subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def direct_sources(lineage: Lineage, column: str) -> set[str]:
    answer = lineage.trace(column, "upstream", depth=1)
    return {edge.source.rpartition("/")[2] for edge in answer.edges if edge.type == "DIRECT"}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline captured by us: its code is unchanged, its last act is a failure."""
    folder = tmp_path_factory.mktemp("ours")
    done = submit(
        folder,
        arguments=["--fail"],
        OPENLINEAGE_PARENT_ID="airflow/nightly.orders/0b7b8d2e-58e7-4f2c-9c0f-1a2b3c4d5e6f",
    )
    assert "the pipeline failed at its end" in done.stdout + done.stderr
    assert done.returncode != 0
    return folder


def states(folder: Path, job: str) -> list[str]:
    with open_store(folder) as lineage, lineage.session.reading() as view:
        return [
            run.state.name
            for run in view.reader.runs.latest(lineage.session.resolve(job, view).node, 10)
        ]


def open_store(folder: Path) -> Lineage:
    return Lineage.open(str(folder / ".downriver"))


def test_an_unchanged_job_is_captured_with_column_lineage(ours: Path) -> None:
    with open_store(ours) as lineage:
        found = {column: direct_sources(lineage, column) for column in COLUMNS}
    assert found == {
        "by_region.region": {"customers:region"},
        "by_region.revenue": {"orders:amount"},
        "by_region.buyers": {"orders:customer_id"},
        "ranked.amount": {"orders:amount"},
        "ranked.nth": set(),  # decided by columns, made of none
        "ranked.size": {"orders:status"},
        "latest.customer_id": {f"{RANKED}:customer_id", "customers:id"},
        "latest.twice": {f"{RANKED}:amount"},
        "latest.status": {f"{RANKED}:status", "customers:name"},
    }


def test_a_failed_application_is_not_reported_as_complete(ours: Path) -> None:
    assert states(ours, "job:orders") == ["FAIL"]
    assert states(ours, "job:orders.by_region") == ["COMPLETE"]


def test_the_run_that_started_the_application_is_its_parent(ours: Path) -> None:
    with open_store(ours) as lineage:
        answer = lineage.trace("job:airflow:nightly.orders")
    assert any("runs 1 jobs: job:airflow:orders" in spot.message for spot in answer.blind_spots)


def test_a_dead_collector_does_not_stop_a_job_and_loses_nothing(tmp_path: Path) -> None:
    done = submit(tmp_path, DOWNRIVER_URL=f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 0, done.stderr[-2000:]
    with running_server(tmp_path / "store") as url:
        sent = subprocess.run(
            [sys.executable, "-m", "downriver", "spool", "flush", "--to", url],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert ", 0 still spooled" in sent.stdout
    with Lineage.open(str(tmp_path / "store")) as lineage:
        assert direct_sources(lineage, "by_region.revenue") == {"orders:amount"}


def test_events_of_the_openlineage_listener_agree_with_ours(ours: Path, tmp_path: Path) -> None:
    try:
        jar = fetch_jar(OPENLINEAGE)
    except JarUnavailableError as exc:
        pytest.fail(str(exc)) if os.environ.get("CI") == "true" else pytest.skip(str(exc))
    with running_server(tmp_path / "store") as url:
        done = submit(
            tmp_path,
            *("--jars", str(jar)),
            *("--conf", "spark.extraListeners=io.openlineage.spark.agent.OpenLineageSparkListener"),
            *("--conf", "spark.openlineage.transport.type=http"),
            *("--conf", f"spark.openlineage.transport.url={url}"),
        )
        assert done.returncode == 0, done.stderr[-2000:]
    with open_store(ours) as lineage:
        captured = {column: direct_sources(lineage, column) for column in COLUMNS}
    with Lineage.open(str(tmp_path / "store")) as lineage:
        received = {column: direct_sources(lineage, column) for column in COLUMNS}
    assert received == captured

"""Real Spark jobs in separate processes, captured by Downriver."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.server import free_port, running_server
from tests.spark_pipeline import COLUMN_SOURCES, direct_sources, submit

from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


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
        found = {column: direct_sources(lineage, column) for column in COLUMN_SOURCES}
    assert found == COLUMN_SOURCES


def test_a_failed_application_is_not_reported_as_complete(ours: Path) -> None:
    assert states(ours, "job:orders") == ["FAIL"]
    assert states(ours, "job:orders.by_region") == ["COMPLETE"]


def test_the_run_that_started_the_application_is_its_parent(ours: Path) -> None:
    with open_store(ours) as lineage:
        answer = lineage.trace("job:airflow:nightly.orders")
    assert any("starts 1 job: job:airflow:orders" in spot.message for spot in answer.blind_spots)


def test_an_unreachable_collector_does_not_stop_a_job_and_loses_no_event(tmp_path: Path) -> None:
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

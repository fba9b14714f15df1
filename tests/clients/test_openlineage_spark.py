"""OpenLineage's Spark listener as Maven has it, in a real application."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from bench.maven import OPENLINEAGE, JarUnavailableError, fetch_jar
from tests.server import running_server
from tests.spark_pipeline import COLUMN_SOURCES, direct_sources, submit

from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def jar() -> Path:
    try:
        return fetch_jar(OPENLINEAGE)
    except JarUnavailableError as exc:
        pytest.fail(str(exc)) if os.environ.get("CI") == "true" else pytest.skip(str(exc))


def test_the_listener_reports_the_edges_and_columns_of_a_pipeline(
    jar: Path, tmp_path: Path
) -> None:
    with running_server(tmp_path / "store") as url:
        done = submit(
            tmp_path,
            *("--jars", str(jar)),
            *("--conf", "spark.extraListeners=io.openlineage.spark.agent.OpenLineageSparkListener"),
            *("--conf", "spark.openlineage.transport.type=http"),
            *("--conf", f"spark.openlineage.transport.url={url}"),
            *("--conf", "spark.openlineage.transport.timeoutInMillis=120000"),
        )
        assert done.returncode == 0, done.stderr[-2000:]
    with Lineage.open(str(tmp_path / "store")) as lineage:
        received = {column: direct_sources(lineage, column) for column in COLUMN_SOURCES}
        tables = lineage.trace("by_region", "upstream").nodes
    assert received == COLUMN_SOURCES
    names = {node.name.rpartition("/")[2] for node in tables if node.id.startswith("dataset:")}
    assert names == {"by_region", "orders", "customers"}

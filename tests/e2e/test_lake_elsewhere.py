"""The lake where others would run it: on executors of their own, in Delta's tables, by Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.maven import DELTA, JarUnavailableError, fetch_jar

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "examples" / "shop" / "events.jsonl"
EDGES = "SELECT kind, source_name, target_name, status FROM gold_edges ORDER BY ALL"


def downriver(folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "downriver", "lake", *arguments],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def edges_of(rows: str) -> list[Any]:
    found = json.loads(rows)
    assert len(found["rows"]) > 10
    return found["rows"]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The edges of a lake on this machine's own Spark, in Parquet."""
    folder = tmp_path_factory.mktemp("here")
    downriver(folder, "stream", str(EVENTS), "--once")
    return edges_of(downriver(folder, "query", EDGES, "--json"))


def test_on_executors_of_their_own_in_tables_of_delta(tmp_path: Path, expected: list[Any]) -> None:
    try:
        jars = ",".join(str(fetch_jar(jar)) for jar in DELTA)
    except JarUnavailableError as exc:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(exc))
    # One worker with a core, 1 GB: its executor is another process than the driver.
    options = ("--master", "local-cluster[1,1,1024]")
    environment = {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell"}
    downriver(
        tmp_path, "stream", str(EVENTS), "--once", "--format", "delta", *options, **environment
    )
    assert list(tmp_path.glob(".downriver/lake/**/_delta_log"))
    assert edges_of(downriver(tmp_path, "query", EDGES, "--json", **environment)) == expected


def test_by_spark_connect(tmp_path: Path, expected: list[Any]) -> None:
    environment = {"SPARK_REMOTE": "local[1]"}  # PySpark starts a server for it
    downriver(tmp_path, "ingest", str(EVENTS), **environment)
    downriver(tmp_path, "build", **environment)
    assert edges_of(downriver(tmp_path, "query", EDGES, "--json")) == expected

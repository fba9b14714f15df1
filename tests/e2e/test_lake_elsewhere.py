"""The lake on a cluster, with Delta tables, under `spark-submit`, and on Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from bench.maven import DELTA, JarUnavailableError, fetch_jar

from downriver.capture.spark.local_session import spark_environment
from downriver.model.facts import EdgeKind
from downriver.service import Lineage
from downriver.store import MEMORY

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "examples" / "shop" / "events.jsonl"
EDGES = "SELECT kind, source_name, target_name FROM gold_edges ORDER BY ALL"


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


def edges_of(rows: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in json.loads(rows)["rows"]]


@pytest.fixture(scope="module")
def expected() -> list[tuple[str, ...]]:
    """The edges that a server computes from the same events."""
    with Lineage.open(MEMORY) as lineage:
        lineage.ingest(EVENTS.read_bytes().splitlines())
        with lineage.store.reader() as reader:
            edges = reader.dump()["edges"]
    return sorted(
        (EdgeKind(kind).name.lower(), source.rsplit(":", 1)[1], target.rsplit(":", 1)[1])
        for kind, source, target, *_ in edges
    )


def test_a_standalone_cluster_with_delta_tables(
    tmp_path: Path, expected: list[tuple[str, ...]]
) -> None:
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


def test_spark_submit(tmp_path: Path, expected: list[tuple[str, ...]]) -> None:
    application = ROOT / "examples" / "lake" / "downriver_lake.py"
    submit = (str(Path(sys.executable).parent / "spark-submit"), "--master", "local[1]")
    source = ("stream", str(EVENTS), "--once")
    submitted = subprocess.run(
        [*submit, "--conf", "spark.sql.shuffle.partitions=1", str(application), *source],
        cwd=tmp_path,
        env={**os.environ, **spark_environment(pyspark.__version__, tmp_path)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert submitted.returncode == 0, submitted.stderr[-3000:]
    assert "facts" in submitted.stdout
    assert edges_of(downriver(tmp_path, "query", EDGES, "--json")) == expected


def test_spark_connect(tmp_path: Path, expected: list[tuple[str, ...]]) -> None:
    environment = {"SPARK_REMOTE": "local[1]"}  # PySpark starts a server for it
    downriver(tmp_path, "ingest", str(EVENTS), **environment)
    downriver(tmp_path, "build", **environment)
    assert edges_of(downriver(tmp_path, "query", EDGES, "--json")) == expected

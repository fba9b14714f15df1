"""Unpivots and rollups, exact to the column; a location with a space is one dataset."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from downriver.service import Lineage

pytestmark = pytest.mark.slow

JOB = """
import sys
from downriver.spark import local_session, track
folder = sys.argv[1]
spark = local_session("shapes", cores=1)
spark.sql("SELECT 1 AS id, 2 AS a, 3 AS b").write.parquet(f"{folder}/in")
track(spark, to=f"{folder}/store")
source = spark.read.parquet(f"{folder}/in")
source.unpivot("id", ["a", "b"], "name", "value").write.parquet(f"{folder}/tall")
source.createOrReplaceTempView("source")
spark.sql("SELECT id, a, sum(b) AS total FROM source GROUP BY ROLLUP (id, a)").write.parquet(
    f"{folder}/sums")
spark.sql(f"INSERT OVERWRITE DIRECTORY '{folder}/copy' USING parquet SELECT a FROM source")
spark.stop()
"""


@pytest.fixture(scope="module")
def lineage(tmp_path_factory: pytest.TempPathFactory) -> Lineage:
    folder = tmp_path_factory.mktemp("a folder")
    subprocess.run([sys.executable, "-c", JOB, str(folder)], check=True, timeout=180)
    return Lineage.open(str(folder / "store"), create=False)


def direct_sources(lineage: Lineage, column: str) -> set[str]:
    answer = lineage.trace(column, "upstream")
    return {edge.source.rpartition("/")[2] for edge in answer.edges if edge.type == "DIRECT"}


@pytest.mark.parametrize(
    ("column", "sources"),
    [
        ("tall.id", {"in:id"}),
        ("tall.value", {"in:a", "in:b"}),
        ("sums.id", {"in:id"}),
        ("sums.a", {"in:a"}),
        ("sums.total", {"in:b"}),
        ("copy.a", {"in:a"}),
    ],
)
def test_each_column_has_its_own_sources(lineage: Lineage, column: str, sources: set[str]) -> None:
    assert direct_sources(lineage, column) == sources


def test_column_names_used_as_values_have_no_source(lineage: Lineage) -> None:
    answer = lineage.trace("in.a")
    assert not [node for node in answer.nodes if node.field == "name"]


def test_every_dataset_has_one_name(lineage: Lineage) -> None:
    named = {node.name for node in lineage.trace("in").nodes if node.kind == "dataset"}
    assert {Path(name).name for name in named} == {"in", "tall", "sums", "copy"}
    assert len(named) == 4

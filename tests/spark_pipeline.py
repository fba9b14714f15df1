"""A small Spark pipeline, started as a user does, and the sources of its output columns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.service import Lineage

PIPELINE = Path(__file__).parent / "e2e" / "spark" / "orders.py"
RANKED = "warehouse:default.ranked"  # a table is identified by its name, not its path
SPARK_SUBMIT = [
    *("spark-submit", "--master", "local[2]"),
    *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"),
]
COLUMN_SOURCES = {
    "by_region.region": {"customers:region"},
    "by_region.revenue": {"orders:amount"},
    "by_region.buyers": {"orders:customer_id"},
    "ranked.amount": {"orders:amount"},
    "ranked.nth": set(),  # columns decide these values, but are not part of them
    "ranked.size": {"orders:status"},
    "latest.customer_id": {f"{RANKED}:customer_id", "customers:id"},
    "latest.twice": {f"{RANKED}:amount"},
    "latest.status": {f"{RANKED}:status", "customers:name"},
}


def submit(
    folder: Path, *options: str, arguments: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the pipeline in `folder` as a user does."""
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
    """Return the source columns of the values of a column, without their folders."""
    answer = lineage.trace(column, "upstream", depth=1)
    return {edge.source.rpartition("/")[2] for edge in answer.edges if edge.type == "DIRECT"}

"""Every golden Spark job has exactly the expected lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.spark_golden import expected, load_cases

if TYPE_CHECKING:
    from tests.spark_golden import Case, GoldenSession

# PySpark leaves the socket over which rows come to Python, and the threads of a search, to the
# garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore:.*multiprocessing.pool.Pool:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning"),
]

CASES = load_cases()


@pytest.mark.parametrize("name", CASES)
def test_a_job_has_its_golden_lineage(golden: GoldenSession, name: str) -> None:
    case: Case = CASES[name]
    if not case.runs_on(golden.spark.version):
        pytest.skip(f"needs Spark {case.since}")
    assert golden.run(name, case) == expected(case)

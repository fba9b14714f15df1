"""The tests' Spark session, with the datasets of the golden cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.spark_golden import GoldenSession

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def golden(spark: Any, spark_folder: Path) -> GoldenSession:
    return GoldenSession(spark, spark_folder)

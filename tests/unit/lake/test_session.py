"""Sessions of the lake: what Spark Connect cannot do, and errors of Spark."""

from __future__ import annotations

import logging
from threading import Event

import pytest

from downriver.errors import LakeError
from downriver.lake.runner import Lake
from downriver.lake.session import is_connected, translated_errors
from downriver.lake.stream import StreamSchedule, run_stream


def test_spark_connect_refuses_streams_with_an_explanation(tmp_path):
    from pyspark.sql.connect.session import SparkSession

    remote = SparkSession.__new__(SparkSession)  # none gets a request
    assert is_connected(remote)
    lake = Lake(str(tmp_path), remote)
    with pytest.raises(LakeError, match=r"spark-submit.*Ingesting files, builds and queries"):
        run_stream(lake, ["x"], StreamSchedule(), Event(), build=True)


class Records(logging.Handler):
    """Records what a logger would print."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record)


def test_an_error_of_spark_is_one_line_without_a_logged_stack(spark):
    from pyspark.errors import AnalysisException
    from pyspark.logger import PySparkLogger

    logger, records = PySparkLogger.getLogger("SQLQueryContextLogger"), Records()
    logger.addHandler(records)
    try:
        one_line = r"^Spark: \[TABLE_OR_VIEW_NOT_FOUND\].*[^\n]$"
        with pytest.raises(LakeError, match=one_line), translated_errors():
            spark.sql("select * from not_there")
        assert not records.kept
        with pytest.raises(AnalysisException):
            spark.sql("select * from not_there")
        assert records.kept, "PySpark logs it elsewhere now"
    finally:
        logger.removeHandler(records)

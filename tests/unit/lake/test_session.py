"""Sessions of the lake: what Spark Connect cannot do, and errors of Spark."""

from __future__ import annotations

import logging
from threading import Event

import pytest

from downriver.errors import LakeError
from downriver.lake import session
from downriver.lake.runner import Lake
from downriver.lake.session import is_connected, is_little_work, translated_errors
from downriver.lake.storage.tables import BronzeBatch, LakeVersion, StoredTable
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


def version(new: int, rows: int) -> LakeVersion:
    tables = {"facts.nodes": StoredTable("builds/1", rows)}
    return LakeVersion(batches=(BronzeBatch(1, "bronze/1", new, 0, 0),), tables=tables)


def test_a_local_spark_is_set_for_little_work(monkeypatch):
    assert is_little_work(version(2_000, 10_000_000))
    assert not is_little_work(version(2_001, 0))
    assert not is_little_work(version(0, 10_000_001))

    started = []

    class Spark:
        def stop(self) -> None:
            """Do nothing."""

    def start(name: str, conf: dict[str, str]) -> Spark:
        started.append(conf)
        return Spark()

    monkeypatch.setattr(session, "_find_running", lambda: None)
    monkeypatch.setattr(session, "local_session", start)
    java = "spark.driver.extraJavaOptions"
    with session.running_session(), session.running_session(short=True):
        pass
    with session.running_session(short=True, conf={java: "-Xss2m"}):
        pass
    assert [conf.get(java) for conf in started] == [
        None,
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
        "-Xss2m",
    ]
    assert "spark.sql.codegen.wholeStage" not in started[0]
    assert started[1]["spark.sql.codegen.wholeStage"] == "false"

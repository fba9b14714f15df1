"""Limits of Spark Connect sessions."""

from __future__ import annotations

from threading import Event

import pytest

from downriver.errors import LakeError
from downriver.lake.runner import Lake
from downriver.lake.session import is_connected
from downriver.lake.stream import StreamSchedule, run_stream


def test_spark_connect_refuses_streams_with_an_explanation(tmp_path):
    from pyspark.sql.connect.session import SparkSession

    remote = SparkSession.__new__(SparkSession)  # none is asked anything
    assert is_connected(remote)
    lake = Lake(str(tmp_path), remote)
    with pytest.raises(LakeError, match=r"spark-submit.*Ingesting files, builds and queries"):
        run_stream(lake, ["x"], StreamSchedule(), Event(), build=True)

"""A Spark catalog is an inventory."""

from __future__ import annotations

from typing import Any

import pytest

from downriver.capture.spark.catalog_tables import list_catalog_tables

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")


def test_tables_of_every_database_are_listed_and_temporary_views_are_not(spark: Any) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS stocktaking")
    spark.sql("CREATE TABLE IF NOT EXISTS stocktaking.items (id INT) USING parquet")
    spark.range(1).createOrReplaceTempView("stocktaking_view")
    try:
        found = list_catalog_tables(spark)
        assert "stocktaking.items" in found
        assert not [name for name in found if name.endswith("stocktaking_view")]
        assert list_catalog_tables() == found
    finally:
        spark.sql("DROP DATABASE stocktaking CASCADE")
        spark.catalog.dropTempView("stocktaking_view")

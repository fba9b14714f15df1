"""Tables of Flink and RisingWave are the topics, files and tables that their options name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver

from downriver.capture.sql import find_connector_tables, parse_sql_lineage
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from pathlib import Path

FLINK = """
CREATE TABLE orders (
  order_id STRING, amount DECIMAL(10, 2), at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL,
  WATERMARK FOR at AS at - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'shop.orders',
  'properties.bootstrap.servers' = 'broker:9092,other:9092', 'format' = 'json'
);
CREATE TABLE revenue (w TIMESTAMP(3), total DECIMAL(10, 2), PRIMARY KEY (w) NOT ENFORCED)
WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://dw:5432/shop',
      'table-name' = 'gold.revenue');
CREATE TABLE console (order_id STRING) WITH ('connector' = 'print');
CREATE TEMPORARY VIEW big AS SELECT * FROM orders WHERE amount > 10;
EXECUTE STATEMENT SET BEGIN
INSERT INTO revenue
SELECT window_start, SUM(amount) AS total
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' HOUR))
GROUP BY window_start, window_end;
INSERT INTO console SELECT order_id FROM big;
END;
"""


@pytest.mark.parametrize(
    ("options", "dataset"),
    [
        ("'connector'='upsert-kafka','topic'='t','properties.bootstrap.servers'='b:1'",
         DatasetId("kafka://b:1", "t")),
        ("connector='kafka', topic='t', properties.bootstrap.server='b:1'",
         DatasetId("kafka://b:1", "t")),
        ("'connector'='filesystem','path'='s3a://lake/clean/','format'='parquet'",
         DatasetId("s3://lake", "clean")),
        ("'connector'='mysql-cdc','hostname'='db','database-name'='shop','table-name'='orders'",
         DatasetId("mysql://db:3306", "shop.orders")),
        ("'connector'='elasticsearch-7','hosts'='http://es:9200;http://es2:9200','index'='Orders'",
         DatasetId("elasticsearch://es:9200", "orders")),
        ("'connector'='mongodb','uri'='mongodb://u:p@m:27017','database'='d','collection'='c'",
         DatasetId("mongodb://m:27017", "d.c")),
    ],
)  # fmt: skip
def test_options_name_the_dataset(options: str, dataset: DatasetId) -> None:
    lineage = parse_sql_lineage(f"CREATE TABLE x (a INT) WITH ({options}); SELECT a FROM x")
    assert find_connector_tables(lineage).datasets == {"x": dataset}
    assert lineage.outputs == []
    assert not lineage.blind_spots


@pytest.mark.parametrize(
    "options",
    ["'connector'='pulsar','topics'='t'", "'connector'='kafka','topic'='a;b'",
     "'connector'='mysql-cdc','hostname'='db','table-name'='orders_.*'"],
)  # fmt: skip
def test_a_connector_whose_dataset_is_not_known_is_a_blind_spot(options: str) -> None:
    lineage = parse_sql_lineage(f"CREATE TABLE x (a INT) WITH ({options}); SELECT a FROM x")
    assert find_connector_tables(lineage).datasets == {}
    assert [spot.kind for spot in lineage.blind_spots] == ["unknown_connector"]


def test_options_of_other_systems_name_no_connector() -> None:
    sql = "CREATE TABLE x (a INT) WITH (format = 'PARQUET', external_location = 's3://lake/x')"
    lineage = parse_sql_lineage(sql, dialect="trino")
    assert find_connector_tables(lineage).datasets == {}
    assert lineage.outputs == ["x"]


@pytest.mark.parametrize("command", [("capture", "scan", "."), ("capture", "sql", "flink.sql")])
def test_a_file_of_flink_connects_topics_with_tables(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "flink.sql").write_text(FLINK)
    done = downriver(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = downriver("trace", "gold.revenue.total", "--upstream", "--full-names", cwd=tmp_path)
    assert "column:kafka://broker:9092:shop.orders:amount · AGGREGATION" in found.stdout
    assert "complete" in found.stdout
    topic = downriver("trace", "shop.orders", "--upstream", cwd=tmp_path)
    assert "flink" not in topic.stdout  # a declaration writes nothing

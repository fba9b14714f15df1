"""Configurations of Kafka Connect: tables, topics and sinks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.recorder import recording_server
from tests.unit.cli.command import downriver

from downriver.capture.kafka.connectors import parse_connectors
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from downriver.capture.entries import ExportedJob

EXAMPLE = Path(__file__).parents[4] / "examples" / "kafka" / "connectors.json"
HOME = "kafka://kafka:9092"


def job_of(config: dict[str, str], *topics: str) -> ExportedJob:
    content = {"name": "one", "config": config, "topics": list(topics)}
    (job,) = parse_connectors(json.dumps(content), "file", "kafka:9092").jobs
    return job


def test_a_debezium_connector_reads_its_tables_and_names_the_routed_topics():
    job = parse_connectors(EXAMPLE.read_bytes(), "file", "kafka:9092").jobs[0]
    assert job.id == JobId("kafka-connect", "shop")
    place = "postgres://db.example.com:5432"
    assert job.origins == {
        DatasetId(HOME, name): [DatasetId(place, f"shop.public.{name}")]
        for name in ("orders", "customers")
    }


JDBC = "io.confluent.connect.jdbc.JdbcSinkConnector"
MYSQL = {"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "crm",
         "database.hostname": "db"}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "target"),
    [
        ({"connector.class": JDBC, "connection.url": "jdbc:postgresql://dw/shop",
          "table.name.format": "raw.${topic}"}, DatasetId("postgres://dw:5432", "shop.raw.t")),
        ({"connector.class": "io.confluent.connect.s3.S3SinkConnector", "s3.bucket.name": "lake",
          "topics.dir": "raw"}, DatasetId("s3://lake", "raw/t")),
        ({"connector.class": "com.wepay.kafka.connect.bigquery.BigQuerySinkConnector",
          "project": "p", "defaultDataset": "d"}, DatasetId("bigquery", "p.d.t")),
        ({"connector.class": "com.mongodb.kafka.connect.MongoSinkConnector", "database": "d",
          "connection.uri": "mongodb://u:secret@m:27017/?x=1"},
         DatasetId("mongodb://m:27017", "d.t")),
        ({"connector.class": "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
          "connection.url": "http://es:9200"}, DatasetId("elasticsearch://es:9200", "t")),
    ],
)  # fmt: skip
def test_the_target_of_a_sink(config, target):
    job = job_of({**config, "topics": "t"})
    assert job.inputs == [DatasetId(HOME, "t")]
    assert list(job.outputs) == [target]


def test_tables_that_a_pattern_selects_are_known_from_the_topics_in_use():
    job = job_of({**MYSQL, "table.include.list": "shop\\..*"}, "crm.shop.orders", "crm")
    assert job.inputs == [DatasetId("mysql://db:3306", "shop.orders")]


def test_without_topics_the_tables_of_a_pattern_are_a_blind_spot():
    job = job_of({**MYSQL, "table.include.list": "shop\\..*"})
    assert "does not list what it reads" in job.blind_spots[0].message


def test_a_connector_of_an_unknown_class_is_a_blind_spot():
    job = job_of({"connector.class": "com.example.Odd", "topics": "t"})
    assert "com.example.Odd" in job.blind_spots[0].message


@pytest.mark.parametrize("text", ["[]", "{}", '{"name": "x"}', "no json"])
def test_what_is_no_configuration_is_refused(text):
    with pytest.raises(InvalidRequestError):
        parse_connectors(text, "file", "kafka:9092")


def test_connectors_are_imported_from_the_rest_api(tmp_path: Path):
    config = {**MYSQL, "name": "crm-source", "database.password": "secret"}
    answers = {
        "/connectors?expand=info": {"crm-source": {"info": {"name": "x", "config": config}}},
        "/connectors/crm-source/topics": {"crm-source": {"topics": ["crm.shop.orders"]}},
    }
    with recording_server(answers) as server:
        done = downriver("import", "kafka-connect", server.url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = downriver("trace", "crm.shop.orders", "--upstream", cwd=tmp_path)
    assert "shop.orders (mysql://db:3306)" in found.stdout


def test_a_server_that_is_not_kafka_connect_is_an_error(tmp_path: Path):
    with recording_server({}) as server:
        done = downriver("import", "kafka-connect", server.url, cwd=tmp_path)
    assert done.returncode == 2
    assert "status 404" in done.stderr

"""`downriver lake …` as people type it."""

from __future__ import annotations

import json

import pytest
from tests.openlineage import encode, run_event
from tests.unit.cli.command import downriver

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_ingest_build_and_query(spark, tmp_path):
    (tmp_path / "events.jsonl").write_bytes(encode(run_event()) + b"\nnonsense\n")
    ingested = downriver("lake", "ingest", "events.jsonl", cwd=tmp_path)
    assert ingested.returncode == 1, "a line could not be read"
    assert ingested.stdout.startswith("bronze   2 in, 1 out, 1 rejected (")
    assert downriver("lake", "build", cwd=tmp_path).stdout.count(" in, ") == 5
    assert downriver("lake", "build", cwd=tmp_path).stdout == "no new events since the last build\n"

    status = json.loads(downriver("lake", "status", "--json", cwd=tmp_path).stdout)
    assert (status["version"], status["events"], status["quarantined"]) == (2, 1, 1)
    assert status["tables"]["gold.nodes"] == 1
    assert "gold.nodes" in downriver("lake", "status", cwd=tmp_path).stdout

    sql = """
        SELECT job_name, state, first_seen, struct(1 AS a) AS s, digest
        FROM silver_runs, bronze_events
    """
    answer = json.loads(downriver("lake", "query", sql, "--json", cwd=tmp_path).stdout)
    assert answer["columns"] == ["job_name", "state", "first_seen", "s", "digest"]
    [row] = answer["rows"]
    assert row[:4] == ["load", "complete", "2026-01-01T12:00:00Z", {"a": 1}]
    shown = downriver("lake", "query", "SELECT explode(array(1, 2))", "--limit", "1", cwd=tmp_path)
    assert shown.stdout.split()[1:4] == ["1", "…", "more"]

    wrong = downriver("lake", "query", "SELECT nothing FROM gold_nodes", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "nothing" in wrong.stderr
    assert "Traceback" not in wrong.stderr

    unknown = downriver("lake", "query", "SELECT * FROM gold_node", cwd=tmp_path)
    assert unknown.returncode == 2
    message = " ".join(unknown.stderr.split())
    assert "no table 'gold_node'. Did you mean: gold_nodes" in message
    assert "silver_runs" in message, "all tables are listed"
    assert "JVM" not in message


def test_status_without_a_lake_is_an_error(tmp_path):
    done = downriver("lake", "status", "--lake", "elsewhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "no lake in elsewhere" in done.stderr


def test_streamed_events_are_compared_published_and_cleaned(spark, tmp_path):
    (tmp_path / "events.jsonl").write_bytes(encode(run_event()) + b"\n")
    done = downriver("lake", "stream", "events.jsonl", "--once", cwd=tmp_path)
    assert done.returncode == 0
    assert (done.stdout.count("bronze"), done.stdout.count("facts")) == (1, 1)
    (tmp_path / "events.jsonl").write_bytes(
        b"".join(encode(run_event(run=str(number))) + b"\n" for number in range(3))
    )
    again = downriver("lake", "stream", "events.jsonl", "--once", cwd=tmp_path)
    assert "bronze   3 in, 3 out (" in again.stdout

    differ = json.loads(downriver("lake", "diff", "2", "4", "--json", cwd=tmp_path).stdout)
    assert differ["edges"]["rows"] == []
    early = downriver("lake", "diff", "1", "2", cwd=tmp_path)
    assert "before the first build" in early.stderr

    published = json.loads(downriver("lake", "publish", "--json", cwd=tmp_path).stdout)
    assert published == {"events": 4, "duplicates": 0}
    again = downriver("lake", "publish", cwd=tmp_path)
    assert again.stdout == "0 events published, 4 duplicates\n"
    status = json.loads(downriver("status", "--json", cwd=tmp_path).stdout)
    assert (status["counts"]["events"], status["counts"]["runs"]) == (4, 4)

    cleaned = json.loads(downriver("lake", "clean", "--keep", "1", "--json", cwd=tmp_path).stdout)
    assert cleaned["versions"] == [1, 2, 3]
    # The tables of the first build, and the list of files that a later list contains.
    assert [folder.partition("/")[0] for folder in cleaned["folders"]] == ["builds", "sources"]
    kept = [(each["folder"].partition("/")[0], each["reason"]) for each in cleaned["kept"]]
    folders = ["bronze", "bronze", "builds", "sources"]  # two batches of events
    assert sorted(kept) == [(folder, "used by version 4") for folder in folders]
    left = json.loads(downriver("lake", "status", "--json", cwd=tmp_path).stdout)
    assert (left["version"], left["events"]) == (4, 4)


def test_kafka_without_its_package_and_an_invalid_topic(spark, tmp_path):
    done = downriver("lake", "ingest", "kafka://localhost:9092/events", cwd=tmp_path)
    assert done.returncode == 2
    assert "spark-sql-kafka" in done.stderr
    done = downriver("lake", "stream", "kafka://localhost:9092", cwd=tmp_path)
    assert "kafka://host:9092/topic" in done.stderr
    done = downriver("lake", "stream", "kafka://h:1/t", "events.jsonl", cwd=tmp_path)
    assert "one topic" in done.stderr


def test_settings_reach_spark(tmp_path):
    sql = "SET spark.sql.shuffle.partitions"
    (tmp_path / "events.jsonl").write_bytes(encode(run_event()) + b"\n")
    downriver("lake", "ingest", "events.jsonl", cwd=tmp_path)
    conf = ("--conf", "spark.sql.shuffle.partitions=7")
    answer = json.loads(downriver("lake", "query", sql, *conf, "--json", cwd=tmp_path).stdout)
    assert answer["rows"] == [["spark.sql.shuffle.partitions", "7"]]
    wrong = downriver("lake", "build", "--conf", "memory", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "spark.executor.memory=4g" in wrong.stderr


def test_delta_without_its_package(spark, tmp_path):
    done = downriver("lake", "build", "--format", "delta", cwd=tmp_path)
    assert done.returncode == 2
    assert "delta-spark" in done.stderr
    done = downriver("lake", "build", "--format", "iceberg", cwd=tmp_path)
    assert "parquet or delta" in done.stderr


def test_a_source_that_is_not_there(spark, tmp_path):
    done = downriver("lake", "stream", "nowhere", "--once", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere: no such file" in done.stderr


def test_an_invalid_trigger_is_refused(tmp_path):
    done = downriver("lake", "stream", "x", "--trigger", "soon", cwd=tmp_path)
    assert done.returncode == 2
    assert "30s, 5m or 1h" in done.stderr
